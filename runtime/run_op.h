// Runs one op by TensorFlow's name through inference, factory and kernel, for tests; makes and
// reads small tensors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/check_inputs.h"
#include "runtime/evaluate.h"

namespace floe {

template <class T>
Tensor TensorOf(DType dtype, const Shape& shape, const std::vector<T>& values) {
  return Tensor::Vector(dtype, values).Reshaped(shape);
}
inline Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return TensorOf(DType::kFloat32, shape, values);
}
inline Tensor Ints(const Shape& shape, const std::vector<int32_t>& values) {
  return TensorOf(DType::kInt32, shape, values);
}
inline Tensor Longs(const Shape& shape, const std::vector<int64_t>& values) {
  return TensorOf(DType::kInt64, shape, values);
}
inline Tensor Strings(const std::vector<std::string>& values) {
  Tensor t = Tensor::Allocate(DType::kString, Shape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), static_cast<std::string*>(t.mutable_data()));
  return t;
}

// Outputs, or the error of inference or kernel. `outputs`: how many, where the op leaves it open.
// `known`: whether inference sees the inputs' values.
inline absl::StatusOr<std::vector<Tensor>> RunOp(const std::string& op,
                                                 const std::vector<Tensor>& inputs,
                                                 Attrs attrs = {}, int outputs = 1,
                                                 bool known = true) {
  Node node;
  node.op = FindTensorFlowOp(op);
  if (node.op == nullptr) return absl::NotFoundError("no op " + op);
  node.attrs = std::move(attrs);
  node.num_outputs = node.op->outputs < 0 ? outputs : node.op->outputs;
  std::vector<ValueInfo> infos;
  infos.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    infos.push_back(
        {TensorType{input.dtype(), SymShape(input.shape())}, known ? input : Tensor(), {}});
  }
  FLOE_ASSIGN_OR_RETURN(const Types types, InferChecked(node, infos));
  return EvaluateNode(node, inputs, types, {});
}

template <class T>
std::vector<T> Values(const absl::StatusOr<std::vector<Tensor>>& outputs, int k = 0) {
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  const Tensor& t = outputs->at(k);
  return std::vector<T>(t.as<T>(), t.as<T>() + t.elements());
}
inline std::string Message(const absl::StatusOr<std::vector<Tensor>>& outputs) {
  return std::string(outputs.status().message());
}

inline Attrs WithAll(const std::vector<std::pair<std::string, AttrValue>>& values) {
  Attrs attrs;
  for (const auto& [name, value] : values) attrs.Set(name, value);
  return attrs;
}
template <class T>
Attrs With(const std::string& name, T value) {
  return WithAll({{name, AttrValue(std::move(value))}});
}

}  // namespace floe
