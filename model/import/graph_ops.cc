#include "model/import/graph_ops.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/number.h"

namespace floe::build {
namespace {

std::optional<int32_t> Narrow(GraphBuilder& b, int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX) return static_cast<int32_t>(value);
  b.Fail(absl::StrCat(value, " is past int32, which sizes and axes are"));
  return {};
}

SymShape ShapeOf(const std::vector<WantedDim>& dims) {
  SymShape shape;
  for (const WantedDim& d : dims)
    shape.push_back(d.fixed() && d.size >= 0 ? Dim(d.size) : Dim::Unknown());
  return shape;
}

// From begin to end of an axis, which is dropped where it is one element.
ValueRef Stride(GraphBuilder& b, ValueRef v, int axis, int64_t begin, int64_t end, bool drop) {
  const int n = Rank(b, v);
  if (!b.ok()) return {};
  if (axis < 0) axis += n;
  if (axis < 0 || axis >= n) {
    b.Fail(absl::StrCat("axis ", axis, " of a value of rank ", n));
    return {};
  }
  std::vector<int64_t> from(axis + 1, 0), to(axis + 1, 0), step(axis + 1, 1);
  from[axis] = begin;
  to[axis] = end == kToEnd ? 0 : end;
  const int64_t others = (int64_t{1} << axis) - 1, mine = int64_t{1} << axis;
  return b.Op("StridedSlice", {v, Ints(b, from), Ints(b, to), Ints(b, step)},
              {{"begin_mask", others},
               {"end_mask", end == kToEnd ? others | mine : others},
               {"shrink_axis_mask", drop ? mine : int64_t{0}}});
}

}  // namespace

ValueRef Input(GraphBuilder& b, const std::string& name, const TensorType& type) {
  Node node;
  node.op = FindOp("Input");
  node.name = name;
  node.attrs.Set("dtype", type.dtype);
  node.attrs.Set("shape", type.shape);
  const ValueRef value = b.Raw(std::move(node), {type})[0];
  b.graph().inputs.push_back(value.node);
  return value;
}

ValueRef Named(GraphBuilder& b, const std::string& name, ValueRef value) {
  if (!b.ok()) return {};
  Node node;
  node.op = FindTensorFlowOp("Identity");
  node.name = name;
  node.inputs = {value};
  return b.Raw(std::move(node), {b.type(value)})[0];
}

ValueRef Scalar(GraphBuilder& b, DType dtype, double value) {
  if (!b.ok()) return {};
  const std::optional<Tensor> tensor = RealScalar(dtype, value);
  if (tensor.has_value()) return b.Const(*tensor);
  b.Fail(absl::StrCat(value, " is no number of type ", DTypeName(dtype)));
  return {};
}

ValueRef Int64(GraphBuilder& b, int64_t value) {
  return b.Const(Tensor::Scalar(DType::kInt64, value));
}

ValueRef Int(GraphBuilder& b, int64_t value) {
  const std::optional<int32_t> narrow = Narrow(b, value);
  return narrow.has_value() ? b.Const(Tensor::Scalar(DType::kInt32, *narrow)) : ValueRef();
}

ValueRef Ints(GraphBuilder& b, const std::vector<int64_t>& values) {
  std::vector<int32_t> narrow;
  narrow.reserve(values.size());
  for (const int64_t value : values) narrow.push_back(Narrow(b, value).value_or(0));
  return b.Const(Tensor::Vector(DType::kInt32, narrow));
}

ValueRef Text(GraphBuilder& b, const std::string& value) {
  Tensor tensor = Tensor::Allocate(DType::kString, Shape());
  *static_cast<std::string*>(tensor.mutable_data()) = value;
  return b.Const(tensor);
}

int Rank(GraphBuilder& b, ValueRef v) {
  if (!b.ok()) return 0;
  if (b.shape(v).rank_known()) return b.shape(v).rank();
  b.Fail("the rank of an input is not known");
  return 0;
}

Dim SizeAt(const GraphBuilder& b, ValueRef v, int axis) {
  const SymShape& s = b.shape(v);
  if (!s.rank_known()) return Dim::Unknown();
  if (axis < 0) axis += s.rank();
  return axis >= 0 && axis < s.rank() ? s.dim(axis) : Dim::Unknown();
}

WantedDim DimOf(GraphBuilder& b, ValueRef v, int axis) {
  const Dim size = SizeAt(b, v, axis);
  if (size.concrete()) return size.size();
  return {v, axis < 0 ? axis + Rank(b, v) : axis};
}

ValueRef ShapeVector(GraphBuilder& b, const std::vector<WantedDim>& dims) {
  std::vector<int64_t> fixed;
  bool all = true;
  for (const WantedDim& d : dims) {
    fixed.push_back(d.size);
    all = all && d.fixed();
  }
  if (all) return Ints(b, fixed);
  std::vector<ValueRef> parts;
  parts.reserve(dims.size());
  for (const WantedDim& d : dims)
    parts.push_back(d.fixed() ? Int(b, d.size) : At(b, b.Op("Shape", {d.from}), 0, d.axis));
  return Pack(b, parts, 0);
}

ValueRef Reshape(GraphBuilder& b, ValueRef v, const std::vector<WantedDim>& dims) {
  if (!b.ok()) return {};
  std::vector<int64_t> fixed;
  int open = 0;
  for (const WantedDim& d : dims) {
    fixed.push_back(d.fixed() ? d.size : -1);
    open += fixed.back() < 0 ? 1 : 0;
  }
  const bool zero = std::count(fixed.begin(), fixed.end(), 0) != 0;
  // -1 for the one dim that is open, which the runtime follows best.
  if (open <= 1 && !zero) return b.Op("Reshape", {v, Ints(b, fixed)});
  const ValueRef out = b.Op("Reshape", {v, ShapeVector(b, dims)});
  b.Refine(out, ShapeOf(dims));
  return out;
}

ValueRef Fill(GraphBuilder& b, const std::vector<WantedDim>& dims, ValueRef scalar) {
  const ValueRef out = b.Op("Fill", {ShapeVector(b, dims), scalar});
  b.Refine(out, ShapeOf(dims));
  return out;
}

ValueRef Cast(GraphBuilder& b, ValueRef v, DType to) {
  if (b.dtype(v) == to) return v;
  return b.Op("Cast", {v}, {{"DstT", to}, {"SrcT", b.dtype(v)}});
}

ValueRef Transpose(GraphBuilder& b, ValueRef v, const std::vector<int64_t>& order) {
  return b.Op("Transpose", {v, Ints(b, order)});
}

ValueRef Reduce(GraphBuilder& b, const std::string& op, ValueRef v,
                const std::vector<int64_t>& axes, bool keep) {
  return b.Op(op, {v, Ints(b, axes)}, {{"keep_dims", keep}});
}

ValueRef Slice(GraphBuilder& b, ValueRef v, int axis, int64_t begin, int64_t end) {
  return Stride(b, v, axis, begin, end, false);
}

ValueRef At(GraphBuilder& b, ValueRef v, int axis, int64_t index) {
  return Stride(b, v, axis, index, index == -1 ? kToEnd : index + 1, true);
}

ValueRef ExpandDims(GraphBuilder& b, ValueRef v, int axis) {
  return b.Op("ExpandDims", {v, Int(b, axis)});
}

ValueRef Squeeze(GraphBuilder& b, ValueRef v, const std::vector<int64_t>& axes) {
  return b.Op("Squeeze", {v}, {{"squeeze_dims", axes}});
}

ValueRef Concat(GraphBuilder& b, const std::vector<ValueRef>& values, int axis) {
  if (values.size() == 1) return values[0];
  std::vector<ValueRef> inputs = values;
  inputs.push_back(Int(b, axis));
  return b.Op("ConcatV2", inputs, {{"N", static_cast<int64_t>(values.size())}});
}

ValueRef Pack(GraphBuilder& b, const std::vector<ValueRef>& values, int axis) {
  return b.Op("Pack", values,
              {{"N", static_cast<int64_t>(values.size())}, {"axis", static_cast<int64_t>(axis)}});
}

std::vector<ValueRef> Split(GraphBuilder& b, ValueRef v, int axis, int parts) {
  return b.Outputs("Split", {Int(b, axis), v}, parts, {{"num_split", static_cast<int64_t>(parts)}});
}

ValueRef Pad(GraphBuilder& b, ValueRef v, const std::vector<std::pair<int64_t, int64_t>>& pads,
             double value) {
  std::vector<int32_t> flat;
  for (const auto& [before, after] : pads) {
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
      b.Fail(absl::StrCat("a padding of ", before, " and ", after));
    flat.insert(flat.end(), {static_cast<int32_t>(before), static_cast<int32_t>(after)});
  }
  if (!b.ok()) return {};
  const Tensor paddings =
      Tensor::Vector(DType::kInt32, flat).Reshaped({static_cast<int64_t>(pads.size()), 2});
  if (value == 0) return b.Op("Pad", {v, b.Const(paddings)});
  return b.Op("PadV2", {v, b.Const(paddings), Scalar(b, b.dtype(v), value)});
}

ValueRef Add(GraphBuilder& b, ValueRef v, ValueRef other) { return b.Op("AddV2", {v, other}); }
ValueRef Sub(GraphBuilder& b, ValueRef v, ValueRef other) { return b.Op("Sub", {v, other}); }
ValueRef Mul(GraphBuilder& b, ValueRef v, ValueRef other) { return b.Op("Mul", {v, other}); }
ValueRef Add(GraphBuilder& b, ValueRef v, double n) { return Add(b, v, Scalar(b, b.dtype(v), n)); }
ValueRef Mul(GraphBuilder& b, ValueRef v, double n) { return Mul(b, v, Scalar(b, b.dtype(v), n)); }

}  // namespace floe::build
