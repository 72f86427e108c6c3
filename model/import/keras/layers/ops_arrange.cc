// Operations that put elements elsewhere, repeat or mask them.
#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/axes.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

// Axes from the start; an error where one is past the rank.
ValueRef MoveAxes(LayerContext& c, ValueRef x, std::vector<int64_t> from, std::vector<int64_t> to) {
  const int rank = Rank(c.b, x);
  from = AxesOf(c.b, x, std::move(from));
  to = AxesOf(c.b, x, std::move(to));
  if (from.size() != to.size()) c.Fail("axes to move and places for them differ in number");
  if (!c.b.ok() || from == to) return x;
  std::vector<int64_t> order;
  for (int k = 0; k < rank; ++k) {
    if (std::count(from.begin(), from.end(), k) == 0) order.push_back(k);
  }
  std::vector<std::pair<int64_t, int64_t>> moves;
  for (size_t k = 0; k < from.size(); ++k) moves.emplace_back(to[k], from[k]);
  std::sort(moves.begin(), moves.end());
  for (const auto& [place, axis] : moves) {
    if (place > static_cast<int64_t>(order.size())) c.Fail("axes that are named twice");
    if (!c.b.ok()) return x;
    order.insert(order.begin() + place, axis);
  }
  return Transpose(c.b, x, order);
}

KValue MoveAxis(LayerContext& c) {
  return MoveAxes(c, FirstTensor(c), IntOptions(c, {"source"}), IntOptions(c, {"destination"}));
}

KValue FlipAxis(LayerContext& c) {
  const int64_t axis = OperationName(c) == "Fliplr" ? 1 : 0;
  return c.b.Op("ReverseV2", {FirstTensor(c), Ints(c.b, {axis})});
}

// Keras' own turn of an array.
KValue Rot90(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"array"});
  const int rank = Rank(b, x);
  std::vector<int64_t> axes = IntOptions(c, {"axes"});
  if (axes.empty()) axes = {0, 1};
  axes = AxesOf(b, x, axes);
  const int64_t turns = ((IntOption(c, {"k"}, 1) % 4) + 4) % 4;
  if (b.ok() && (axes.size() != 2 || axes[0] == axes[1])) c.Fail("two axes are needed");
  if (!b.ok() || turns == 0) return x;
  if (turns == 2) {
    // Keras reads the quarter turn as if it had the shape of the array itself.
    ValueRef y = MoveAxes(c, x, axes, {-2, -1});
    std::vector<WantedDim> dims;
    dims.reserve(rank);
    for (int k = 0; k < rank; ++k) dims.push_back(DimOf(b, y, k));
    std::vector<int64_t> swapped(rank);
    std::iota(swapped.begin(), swapped.end(), 0);
    std::swap(swapped[rank - 2], swapped[rank - 1]);
    for (int k = 0; k < 2; ++k) {
      y = Transpose(b, b.Op("ReverseV2", {y, Ints(b, {rank - 1})}), swapped);
      y = Reshape(b, y, dims);
    }
    return MoveAxes(c, y, {-2, -1}, axes);
  }
  const ValueRef turned = SwapAxes(b, x, axes[0], axes[1]);
  return b.Op("ReverseV2", {turned, Ints(b, {turns == 1 ? axes[0] : axes[1]})});
}

KValue Roll(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x", "input"});
  std::vector<int64_t> shift = IntOptions(c, {"shift"}), axes = IntOptions(c, {"axis"});
  if (!Option(c, {"axis"}).is_null()) {
    while (shift.size() == 1 && shift.size() < axes.size()) shift.push_back(shift[0]);
    return b.Op("Roll", {x, Ints(b, shift), Ints(b, axes)});
  }
  const int rank = Rank(b, x);
  std::vector<WantedDim> dims;
  dims.reserve(rank);
  for (int k = 0; k < rank; ++k) dims.push_back(DimOf(b, x, k));
  return Reshape(b, b.Op("Roll", {Reshape(b, x, {-1}), Ints(b, shift), Ints(b, {0})}), dims);
}

KValue Repeat(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = TensorAt(c, 0, {"x", "input"});
  const KValue& given = c.Arg(1, "repeats");
  const Json& json = given.kind == KValue::Kind::kJson ? *given.json : Option(c, {"repeats"});
  const Json* items = Items(json);
  if (items == nullptr) items = Items(Member(Member(json, "config"), "value"));
  const bool whole = Option(c, {"axis"}).is_null();
  if (whole) x = Reshape(b, x, {-1});
  const int axis = AxisOf(b, x, IntOption(c, {"axis"}, 0));
  int64_t times = 0;
  std::vector<int64_t> counts;
  const Json one = Json::array({json});
  constexpr int64_t kMost = 1 << 24;
  int64_t all = 0;
  for (const Json& item : items == nullptr ? one : *items) {
    if (!ToInt(item, &times) || times < 0) c.Fail(absl::StrCat("repeats is ", Shown(json)));
    counts.push_back(times);
    all += std::min(times, kMost);
    if (all > kMost) c.Fail("too many repeats");
    if (!b.ok()) return {};
  }
  if (!b.ok() || counts.empty()) return c.Refuse("no repeats");
  if (counts.size() > 1) {
    std::vector<int64_t> at;
    for (size_t k = 0; k < counts.size(); ++k)
      at.insert(at.end(), counts[k], static_cast<int64_t>(k));
    return b.Op("GatherV2", {x, Ints(b, at), Int(b, axis)});
  }
  return RepeatElements(b, x, axis, times);
}

KValue Append(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Operand x = Strong(c, OperandAt(c, 0, {"x1"})), y = Strong(c, OperandAt(c, 1, {"x2"}));
  const bool whole = Option(c, {"axis"}).is_null();
  const int64_t axis = IntOption(c, {"axis"}, 0);
  if (!x.present() || !y.present()) c.Fail("it needs two arguments");
  if (!b.ok()) return {};
  std::vector<ValueRef> both = InOneType(c, {x, y});
  for (ValueRef& v : both) v = whole ? Reshape(b, v, {-1}) : v;
  return Concat(b, both, static_cast<int>(axis));
}

// hstack, vstack and dstack.
KValue JoinAll(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string name = OperationName(c);
  std::vector<Operand> parts = OperandsAt(c, 0, {"xs"});
  for (Operand& part : parts) part = Strong(c, part);
  std::vector<ValueRef> values = InOneType(c, parts);
  if (!b.ok()) return {};
  int axis = name == "Vstack" ? 0 : name == "Dstack" ? 2 : 1;
  for (ValueRef& v : values) {
    const int rank = Rank(b, v);
    if (name == "Dstack" && rank < 2) v = ExpandDims(b, Reshape(b, v, {1, -1}), 2);
    if (name == "Dstack" && rank == 2) v = ExpandDims(b, v, 2);
    if (name != "Dstack" && rank == 0) v = Reshape(b, v, {1});
    if (name == "Hstack" && Rank(b, v) == 1) axis = 0;
  }
  return Concat(b, values, axis);
}

// ---- triangles and diagonals ----

KValue Triangle(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const int64_t k = IntOption(c, {"k"}, 0);
  const bool lower = OperationName(c) == "Tril";
  if (Rank(b, x) < 2) c.Fail("a matrix is needed");
  if (!b.ok()) return {};
  const auto band = [&](int64_t below, int64_t above) {
    return b.Op("MatrixBandPart", {x, Int64(b, below), Int64(b, above)});
  };
  if (lower && k >= 0) return band(-1, k);
  if (!lower && k <= 0) return band(-k, -1);
  // What is left is on the other side of the diagonal: all but the band up to it.
  const ValueRef out =
      lower ? b.Op("MatrixBandPart",
                   {b.Op("OnesLike", {Cast(b, x, DType::kBool)}), Int64(b, -k - 1), Int64(b, -1)})
            : b.Op("MatrixBandPart",
                   {b.Op("OnesLike", {Cast(b, x, DType::kBool)}), Int64(b, -1), Int64(b, k - 1)});
  return b.Op("SelectV2", {out, b.Op("ZerosLike", {x}), x});
}

ValueRef DiagonalOf(LayerContext& c, ValueRef x, int64_t offset) {
  GraphBuilder& b = c.b;
  return b.Op("MatrixDiagPartV3", {x, Int(b, offset), Scalar(b, b.dtype(x), 0)},
              {{"align", std::string("RIGHT_LEFT")}});
}

ValueRef WithDiagonal(LayerContext& c, ValueRef x, int64_t k) {
  GraphBuilder& b = c.b;
  return b.Op("MatrixDiagV3", {x, Int(b, k), Int(b, -1), Int(b, -1), Scalar(b, b.dtype(x), 0)},
              {{"align", std::string("RIGHT_LEFT")}});
}

KValue Diag(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  const int64_t k = IntOption(c, {"k"}, 0);
  const int rank = Rank(c.b, x);
  if (OperationName(c) == "Diagflat") return WithDiagonal(c, Reshape(c.b, x, {-1}), k);
  if (c.b.ok() && rank != 1 && rank != 2) c.Fail("a vector or a matrix is needed");
  return rank == 1 ? WithDiagonal(c, x, k) : DiagonalOf(c, x, k);
}

KValue Diagonal(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const int64_t offset = IntOption(c, {"offset"}, 0), axis1 = IntOption(c, {"axis1"}, 0),
                axis2 = IntOption(c, {"axis2"}, 1);
  const ValueRef moved = MoveAxes(c, x, {axis1, axis2}, {-2, -1});
  const Dim rows = SizeAt(b, moved, -2), columns = SizeAt(b, moved, -1);
  if (b.ok() && offset != 0 && (!rows.concrete() || !columns.concrete()))
    return c.Refuse("a diagonal of an axis whose size is not known");
  if (b.ok() && offset != 0 && (offset <= -rows.size() || offset >= columns.size()))
    return c.Refuse("a diagonal past the matrix");
  return DiagonalOf(c, moved, offset);
}

KValue Trace(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const int64_t offset = IntOption(c, {"offset"}, 0), axis1 = IntOption(c, {"axis1"}, 0),
                axis2 = IntOption(c, {"axis2"}, 1);
  const ValueRef moved = MoveAxes(c, Cast(b, x, SumType(b.dtype(x))), {axis1, axis2}, {-2, -1});
  if (!b.ok()) return {};
  // Keras' mask has rows and columns as the axes stand in the file, which is the same matrix.
  const ValueRef band =
      b.Op("MatrixBandPart", {b.Op("OnesLike", {moved}), Int64(b, 0), Int64(b, 0)});
  ValueRef on = band;
  if (offset != 0) {
    const ValueRef ones = b.Op("OnesLike", {moved});
    const auto up_to = [&](int64_t k) {  // where column - row <= k
      if (k >= 0) return b.Op("MatrixBandPart", {ones, Int64(b, -1), Int64(b, k)});
      return Sub(b, ones, b.Op("MatrixBandPart", {ones, Int64(b, -k - 1), Int64(b, -1)}));
    };
    on = Sub(b, up_to(offset), up_to(offset - 1));
  }
  const ValueRef there = b.Op("NotEqual", {on, Scalar(b, b.dtype(on), 0)});
  return Reduce(b, "Sum", b.Op("SelectV2", {there, moved, b.Op("ZerosLike", {moved})}), {-2, -1},
                false);
}

KValue Diff(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const int64_t n = IntOption(c, {"n"}, 1);
  constexpr int64_t kMost = 64;
  if (n < 0 || n > kMost) c.Fail(absl::StrCat("n is ", n));
  const std::vector<int64_t> axes = AxesOf(b, x, {IntOption(c, {"axis"}, -1)});
  for (int64_t k = 0; k < n && b.ok(); ++k) {
    const int axis = static_cast<int>(axes[0]);
    const ValueRef after = Slice(b, x, axis, 1, build::kToEnd), before = Slice(b, x, axis, 0, -1);
    x = b.Op(b.dtype(x) == DType::kBool ? "NotEqual" : "Sub", {after, before});
  }
  return x;
}

const OperationRegistrar kArranged[] = {
    {"Moveaxis", {}, MoveAxis}, {"Fliplr", {}, FlipAxis}, {"Flipud", {}, FlipAxis},
    {"Rot90", {}, Rot90},       {"Roll", {"roll"}, Roll}, {"Repeat", {"repeat"}, Repeat},
    {"Append", {}, Append},     {"Hstack", {}, JoinAll},  {"Vstack", {}, JoinAll},
    {"Dstack", {}, JoinAll},    {"Tril", {}, Triangle},   {"Triu", {}, Triangle},
    {"Diag", {}, Diag},         {"Diagflat", {}, Diag},   {"Diagonal", {}, Diagonal},
    {"Trace", {}, Trace},       {"Diff", {}, Diff}};

}  // namespace
}  // namespace floe::keras
