// Functions of TensorFlow between the layers of Keras 2 that keras.ops does not have.
#include <map>
#include <string>

#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

// One tensor, by one op.
KValue Elementwise(LayerContext& c) {
  static const std::map<std::string, std::string> ops{{"math.acos", "Acos"},
                                                      {"math.asin", "Asin"},
                                                      {"math.atan", "Atan"},
                                                      {"math.acosh", "Acosh"},
                                                      {"math.asinh", "Asinh"},
                                                      {"math.atanh", "Atanh"},
                                                      {"math.cosh", "Cosh"},
                                                      {"math.sinh", "Sinh"},
                                                      {"math.rint", "Rint"},
                                                      {"math.lgamma", "Lgamma"},
                                                      {"math.digamma", "Digamma"},
                                                      {"math.erfc", "Erfc"},
                                                      {"math.is_finite", "IsFinite"},
                                                      {"math.is_inf", "IsInf"},
                                                      {"acos", "Acos"},
                                                      {"asin", "Asin"},
                                                      {"atan", "Atan"},
                                                      {"cosh", "Cosh"},
                                                      {"sinh", "Sinh"},
                                                      {"sin", "Sin"},
                                                      {"cos", "Cos"},
                                                      {"tan", "Tan"},
                                                      {"floor", "Floor"},
                                                      {"negative", "Neg"},
                                                      {"sign", "Sign"},
                                                      {"round", "Round"}};
  const auto found = ops.find(c.class_name);
  if (found == ops.end()) return c.Refuse("this function");
  return c.b.Op(found->second, {FirstTensor(c)});
}

KValue AddN(LayerContext& c) {
  std::vector<ValueRef> values;
  for (const Operand& part : OperandsAt(c, 0, {"inputs"})) values.push_back(part.value);
  const auto count = static_cast<int64_t>(values.size());
  return c.b.Op("AddN", values, {{"N", count}});
}

KValue Atan2(LayerContext& c) {
  const Operand y = OperandAt(c, 0, {"y"}), x = OperandAt(c, 1, {"x"});
  if (!x.present() || !y.present()) c.Fail("it needs two arguments");
  if (!c.b.ok()) return {};
  const std::vector<ValueRef> both = InOneType(c, {y, x});
  return c.b.Op("Atan2", {both[0], both[1]});
}

// space_to_batch and back.
KValue Blocks(LayerContext& c) {
  const bool split = c.class_name == "space_to_batch_nd" || c.class_name == "space_to_batch";
  const ValueRef x = TensorAt(c, 0, {"input"}), block = TensorAt(c, 1, {"block_shape"}),
                 edges = TensorAt(c, 2, {split ? "paddings" : "crops"});
  return c.b.Op(split ? "SpaceToBatchND" : "BatchToSpaceND", {x, block, edges});
}

KValue MulNoNan(LayerContext& c) {
  const auto [x, y] = TwoOperands(c);
  return c.b.Op("MulNoNan", {x, y});
}

KValue EnsureShape(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  const Json* const dims = Items(Option(c, {"shape"}));
  SymShape shape;
  static const Json none = Json::array();
  for (const Json& item : dims == nullptr ? none : *dims) {
    int64_t size = -1;
    if (!item.is_null() && (!ToInt(item, &size) || size < 0))
      c.Fail("a shape of numbers is needed");
    shape.push_back(size < 0 ? Dim::Unknown() : Dim(size));
  }
  return c.b.Op("EnsureShape", {x}, {{"shape", shape}});
}

KValue RangeFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  Operand start = OperandAt(c, 0, {"start", "limit"}), limit = OperandAt(c, 1, {"limit"});
  const Operand delta = OperandAt(c, 2, {"delta"});
  const std::optional<DType> named = TypeOption(c, {"dtype"});
  if (!start.present()) c.Fail("no end");
  if (!b.ok()) return {};
  if (!limit.present()) {
    limit = start;
    start = {Int64(b, 0), true, true};
  }
  std::vector<OperandType> types;
  for (const Operand& part : {start, limit, delta}) {
    if (part.present()) types.push_back({b.dtype(part.value), part.weak});
  }
  const DType dtype = named.value_or(ResultType(types));
  if (dtype == DType::kInvalid) c.Fail("ends of types that have no common one");
  const ValueRef step = delta.present() ? Cast(b, delta.value, dtype) : Scalar(b, dtype, 1);
  return b.Op("Range", {Cast(b, start.value, dtype), Cast(b, limit.value, dtype), step});
}

KValue Eye(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef rows = Cast(b, TensorAt(c, 0, {"num_rows"}), DType::kInt32);
  const Operand given = OperandAt(c, 1, {"num_columns"});
  const DType dtype = TypeOption(c, {"dtype"}).value_or(DType::kFloat32);
  const ValueRef columns = given.present() ? Cast(b, given.value, DType::kInt32) : rows;
  const ValueRef ones = b.Op("Fill", {Pack(b, {rows, columns}, 0), Scalar(b, dtype, 1)});
  b.Refine(ones, SymShape{Dim::Unknown(), Dim::Unknown()});
  return b.Op("MatrixBandPart", {ones, Int64(b, 0), Int64(b, 0)});
}

KValue SequenceMask(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef lengths = TensorAt(c, 0, {"lengths"});
  const Operand given = OperandAt(c, 1, {"maxlen"});
  const DType dtype = TypeOption(c, {"dtype"}).value_or(DType::kBool);
  if (!b.ok()) return {};
  const DType type = b.dtype(lengths);
  std::vector<int64_t> axes;
  axes.reserve(Rank(b, lengths));
  for (int k = 0; k < Rank(b, lengths); ++k) axes.push_back(k);
  const ValueRef longest =
      b.Op("Maximum", {Reduce(b, "Max", lengths, axes, false), Scalar(b, type, 0)});
  const ValueRef size = given.present() ? Cast(b, given.value, type) : longest;
  const ValueRef places = b.Op("Range", {Scalar(b, type, 0), size, Scalar(b, type, 1)});
  const ValueRef mask = b.Op("Less", {places, ExpandDims(b, lengths, -1)});
  return b.ok() ? KValue(Cast(b, mask, dtype)) : KValue();
}

KValue ReverseSequence(LayerContext& c) {
  const ValueRef x = TensorAt(c, 0, {"input"}), lengths = TensorAt(c, 1, {"seq_lengths"});
  const int64_t along = IntOption(c, {"seq_axis", "seq_dim"}, 0),
                batch = IntOption(c, {"batch_axis", "batch_dim"}, 0);
  return c.b.Op("ReverseSequence", {x, lengths}, {{"seq_dim", along}, {"batch_dim", batch}});
}

KValue BooleanMask(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"tensor"}), mask = TensorAt(c, 1, {"mask"});
  int64_t axis = IntOption(c, {"axis"}, 0);
  const int rank = Rank(b, x), covered = Rank(b, mask);
  if (axis < 0) axis += rank;
  if (b.ok() && (covered == 0 || axis < 0 || axis + covered > rank))
    c.Fail("a mask of other dimensions than the tensor's");
  if (b.ok() && axis != 0 && covered != 1) return c.Refuse("a mask of several axes past the first");
  if (!b.ok()) return {};
  std::vector<WantedDim> dims;
  dims.emplace_back(-1);
  for (int k = covered; k < rank; ++k) dims.push_back(DimOf(b, x, k));
  const ValueRef flat = covered == 1 ? x : Reshape(b, x, dims);
  const ValueRef at = Squeeze(b, b.Op("Where", {Reshape(b, mask, {-1})}), {1});
  return b.Op("GatherV2", {flat, at, Int(b, axis)});
}

KValue ClipByNorm(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"t"});
  ValueRef bound = TensorAt(c, 1, {"clip_norm"});
  std::vector<int64_t> axes = IntOptions(c, {"axes"});
  const bool all = Option(c, {"axes"}).is_null();
  for (int k = 0; all && k < Rank(b, x); ++k) axes.push_back(k);
  const DType dtype = b.dtype(x);
  bound = Cast(b, bound, dtype);
  const ValueRef sum = Reduce(b, "Sum", Mul(b, x, x), axes, true), zero = Scalar(b, dtype, 0);
  const ValueRef some = b.Op("Greater", {sum, zero});
  const ValueRef safe = b.Op("SelectV2", {some, sum, b.Op("OnesLike", {sum})});
  const ValueRef norm = b.Op("SelectV2", {some, b.Op("Sqrt", {safe}), sum});
  return b.Op("RealDiv", {Mul(b, x, bound), b.Op("Maximum", {norm, bound})});
}

KValue StridedSlice(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"input_"}), begin = VectorAt(c, 1, "begin"),
                 end = VectorAt(c, 2, "end");
  Attributes masks;
  for (const char* const name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    masks.emplace_back(name, IntOption(c, {name}, 0));
  if (!b.ok()) return {};
  const KValue& named = c.Arg(3, "strides");
  const bool given = !named.is_none() || !c.Arg(-1, "strides").is_none();
  const ValueRef steps = given ? VectorAt(c, 3, "strides") : b.Op("OnesLike", {begin});
  return b.Op("StridedSlice", {x, begin, end, steps}, masks);
}

KValue EuclideanNorm(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const bool all = Option(c, {"axis"}).is_null();
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  for (int k = 0; all && k < Rank(b, x); ++k) axes.push_back(k);
  return Reduce(b, "EuclideanNorm", x, axes, BoolOption(c, {"keepdims"}, false));
}

const OperationRegistrar kTensorFlow[] = {
    {"",
     {"math.acos",      "math.asin",   "math.atan", "math.acosh",  "math.asinh",   "math.atanh",
      "math.cosh",      "math.sinh",   "math.rint", "math.lgamma", "math.digamma", "math.erfc",
      "math.is_finite", "math.is_inf", "acos",      "asin",        "atan",         "cosh",
      "sinh",           "sin",         "cos",       "tan",         "floor",        "negative",
      "sign",           "round"},
     Elementwise},
    {"", {"math.add_n", "add_n"}, AddN},
    {"", {"math.multiply_no_nan"}, MulNoNan},
    {"", {"math.atan2", "atan2"}, Atan2},
    {"", {"space_to_batch_nd", "space_to_batch", "batch_to_space_nd", "batch_to_space"}, Blocks},
    {"", {"ensure_shape"}, EnsureShape},
    {"", {"range"}, RangeFunction},
    {"", {"eye"}, Eye},
    {"", {"sequence_mask"}, SequenceMask},
    {"", {"reverse_sequence"}, ReverseSequence},
    {"", {"boolean_mask"}, BooleanMask},
    {"", {"clip_by_norm"}, ClipByNorm},
    {"", {"strided_slice"}, StridedSlice},
    {"", {"math.reduce_euclidean_norm"}, EuclideanNorm}};

}  // namespace
}  // namespace floe::keras
