#include "model/import/keras/axes.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe::keras {

int AxisOf(GraphBuilder& b, ValueRef x, int64_t axis) {
  const int rank = Rank(b, x);
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (b.ok() && (at < 0 || at >= rank))
    b.Fail(absl::StrCat("axis ", axis, " of a value of rank ", rank));
  return b.ok() ? static_cast<int>(at) : 0;
}

std::vector<int64_t> AxesOf(GraphBuilder& b, ValueRef x, std::vector<int64_t> axes) {
  for (int64_t& axis : axes) axis = AxisOf(b, x, axis);
  if (!b.ok()) axes.clear();
  return axes;
}

ValueRef SwapAxes(GraphBuilder& b, ValueRef x, int64_t one, int64_t other) {
  const int first = AxisOf(b, x, one), second = AxisOf(b, x, other);
  if (!b.ok() || first == second) return x;
  std::vector<int64_t> order(Rank(b, x));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[first], order[second]);
  return Transpose(b, x, order);
}

ValueRef RepeatElements(GraphBuilder& b, ValueRef x, int64_t axis, int64_t times) {
  const int at = AxisOf(b, x, axis);
  if (b.ok() && (times < 0 || times > INT32_MAX)) b.Fail(absl::StrCat(times, " repetitions"));
  if (!b.ok() || times == 1) return x;
  const int rank = Rank(b, x);
  std::vector<int64_t> tiles(rank + 1, 1);
  tiles[at + 1] = times;
  const ValueRef tiled = b.Op("Tile", {ExpandDims(b, x, at + 1), Ints(b, tiles)});
  std::vector<WantedDim> dims;
  dims.reserve(rank);
  for (int k = 0; k < rank; ++k) dims.push_back(DimOf(b, x, k));
  int64_t size = -1;  // of an open axis, which a run tells
  if (dims[at].fixed() && __builtin_mul_overflow(dims[at].size, times, &size))
    b.Fail("a size past every limit");
  dims[at] = size;
  return Reshape(b, tiled, dims);
}

}  // namespace floe::keras
