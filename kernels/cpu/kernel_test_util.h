// Runs one op through its inference, its kernel factory and its kernel, for unit tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/kernel.h"
#include "model/check_inputs.h"

namespace floe {

// What a test may vary.
struct RunOptions {
  KernelOptions kernels;
  int threads = 1;
  uint64_t const_mask =
      0;  // bit i: input i is a constant (a weight), known to inference and the factory
};

inline Tensor FloatTensor(const Shape& shape, const std::vector<float>& values) {
  Tensor t = Tensor::Allocate(DType::kFloat32, shape);
  if (!values.empty()) std::memcpy(t.mutable_data(), values.data(), values.size() * sizeof(float));
  return t;
}

// float32 numbers in [-1, 1): those of libstdc++'s uniform_real_distribution, which takes two
// logarithms for each where nothing is optimised.
inline Tensor RandomTensor(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor t = Tensor::Allocate(DType::kFloat32, shape);
  auto* values = static_cast<float*>(t.mutable_data());
  for (int64_t i = 0; i < t.elements(); ++i)
    values[i] = 2 * std::min(static_cast<float>(random()) * 0x1p-32F, 1 - 0x1p-24F) - 1;
  return t;
}

// A kernel made for `inputs`, to be run with these or other values of the same types.
struct TestKernel {
  Node node;
  std::vector<ValueInfo> infos;
  std::vector<TensorType> output_types;
  KernelOptions options;
  std::unique_ptr<Kernel> kernel;
};

// Errors of inference and of the factory come back; NOT_FOUND when op or kernel is missing.
inline absl::StatusOr<std::unique_ptr<TestKernel>> MakeTestKernel(const std::string& op,
                                                                  const Attrs& attrs,
                                                                  const std::vector<Tensor>& inputs,
                                                                  const RunOptions& options = {}) {
  auto made = std::make_unique<TestKernel>();
  made->node.name = "under_test";
  made->node.op = FindOp(op);
  made->node.attrs = attrs;
  made->options = options.kernels;
  if (made->node.op == nullptr) return absl::NotFoundError(absl::StrCat("no op ", op));
  for (size_t i = 0; i < inputs.size(); ++i) {
    ValueInfo info;
    info.type = {inputs[i].dtype(), SymShape(inputs[i].shape())};
    if ((options.const_mask >> i) & 1) info.constant = inputs[i];
    made->infos.push_back(info);
  }
  FLOE_ASSIGN_OR_RETURN(made->output_types, InferChecked(made->node, made->infos));
  made->node.num_outputs = static_cast<int>(made->output_types.size());
  const DType key = inputs.empty() ? made->output_types[0].dtype : inputs[0].dtype();
  const KernelFactory factory = FindKernel(op, options.kernels.device, key);
  if (factory == nullptr)
    return absl::NotFoundError(absl::StrCat("no kernel for ", op, " of ", DTypeName(key)));
  FLOE_ASSIGN_OR_RETURN(made->kernel, factory(KernelArgs{made->node, made->infos, made->options}));
  return made;
}

// Runs a made kernel; `output_shapes` must be concrete. Outputs are followed by canaries and filled
// with a pattern first; INTERNAL when a canary was overwritten. Scratch is filled with NaN patterns
// and guarded alike.
inline absl::StatusOr<std::vector<Tensor>> RunTestKernel(
    const Kernel& kernel, const std::vector<Tensor>& inputs,
    const std::vector<TensorType>& output_types, int threads = 1) {
  constexpr size_t kGuard = 256;
  constexpr int kPattern = 0xFF;  // as float32: NaN
  std::vector<TensorView> in, out;
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<AlignedBuffer> buffers;
  std::vector<Tensor> results;
  for (const Tensor& t : inputs) {
    in.push_back(t.view());
    in_shapes.push_back(t.shape());
  }
  for (const TensorType& type : output_types) {
    if (!type.shape.concrete())
      return absl::FailedPreconditionError("output shape is not concrete");
    const Shape shape = type.shape.At(1);
    out_shapes.push_back(shape);
    if (type.dtype == DType::kString) {
      results.push_back(Tensor::Allocate(type.dtype, shape));
      out.push_back(results.back().view());
      buffers.emplace_back();
      continue;
    }
    results.emplace_back();
    const size_t bytes = static_cast<size_t>(shape.elements()) * DTypeSize(type.dtype);
    buffers.emplace_back(bytes + kGuard);
    std::memset(buffers.back().data(), kPattern, bytes + kGuard);
    out.push_back({type.dtype, shape, buffers.back().data()});
  }
  const size_t scratch_bytes = static_cast<size_t>(kernel.ScratchBytes(in_shapes, out_shapes));
  AlignedBuffer scratch(scratch_bytes + kGuard);
  std::memset(scratch.data(), kPattern, scratch_bytes + kGuard);
  ThreadPool pool(threads);
  FLOE_RETURN_IF_ERROR(kernel.Run({in, out, scratch.data(), &pool}));
  const auto intact = [&](const std::byte* guard) {
    for (size_t i = 0; i < kGuard; ++i) {
      if (guard[i] != std::byte{kPattern}) return false;
    }
    return true;
  };
  if (!intact(scratch.data() + scratch_bytes))
    return absl::InternalError("wrote behind its scratch");
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].dtype == DType::kString) continue;
    if (!intact(buffers[i].data() + out[i].bytes())) {
      return absl::InternalError(absl::StrCat("wrote behind output ", i));
    }
    results[i] = Tensor::Copy(out[i]);
  }
  return results;
}

// Both steps.
inline absl::StatusOr<std::vector<Tensor>> RunKernel(const std::string& op, const Attrs& attrs,
                                                     const std::vector<Tensor>& inputs,
                                                     const RunOptions& options = {}) {
  FLOE_ASSIGN_OR_RETURN(std::unique_ptr<TestKernel> made,
                        MakeTestKernel(op, attrs, inputs, options));
  return RunTestKernel(*made->kernel, inputs, made->output_types, options.threads);
}

}  // namespace floe
