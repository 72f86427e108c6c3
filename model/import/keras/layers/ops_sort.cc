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
  const int last = Rank(b, x) - 1;
  if (!b.ok()) return {};
  const ValueRef size = At(b, b.Op("Shape", {x}), 0, last);
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
  if (whole) x = Reshape(b, x, {-1});
  const int axis = AxisOf(b, x, whole ? 0 : IntOption(c, {"axis"}, -1));
  Option(c, {"axis"});
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  if (dtype == DType::kBool) x = Cast(b, x, DType::kUInt8);
  const ValueRef y = SortLast(b, SwapAxes(b, x, axis, -1), direction == "ASCENDING", indices);
  const ValueRef back = SwapAxes(b, y, axis, -1);
  return indices || !b.ok() ? back : Cast(b, back, dtype);
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
  if (quantiles.skips_nan && b.ok() && !Floating(b, quantiles.x))
    c.Refuse("a quantile without NaN of whole numbers");
  quantiles.x = Cast(b, quantiles.x, FloatingType(b.dtype(quantiles.x)));
  ValueRef q = absl::EndsWith(name, "edian") ? Scalar(b, DType::kFloat32, 0.5)
                                             : Cast(b, TensorAt(c, 1, {"q"}), DType::kFloat32);
  if (absl::EndsWith(name, "ercentile")) q = b.Op("RealDiv", {q, Scalar(b, DType::kFloat32, 100)});
  quantiles.q = Cast(b, q, DType::kFloat64);
  quantiles.whole = Option(c, {"axis"}).is_null();
  quantiles.axes = IntOptions(c, {"axis"});
  const int rank = Rank(b, quantiles.x);
  for (int k = 0; quantiles.whole && k < rank; ++k) quantiles.axes.push_back(k);
  for (int64_t& axis : quantiles.axes) axis = AxisOf(c.b, quantiles.x, axis);
  std::sort(quantiles.axes.begin(), quantiles.axes.end());
  quantiles.method = TextOption(c, {"method"}, "linear");
  if (name == "Quantile") quantiles.method = "linear";  // Keras' own operation does not pass it on
  quantiles.keep = BoolOption(c, {"keepdims"}, false);
  if (Rank(b, quantiles.q) > 1) c.Fail("q has more than one dimension");
  return quantiles;
}

// Elements of sorted rows [B, R] at places [B, Q].
struct SortedRows {
  ValueRef rows, last;  // last: [B, 1], float64, the place of the last element that counts
  ValueRef Place(GraphBuilder& b, const char* round, ValueRef q) const {
    const ValueRef at = Cast(b, b.Op(round, {Mul(b, last, q)}), DType::kInt32);
    const ValueRef most = b.Op("Maximum", {Cast(b, last, DType::kInt32), Int(b, 0)});
    return b.Op("Minimum", {b.Op("Maximum", {at, Int(b, 0)}), most});
  }
  ValueRef Gather(GraphBuilder& b, ValueRef at) const {
    return b.Op("GatherV2", {rows, at, Int(b, 1)}, {{"batch_dims", int64_t{1}}});
  }
};

ValueRef Interpolated(LayerContext& c, const SortedRows& sorted, ValueRef q,
                      const std::string& method) {
  GraphBuilder& b = c.b;
  if (method == "lower") return sorted.Gather(b, sorted.Place(b, "Floor", q));
  if (method == "higher") return sorted.Gather(b, sorted.Place(b, "Ceil", q));
  if (method == "nearest") return sorted.Gather(b, sorted.Place(b, "Round", q));
  if (method == "midpoint")
    return Mul(b,
               Add(b, sorted.Gather(b, sorted.Place(b, "Floor", q)),
                   sorted.Gather(b, sorted.Place(b, "Ceil", q))),
               0.5);
  if (method != "linear") c.Fail(absl::StrCat("method ", Quoted(method)));
  const ValueRef last = Cast(b, sorted.last, DType::kInt32), zero = Int(b, 0);
  const ValueRef smaller = b.Op("Maximum", {Sub(b, sorted.Place(b, "Ceil", q), Int(b, 1)), zero});
  const ValueRef larger =
      b.Op("Maximum", {b.Op("Minimum", {Add(b, smaller, Int(b, 1)), last}), zero});
  const DType dtype = b.dtype(sorted.rows);
  const ValueRef fraction =
      Cast(b, Sub(b, Cast(b, larger, DType::kFloat64), Mul(b, sorted.last, q)), dtype);
  const ValueRef rest = Sub(b, Scalar(b, dtype, 1), fraction);
  return Add(b, Mul(b, sorted.Gather(b, larger), rest),
             Mul(b, sorted.Gather(b, smaller), fraction));
}

KValue Quantile(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Quantiles quantiles = ReadQuantiles(c);
  const ValueRef x = quantiles.x;
  const int rank = Rank(b, x), q_rank = Rank(b, quantiles.q);
  if (!b.ok()) return {};
  // Rows [B, R] of what is reduced.
  std::vector<int64_t> order;
  std::vector<WantedDim> others, kept;
  for (int k = 0; k < rank; ++k) {
    const bool reduced = std::count(quantiles.axes.begin(), quantiles.axes.end(), k) != 0;
    if (!reduced) {
      order.push_back(k);
      others.push_back(DimOf(b, x, k));
    }
    kept.push_back(reduced ? WantedDim(1) : DimOf(b, x, k));
  }
  const size_t open = others.size();
  for (const int64_t axis : quantiles.axes) order.push_back(axis);
  std::vector<WantedDim> flat = others;
  flat.emplace_back(-1);
  ValueRef rows = Reshape(b, Transpose(b, x, order), flat);
  if (open != 1) {
    const ValueRef size =
        ExpandDims(b, At(b, b.Op("Shape", {rows}), 0, static_cast<int64_t>(open)), 0);
    rows = b.Op("Reshape", {rows, Concat(b, {Ints(b, {-1}), size}, 0)});
    b.Refine(rows, SymShape{Dim::Unknown(), Dim::Unknown()});
  }
  const ValueRef nan = b.Op("IsNan", {rows});
  const DType dtype = b.dtype(x);
  const auto nothing = Scalar(b, dtype, std::numeric_limits<double>::quiet_NaN());
  const auto most = Scalar(b, dtype, std::numeric_limits<double>::infinity());
  SortedRows sorted;
  sorted.rows = SortLast(b, b.Op("SelectV2", {nan, most, rows}), true, false);
  const ValueRef counted =
      quantiles.skips_nan ? b.Op("LogicalNot", {nan}) : b.Op("OnesLike", {nan});
  const ValueRef count = Reduce(b, "Sum", Cast(b, counted, DType::kInt32), {1}, true);
  sorted.last = Cast(b, Sub(b, count, Int(b, 1)), DType::kFloat64);
  const ValueRef q = Reshape(b, quantiles.q, {1, -1});
  ValueRef y = Interpolated(c, sorted, q, quantiles.method);
  const ValueRef lost = Reduce(b, quantiles.skips_nan ? "All" : "Any", nan, {1}, true);
  y = b.Op("SelectV2", {lost, nothing, y});  // [B, Q]
  std::vector<WantedDim> out = quantiles.keep ? kept : others;
  y = Transpose(b, y, {1, 0});
  if (q_rank == 1) out.insert(out.begin(), DimOf(b, quantiles.q, 0));
  return Reshape(b, y, out);
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
  if (values.constant) y = Cast(b, y, b.dtype(x));
  if (sequence.constant) x = Cast(b, x, b.dtype(y));
  const int rank = Rank(b, x), y_rank = Rank(b, y);
  if (b.ok() && rank != 1 && rank != y_rank) return c.Refuse("a search in rows of another rank");
  std::vector<WantedDim> dims;
  dims.reserve(y_rank);
  for (int k = 0; k < y_rank; ++k) dims.push_back(DimOf(b, y, k));
  // The op has rows of both.
  const int64_t width = rank == 1 ? -1 : SizeOf(b, x, -1, "the length of the sequence");
  if (rank == 1) {
    x = ExpandDims(b, x, 0);
    y = Reshape(b, y, {1, -1});
  } else {
    x = Reshape(b, x, {-1, width});
    y = Reshape(b, y, {-1, SizeOf(b, y, -1, "the number of values")});
  }
  const ValueRef at =
      b.Op(side == "left" ? "LowerBound" : "UpperBound", {x, y}, {{"out_type", dtype}});
  return Reshape(b, at, dims);
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
  const DType dtype = b.dtype(x);
  if (dtype == DType::kUInt32) {
    x = Cast(b, x, DType::kInt64);
  } else if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    x = Cast(b, x, DType::kFloat32);
  } else if (dtype == DType::kBool || (IsInteger(dtype) && DTypeSize(dtype) < 4)) {
    x = Cast(b, x, DType::kInt32);
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
