#include "runtime/evaluate.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {

absl::Status AtNode(const Node& node, const absl::Status& status) {
  return Annotate(status, absl::StrCat("node '", node.name, "' (", node.op->name, ")"));
}

bool CanEvaluate(const Node& node) {
  return !node.op->stateful && node.subgraphs.empty() && !node.inputs.empty();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const Node& node, absl::Span<const ValueInfo> inputs,
                                                   const KernelOptions& options) {
  DType key = inputs.empty() ? node.attrs.Type("dtype") : inputs[0].type.dtype;
  if (node.op->name == "Select" && inputs.size() == 3) key = inputs[1].type.dtype;
  KernelFactory make = FindKernel(node.op->name, DeviceKind::kCpu, key);
  if (make == nullptr) {
    return absl::UnimplementedError(absl::StrCat(node.op->name, " has no kernel for ", DTypeName(key)));
  }
  return make(KernelArgs{node, inputs, options});
}

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor> inputs,
                                                 absl::Span<const TensorType> out, const KernelOptions& options) {
  if (node.op->alias) return std::vector<Tensor>{inputs[0].Reshaped(out[0].shape.At(0))};
  std::vector<ValueInfo> infos;
  std::vector<TensorView> in_views, out_views;
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<Tensor> outputs;
  for (const Tensor& t : inputs) {
    infos.push_back({TensorType{t.dtype(), SymShape(t.shape())}, t, {}});
    in_views.push_back(t.view());
    in_shapes.push_back(t.shape());
  }
  for (const TensorType& type : out) {
    const Shape shape = type.shape.At(0);
    outputs.push_back(Tensor::Allocate(type.dtype, shape));
    out_views.push_back(outputs.back().view());
    out_shapes.push_back(shape);
  }
  FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeKernel(node, infos, options));
  AlignedBuffer scratch(static_cast<size_t>(kernel->ScratchBytes(in_shapes, out_shapes)));
  ThreadPool pool(1);
  FLOE_RETURN_IF_ERROR(kernel->Run({in_views, out_views, scratch.data(), &pool}));
  return outputs;
}

}  // namespace floe
