// Operations that give another type, or a tensor made of another one's shape.
#include <cmath>
#include <limits>
#include <string>

#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue ConvertToTensor(LayerContext& c) {
  const ValueRef x = TensorAt(c, 0, {"x", "value"});
  const std::optional<DType> dtype = TypeOption(c, {"dtype"});
  if (BoolOption(c, {"sparse"}, false)) return c.Refuse("sparse=True");
  if (BoolOption(c, {"ragged"}, false)) return c.Refuse("ragged=True");
  TypeOption(c, {"dtype_hint"});  // a wish
  return dtype.has_value() && c.b.ok() ? Cast(c.b, x, *dtype) : x;
}

struct Range {
  double least, most;
};

Range RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kInt8:
      return {INT8_MIN, INT8_MAX};
    case DType::kUInt8:
      return {0, UINT8_MAX};
    case DType::kInt16:
      return {INT16_MIN, INT16_MAX};
    case DType::kUInt16:
      return {0, UINT16_MAX};
    case DType::kInt32:
      return {INT32_MIN, INT32_MAX};
    case DType::kUInt32:
      return {0, UINT32_MAX};
    case DType::kInt64:
      return {-0x1p63, 0x1p63};
    case DType::kUInt64:
      return {0, 0x1p64};
    case DType::kFloat16:
      return {-65504, 65504};
    case DType::kBFloat16:
      return {-0x1.FEp127, 0x1.FEp127};
    case DType::kFloat32:
      return {-std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
    default:
      return {-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  }
}

// The nearest number of a floating type that is no further from 0 than `bound`, and not what is
// past the range of a 64-bit number.
double Inside(DType in, double bound) {
  const bool past = std::abs(bound) >= 0x1p63 && std::abs(bound) <= 0x1p64 && bound > 0;
  if (in == DType::kFloat64) return past ? std::nextafter(bound, 0) : bound;
  const auto narrow = static_cast<float>(bound);
  const bool over = std::abs(static_cast<double>(narrow)) > std::abs(bound);
  return over || past ? std::nextafterf(narrow, 0) : narrow;
}

KValue SaturateCast(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const std::optional<DType> to = TypeOption(c, {"dtype"});
  if (!to.has_value()) c.Fail("no type");
  if (!b.ok()) return {};
  if (b.dtype(x) == DType::kBool) x = Cast(b, x, DType::kInt32);
  const DType in = b.dtype(x);
  const Range from = RangeOf(in), into = RangeOf(*to);
  double least = std::max(from.least, into.least), most = std::min(from.most, into.most);
  const bool floating = IsFloating(in);
  if (floating && !IsFloating(*to)) {
    least = Inside(in, least);
    most = Inside(in, most);
  }
  if (least > from.least || floating) x = b.Op("Maximum", {x, Scalar(b, in, least)});
  if (most < from.most || floating) x = b.Op("Minimum", {x, Scalar(b, in, most)});
  return Cast(b, x, *to);
}

// The same bytes as numbers of another type; the last dim takes up the difference.
KValue View(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x", "input"});
  const DType from = b.dtype(x), to = TypeOption(c, {"dtype", "type"}).value_or(from);
  const int rank = Rank(b, x);
  if (!b.ok() || from == to) return x;
  const auto bitcast = [&](ValueRef v) {
    return b.Op("Bitcast", {v}, {{"T", from}, {"type", to}});
  };
  const auto before = static_cast<int64_t>(DTypeSize(from)),
             after = static_cast<int64_t>(DTypeSize(to));
  // TensorFlow's own op adds or takes a dim.
  if (before == after || !IsKeras3(c)) return bitcast(x);
  std::vector<WantedDim> dims;
  dims.reserve(rank + 1);
  for (int k = 0; k + 1 < rank; ++k) dims.push_back(DimOf(b, x, k));
  const int64_t last = SizeOf(b, x, -1, "the last dimension");
  if (before > after) {
    dims.emplace_back(last * (before / after));
    return Reshape(b, bitcast(x), dims);
  }
  const int64_t ratio = after / before;
  if (last % ratio != 0) c.Fail("the last dimension is no multiple of the wider type");
  dims.emplace_back(last / ratio);
  dims.emplace_back(ratio);
  return bitcast(Reshape(b, x, dims));
}

KValue Size(LayerContext& c) {
  const DType dtype = TypeOption(c, {"out_type"}).value_or(DType::kInt32);
  return c.b.Op("Size", {FirstTensor(c)}, {{"out_type", dtype}});
}

KValue Shape(LayerContext& c) {
  const DType dtype = TypeOption(c, {"out_type"}).value_or(DType::kInt32);
  return c.b.Op("Shape", {FirstTensor(c)}, {{"out_type", dtype}});
}

KValue Rank(LayerContext& c) { return c.b.Op("Rank", {FirstTensor(c)}); }

KValue Ravel(LayerContext& c) { return Reshape(c.b, FirstTensor(c), {-1}); }

KValue EmptyLike(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  const DType dtype = TypeOption(c, {"dtype"}).value_or(c.b.dtype(x));
  return c.b.Op("ZerosLike", {Cast(c.b, x, dtype)});
}

KValue FullLike(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const DType dtype = TypeOption(c, {"dtype"}).value_or(b.dtype(x));
  const Operand value = OperandAt(c, 1, {"fill_value"});
  if (!value.present()) c.Fail("no value to fill with");
  const ValueRef y = b.Op("BroadcastTo", {Cast(b, value.value, dtype), b.Op("Shape", {x})});
  b.Refine(y, b.shape(x));
  return y;
}

// tf.zeros, tf.ones and tf.fill, whose shape may be computed.
KValue Filled(LayerContext& c) {
  GraphBuilder& b = c.b;
  const bool fill = c.class_name == "fill";
  const ValueRef narrow = VectorAt(c, 0, fill ? "dims" : "shape");
  const DType dtype = TypeOption(c, {"dtype"}).value_or(DType::kFloat32);
  if (!b.ok()) return {};
  if (!fill) return b.Op("Fill", {narrow, Scalar(b, dtype, c.class_name == "ones" ? 1 : 0)});
  const Operand value = OperandAt(c, 1, {"value"});
  if (!value.present()) c.Fail("no value to fill with");
  if (!b.ok()) return {};
  const DType type = ResultType({{b.dtype(value.value), value.weak}});
  return b.Op("Fill", {narrow, Cast(b, value.value, type)});
}

const OperationRegistrar kConversions[] = {
    {"ConvertToTensor", {"convert_to_tensor", "constant"}, ConvertToTensor},
    {"SaturateCast", {"saturate_cast", "dtypes.saturate_cast"}, SaturateCast},
    {"View", {"bitcast"}, View},
    {"Size", {"size"}, Size},
    {"", {"shape"}, Shape},
    {"", {"rank"}, Rank},
    {"Ravel", {}, Ravel},
    {"EmptyLike", {}, EmptyLike},
    {"FullLike", {}, FullLike},
    {"", {"zeros", "ones", "fill"}, Filled}};

}  // namespace
}  // namespace floe::keras
