// MaxPool, AvgPool, their 3-D forms and MaxPoolWithArgmax. Averages divide by the number of
// elements inside the input.
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/pool/pool_f32.h"
#include "kernels/cpu/run_watch.h"
#include "model/ops/window.h"

namespace floe::kernels {
namespace {

// Input and output as [batch, 3 spatial dims, channels], 2-D images having a depth of 1.
struct PoolShape {
  int64_t batch = 1, channels = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, low[3] = {0, 0, 0};
  int64_t in_stride[3], in_batch_stride, out_stride;  // of results, the last dim's
};

PoolShape Describe(const ops::Window& w, const KernelContext& ctx) {
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  PoolShape s;
  const int spatial = static_cast<int>(w.kernel.size()), skip = 3 - spatial;
  s.batch = in.dim(0);
  s.channels = in.dim(spatial + 1);
  for (int i = 0; i < spatial; ++i) {
    s.in[skip + i] = in.dim(w.axis(i));
    s.out[skip + i] = out.dim(w.axis(i));
    s.kernel[skip + i] = w.kernel[i];
    s.stride[skip + i] = w.stride[i];
    s.low[skip + i] = ops::PadLow(in.dim(w.axis(i)), out.dim(w.axis(i)), w.kernel[i], w.stride[i],
                                  w.pads[i], spatial == 3);
  }
  s.in_stride[2] = ctx.InLineStride(0);
  s.in_stride[1] = s.in_stride[2] * s.in[2];
  s.in_stride[0] = s.in_stride[1] * s.in[1];
  s.in_batch_stride = s.in_stride[0] * s.in[0];
  s.out_stride = ctx.OutLineStride(0);
  return s;
}

// The part of an output position's window that lies inside the input, and the offset of its first
// element in all images.
struct Place {
  PoolBox box;
  int64_t start = 0;
};

// An output position of all images.
struct Position {
  int64_t batch, at[3];

  Position(const PoolShape& s, int64_t number) {
    for (int i = 2; i >= 0; --i) {
      at[i] = number % s.out[i];
      number /= s.out[i];
    }
    batch = number;
  }
  // How many windows from here on, along the last dim, lie inside the input as a whole; at least 1.
  int64_t Alike(const PoolShape& s) const {
    const int64_t first = at[2] * s.stride[2] - s.low[2], room = s.in[2] - s.kernel[2] - first;
    if (first < 0 || room < 0) return 1;
    return std::min(room / s.stride[2] + 1, s.out[2] - at[2]);
  }
  // `count` further, at most to the end of the last dim. Without a division for each window, which
  // would cost more than most of them.
  void Advance(const PoolShape& s, int64_t count) {
    at[2] += count - 1;
    for (int i = 2; i >= 0; --i) {
      if (++at[i] < s.out[i]) return;
      at[i] = 0;
    }
    ++batch;
  }
};

Place PlaceOf(const PoolShape& s, const Position& position) {
  Place place;
  place.start = position.batch * s.in_batch_stride;
  for (int i = 2; i >= 0; --i) {
    const int64_t first = position.at[i] * s.stride[i] - s.low[i];
    const int64_t begin = std::max<int64_t>(first, 0), end = std::min(first + s.kernel[i], s.in[i]);
    place.box.count[i] = std::max<int64_t>(end - begin, 0);
    place.box.stride[i] = s.in_stride[i];
    place.start += begin * s.in_stride[i];
  }
  return place;
}

// Calls body(row of places, start of the first, its number among all) for every position of all
// images, in rows of windows that are inside the input.
template <class Body>
absl::Status ForRows(const KernelContext& ctx, const PoolShape& s, const Body& body) {
  const int64_t positions = s.out[0] * s.out[1] * s.out[2];
  int64_t cost = s.channels;  // windows reach beyond the input, but only what lies inside is read
  for (int i = 0; i < 3; ++i) cost *= std::min(s.kernel[i], s.in[i]);
  return WatchedRange(ctx.pool, s.batch * positions,
                      std::max<int64_t>(1, kElementGrain / std::max<int64_t>(cost, 1)),
                      [&](int64_t begin, int64_t end) {
                        Position position(s, begin);
                        while (begin < end) {
                          const Place place = PlaceOf(s, position);
                          const int64_t count = std::min(position.Alike(s), end - begin);
                          body(
                              PoolRow{place.box, count, s.stride[2] * s.in_stride[2], s.out_stride},
                              place.start, begin);
                          position.Advance(s, count);
                          begin += count;
                        }
                      });
}

// Calls body(place, its number among all) for every position of all images.
template <class Body>
absl::Status ForPositions(const KernelContext& ctx, const PoolShape& s, const Body& body) {
  return ForRows(ctx, s, [&](const PoolRow& row, int64_t start, int64_t number) {
    for (int64_t i = 0; i < row.count; ++i) body(Place{row.box, start + i * row.step}, number + i);
  });
}

class PoolKernel : public Kernel {
 public:
  explicit PoolKernel(ops::Window window) : window_(std::move(window)) {}
  absl::Status Run(const KernelContext& ctx) const override {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    return Pool(ctx, Describe(window_, ctx));
  }

 protected:
  virtual absl::Status Pool(const KernelContext& ctx, const PoolShape& s) const = 0;

 private:
  ops::Window window_;
};

class NativePool : public PoolKernel {
 public:
  NativePool(ops::Window window, PoolF32 pool) : PoolKernel(std::move(window)), pool_(pool) {}
  bool ReadsSpacedLines(int, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return true;
  }
  bool WritesSpacedLines() const override { return true; }
  absl::Status Pool(const KernelContext& ctx, const PoolShape& s) const override {
    const float* x = ctx.in(0).as<float>();
    float* y = ctx.out(0).as<float>();
    return ForRows(ctx, s, [&](const PoolRow& row, int64_t start, int64_t number) {
      pool_(x + start, row, static_cast<size_t>(s.channels), y + number * s.out_stride);
    });
  }

 private:
  PoolF32 pool_;
};

// Calls f(value, offset) over the box.
template <class T, class F>
void ForBox(const T* x, const PoolBox& box, const F& f) {
  for (int64_t i = 0; i < box.count[0]; ++i) {
    for (int64_t j = 0; j < box.count[1]; ++j) {
      for (int64_t k = 0; k < box.count[2]; ++k) {
        const int64_t at = i * box.stride[0] + j * box.stride[1] + k * box.stride[2];
        f(static_cast<Compute<T>>(x[at]), at);
      }
    }
  }
}

template <bool kMean, class T>
class AnyPool : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  absl::Status Pool(const KernelContext& ctx, const PoolShape& s) const override {
    using C = Compute<T>;
    const T* x = ctx.in(0).as<T>();
    T* y = ctx.out(0).as<T>();
    return ForPositions(ctx, s, [&](const Place& place, int64_t number) {
      const auto count =
          static_cast<C>(place.box.count[0] * place.box.count[1] * place.box.count[2]);
      for (int64_t c = 0; c < s.channels; ++c) {
        C fold = kMean ? C(0) : Lowest<T>();
        ForBox(x + place.start + c, place.box, [&](C v, int64_t) {
          if (kMean)
            fold = static_cast<C>(fold + v);
          else
            fold = v > fold ? v : fold;
        });
        if (kMean) fold = static_cast<C>(fold / count);
        y[number * s.channels + c] = static_cast<T>(fold);
      }
    });
  }
};

template <class T>
class ArgmaxPool : public PoolKernel {
 public:
  ArgmaxPool(ops::Window window, bool batch_in_index)
      : PoolKernel(std::move(window)), batch_in_index_(batch_in_index) {}
  absl::Status Pool(const KernelContext& ctx, const PoolShape& s) const override {
    using C = Compute<T>;
    const T* x = ctx.in(0).as<T>();
    T* y = ctx.out(0).as<T>();
    const int64_t positions = s.out[0] * s.out[1] * s.out[2];
    return ForPositions(ctx, s, [&](const Place& place, int64_t number) {
      const int64_t image = number / positions * s.in_batch_stride;
      for (int64_t c = 0; c < s.channels; ++c) {
        // Nothing is larger than a NaN that comes first.
        C best = Lowest<T>();
        int64_t where = -1;  // in all images
        ForBox(x + place.start + c, place.box, [&](C v, int64_t at) {
          if (where < 0 || v > best) {
            best = v;
            where = place.start + c + at;
          }
        });
        const int64_t to = number * s.channels + c;
        if (y != nullptr) y[to] = static_cast<T>(best);
        if (where < 0) where = image;
        Store(ctx.out(1), to, batch_in_index_ ? where : where - image);
      }
    });
  }

 private:
  static void Store(const TensorView& out, int64_t at, int64_t index) {
    if (out.data == nullptr) return;
    if (out.dtype == DType::kInt32)
      out.as<int32_t>()[at] = static_cast<int32_t>(index);
    else
      out.as<int64_t>()[at] = index;
  }
  bool batch_in_index_;
};

template <bool kMean, int kSpatial, class T>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(ops::Window window, ops::WindowOf(args.node.attrs, kSpatial));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(window.channels_first));
  if constexpr (std::is_same_v<T, float>) {
    const PoolsF32 pools = PickPoolsF32();
    return std::make_unique<NativePool>(std::move(window), kMean ? pools.mean : pools.maximum);
  } else {
    return std::make_unique<AnyPool<kMean, T>>(std::move(window));
  }
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeArgmax(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(ops::Window window, ops::WindowOf(args.node.attrs, 2));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(window.channels_first));
  return std::make_unique<ArgmaxPool<T>>(std::move(window),
                                         args.node.attrs.Bool("include_batch_in_index"));
}

FLOE_REGISTER_KERNELS(MaxPool, kCpu, (Make<false, 2, T>), Reals);
FLOE_REGISTER_KERNELS(MaxPool3D, kCpu, (Make<false, 3, T>), Reals);
FLOE_REGISTER_KERNELS(MaxPoolWithArgmax, kCpu, MakeArgmax<T>, Reals);
FLOE_REGISTER_KERNELS(AvgPool, kCpu, (Make<true, 2, T>), Floats);
FLOE_REGISTER_KERNELS(AvgPool3D, kCpu, (Make<true, 3, T>), Floats);

}  // namespace
}  // namespace floe::kernels
