// Models that tests of REST send JSON to, and the tensors that come of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/fakes_for_test.h"
#include "server/api/rest/json_text.h"
#include "server/api/rest/predict_json.h"

namespace floe::server {

// A placeholder and its Identity: "x" of these dims ("-1, 3") and the output "x_out".
inline std::string JsonNode(const std::string& name, const std::string& dtype,
                            const std::vector<int>& dims) {
  std::string shape;
  for (const int dim : dims) absl::StrAppend(&shape, "dim { size: ", dim, " } ");
  return absl::StrCat(
      "node { name: '", name, "' op: 'Placeholder' attr { key: 'dtype' value { type: ", dtype,
      " } } attr { key: 'shape' value { shape { ", shape, "} } } }\nnode { name: '", name,
      "_out' op: 'Identity' input: '", name, "' attr { key: 'T' value { type: ", dtype, " } } }\n");
}

inline std::shared_ptr<FakeServed> JsonModel(const std::string& graph) {
  auto imported = ImportBytes(graph, {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return nullptr;
  auto model = Model::Create(
      {{"m", 1, ""}, std::move(imported->graph), std::move(imported->signatures)}, {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? std::make_shared<FakeServed>(*model) : nullptr;
}

// What a body was read as.
struct JsonAsked {
  absl::Status status;
  Inference asked;
  JsonLayout layout = JsonLayout::kRows;

  const TensorView& Input(const std::string& key) const {
    return asked.inputs[static_cast<size_t>(asked.signature->FindInput(key))];
  }
  template <typename T>
  std::vector<T> Values(const std::string& key) const {
    const TensorView& view = Input(key);
    return std::vector<T>(view.as<T>(), view.as<T>() + view.elements());
  }
};

inline std::unique_ptr<JsonAsked> AskJson(const FakeServed& served, const std::string& body,
                                          const MemoryBudget* memory = nullptr,
                                          int64_t max_bytes = INT64_MAX) {
  auto out = std::make_unique<JsonAsked>();
  out->asked.storage = InputStorage(max_bytes, memory);
  const std::string padded = body + std::string(kJsonPadding, '\0');
  const auto find = [&](const ModelSpec&) -> absl::StatusOr<const ServedModel*> { return &served; };
  out->status = DecodePredictJson(std::string_view(padded).substr(0, body.size()), {"m", {}, {}},
                                  memory, find, &out->asked, &out->layout);
  return out;
}

}  // namespace floe::server
