// Sorting, and what is read off sorted values: quantiles, searches.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/axes.h"
#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

bool UnsignedOrder(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
         dtype == DType::kUInt64;
}

// Numbers in the opposite order. It is its own inverse.
ValueRef Turned(GraphBuilder& b, ValueRef x) {
  const DType dtype = b.dtype(x);
  if (UnsignedOrder(dtype)) return b.Op("Invert", {x});
  if (IsInteger(dtype)) return b.Op("Invert", {x});  // -x - 1, which every number has
  return b.Op("Neg", {x});
}

}  // namespace

ValueRef SortLast(GraphBuilder& b, ValueRef x, bool ascending, bool indices) {
  const int last = b.rank(x) - 1;
  if (!b.ok()) return {};
  const ValueRef size = b.At(b.Op("Shape", {x}), 0, last);
  const std::vector<ValueRef> found =
      b.Outputs("TopKV2", {ascending ? Turned(b, x) : x, size}, 2, {{"sorted", true}});
  if (indices) return found[1];
  return ascending ? Turned(b, found[0]) : found[0];
}

namespace {

KValue Sorted(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const bool indices = absl::StrContains(c.class_name, "rgsort");
  const std::string direction = TextOption(c, {"direction"}, "ASCENDING");
  BoolOption(c, {"stable"}, false);  // it is, always
  if (direction != "ASCENDING" && direction != "DESCENDING")
    c.Fail(absl::StrCat("direction ", Quoted(direction)));
  const bool whole = IsKeras3(c) && c.config.Has("axis") == false;
  if (whole) x = b.Reshape(x, {-1});
  const int axis = AxisOf(b, x, whole ? 0 : IntOption(c, {"axis"}, -1));
  Option(c, {"axis"});
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  if (dtype == DType::kBool) x = b.Cast(x, DType::kUInt8);
  const ValueRef y = SortLast(b, SwapAxes(b, x, axis, -1), direction == "ASCENDING", indices);
  const ValueRef back = SwapAxes(b, y, axis, -1);
  return indices || !b.ok() ? back : b.Cast(back, dtype);
}

// ---- quantiles ----

struct Quantiles {
  ValueRef x;                 // floating
  ValueRef q;                 // float64, a scalar or a vector
  std::vector<int64_t> axes;  // sorted
  bool whole = false;         // no axis was named
  std::string method;
  bool keep = false, skips_nan = false;
};

Quantiles ReadQuantiles(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string name = OperationName(c);
  Quantiles quantiles;
  quantiles.x = FirstTensor(c);
  quantiles.skips_nan = absl::StartsWith(name, "Nan");
  if (quantiles.skips_nan && b.ok() && !b.Floating(quantiles.x))
    c.Refuse("a quantile without NaN of whole numbers");
  quantiles.x = b.Cast(quantiles.x, FloatingType(b.dtype(quantiles.x)));
  ValueRef q = absl::EndsWith(name, "edian") ? b.Scalar(DType::kFloat32, 0.5)
                                             : b.Cast(TensorAt(c, 1, {"q"}), DType::kFloat32);
  if (absl::EndsWith(name, "ercentile")) q = b.Op("RealDiv", {q, b.Scalar(DType::kFloat32, 100)});
  quantiles.q = b.Cast(q, DType::kFloat64);
  quantiles.whole = Option(c, {"axis"}).is_null();
  quantiles.axes = IntOptions(c, {"axis"});
  const int rank = b.rank(quantiles.x);
  for (int k = 0; quantiles.whole && k < rank; ++k) quantiles.axes.push_back(k);
  for (int64_t& axis : quantiles.axes) axis = AxisOf(c.b, quantiles.x, axis);
  std::sort(quantiles.axes.begin(), quantiles.axes.end());
  quantiles.method = TextOption(c, {"method"}, "linear");
  if (name == "Quantile") quantiles.method = "linear";  // Keras' own operation does not pass it on
  quantiles.keep = BoolOption(c, {"keepdims"}, false);
  if (b.rank(quantiles.q) > 1) c.Fail("q has more than one dimension");
  return quantiles;
}

// Elements of sorted rows [B, R] at places [B, Q].
struct SortedRows {
  ValueRef rows, last;  // last: [B, 1], float64, the place of the last element that counts
  ValueRef Place(GraphBuilder& b, const char* round, ValueRef q) const {
    const ValueRef at = b.Cast(b.Op(round, {b.Mul(last, q)}), DType::kInt32);
    const ValueRef most = b.Op("Maximum", {b.Cast(last, DType::kInt32), b.Int(0)});
    return b.Op("Minimum", {b.Op("Maximum", {at, b.Int(0)}), most});
  }
  ValueRef Gather(GraphBuilder& b, ValueRef at) const {
    return b.Op("GatherV2", {rows, at, b.Int(1)}, {{"batch_dims", int64_t{1}}});
  }
};

ValueRef Interpolated(LayerContext& c, const SortedRows& sorted, ValueRef q,
                      const std::string& method) {
  GraphBuilder& b = c.b;
  if (method == "lower") return sorted.Gather(b, sorted.Place(b, "Floor", q));
  if (method == "higher") return sorted.Gather(b, sorted.Place(b, "Ceil", q));
  if (method == "nearest") return sorted.Gather(b, sorted.Place(b, "Round", q));
  if (method == "midpoint")
    return b.Mul(b.Add(sorted.Gather(b, sorted.Place(b, "Floor", q)),
                       sorted.Gather(b, sorted.Place(b, "Ceil", q))),
                 0.5);
  if (method != "linear") c.Fail(absl::StrCat("method ", Quoted(method)));
  const ValueRef last = b.Cast(sorted.last, DType::kInt32), zero = b.Int(0);
  const ValueRef smaller = b.Op("Maximum", {b.Sub(sorted.Place(b, "Ceil", q), b.Int(1)), zero});
  const ValueRef larger =
      b.Op("Maximum", {b.Op("Minimum", {b.Add(smaller, b.Int(1)), last}), zero});
  const DType dtype = b.dtype(sorted.rows);
  const ValueRef fraction =
      b.Cast(b.Sub(b.Cast(larger, DType::kFloat64), b.Mul(sorted.last, q)), dtype);
  const ValueRef rest = b.Sub(b.Scalar(dtype, 1), fraction);
  return b.Add(b.Mul(sorted.Gather(b, larger), rest), b.Mul(sorted.Gather(b, smaller), fraction));
}

KValue Quantile(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Quantiles quantiles = ReadQuantiles(c);
  const ValueRef x = quantiles.x;
  const int rank = b.rank(x), q_rank = b.rank(quantiles.q);
  if (!b.ok()) return {};
  // Rows [B, R] of what is reduced.
  std::vector<int64_t> order;
  std::vector<WantedDim> others, kept;
  for (int k = 0; k < rank; ++k) {
    const bool reduced = std::count(quantiles.axes.begin(), quantiles.axes.end(), k) != 0;
    if (!reduced) {
      order.push_back(k);
      others.push_back(b.DimOf(x, k));
    }
    kept.push_back(reduced ? WantedDim(1) : b.DimOf(x, k));
  }
  const size_t open = others.size();
  for (const int64_t axis : quantiles.axes) order.push_back(axis);
  std::vector<WantedDim> flat = others;
  flat.emplace_back(-1);
  ValueRef rows = b.Reshape(b.Transpose(x, order), flat);
  if (open != 1) {
    const ValueRef size =
        b.ExpandDims(b.At(b.Op("Shape", {rows}), 0, static_cast<int64_t>(open)), 0);
    rows = b.Op("Reshape", {rows, b.Concat({b.Ints({-1}), size}, 0)});
    if (b.ok()) b.Refine(rows, SymShape{Dim::Unknown(), Dim::Unknown()});
  }
  const ValueRef nan = b.Op("IsNan", {rows});
  const DType dtype = b.dtype(x);
  const auto nothing = b.Scalar(dtype, std::numeric_limits<double>::quiet_NaN());
  const auto most = b.Scalar(dtype, std::numeric_limits<double>::infinity());
  SortedRows sorted;
  sorted.rows = SortLast(b, b.Op("SelectV2", {nan, most, rows}), true, false);
  const ValueRef counted =
      quantiles.skips_nan ? b.Op("LogicalNot", {nan}) : b.Op("OnesLike", {nan});
  const ValueRef count = b.Reduce("Sum", b.Cast(counted, DType::kInt32), {1}, true);
  sorted.last = b.Cast(b.Sub(count, b.Int(1)), DType::kFloat64);
  const ValueRef q = b.Reshape(quantiles.q, {1, -1});
  ValueRef y = Interpolated(c, sorted, q, quantiles.method);
  const ValueRef lost = b.Reduce(quantiles.skips_nan ? "All" : "Any", nan, {1}, true);
  y = b.Op("SelectV2", {lost, nothing, y});  // [B, Q]
  std::vector<WantedDim> out = quantiles.keep ? kept : others;
  y = b.Transpose(y, {1, 0});
  if (q_rank == 1) out.insert(out.begin(), b.DimOf(quantiles.q, 0));
  return b.Reshape(y, out);
}

// ---- searches ----

KValue SearchSorted(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Operand sequence = OperandAt(c, 0, {"sorted_sequence"}),
                values = OperandAt(c, 1, {"values"});
  const std::string side = TextOption(c, {"side"}, "left");
  const DType dtype = TypeOption(c, {"out_type"}).value_or(DType::kInt32);
  if (!sequence.present() || !values.present()) c.Fail("it needs two arguments");
  if (side != "left" && side != "right") c.Fail(absl::StrCat("side ", Quoted(side)));
  if (!b.ok()) return {};
  ValueRef x = Strong(c, sequence).value, y = Strong(c, values).value;
  if (values.constant) y = b.Cast(y, b.dtype(x));
  if (sequence.constant) x = b.Cast(x, b.dtype(y));
  const int rank = b.rank(x), y_rank = b.rank(y);
  if (b.ok() && rank != 1 && rank != y_rank) return c.Refuse("a search in rows of another rank");
  std::vector<WantedDim> dims;
  dims.reserve(y_rank);
  for (int k = 0; k < y_rank; ++k) dims.push_back(b.DimOf(y, k));
  // The op has rows of both.
  const int64_t width = rank == 1 ? -1 : b.Size(x, -1, "the length of the sequence");
  if (rank == 1) {
    x = b.ExpandDims(x, 0);
    y = b.Reshape(y, {1, -1});
  } else {
    x = b.Reshape(x, {-1, width});
    y = b.Reshape(y, {-1, b.Size(y, -1, "the number of values")});
  }
  const ValueRef at =
      b.Op(side == "left" ? "LowerBound" : "UpperBound", {x, y}, {{"out_type", dtype}});
  return b.Reshape(at, dims);
}

KValue Digitize(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const KValue& bins = c.Arg(1, "bins");
  const Json* json = bins.kind == KValue::Kind::kJson ? bins.json : &Option(c, {"bins"});
  const Json* items = Items(*json);
  if (items == nullptr) items = Items(Member(Member(*json, "config"), "value"));
  if (items == nullptr) return c.Refuse("bins that are computed");
  std::vector<float> bounds;
  for (const Json& item : *items) {
    if (!item.is_number()) c.Fail(absl::StrCat("a bin of ", Shown(item)));
    if (b.ok()) bounds.push_back(item.get<float>());
  }
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  if (dtype == DType::kUInt32) {
    x = b.Cast(x, DType::kInt64);
  } else if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    x = b.Cast(x, DType::kFloat32);
  } else if (dtype == DType::kBool || (IsInteger(dtype) && DTypeSize(dtype) < 4)) {
    x = b.Cast(x, DType::kInt32);
  }
  return b.Op("Bucketize", {x}, {{"boundaries", bounds}});
}

const OperationRegistrar kSorts[] = {{"Sort", {"sort"}, Sorted},
                                     {"Argsort", {"argsort"}, Sorted},
                                     {"Median", {}, Quantile},
                                     {"Quantile", {}, Quantile},
                                     {"Percentile", {}, Quantile},
                                     {"Nanmedian", {}, Quantile},
                                     {"Nanquantile", {}, Quantile},
                                     {"Nanpercentile", {}, Quantile},
                                     {"SearchSorted", {"searchsorted"}, SearchSorted},
                                     {"Digitize", {}, Digitize}};

}  // namespace
}  // namespace floe::keras
