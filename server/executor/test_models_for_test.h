// Tiny models for tests, as text GraphDefs, and how to compile and feed them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/import/import.h"
#include "server/request/request.h"

namespace floe::server {

// y = relu(2 x), x float32 [?, 2].
inline constexpr char kTwiceGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 2 } } } }
node { name: "twice" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "twice" attr { key: "T" value { type: DT_FLOAT } } }
)";

// y = x * scale, x float32 [?, ?], scale float32 scalar: an input without rows.
inline constexpr char kScaleGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: -1 } } } } }
node { name: "scale" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { } } } }
node { name: "y" op: "Mul" input: "x" input: "scale" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 22 }
)";

// y = x - mean of all rows: no row may share a run with another caller's.
inline constexpr char kCentredGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 1 } } } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
node { name: "mean" op: "Mean" input: "x" input: "axis" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "Tidx" value { type: DT_INT32 } } attr { key: "keep_dims" value { b: true } } }
node { name: "y" op: "Sub" input: "x" input: "mean" attr { key: "T" value { type: DT_FLOAT } } }
)";

// y = every x times every x, x float32 [?]: 40 GB for 100,000 numbers.
inline constexpr char kOuterGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "row" op: "ExpandDims" input: "x" input: "zero" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "column" op: "ExpandDims" input: "x" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Mul" input: "row" input: "column" attr { key: "T" value { type: DT_FLOAT } } }
)";

inline ModelHandle CompileText(const std::string& text, const CompileOptions& options = {},
                               const std::string& path = "", const ImportOptions& import = {}) {
  auto imported = ImportBytes(text, import);
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return nullptr;
  auto model = Model::Create(
      {{"test", 1, path}, std::move(imported->graph), std::move(imported->signatures)}, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

// A request with float32 inputs and what was answered to it.
struct FloatCall {
  struct Input {
    Shape shape;
    std::vector<float> values;
  };
  std::vector<Input> inputs;
  int answers = 0;
  absl::Status status;
  Shape shape;
  std::vector<float> result;  // of output 0

  explicit FloatCall(std::vector<Input> in) : inputs(std::move(in)) {}

  std::shared_ptr<Inference> Ask(const ModelHandle& model) {
    auto asked = std::make_shared<Inference>();
    asked->model = model;
    asked->signature = model->Find("");
    for (Input& input : inputs)
      asked->inputs.push_back({DType::kFloat32, input.shape, input.values.data()});
    return asked;
  }
  Request MakeRequest(const ModelHandle& model) { return MakeRequest(Ask(model)); }
  Request MakeRequest(std::shared_ptr<const Inference> asked) {
    Request request{.asked = std::move(asked)};
    request.complete = [this](const absl::StatusOr<Outputs>& outputs, const Timings&) {
      ++answers;
      status = outputs.status();
      if (!outputs.ok()) return;
      const TensorView& output = (*outputs)[0];
      shape = output.shape;
      result.assign(output.as<float>(), output.as<float>() + output.elements());
    };
    return request;
  }
};

}  // namespace floe::server
