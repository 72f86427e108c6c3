// Einsum of one or two operands, by the definition: each output element adds its products in the
// order of the labels.
#include "kernels/cpu/einsum.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/grid_copy.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

// Loops over labels with the step that each makes in the operands.
struct Loops {
  IntList sizes, steps[2];
  int64_t count() const {
    if (std::count(sizes.begin(), sizes.end(), 0) != 0) return 0;  // whatever the others give
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    return n;
  }
  int64_t Offset(int operand, int64_t i) const {
    int64_t at = 0;
    for (size_t k = sizes.size(); k-- > 0;) {
      at += i % sizes[k] * steps[operand][k];
      i /= sizes[k];
    }
    return at;
  }
};

struct EinsumPlan {
  Loops output, summed;
};

EinsumPlan PlanOf(const ops::EinsumLabels& labels, absl::Span<const Shape> inputs) {
  const EinsumStrides strides(labels, inputs);
  EinsumPlan plan;
  std::vector<bool> kept(labels.count, false);
  const auto add = [&](Loops* loops, int label) {
    loops->sizes.push_back(strides.sizes[label]);
    for (int i = 0; i < 2; ++i) loops->steps[i].push_back(strides.input[i][label]);
  };
  for (int label : labels.output) {
    kept[label] = true;
    add(&plan.output, label);
  }
  for (int label = 0; label < labels.count; ++label) {
    if (!kept[label]) add(&plan.summed, label);
  }
  return plan;
}

// Sums of float are kept in double, so that long contractions stay within the tolerance of a
// blocked one.
template <class T>
using Sum = std::conditional_t<std::is_same_v<Compute<T>, float>, double, Compute<T>>;

template <class T>
absl::Status Run(const KernelContext& ctx, const std::string& equation) {
  absl::InlinedVector<int, 2> ranks;
  absl::InlinedVector<Shape, 2> shapes;
  for (const TensorView& input : ctx.inputs) {
    ranks.push_back(input.shape.rank());
    shapes.push_back(input.shape);
  }
  FLOE_ASSIGN_OR_RETURN(const ops::EinsumLabels labels, ops::ParseEinsum(equation, ranks));
  const EinsumPlan plan = PlanOf(labels, shapes);
  const bool two = ctx.inputs.size() > 1;
  const T *a = ctx.in(0).as<T>(), *b = two ? ctx.in(1).as<T>() : nullptr;
  T* y = ctx.out(0).as<T>();
  const int64_t terms = plan.summed.count();
  ParallelRange(
      ctx.pool, ctx.out(0).elements(),
      std::max<int64_t>(1, kElementGrain / std::max<int64_t>(terms, 1)),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* from_a = a + plan.output.Offset(0, i);
          const T* from_b = two ? b + plan.output.Offset(1, i) : nullptr;
          Sum<T> sum = 0;
          for (int64_t k = 0; k < terms; ++k) {
            const auto left =
                static_cast<Sum<T>>(static_cast<Compute<T>>(from_a[plan.summed.Offset(0, k)]));
            const auto right =
                two ? static_cast<Sum<T>>(static_cast<Compute<T>>(from_b[plan.summed.Offset(1, k)]))
                    : Sum<T>(1);
            sum = WrapAdd(sum, WrapMul(left, right));
          }
          y[i] = static_cast<T>(static_cast<Compute<T>>(sum));
        }
      });
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  if (std::is_same_v<T, float> && args.options.gemm != GemmBackend::kReference) {
    if (std::unique_ptr<Kernel> kernel = MakeEinsumGemm(args)) return kernel;
  }
  const std::string equation = args.node.attrs.String("equation");
  return FromFunction([equation](const KernelContext& ctx) { return Run<T>(ctx, equation); });
}
template <class... Ts>
bool Register(TypeList<Ts...>) {
  (KernelRegistrar("Einsum", DeviceKind::kCpu, {kDTypeOf<Ts>}, &Make<Ts>), ...);
  return true;
}
const bool kRegistered = Register(Numbers{});

}  // namespace

EinsumStrides::EinsumStrides(const ops::EinsumLabels& labels, absl::Span<const Shape> inputs)
    : sizes(labels.count, 1),
      input{IntList(labels.count, 0), IntList(labels.count, 0)},
      output(labels.count, 0) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (int axis = 0; axis < inputs[i].rank(); ++axis) {
      int64_t& size = sizes[labels.inputs[i][axis]];
      if (inputs[i].dim(axis) != 1) size = inputs[i].dim(axis);
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const IntList dense = DenseStrides(inputs[i]);
    for (int axis = 0; axis < inputs[i].rank(); ++axis) {
      const int label = labels.inputs[i][axis];
      if (inputs[i].dim(axis) == sizes[label]) input[i][label] += dense[axis];
    }
  }
  int64_t step = 1;
  for (size_t axis = labels.output.size(); axis-- > 0;) {
    output[labels.output[axis]] = step;
    step *= sizes[labels.output[axis]];
  }
}
}  // namespace floe::kernels
