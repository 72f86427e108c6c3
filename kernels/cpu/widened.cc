#include "kernels/cpu/widened.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/budget.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

using Words = BudgetVector<uint64_t>;  // of int64 or float64

template <class F>
void ForNarrow(DType narrow, bool integers, const F& f) {
  if (integers)
    ForDType(narrow, NarrowIntegers{}, [&](auto type) { f(type, int64_t{}); });
  else
    ForDType(narrow, NarrowFloats{}, [&](auto type) { f(type, double{}); });
}

Words Widen(const TensorView& in, bool integers) {
  Words words(static_cast<size_t>(in.elements()));
  ForNarrow(in.dtype, integers, [&](auto narrow, auto wide) {
    using T = decltype(narrow);
    auto* to = reinterpret_cast<decltype(wide)*>(words.data());
    for (int64_t i = 0; i < in.elements(); ++i)
      to[i] = static_cast<decltype(wide)>(+static_cast<Compute<T>>(in.as<T>()[i]));
  });
  return words;
}

void Narrow(const Words& words, bool integers, bool clamp, const TensorView& out) {
  ForNarrow(out.dtype, integers, [&](auto narrow, auto wide) {
    using T = decltype(narrow);
    using W = decltype(wide);
    const auto* from = reinterpret_cast<const W*>(words.data());
    for (int64_t i = 0; i < out.elements(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        const W low = static_cast<W>(+std::numeric_limits<T>::min()),
                high = static_cast<W>(+std::numeric_limits<T>::max());
        out.as<T>()[i] = static_cast<T>(clamp ? std::clamp(from[i], low, high) : from[i]);
      } else {
        out.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(from[i]));
      }
    }
  });
}

// Gives one output wide memory; others are the run's own.
class WideAllocator final : public OutputAllocator {
 public:
  WideAllocator(OutputAllocator* own, int output, DType wide)
      : own_(own), output_(output), wide_(wide) {}
  absl::StatusOr<TensorView> Allocate(int output, DType dtype, const Shape& shape) override {
    if (output != output_ || dtype != wide_) return own_->Allocate(output, dtype, shape);
    shape_ = shape;
    words_.resize(static_cast<size_t>(shape.elements()));
    return TensorView{wide_, shape_, words_.data()};
  }
  const Shape& shape() const { return shape_; }
  const Words& words() const { return words_; }

 private:
  OutputAllocator* own_;
  int output_;
  DType wide_;
  Shape shape_;
  Words words_;
};

}  // namespace

absl::Status RunWidened(const KernelContext& ctx, DType narrow, DType wide, Widening widening,
                        int output, absl::FunctionRef<absl::Status(const KernelContext&)> run) {
  const bool integers = wide == DType::kInt64, clamp = widening == Widening::kClamp;
  std::vector<TensorView> in(ctx.inputs.begin(), ctx.inputs.end()),
      out(ctx.outputs.begin(), ctx.outputs.end());
  std::vector<Words> words(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].dtype != narrow) continue;
    words[i] = Widen(in[i], integers);
    in[i].dtype = wide;
    in[i].data = words[i].data();
  }
  KernelContext wider = ctx;
  wider.inputs = in;
  wider.donatable = 0;
  if (widening == Widening::kInputs) return run(wider);
  if (out.empty()) {
    WideAllocator allocator(ctx.allocator, output, wide);
    wider.allocator = &allocator;
    FLOE_RETURN_IF_ERROR(run(wider));
    FLOE_ASSIGN_OR_RETURN(const TensorView given,
                          ctx.allocator->Allocate(output, narrow, allocator.shape()));
    Narrow(allocator.words(), integers, clamp, given);
    return absl::OkStatus();
  }
  if (out[output].data == nullptr) return run(wider);
  Words result(static_cast<size_t>(out[output].elements()));
  out[output].dtype = wide;
  out[output].data = result.data();
  wider.outputs = out;
  FLOE_RETURN_IF_ERROR(run(wider));
  Narrow(result, integers, clamp, ctx.out(output));
  return absl::OkStatus();
}

std::unique_ptr<Kernel> WidenKernel(std::unique_ptr<Kernel> kernel, DType wide, Widening widening) {
  return FromFunction([kernel = std::shared_ptr<const Kernel>(std::move(kernel)), wide,
                       widening](const KernelContext& ctx) {
    return RunWidened(ctx, ctx.in(0).dtype, wide, widening, 0,
                      [&](const KernelContext& wider) { return kernel->Run(wider); });
  });
}

}  // namespace floe::kernels
