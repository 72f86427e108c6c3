// Ops that make tensors: inputs, constants, filled and counted ones, random numbers; and those that
// pass theirs on.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/half.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferInput(const InferContext& c) {
  return ops::One(ops::TypeAttr(c, "dtype", DType::kInvalid),
                  c.attrs().Get<SymShape>("shape", SymShape::UnknownRank()));
}

const OpRegistrar kInput({.name = "Input",
                          .infer = InferInput,
                          .stateful = true,
                          .tensorflow = {"Placeholder"},
                          .without_kernel = "fed by the request"});

absl::StatusOr<Types> InferConst(const InferContext& c) {
  const Tensor* value = c.attrs().Find<Tensor>("value");
  if (value == nullptr || !value->valid()) return Bad("attribute value is missing");
  return ops::One(value->dtype(), SymShape(value->shape()));
}

const OpRegistrar kConst({.name = "Const",
                          .infer = InferConst,
                          .rows = RowsNever,
                          .without_kernel = "part of the model"});

const OpRegistrar kNoOp({.name = "NoOp",
                         .max_inputs = -1,
                         .outputs = 0,
                         .infer = ops::InferNothing,
                         .rows = RowsNever,
                         .tensorflow = {"NoOp", "ControlTrigger", "PrintV2"},
                         .without_kernel = "does nothing"});

RowMark IdentityRows(const RowContext& c) { return c.marks[0]; }

const OpRegistrar kIdentity({.name = "Identity",
                             .infer = InferSame,
                             .rows = IdentityRows,
                             .time_major = IdentityRows,
                             .values = ValueRule::kLinear,
                             .alias = true,
                             .input_types = "T",
                             .tensorflow = {"Identity", "StopGradient", "PreventGradient",
                                            "Snapshot", "DeepCopy", "GuaranteeConst"}});

absl::StatusOr<Types> InferAllSame(const InferContext& c) {
  Types types;
  for (const ValueInfo& input : c.inputs) types.push_back(input.type);
  return types;
}

// One mark stands for all outputs, so it is kept only when the inputs agree.
RowMark IdentityNRows(const RowContext& c) {
  for (RowMark mark : c.marks) {
    if (mark == RowMark::kUnknown) return mark;
    if (mark != c.marks[0]) return RowMark::kMixed;
  }
  return c.marks.empty() ? RowMark::kConstant : c.marks[0];
}

const OpRegistrar kIdentityN({.name = "IdentityN",
                              .output_names = {"output:T"},
                              .infer = InferAllSame,
                              .rows = IdentityNRows,
                              .input_types = "?"});

absl::StatusOr<Types> InferFill(const InferContext& c) {
  if (ops::Differ(c.shape(1).elements(), Dim(1)))  // a vector of one element is taken too
    return Bad(absl::StrCat("the value has shape ", c.shape(1).ToString(), ", expected a scalar"));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  return ops::One(c.dtype(1), std::move(shape));
}

// Depends on the shape of its input alone.
RowMark LikeRows(const RowContext& c) {
  if (c.outputs[0].shape.concrete()) return RowMark::kConstant;
  return ops::LeadingRows(c.outputs[0]) ? RowMark::kRows : RowMark::kMixed;
}

// One value everywhere: the rows of the output are equal whatever their number.
RowMark FillRows(const RowContext& c) {
  if (c.marks[1] != RowMark::kConstant)
    return c.marks[1] == RowMark::kUnknown ? RowMark::kUnknown : RowMark::kMixed;
  return LikeRows(c);
}

const OpRegistrar kFill({.name = "Fill",
                         .infer = InferFill,
                         .rows = FillRows,
                         .shape_inputs = 1,
                         .input_types = "i T"});

const ops::Family kLike({"ZerosLike", "OnesLike"},
                        {.infer = InferSame, .rows = LikeRows, .input_types = "T"});

template <typename T>
double Number(const ValueInfo& value) {
  return static_cast<float>(*value.constant.as<T>());
}
template <>
double Number<double>(const ValueInfo& value) {
  return *value.constant.as<double>();
}

template <typename T>
absl::StatusOr<SymShape> CountRange(const InferContext& c) {
  for (const ValueInfo& input : c.inputs) {
    if (input.constant.dtype() != c.dtype(0) || input.constant.elements() != 1)
      return Bad("start, limit and delta are not three numbers of one type");
  }
  const double start = Number<T>(c.inputs[0]), limit = Number<T>(c.inputs[1]),
               delta = Number<T>(c.inputs[2]);
  if (delta == 0) return Bad("delta is 0");
  if ((delta > 0 && start > limit) || (delta < 0 && start < limit)) {
    return Bad(
        absl::StrCat("start ", start, ", limit ", limit, " and delta ", delta, " never meet"));
  }
  const double count = std::ceil(std::abs((limit - start) / delta));
  constexpr double kMost = int64_t{1} << 40;
  if (!(count <= kMost)) return Bad(absl::StrCat("a range of ", count, " elements"));
  return SymShape({Dim(static_cast<int64_t>(count))});
}

absl::StatusOr<Types> InferRangeOp(const InferContext& c) {
  const DType dtype = c.dtype(0);
  if (IsInteger(dtype)) {
    std::vector<Dim> start, limit, delta;
    FLOE_ASSIGN_OR_RETURN(const bool start_known, c.DimsOf(0, &start));
    FLOE_ASSIGN_OR_RETURN(const bool limit_known, c.DimsOf(1, &limit));
    FLOE_ASSIGN_OR_RETURN(const bool delta_known, c.DimsOf(2, &delta));
    if (!start_known || !limit_known || !delta_known) return ops::One(dtype, {Dim::Unknown()});
    if (start[0].concrete() && limit[0].concrete() && delta[0].concrete()) {
      const int64_t s = start[0].size(), l = limit[0].size(), d = delta[0].size();
      if (d == 0) return Bad("delta is 0");
      if ((d > 0 && s > l) || (d < 0 && s < l)) {
        return Bad(absl::StrCat("start ", s, ", limit ", l, " and delta ", d, " never meet"));
      }
      // Differences of int64 need not fit int64.
      const uint64_t from = static_cast<uint64_t>(s), to = static_cast<uint64_t>(l);
      const uint64_t step = d > 0 ? static_cast<uint64_t>(d) : 0 - static_cast<uint64_t>(d);
      const uint64_t span = d > 0 ? to - from : from - to;
      const uint64_t count = span / step + (span % step != 0 ? 1 : 0);
      constexpr uint64_t kMost = uint64_t{1} << 40;
      if (count > kMost) return Bad(absl::StrCat("a range of ", count, " elements"));
      return ops::One(dtype, {Dim(static_cast<int64_t>(count))});
    }
    // range(0, rows) and the like; other affine ranges depend on the number of rows too much to
    // say.
    const bool from_zero =
        start[0] == Dim(0) && delta[0] == Dim(1) && limit[0].base() >= 0 && limit[0].per_row() >= 0;
    return ops::One(dtype, {from_zero ? limit[0] : Dim::Unknown()});
  }
  for (const ValueInfo& input : c.inputs) {
    if (!input.has_constant()) return ops::One(dtype, {Dim::Unknown()});
  }
  absl::StatusOr<SymShape> shape =
      Bad(absl::StrCat("type ", DTypeName(dtype), " cannot be counted"));
  if (dtype == DType::kFloat32) shape = CountRange<float>(c);
  if (dtype == DType::kFloat64) shape = CountRange<double>(c);
  if (dtype == DType::kFloat16) shape = CountRange<Half>(c);
  if (dtype == DType::kBFloat16) shape = CountRange<BFloat16>(c);
  if (!shape.ok()) return shape.status();
  return ops::One(dtype, *std::move(shape));
}

// Whether an input is an integer that is known before the run.
bool IsInteger(const RowContext& c, int input, int64_t wanted) {
  if (!c.inputs[input].has_constant()) return false;
  const auto value = IntegerValues(c.inputs[input].constant.view());
  return value.ok() && value->size() == 1 && (*value)[0] == wanted;
}

RowMark RangeRows(const RowContext& c) {
  const bool rows = IsInteger(c, 0, 0) && IsInteger(c, 2, 1) && c.inputs[1].IsRowCount();
  return rows ? RowMark::kRowNumber : ops::NoRows(c);
}

// Inputs 0 and 2 give the values; the limit only the length.
const OpRegistrar kRange({.name = "Range",
                          .infer = InferRangeOp,
                          .rows = RangeRows,
                          .shape_inputs = 2,
                          .input_types = "T[] T[] T[]"});

// start, stop, number of values.
absl::StatusOr<Types> InferLinSpace(const InferContext& c) {
  std::vector<Dim> count;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(2, &count));
  if (!known || count.size() != 1) return ops::One(c.dtype(0), {Dim::Unknown()});
  if (count[0].concrete() && count[0].size() <= 0)
    return Bad(absl::StrCat("num is ", count[0].size(), ", expected 1 or more"));
  return ops::One(c.dtype(0), {count[0]});
}
const OpRegistrar kLinSpace({.name = "LinSpace",
                             .infer = InferLinSpace,
                             .rows = ops::NoRows,
                             .shape_inputs = 4,
                             .input_types = "T[] T[] i[]"});

absl::StatusOr<Types> InferRandom(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::TypeAttrOf(c, "dtype", DType::kFloat32,
                                                           {DType::kFloat16, DType::kBFloat16,
                                                            DType::kFloat32, DType::kFloat64}));
  return ops::One(dtype, std::move(shape));
}

absl::StatusOr<Types> InferRandomInt(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "Tout", c.dtype(1)));
  return ops::One(dtype, std::move(shape));
}

absl::StatusOr<Types> InferMultinomial(const InferContext& c) {
  std::vector<Dim> count;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &count));
  const Dim batch = ops::DimOf(c, 0, 0);
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "output_dtype", DType::kInt64));
  return ops::One(dtype, {batch, known && count.size() == 1 ? count[0] : Dim::Unknown()});
}

// The next numbers depend on how many were drawn before.
OpDef Random(ops::InferFunction infer, const char* types, uint64_t shape_inputs) {
  return {.infer = infer,
          .rows = ops::AlwaysMixed,
          .stateful = true,
          .shape_inputs = shape_inputs,
          .input_types = types};
}
const ops::Family kRandom({"RandomUniform", "RandomStandardNormal", "TruncatedNormal"},
                          Random(InferRandom, "i", 1));
const ops::Family kRandomInt({"RandomUniformInt"}, Random(InferRandomInt, "i j j", 1));
const ops::Family kShuffle({"RandomShuffle"}, Random(InferSame, "T", 0));
const ops::Family kMultinomial({"Multinomial"}, Random(InferMultinomial, "T[_,_] int32", 2));
const OpRegistrar kStatelessMultinomial(
    {.name = "StatelessMultinomial",
     .infer = InferMultinomial,
     .rows = ops::AlwaysMixed,
     .shape_inputs = 2,
     .input_types = "T[_,_] int32 U",
     .limits = "TensorFlow's numbers of one thread: with more, it begins a generator for each "
               "thread's rows"});

}  // namespace
}  // namespace floe
