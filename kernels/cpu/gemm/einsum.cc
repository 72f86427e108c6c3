// Einsum of one or two operands, by the definition: each output element adds its products in the
// order of the labels. Labels that only one of two operands has are summed first, as in TensorFlow:
// with infinities, or sums that do not fit, the other order would give other answers.
#include "kernels/cpu/gemm/einsum.h"

#include <algorithm>

#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// Loops over labels with the step that each makes in either operand.
struct Loops {
  IntList sizes, steps[2];
  int64_t count() const {
    if (std::count(sizes.begin(), sizes.end(), 0) != 0) return 0;  // whatever the others give
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    return n;
  }
};

// Goes through the loops, the last label fastest, and knows where it is in either operand.
class Walk {
 public:
  Walk(const Loops& loops, int64_t start) : loops_(loops), index_(loops.sizes.size(), 0) {
    for (size_t k = loops.sizes.size(); k-- > 0 && start != 0;) {
      index_[k] = start % loops.sizes[k];
      start /= loops.sizes[k];
      for (int i = 0; i < 2; ++i) at_[i] += index_[k] * loops.steps[i][k];
    }
  }
  int64_t at(int operand) const { return at_[operand]; }
  void Next() {
    for (size_t k = index_.size(); k-- > 0;) {
      for (int i = 0; i < 2; ++i) at_[i] += loops_.steps[i][k];
      if (++index_[k] < loops_.sizes[k]) return;
      for (int i = 0; i < 2; ++i) at_[i] -= loops_.sizes[k] * loops_.steps[i][k];
      index_[k] = 0;
    }
  }

 private:
  const Loops& loops_;
  IntList index_;
  int64_t at_[2] = {0, 0};
};

struct EinsumPlan {
  Loops output, summed;  // of the output all labels but the last
  int64_t last = 1;      // values of that one, and its steps
  int64_t step[2] = {0, 0};
};

EinsumPlan PlanOf(const ops::EinsumLabels& labels, const EinsumStrides& strides) {
  EinsumPlan plan;
  std::vector<bool> kept(labels.count, false);
  const auto add = [&](Loops* loops, int label) {
    loops->sizes.push_back(strides.sizes[label]);
    for (int i = 0; i < 2; ++i) loops->steps[i].push_back(strides.input[i][label]);
  };
  for (int label : labels.output) {
    kept[label] = true;
    if (label != labels.output.back()) add(&plan.output, label);
  }
  if (!labels.output.empty()) {
    plan.last = strides.sizes[labels.output.back()];
    for (int i = 0; i < 2; ++i) plan.step[i] = strides.input[i][labels.output.back()];
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

// An operand as the products read it.
template <class T>
struct Operand {
  const T* data = nullptr;
  BudgetVector<T> sums;  // what `data` points to when labels were summed
};

template <class T>
Sum<T> Widened(T value) {
  return static_cast<Sum<T>>(static_cast<Compute<T>>(value));
}

// Sums `operand` over the labels that neither the other operand nor the output has. The steps of
// the labels that are left become those of the sums, the steps of the others 0.
template <class T>
void SumOneSided(const ops::EinsumLabels& labels, int operand, ThreadPool* pool,
                 EinsumStrides* strides, Operand<T>* of) {
  const auto occurs = [](const std::vector<int>& in, int label) {
    return std::find(in.begin(), in.end(), label) != in.end();
  };
  IntList& steps = strides->input[operand];
  Loops kept, summed;
  std::vector<int> kept_labels;
  for (int label = 0; label < labels.count; ++label) {
    if (!occurs(labels.inputs[operand], label)) continue;
    const bool keep = occurs(labels.inputs[1 - operand], label) || occurs(labels.output, label);
    Loops& loops = keep ? kept : summed;
    // A step of 0 stretches one element.
    loops.sizes.push_back(steps[label] == 0 ? 1 : strides->sizes[label]);
    loops.steps[0].push_back(steps[label]);
    loops.steps[1].push_back(0);
    if (keep) kept_labels.push_back(label);
  }
  if (summed.sizes.empty()) return;
  of->sums.resize(kept.count());
  const int64_t terms = summed.count();
  ParallelRange(pool, kept.count(),
                std::max<int64_t>(1, kElementGrain / std::max<int64_t>(terms, 1)),
                [&](int64_t begin, int64_t end) {
                  Walk place(kept, begin);
                  for (int64_t i = begin; i < end; ++i, place.Next()) {
                    const T* from = of->data + place.at(0);
                    Sum<T> sum = 0;
                    Walk term(summed, 0);
                    for (int64_t k = 0; k < terms; ++k, term.Next())
                      sum = WrapAdd(sum, Widened(from[term.at(0)]));
                    of->sums[i] = static_cast<T>(static_cast<Compute<T>>(sum));
                  }
                });
  of->data = of->sums.data();
  for (int label : labels.inputs[operand]) {
    if (!occurs(labels.inputs[1 - operand], label) && !occurs(labels.output, label))
      strides->sizes[label] = 1;
    steps[label] = 0;
  }
  int64_t step = 1;
  for (size_t k = kept_labels.size(); k-- > 0;) {
    if (kept.steps[0][k] != 0) steps[kept_labels[k]] = step;
    step *= kept.sizes[k];
  }
}

// `n` outputs along the last label.
template <class T>
void RunRow(const EinsumPlan& plan, int64_t terms, const T* a, const T* b, int64_t n, T* y) {
  for (int64_t i = 0; i < n; ++i, a += plan.step[0], b += plan.step[1]) {
    Sum<T> sum = 0;
    if (terms == 1) {
      sum = WrapAdd(sum, WrapMul(Widened(*a), Widened(*b)));
    } else {
      Walk term(plan.summed, 0);
      for (int64_t k = 0; k < terms; ++k, term.Next())
        sum = WrapAdd(sum, WrapMul(Widened(a[term.at(0)]), Widened(b[term.at(1)])));
    }
    y[i] = static_cast<T>(static_cast<Compute<T>>(sum));
  }
}

template <class T>
absl::Status Run(const KernelContext& ctx, const std::string& equation) {
  absl::InlinedVector<int, 2> ranks;
  absl::InlinedVector<Shape, 2> shapes;
  for (const TensorView& input : ctx.inputs) {
    ranks.push_back(input.shape.rank());
    shapes.push_back(input.shape);
  }
  FLOE_ASSIGN_OR_RETURN(const ops::EinsumLabels labels, ops::ParseEinsum(equation, ranks));
  EinsumStrides strides(labels, shapes);
  const T one = static_cast<T>(Compute<T>(1));  // what a lone operand is multiplied by
  Operand<T> a{ctx.in(0).as<T>(), {}}, b{&one, {}};
  if (ctx.inputs.size() > 1) {
    b.data = ctx.in(1).as<T>();
    SumOneSided(labels, 0, ctx.pool, &strides, &a);
    SumOneSided(labels, 1, ctx.pool, &strides, &b);
  }
  const EinsumPlan plan = PlanOf(labels, strides);
  T* y = ctx.out(0).as<T>();
  const int64_t terms = plan.summed.count();
  return WatchedRange(ctx.pool, ctx.out(0).elements(),
                      std::max<int64_t>(1, kElementGrain / std::max<int64_t>(terms, 1)),
                      [&](int64_t begin, int64_t end) {
                        Walk place(plan.output, begin / plan.last);
                        for (int64_t i = begin, n; i < end; i += n, place.Next()) {
                          const int64_t first = i % plan.last;
                          n = std::min(plan.last - first, end - i);
                          RunRow(plan, terms, a.data + place.at(0) + first * plan.step[0],
                                 b.data + place.at(1) + first * plan.step[1], n, y + i);
                        }
                      });
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeEinsum(const KernelArgs& args) {
  if (std::is_same_v<T, float> && args.options.gemm != GemmBackend::kReference) {
    if (std::unique_ptr<Kernel> kernel = MakeEinsumGemm(args)) return kernel;
  }
  const std::string equation = args.node.attrs.String("equation");
  return FromFunction([equation](const KernelContext& ctx) { return Run<T>(ctx, equation); });
}
FLOE_REGISTER_KERNELS(Einsum, kCpu, MakeEinsum<T>, Numbers);

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
