// Any bytes as the body of REST's predict and infer, to models with inputs of several dtypes: what
// is read has the values of its own text, written as a reply and read again; and a refused body is
// refused whatever space stands around it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/import/import.h"
#include "server/api/rest/infer_json.h"
#include "server/api/rest/json_text.h"
#include "server/api/rest/predict_json.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/served.h"

namespace floe::fuzz {
namespace {

using server::FindServed;
using server::Inference;
using server::JsonLayout;
using server::kJsonPadding;

constexpr int64_t kMostBytes = int64_t{1} << 20;

std::string Node(const char* name, const char* dtype) {
  return absl::StrCat(
      "node { name: '", name, "' op: 'Placeholder' attr { key: 'dtype' value { type: ", dtype,
      " } } attr { key: 'shape' value { shape { unknown_rank: true } } } }\nnode { name: '", name,
      "_out' op: 'Identity' input: '", name, "' attr { key: 'T' value { type: ", dtype, " } } }\n");
}

std::unique_ptr<Served> MakeServed(const std::string& graph) {
  auto imported = ImportBytes(graph, {});
  if (!imported.ok()) Fail("a graph is none: " + imported.status().ToString());
  auto model = Model::Create(
      {{"m", 1, ""}, std::move(imported->graph), std::move(imported->signatures)}, {});
  if (!model.ok()) Fail("a graph is no model: " + model.status().ToString());
  return std::make_unique<Served>(*model);
}

// A model with one input of a dtype, or, for the last one, with all of them.
const std::vector<std::unique_ptr<Served>>& Models() {
  static const auto* models = [] {
    auto* made = new std::vector<std::unique_ptr<Served>>;
    std::string all;
    for (const auto& [name, dtype] :
         {std::pair("f", "DT_FLOAT"), std::pair("d", "DT_DOUBLE"), std::pair("i", "DT_INT64"),
          std::pair("s", "DT_STRING"), std::pair("b", "DT_BOOL"), std::pair("u", "DT_UINT8")}) {
      made->push_back(MakeServed(Node(name, dtype)));
      all += Node(name, dtype);
    }
    made->push_back(MakeServed(all));
    return made;
  }();
  return *models;
}

struct Read {
  absl::Status status;
  Inference asked;
  JsonLayout layout = JsonLayout::kRows;
};

std::unique_ptr<Read> ReadBody(const Served& served, std::string_view body) {
  auto read = std::make_unique<Read>();
  read->asked.storage = server::InputStorage(kMostBytes);
  const std::string padded = absl::StrCat(std::string(body), std::string(kJsonPadding, '\0'));
  const auto find = [&](const server::ModelSpec&) -> absl::StatusOr<const server::ServedModel*> {
    return &served;
  };
  read->status =
      server::DecodePredictJson(std::string_view(padded).substr(0, body.size()), {"m", {}, {}},
                                nullptr, find, &read->asked, &read->layout);
  return read;
}

bool SameElement(const TensorView& a, const TensorView& b, int64_t i) {
  if (a.dtype == DType::kString) return a.as<std::string>()[i] == b.as<std::string>()[i];
  const size_t size = DTypeSize(a.dtype);
  const size_t at = static_cast<size_t>(i) * size;
  if (std::memcmp(a.as<char>() + at, b.as<char>() + at, size) == 0) return true;
  if (a.dtype == DType::kFloat32) return a.as<float>()[i] != a.as<float>()[i];
  return a.dtype == DType::kFloat64 && a.as<double>()[i] != a.as<double>()[i];
}

// The inputs as columns: every shape can be written so, but for lists without elements.
void CheckWrittenAgain(const Served& served, const Read& read) {
  const std::vector<SignatureTensor>& inputs = read.asked.signature->def().inputs;
  std::string body = R"({"inputs":)";
  char before = '{';
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (read.asked.inputs[i].elements() == 0) return;
    body.push_back(std::exchange(before, ','));
    server::AppendJsonString(inputs[i].key, &body);
    body.push_back(':');
    server::AppendJsonTensor(read.asked.inputs[i], 0, 0, false, &body);
  }
  const auto again = ReadBody(served, body + "}}");
  if (!again->status.ok()) Fail("what was written is refused: " + again->status.ToString());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView &a = read.asked.inputs[i], &b = again->asked.inputs[i];
    if (a.shape != b.shape) Fail("a shape is another one");
    for (int64_t k = 0; k < a.elements(); ++k)
      if (!SameElement(a, b, k)) Fail("a value is another one");
  }
}

// As a body of KServe's infer, whose JSON ends before the first zero byte. What was read is written
// as the reply would be, and its JSON is read as a body of its own kind.
absl::Status RunInfer(const Served& served, std::string_view body) {
  Inference asked;
  server::InferJsonForm form;
  asked.storage = server::InputStorage(kMostBytes);
  const std::string padded = absl::StrCat(std::string(body), std::string(kJsonPadding, '\0'));
  const auto find = [&](const server::ModelSpec&) -> absl::StatusOr<const server::ServedModel*> {
    return &served;
  };
  absl::Status status = server::DecodeInferJson(std::string_view(padded).substr(0, body.size()),
                                                std::min(body.find('\0'), body.size()),
                                                {"m", {}, {}}, nullptr, find, &asked, &form);
  if (!status.ok() || asked.inputs.size() != 1) return status;
  if (asked.pending != nullptr && !asked.pending->Decode().ok()) return status;
  std::string reply;
  size_t json_bytes = 0;
  const absl::Status written =
      server::EncodeInferJson(asked, {asked.inputs.data(), 1}, form, nullptr, &reply, &json_bytes);
  if (written.ok() && json_bytes > reply.size()) Fail("the JSON is longer than the reply");
  return status;
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("no model");
  const auto& models = Models();
  const Served& served = *models[static_cast<unsigned char>(bytes[0]) % models.size()];
  const std::string_view body = std::string_view(bytes).substr(1);
  if (static_cast<unsigned char>(bytes[0]) >= 0x80) return RunInfer(served, body);
  const auto read = ReadBody(served, body);
  const auto spaced = ReadBody(served, absl::StrCat(" \n", std::string(body), "\t "));
  if (read->status.ok() != spaced->status.ok()) Fail("space makes a difference");
  if (!read->status.ok() && read->status.message().empty()) Fail("a refusal has no reason");
  if (read->status.ok()) CheckWrittenAgain(served, *read);
  return read->status;
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  static constexpr std::string_view kParts[] = {"[",
                                                "]",
                                                "{",
                                                "}",
                                                ",",
                                                ":",
                                                "\"",
                                                "{\"b64\":\"AA==\"}",
                                                "NaN",
                                                "Infinity",
                                                "1.5",
                                                "-1",
                                                "1e-46",
                                                "true",
                                                "null",
                                                "\"f\":[1]",
                                                "\"inputs\":",
                                                "\"shape\":[1]",
                                                "\"binary_data_size\":4",
                                                "[[1],[2]]",
                                                "300",
                                                "\\u",
                                                "\"signature_name\":",
                                                "18446744073709551616",
                                                "[]"};
  if (random.OneIn(3)) return MutateBytes(bytes, max_size);
  return PutInto(bytes, random.Pick(kParts), random);
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
