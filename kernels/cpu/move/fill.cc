// Ops that write values of their own: Fill, ZerosLike, OnesLike, Range, LinSpace, and shapes as
// values.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

template <class K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFill(const KernelArgs&) {
  return std::make_unique<K>();
}

class FillKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    FillElements(ctx.out(0).dtype, ctx.in(1).data, ctx.out(0).data, ctx.out(0).elements());
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Fill, kCpu, MakeFill<FillKernel>);

class ZerosKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView& out = ctx.out(0);
    if (out.dtype == DType::kString) {
      const std::string empty;
      FillElements(out.dtype, &empty, out.data, out.elements());
    } else if (out.bytes() != 0) {
      std::memset(out.data, 0, out.bytes());
    }
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(ZerosLike, kCpu, MakeFill<ZerosKernel>);

using Unit =
    TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>;

class OnesKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView& out = ctx.out(0);
    const bool found = ForDType(out.dtype, Unit{}, [&](auto t) {
      using T = decltype(t);
      std::fill_n(out.as<T>(), out.elements(), static_cast<T>(1));
    });
    return found ? absl::OkStatus()
                 : absl::UnimplementedError(absl::StrCat("OnesLike of ", DTypeName(out.dtype)));
  }
};
FLOE_REGISTER_KERNEL(OnesLike, kCpu, MakeFill<OnesKernel>);

// Adds delta again and again, as TensorFlow does, so that sums round alike.
template <class T>
class RangeKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    if (ctx.in(0).data == nullptr || ctx.in(2).data == nullptr) {
      return absl::InvalidArgumentError("start or delta depends on the number of request rows");
    }
    using C = Compute<T>;
    T value = *ctx.in(0).as<T>();
    const C delta = static_cast<C>(*ctx.in(2).as<T>());
    T* out = ctx.out(0).as<T>();
    for (int64_t i = 0; i < ctx.out(0).elements(); ++i) {
      out[i] = value;
      value = static_cast<T>(WrapAdd(static_cast<C>(value), delta));
    }
    return absl::OkStatus();
  }
};

FLOE_REGISTER_KERNELS(Range, kCpu, MakeFill<RangeKernel<T>>, Reals);

void StoreInt(const TensorView& out, int64_t at, int64_t value) {
  if (out.dtype == DType::kInt64) {
    out.as<int64_t>()[at] = value;
  } else {
    out.as<int32_t>()[at] = static_cast<int32_t>(value);
  }
}

class ShapeKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    for (size_t i = 0; i < ctx.outputs.size(); ++i) {
      const Shape& shape = ctx.inputs[i].shape;
      for (int k = 0; k < shape.rank(); ++k) StoreInt(ctx.outputs[i], k, shape.dim(k));
    }
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Shape, kCpu, MakeFill<ShapeKernel>);
FLOE_REGISTER_KERNEL(ShapeN, kCpu, MakeFill<ShapeKernel>);

class SizeKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    StoreInt(ctx.out(0), 0, ctx.in(0).elements());
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Size, kCpu, MakeFill<SizeKernel>);

class RankKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    StoreInt(ctx.out(0), 0, ctx.in(0).shape.rank());
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Rank, kCpu, MakeFill<RankKernel>);

// The last value is the one given.
template <class T>
class LinSpaceKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    const int64_t count = ctx.out(0).elements();
    T* const out = ctx.out(0).as<T>();
    const T start = *ctx.in(0).as<T>(), stop = *ctx.in(1).as<T>();
    const T step = (stop - start) / static_cast<T>(std::max<int64_t>(count - 1, 1));
    for (int64_t i = 0; i < count; ++i) out[i] = start + step * static_cast<T>(i);
    if (count > 1) out[count - 1] = stop;
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(LinSpace, kCpu, MakeFill<LinSpaceKernel<float>>, DType::kFloat32);
FLOE_REGISTER_KERNEL(LinSpace, kCpu, MakeFill<LinSpaceKernel<double>>, DType::kFloat64);

}  // namespace
}  // namespace floe::kernels
