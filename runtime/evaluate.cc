#include "runtime/evaluate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/check_inputs.h"

namespace floe {
namespace {

constexpr int kMaxRank = 254;                        // TensorFlow's
constexpr int64_t kMaxRowFactor = int64_t{1} << 31;  // times as many rows stays below 2^63

// Memory of one element.
size_t ElementBytes(DType dtype) {
  const size_t size = DTypeSize(dtype);
  return size != 0 ? size : sizeof(std::string);
}

int64_t MaxValueBytes() {
  const Budget* budget = Budget::Current();
  return budget == nullptr ? ResourceLimits().max_value_bytes : budget->limits().max_value_bytes;
}

}  // namespace

absl::Status AtNode(const Node& node, const absl::Status& status) {
  return Annotate(status, absl::StrCat("node ", Quoted(node.name), " (", node.op->name, ")"));
}

bool CanEvaluate(const Node& node) {
  return !node.op->stateful && !node.op->effect && node.subgraphs.empty() && !node.inputs.empty();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const Node& node,
                                                   absl::Span<const ValueInfo> inputs,
                                                   const KernelOptions& options) {
  const DType key = KernelDType(node, inputs);
  KernelFactory make = FindKernel(node.op->name, options.device, key);
  if (make == nullptr) {
    const char* const why = node.op->without_kernel;
    return absl::UnimplementedError(
        why != nullptr ? absl::StrCat(node.op->name, ": ", why)
                       : absl::StrCat(node.op->name, " has no kernel for ", DTypeName(key)));
  }
  return make(KernelArgs{node, inputs, options});
}

absl::Status CheckType(const TensorType& type) {
  if (!type.shape.rank_known()) return absl::OkStatus();
  if (type.shape.rank() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of rank ", type.shape.rank(), ", the limit is ", kMaxRank));
  }
  Shape least;  // for one row
  for (const Dim& dim : type.shape.dims()) {
    if (dim.has_rows()) {
      if (dim.base() < 0 || dim.per_row() < 0)
        return absl::InvalidArgumentError(
            absl::StrCat("a shape of ", type.shape.ToString(), " is negative for some rows"));
      if (dim.base() > kMaxRowFactor || dim.per_row() > kMaxRowFactor)
        return absl::InvalidArgumentError(
            absl::StrCat("a shape of ", type.shape.ToString(), " is larger than memory"));
      least.push_back(dim.At(1));
    } else if (dim.known()) {
      least.push_back(dim.size());
    }
  }
  return CheckedElements(least.dims(), ElementBytes(type.dtype), MaxValueBytes()).status();
}

absl::StatusOr<Types> InferTypes(const Node& node, absl::Span<const ValueInfo> inputs) {
  const int given = static_cast<int>(inputs.size());
  if (given < node.op->min_inputs || (node.op->max_inputs >= 0 && given > node.op->max_inputs)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", given, " inputs, the op takes ", node.op->min_inputs,
                     node.op->max_inputs == node.op->min_inputs ? "" : " or more"));
  }
  FLOE_ASSIGN_OR_RETURN(Types types, InferChecked(node, inputs));
  if (static_cast<int>(types.size()) < node.num_outputs) {
    return absl::InvalidArgumentError(absl::StrCat("its inputs and attributes give ", types.size(),
                                                   " outputs, the node has ", node.num_outputs));
  }
  for (const TensorType& type : types) FLOE_RETURN_IF_ERROR(CheckType(type));
  return types;
}

absl::StatusOr<Tensor> NewValue(DType dtype, const Shape& shape) {
  const size_t element = ElementBytes(dtype);
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(shape.dims(), element));
  FLOE_RETURN_IF_ERROR(CheckValueBytes(elements * static_cast<int64_t>(element)));
  return Tensor::Allocate(dtype, shape);
}

int64_t HeldMemory(const TensorView& view) {
  int64_t bytes = view.elements() * static_cast<int64_t>(ElementBytes(view.dtype));
  if (view.dtype != DType::kString) return bytes;
  static const size_t inside = std::string().capacity();  // short ones lie in the element
  const auto* const strings = view.as<std::string>();
  for (int64_t i = 0; i < view.elements(); ++i)
    if (strings[i].capacity() > inside) bytes += static_cast<int64_t>(strings[i].capacity());
  return bytes;
}

absl::StatusOr<Tensor> WithPaidStrings(Tensor tensor) {
  constexpr int64_t kWorthIt = 4096;
  if (tensor.dtype() != DType::kString) return tensor;
  const int64_t bytes = HeldMemory(tensor.view()) -
                        tensor.elements() * static_cast<int64_t>(ElementBytes(DType::kString));
  if (bytes < kWorthIt) return tensor;
  struct Paid {
    Tensor tensor;
    MemoryCharge charge;
    MemoryShare share;
  };
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(bytes));
  const auto paid = std::make_shared<Paid>();
  paid->charge = MemoryCharge(bytes);
  FLOE_ASSIGN_OR_RETURN(paid->share, TakeMemory(bytes));
  paid->tensor = std::move(tensor);
  const Tensor& held = paid->tensor;
  return Tensor::Borrow(held.dtype(), held.shape(), paid, held.data());
}

absl::StatusOr<TensorView> HeapOutputs::Allocate(int output, DType dtype, const Shape& shape) {
  if (static_cast<int>(tensors.size()) <= output) tensors.resize(output + 1);
  if (pool_ == nullptr) {
    FLOE_ASSIGN_OR_RETURN(tensors[output], NewValue(dtype, shape));
  } else {
    FLOE_ASSIGN_OR_RETURN(tensors[output], pool_->Allocate(dtype, shape));
  }
  return tensors[output].view();
}

namespace {

absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node, absl::Span<const Tensor> inputs,
                                             absl::Span<const TensorType> out,
                                             const KernelOptions& options) {
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
  KernelOptions on_host = options;
  on_host.device = kHostDevice;
  FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeKernel(node, infos, on_host));
  const int64_t scratch_bytes = kernel->ScratchBytes(in_shapes, out_shapes);
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(scratch_bytes));
  AlignedBuffer scratch(static_cast<size_t>(scratch_bytes));
  ThreadPool pool(1);
  FLOE_RETURN_IF_ERROR(kernel->Run({in_views, out_views, scratch.data(), &pool, &outputs}));
  if (outputs.tensors.size() < out.size())
    return absl::InternalError("the kernel left an output without memory");
  for (Tensor& tensor : outputs.tensors) {
    FLOE_ASSIGN_OR_RETURN(tensor, WithPaidStrings(std::move(tensor)));
  }
  return std::move(outputs.tensors);
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor> inputs,
                                                 absl::Span<const TensorType> out,
                                                 const KernelOptions& options) {
  if (node.op->alias) return std::vector<Tensor>{inputs[0].Reshaped(out[0].shape.At(0))};
  return CatchOutOfMemory([&] { return Evaluate(node, inputs, out, options); });
}

}  // namespace floe
