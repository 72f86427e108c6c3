#include "runtime/evaluate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {

absl::Status AtNode(const Node& node, const absl::Status& status) {
  return Annotate(status, absl::StrCat("node '", node.name, "' (", node.op->name, ")"));
}

bool CanEvaluate(const Node& node) {
  return !node.op->stateful && !node.op->effect && node.subgraphs.empty() && !node.inputs.empty();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const Node& node,
                                                   absl::Span<const ValueInfo> inputs,
                                                   const KernelOptions& options) {
  const DType key = inputs.empty() ? node.attrs.Type("dtype") : inputs[0].type.dtype;
  KernelFactory make = FindKernel(node.op->name, DeviceKind::kCpu, key);
  if (make == nullptr) {
    const char* const why = node.op->without_kernel;
    return absl::UnimplementedError(
        why != nullptr ? absl::StrCat(node.op->name, ": ", why)
                       : absl::StrCat(node.op->name, " has no kernel for ", DTypeName(key)));
  }
  return make(KernelArgs{node, inputs, options});
}

absl::StatusOr<TensorView> HeapOutputs::Allocate(int output, DType dtype, const Shape& shape) {
  FLOE_RETURN_IF_ERROR(
      CheckedElements(shape.dims(), std::max<size_t>(DTypeSize(dtype), 1)).status());
  if (static_cast<int>(tensors.size()) <= output) tensors.resize(output + 1);
  if (pool_ == nullptr) {
    tensors[output] = Tensor::Allocate(dtype, shape);
  } else {
    FLOE_ASSIGN_OR_RETURN(tensors[output], pool_->Allocate(dtype, shape));
  }
  return tensors[output].view();
}

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor> inputs,
                                                 absl::Span<const TensorType> out,
                                                 const KernelOptions& options) {
  if (node.op->alias) return std::vector<Tensor>{inputs[0].Reshaped(out[0].shape.At(0))};
  std::vector<ValueInfo> infos;
  std::vector<TensorView> in_views, out_views;
  std::vector<Shape> in_shapes, out_shapes;
  HeapOutputs outputs;
  for (const Tensor& t : inputs) {
    infos.push_back({TensorType{t.dtype(), SymShape(t.shape())}, t, {}});
    in_views.push_back(t.view());
    in_shapes.push_back(t.shape());
  }
  for (size_t k = 0; k < out.size() && !node.op->allocates; ++k) {
    const Shape shape = out[k].shape.At(0);
    FLOE_ASSIGN_OR_RETURN(const TensorView view,
                          outputs.Allocate(static_cast<int>(k), out[k].dtype, shape));
    out_views.push_back(view);
    out_shapes.push_back(shape);
  }
  FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeKernel(node, infos, options));
  AlignedBuffer scratch(static_cast<size_t>(kernel->ScratchBytes(in_shapes, out_shapes)));
  ThreadPool pool(1);
  FLOE_RETURN_IF_ERROR(kernel->Run({in_views, out_views, scratch.data(), &pool, &outputs}));
  if (outputs.tensors.size() < out.size())
    return absl::InternalError("the kernel left an output without memory");
  return std::move(outputs.tensors);
}

}  // namespace floe
