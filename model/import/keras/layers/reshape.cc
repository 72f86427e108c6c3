// Layers that rearrange: reshape, permute, repeat, crop, pad, upsample.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/axes.h"
#include "model/import/keras/images.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

KValue ReshapeLayer(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const std::vector<int64_t> target = c.config.Ints("target_shape", -1, {});
  std::vector<WantedDim> dims{DimOf(b, x, 0)};
  int64_t known = 1, open = -1;
  for (const int64_t size : target) {
    if (size < 0)
      open = static_cast<int64_t>(dims.size());
    else if (__builtin_mul_overflow(known, size, &known))
      c.Fail("a shape past every limit");
    dims.emplace_back(std::max<int64_t>(size, -1));
  }
  // A size that is left out follows from the others where the input has all its own.
  int64_t all = 1;
  bool whole = b.ok() && known > 0;
  for (int k = 1; whole && k < Rank(b, x); ++k) {
    whole =
        SizeAt(b, x, k).concrete() && !__builtin_mul_overflow(all, SizeAt(b, x, k).size(), &all);
  }
  if (open >= 0 && whole && all % known == 0) dims[open] = all / known;
  return Reshape(b, x, dims);
}

KValue FlattenLayer(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = ChannelsToLast(b, c.In(), c.ChannelsLast());
  const int rank = Rank(b, x);
  if (rank < 2) return Reshape(b, x, {-1, 1});
  int64_t size = 1;
  bool known = true;
  for (int k = 1; k < rank; ++k) {
    known = known && SizeAt(b, x, k).concrete();
    if (known && __builtin_mul_overflow(size, SizeAt(b, x, k).size(), &size))
      c.Fail("a shape past every limit");
  }
  if (known) return Reshape(b, x, {-1, size});
  return Reshape(b, x, {DimOf(b, x, 0), -1});
}

KValue Permute(LayerContext& c) {
  std::vector<int64_t> order{0};
  for (const int64_t axis : c.config.Ints("dims", -1, {})) order.push_back(axis);
  return Transpose(c.b, c.In(), order);
}

KValue RepeatVector(LayerContext& c) {
  GraphBuilder& b = c.b;
  const int64_t n = c.config.Int("n", 1);
  return b.Op("Tile", {ExpandDims(b, c.In(), 1), Ints(b, {1, n, 1})});
}

// Pairs of numbers, one for each spatial dim: n, (n, m) or ((a, b), ...).
std::vector<std::pair<int64_t, int64_t>> Pairs(LayerContext& c, const std::string& option,
                                               int spatial) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  const Json& value = c.config.At(option);
  const Json* const items = Items(value);
  int64_t before = 0, after = 0;
  const auto fail = [&] { c.Fail(absl::StrCat("option ", Quoted(option), " is ", Shown(value))); };
  if (ToInt(value, &before)) {
    pairs.assign(spatial, {before, before});
  } else if (items == nullptr) {
    fail();
  } else if (spatial == 1 && items->size() == 2 && ToInt((*items)[0], &before) &&
             ToInt((*items)[1], &after)) {
    pairs.emplace_back(before, after);
  } else {
    for (const Json& item : *items) {
      const Json* const pair = Items(item);
      if (ToInt(item, &before)) {
        pairs.emplace_back(before, before);
      } else if (pair != nullptr && pair->size() == 2 && ToInt((*pair)[0], &before) &&
                 ToInt((*pair)[1], &after)) {
        pairs.emplace_back(before, after);
      }
    }
  }
  if (static_cast<int>(pairs.size()) != spatial) fail();
  pairs.resize(spatial);
  for (const auto& [low, high] : pairs) {
    if (low < 0 || high < 0 || low > INT32_MAX || high > INT32_MAX) fail();
  }
  return pairs;
}

KValue Cropping(LayerContext& c) {
  GraphBuilder& b = c.b;
  const int spatial = SpatialOf(c.class_name);
  const bool last = c.ChannelsLast();
  ValueRef x = SpatialInput(c, spatial);
  const auto pairs = Pairs(c, "cropping", spatial);
  for (int k = 0; k < spatial && b.ok(); ++k) {
    const int axis = k + (last ? 1 : 2);
    const auto [before, after] = pairs[k];
    if (before == 0 && after == 0) continue;
    const Dim size = SizeAt(b, x, axis);
    if (size.concrete() && before + after >= size.size())
      c.Fail(absl::StrCat("cropping ", before, " and ", after, " of ", size.size()));
    x = Slice(b, x, axis, before, after == 0 ? build::kToEnd : -after);
  }
  return x;
}

KValue ZeroPadding(LayerContext& c) {
  GraphBuilder& b = c.b;
  const int spatial = SpatialOf(c.class_name);
  const bool last = c.ChannelsLast();
  std::vector<std::pair<int64_t, int64_t>> pads(spatial + 2);
  const auto pairs = Pairs(c, "padding", spatial);
  for (int k = 0; k < spatial; ++k) pads[k + (last ? 1 : 2)] = pairs[k];
  return Pad(b, SpatialInput(c, spatial), pads);
}

KValue UpSampling(LayerContext& c) {
  GraphBuilder& b = c.b;
  const int spatial = SpatialOf(c.class_name);
  const bool last = c.ChannelsLast();
  std::vector<int64_t> size = c.config.Ints("size", spatial, std::vector<int64_t>(spatial, 2));
  const std::string way = c.config.String("interpolation", "nearest");
  ValueRef x = SpatialInput(c, spatial);
  if (way == "nearest") {
    for (int k = 0; k < spatial && b.ok(); ++k)
      x = RepeatElements(b, x, k + (last ? 1 : 2), size[k]);
    return x;
  }
  if (spatial != 2) c.Fail(absl::StrCat("interpolation ", Quoted(way)));
  x = ChannelsToLast(b, x, last);
  for (int k = 0; k < 2; ++k) {
    if (__builtin_mul_overflow(size[k], SizeOf(b, x, k + 1, "the height and width"), &size[k]))
      c.Fail("a size past every limit");
  }
  return ChannelsFromLast(b, ResizeImages(c, x, size[0], size[1], way), last);
}

const LayerRegistrar kReshape({"Reshape"}, ReshapeLayer);
const LayerRegistrar kFlatten({"Flatten"}, FlattenLayer);
const LayerRegistrar kPermute({"Permute"}, Permute);
const LayerRegistrar kRepeat({"RepeatVector"}, RepeatVector);
const LayerRegistrar kCropping({"Cropping1D", "Cropping2D", "Cropping3D"}, Cropping);
const LayerRegistrar kPadding({"ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"}, ZeroPadding);
const LayerRegistrar kUpSampling({"UpSampling1D", "UpSampling2D", "UpSampling3D"}, UpSampling);

}  // namespace
}  // namespace floe::keras
