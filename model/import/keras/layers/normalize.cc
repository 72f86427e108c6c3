// Normalisation layers at inference.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

// A vector along `axis` of x, in a shape that broadcasts with x.
ValueRef Along(GraphBuilder& b, ValueRef v, ValueRef x, int64_t axis) {
  const int rank = Rank(b, x);
  if (axis < 0) axis += rank;
  if (!b.ok() || axis == rank - 1) return v;
  std::vector<WantedDim> dims(rank - axis, 1);
  dims[0] = -1;
  return Reshape(b, v, dims);
}

std::vector<int64_t> Axes(LayerContext& c, std::vector<int64_t> otherwise, ValueRef x) {
  std::vector<int64_t> axes = c.config.Ints("axis", -1, std::move(otherwise));
  const int rank = Rank(c.b, x);
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
      c.Fail(absl::StrCat("axis ", axis, " of an input of rank ", rank));
      axis = 0;
    }
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

// Normalisation is computed in float32 at least.
ValueRef Upcast(GraphBuilder& b, ValueRef x) {
  return b.dtype(x) == DType::kFloat64 ? x : Cast(b, x, DType::kFloat32);
}

// The layer's own variable in the type of x.
ValueRef Own(LayerContext& c, int index, ValueRef x) {
  return Cast(c.b, c.Weight(index), c.b.dtype(x));
}

KValue BatchNormalization(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Upcast(b, c.In());
  const std::vector<int64_t> axes = Axes(c, {-1}, x);
  // How the statistics were gathered, and by which kernel.
  c.Arg(-1, "mask");
  c.config.Ignore(
      {"momentum", "renorm", "renorm_clipping", "renorm_momentum", "fused", "virtual_batch_size"});
  const bool scale = c.config.Bool("scale", true), center = c.config.Bool("center", true);
  const int first = (scale ? 1 : 0) + (center ? 1 : 0);
  const ValueRef mean = Own(c, first, x), variance = Own(c, first + 1, x);
  ValueRef factor = b.Op("Rsqrt", {Add(b, variance, c.config.Number("epsilon", 1e-3))});
  if (scale) factor = Mul(b, factor, Own(c, 0, x));
  ValueRef shift = Mul(b, mean, factor);
  shift = center ? Sub(b, Own(c, scale ? 1 : 0, x), shift) : b.Op("Neg", {shift});
  if (axes.empty()) return {};
  // Variables over several axes have the rank of x.
  const bool one = axes.size() == 1;
  const auto placed = [&](ValueRef v) { return one ? Along(b, v, x, axes[0]) : v; };
  const ValueRef y = Add(b, Mul(b, x, placed(factor)), placed(shift));
  return Cast(b, y, c.compute_dtype);
}

struct Moments {
  ValueRef mean, variance;
};

Moments MomentsOf(GraphBuilder& b, ValueRef x, const std::vector<int64_t>& axes) {
  const ValueRef mean = Reduce(b, "Mean", x, axes, true);
  return {mean, Reduce(b, "Mean", b.Op("SquaredDifference", {x, mean}), axes, true)};
}

// A variable over several axes of x, with ones between them.
ValueRef Over(GraphBuilder& b, ValueRef v, ValueRef x, const std::vector<int64_t>& axes) {
  std::vector<WantedDim> dims;
  const int rank = Rank(b, x);
  for (int k = 0; k < rank; ++k) {
    const bool mine = std::find(axes.begin(), axes.end(), k) != axes.end();
    dims.push_back(mine ? WantedDim(SizeOf(b, x, k, "an axis that is normalised")) : WantedDim(1));
  }
  return Reshape(b, v, dims);
}

// What a layer answers of its input: Keras 3 takes it back to the input's type first, which for
// whole numbers cuts it.
ValueRef Answer(LayerContext& c, ValueRef y) {
  if (!c.keras2()) y = Cast(c.b, y, c.b.dtype(c.In()));
  return Cast(c.b, y, c.compute_dtype);
}

KValue LayerNormalization(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Upcast(b, c.In());
  const std::vector<int64_t> axes = Axes(c, {-1}, x);
  const bool rms = c.config.Bool("rms_scaling", false);
  const bool scale = c.config.Bool("scale", true) || rms;
  const bool center = c.config.Bool("center", true) && !rms;
  const double epsilon = c.config.Number("epsilon", 1e-3);
  const Moments m = MomentsOf(b, x, axes);
  ValueRef factor = b.Op("Rsqrt", {Add(b, m.variance, epsilon)});
  if (scale) factor = Mul(b, factor, Over(b, Own(c, 0, x), x, axes));
  if (rms) return Answer(c, Mul(b, x, factor));
  ValueRef shift = b.Op("Neg", {Mul(b, m.mean, factor)});
  if (center) shift = Add(b, shift, Over(b, Own(c, scale ? 1 : 0, x), x, axes));
  return Answer(c, Add(b, Mul(b, x, factor), shift));
}

KValue RmsNormalization(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Upcast(b, c.In());
  const std::vector<int64_t> axes = Axes(c, {-1}, x);
  const ValueRef square = Reduce(b, "Mean", b.Op("Square", {x}), axes, true);
  const ValueRef root = b.Op("Rsqrt", {Add(b, square, c.config.Number("epsilon", 1e-6))});
  return Cast(b, Mul(b, Mul(b, x, root), Over(b, Own(c, 0, x), x, axes)), b.dtype(c.In()));
}

// The axis of channels is cut into groups, which become an axis before it.
KValue GroupNormalization(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Upcast(b, c.In());
  const std::vector<int64_t> axes = Axes(c, {-1}, x);
  const int rank = Rank(b, x);
  if (!b.ok() || axes.size() != 1) {
    c.Fail("one axis is needed");
    return {};
  }
  const auto axis = static_cast<int>(axes[0]);
  const int64_t channels = SizeOf(b, x, axis, "the number of channels");
  int64_t groups = c.config.Int("groups", 32);
  if (groups == -1) groups = channels;
  if (groups < 1 || channels % groups != 0) {
    c.Fail(absl::StrCat(channels, " channels in ", groups, " groups"));
    return {};
  }
  std::vector<WantedDim> dims, back, broadcast;
  std::vector<int64_t> reduced;
  for (int k = 0; k < rank; ++k) {
    back.push_back(DimOf(b, x, k));
    if (k == axis) {
      dims.insert(dims.end(), {groups, channels / groups});
      broadcast.insert(broadcast.end(), {groups, channels / groups});
      reduced.push_back(k + 1);
    } else {
      dims.push_back(back.back());
      broadcast.emplace_back(1);
      if (k > 0) reduced.push_back(k < axis ? k : k + 1);
    }
  }
  const ValueRef grouped = Reshape(b, x, dims);
  const Moments m = MomentsOf(b, grouped, reduced);
  const bool scale = c.config.Bool("scale", true);
  ValueRef factor = b.Op("Rsqrt", {Add(b, m.variance, c.config.Number("epsilon", 1e-3))});
  if (scale) factor = Mul(b, factor, Reshape(b, Own(c, 0, x), broadcast));
  ValueRef shift = b.Op("Neg", {Mul(b, m.mean, factor)});
  if (c.config.Bool("center", true))
    shift = Add(b, shift, Reshape(b, Own(c, scale ? 1 : 0, x), broadcast));
  return Answer(c, Reshape(b, Add(b, Mul(b, grouped, factor), shift), back));
}

KValue UnitNormalization(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const ValueRef square = Reduce(b, "Sum", b.Op("Square", {x}), Axes(c, {-1}, x), true);
  const ValueRef floor = Scalar(b, b.dtype(x), 1e-12);
  return Mul(b, x, b.Op("Rsqrt", {b.Op("Maximum", {square, floor})}));
}

// At inference the kernel is what training left: the wrapped layer, as it is.
KValue SpectralNormalization(LayerContext& c) {
  c.config.Ignore({"power_iterations"});
  KValue out = c.CallLayer(c.config.At("layer"), c.layer.weights.Child("layer"), c.WholeCall());
  if (!c.b.ok() || c.keras2() || !out.is_tensor()) return out;
  return KTensor{Cast(c.b, out.tensor.value, c.compute_dtype), out.tensor.mask};
}

const LayerRegistrar kBatch({"BatchNormalization", "SyncBatchNormalization", "BatchNormalizationV1",
                             "BatchNormalizationV2"},
                            BatchNormalization, Masks::kPass);
const LayerRegistrar kLayer({"LayerNormalization"}, LayerNormalization, Masks::kPass);
const LayerRegistrar kRms({"RMSNormalization"}, RmsNormalization);
const LayerRegistrar kGroup({"GroupNormalization"}, GroupNormalization, Masks::kPass);
const LayerRegistrar kUnit({"UnitNormalization"}, UnitNormalization, Masks::kPass);
const LayerRegistrar kSpectral({"SpectralNormalization"}, SpectralNormalization);

}  // namespace
}  // namespace floe::keras
