// Products of tensors over chosen axes.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

using ProductAxes = std::vector<int64_t>;

// One side of a product as a matrix: what is kept, and what is summed over.
struct Side {
  ValueRef matrix;
  std::vector<WantedDim> kept;
};

Side MatrixOf(LayerContext& c, ValueRef x, ProductAxes summed, bool summed_last) {
  GraphBuilder& b = c.b;
  const int rank = Rank(b, x);
  ProductAxes kept;
  Side side;
  int64_t inner = 1;
  for (int64_t& axis : summed) {
    if (axis < 0) axis += rank;
    if (b.ok() && (axis < 0 || axis >= rank)) c.Fail("an axis past the rank");
    if (!b.ok()) return side;
    inner *= SizeOf(b, x, static_cast<int>(axis), "an axis that is summed over");
    if (inner > INT32_MAX) c.Fail("axes too long to sum over");
  }
  for (int k = 0; k < rank; ++k) {
    if (std::count(summed.begin(), summed.end(), k) != 0) continue;
    kept.push_back(k);
    side.kept.push_back(DimOf(b, x, k));
  }
  ProductAxes order = summed_last ? kept : summed;
  order.insert(order.end(), summed_last ? summed.begin() : kept.begin(),
               summed_last ? summed.end() : kept.end());
  ProductAxes same(rank);
  for (int k = 0; k < rank; ++k) same[k] = k;
  const ValueRef ordered = order == same ? x : Transpose(b, x, order);
  side.matrix = summed_last ? Reshape(b, ordered, {-1, inner}) : Reshape(b, ordered, {inner, -1});
  return side;
}

ValueRef SumOver(LayerContext& c, ValueRef x, ValueRef y, const ProductAxes& in_x,
                 const ProductAxes& in_y) {
  GraphBuilder& b = c.b;
  if (in_x.size() != in_y.size()) c.Fail("axes that differ in number");
  const Side left = MatrixOf(c, x, in_x, true), right = MatrixOf(c, y, in_y, false);
  if (!b.ok()) return {};
  std::vector<WantedDim> out = left.kept;
  out.insert(out.end(), right.kept.begin(), right.kept.end());
  return Reshape(b, b.Op("MatMul", {left.matrix, right.matrix}), out);
}

struct Factors {
  ValueRef x, y;
  DType result = DType::kInvalid;
};

// Both in the type that Keras computes in, float for whole numbers where `floating`.
Factors BothFactors(LayerContext& c, bool floating) {
  const Operand x = Strong(c, OperandAt(c, 0, {"x1", "a", "x"})),
                y = Strong(c, OperandAt(c, 1, {"x2", "b", "y"}));
  if (!x.present() || !y.present()) c.Fail("it needs two arguments");
  if (!c.b.ok()) return {};
  const std::vector<ValueRef> both = InOneType(c, {x, y});
  if (!c.b.ok()) return {};
  Factors pair{both[0], both[1], c.b.dtype(both[0])};
  if (floating) {
    pair.x = Cast(c.b, pair.x, FloatingType(pair.result));
    pair.y = Cast(c.b, pair.y, FloatingType(pair.result));
  }
  return pair;
}

KValue DotFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Factors p = BothFactors(c, true);
  if (!b.ok()) return {};
  const bool inner = OperationName(c) == "Inner";
  if (Rank(b, p.x) == 0 || Rank(b, p.y) == 0) return Cast(b, Mul(b, p.x, p.y), p.result);
  const int64_t axis = inner || Rank(b, p.y) == 1 ? -1 : -2;
  const ValueRef y = SumOver(c, p.x, p.y, {-1}, {axis});
  return b.ok() ? KValue(Cast(b, y, p.result)) : KValue();
}

KValue Vdot(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Factors p = BothFactors(c, true);
  const ValueRef product = Mul(b, Reshape(b, p.x, {-1}), Reshape(b, p.y, {-1}));
  return Cast(b, Reduce(b, "Sum", product, {0}, false), p.result);
}

KValue Outer(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Factors p = BothFactors(c, false);
  return Mul(b, Reshape(b, p.x, {-1, 1}), Reshape(b, p.y, {1, -1}));
}

bool ReadAxes(const Json& json, ProductAxes* axes) {
  const Json* const items = Items(json);
  int64_t axis = 0;
  if (ToInt(json, &axis)) {
    axes->push_back(axis);
    return true;
  }
  if (items == nullptr) return false;
  for (const Json& item : *items) {
    if (!ToInt(item, &axis)) return false;
    axes->push_back(axis);
  }
  return true;
}

KValue TensorDot(LayerContext& c) {
  GraphBuilder& b = c.b;
  Factors p = BothFactors(c, false);
  const KValue& third = c.Arg(2, "axes");
  const Json& json = third.kind == KValue::Kind::kJson ? *third.json : Option(c, {"axes"});
  if (!b.ok()) return {};
  ProductAxes in_x, in_y;
  int64_t count = 2;
  const int rank = Rank(b, p.x);
  const Json* const items = Items(json);
  if (json.is_null() || ToInt(json, &count)) {
    if (count < 0 || count > rank) c.Fail(absl::StrCat("axes is ", count));
    for (int64_t k = 0; k < count && b.ok(); ++k) {
      in_x.push_back(rank - count + k);
      in_y.push_back(k);
    }
  } else if (items == nullptr || items->size() != 2 || !ReadAxes((*items)[0], &in_x) ||
             !ReadAxes((*items)[1], &in_y)) {
    c.Fail(absl::StrCat("axes is ", Shown(json)));
  }
  if (!b.ok()) return {};
  const bool computed = IsFloating(p.result) || p.result == DType::kInt32 ||
                        p.result == DType::kInt64 || !IsKeras3(c);
  const DType dtype = computed ? p.result : FloatingType(p.result);
  const ValueRef y = SumOver(c, Cast(b, p.x, dtype), Cast(b, p.y, dtype), in_x, in_y);
  return b.ok() ? KValue(Cast(b, y, p.result)) : KValue();
}

KValue Kron(LayerContext& c) {
  GraphBuilder& b = c.b;
  Factors p = BothFactors(c, false);
  while (b.ok() && Rank(b, p.x) < Rank(b, p.y)) p.x = ExpandDims(b, p.x, 0);
  while (b.ok() && Rank(b, p.y) < Rank(b, p.x)) p.y = ExpandDims(b, p.y, 0);
  const int rank = Rank(b, p.x);
  std::vector<WantedDim> left, right, out;
  int open = 0;
  for (int k = 0; k < rank; ++k) {
    const WantedDim m = DimOf(b, p.x, k), n = DimOf(b, p.y, k);
    left.push_back(m);
    left.emplace_back(1);
    right.emplace_back(1);
    right.push_back(n);
    const bool fixed = m.fixed() && n.fixed();
    open += fixed ? 0 : 1;
    out.emplace_back(fixed ? m.size * n.size : -1);
  }
  if (open > 1) return c.Refuse("a product of tensors with several open dimensions");
  return Reshape(b, Mul(b, Reshape(b, p.x, left), Reshape(b, p.y, right)), out);
}

// Axis `from` last, or the last one at `to`.
ValueRef MovedAxes(LayerContext& c, ValueRef x, int64_t from, int64_t to) {
  const int rank = Rank(c.b, x);
  if (from < 0) from += rank;
  if (to < 0) to += rank;
  if (from < 0 || to < 0 || from >= rank || to >= rank) c.Fail("an axis past the rank");
  if (!c.b.ok() || from == to) return x;
  ProductAxes order;
  for (int k = 0; k < rank; ++k) {
    if (k != from) order.push_back(k);
  }
  order.insert(order.begin() + to, from);
  return Transpose(c.b, x, order);
}

KValue Cross(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Factors p = BothFactors(c, false);
  int64_t in_x = IntOption(c, {"axisa"}, -1), in_y = IntOption(c, {"axisb"}, -1),
          out = IntOption(c, {"axisc"}, -1);
  if (!Option(c, {"axis"}).is_null()) in_x = in_y = out = IntOption(c, {"axis"}, -1);
  ValueRef x = MovedAxes(c, p.x, in_x, -1), y = MovedAxes(c, p.y, in_y, -1);
  const int64_t of_x = SizeOf(b, x, -1, "the length of vectors"),
                of_y = SizeOf(b, y, -1, "the length of vectors");
  if (b.ok() && (of_x < 2 || of_x > 3 || of_y < 2 || of_y > 3))
    c.Fail("vectors of 2 or 3 elements are needed");
  if (!b.ok()) return {};
  const auto widened = [&](ValueRef v, int64_t size) {
    std::vector<std::pair<int64_t, int64_t>> pads(Rank(b, v), {0, 0});
    pads.back().second = 1;
    return size == 3 ? v : Pad(b, v, pads);
  };
  const ValueRef z = b.Op("Cross", {widened(x, of_x), widened(y, of_y)});
  if (of_x == 2 && of_y == 2) return At(b, z, -1, 2);
  return MovedAxes(c, z, -1, out);
}

const OperationRegistrar kProducts[] = {{"Dot", {}, DotFunction},
                                        {"Inner", {}, DotFunction},
                                        {"Vdot", {}, Vdot},
                                        {"Outer", {}, Outer},
                                        {"Tensordot", {"tensordot"}, TensorDot},
                                        {"Kron", {}, Kron},
                                        {"Cross", {"linalg.cross"}, Cross}};

}  // namespace
}  // namespace floe::keras
