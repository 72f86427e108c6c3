#include "model/import/keras/builder.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/number.h"

namespace floe::keras {
namespace {

const TensorType kNothing;

// Far past every model of keras.applications. Models in models, each called several times, may
// make more than any machine has room for.
constexpr int kMostNodes = 100'000;

}  // namespace

void GraphBuilder::AnnotateError(const std::string& prefix) { status_ = Annotate(status_, prefix); }

std::string GraphBuilder::UniqueName(const std::string& wanted) {
  const auto [found, fresh] = names_.emplace(wanted, 1);
  if (fresh) return wanted;
  for (;;) {
    std::string name = absl::StrCat(wanted, "_", found->second++);
    if (names_.emplace(name, 1).second) return name;
  }
}

const TensorType& GraphBuilder::type(ValueRef v) const {
  if (v.node < 0 || v.node >= static_cast<int>(types_.size())) return kNothing;
  const std::vector<TensorType>& outputs = types_[v.node];
  return v.output < static_cast<int>(outputs.size()) ? outputs[v.output] : kNothing;
}

ValueInfo GraphBuilder::InfoOf(ValueRef v) const {
  ValueInfo info{type(v), {}, {}};
  const Tensor* value = graph_.node(v.node).attrs.Find<Tensor>("value");
  if (value != nullptr && graph_.node(v.node).op->name == "Const") info.constant = *value;
  return info;
}

std::vector<ValueRef> GraphBuilder::Raw(Node node, std::vector<TensorType> types) {
  if (graph_.size() >= kMostNodes) {
    Fail(absl::ResourceExhaustedError(
        absl::StrCat("the model needs more than ", kMostNodes,
                     " nodes; models inside it are called too often")));
    return std::vector<ValueRef>(types.size());
  }
  node.num_outputs = static_cast<int>(types.size());
  const int index = graph_.Add(std::move(node));
  std::vector<ValueRef> outputs;
  outputs.reserve(types.size());
  for (int k = 0; k < static_cast<int>(types.size()); ++k) outputs.push_back({index, k});
  types_.push_back(std::move(types));
  return outputs;
}

std::vector<ValueRef> GraphBuilder::Outputs(const std::string& op,
                                            const std::vector<ValueRef>& inputs, int outputs,
                                            const Attributes& attrs) {
  std::vector<ValueRef> none(outputs);
  if (!ok()) return none;
  Node node;
  node.op = FindTensorFlowOp(op);
  if (node.op == nullptr) node.op = FindOp(op);
  if (node.op == nullptr) {
    Fail(absl::UnimplementedError(absl::StrCat("floe has no op ", op)));
    return none;
  }
  node.name = UniqueName(scope_.empty() ? op : absl::StrCat(scope_, "/", op));
  node.inputs = inputs;
  node.num_outputs = outputs;
  for (const auto& [name, value] : attrs) node.attrs.Set(name, value);
  std::vector<ValueInfo> infos;
  for (const ValueRef& in : inputs) {
    if (in.node < 0 || in.node >= graph_.size()) {
      Fail(absl::InternalError(absl::StrCat(op, " was given no value")));
      return none;
    }
    infos.push_back(InfoOf(in));
  }
  if (const absl::Status spent = SpendVisits(1); !spent.ok()) {
    Fail(spent);
    return none;
  }
  absl::StatusOr<Types> types = node.op->infer(InferContext{node, infos});
  if (!types.ok()) {
    Fail(Annotate(types.status(), op));
    return none;
  }
  if (static_cast<int>(types->size()) < outputs) {
    Fail(absl::InternalError(absl::StrCat(op, " gives ", types->size(), " values")));
    return none;
  }
  types->resize(outputs);
  return Raw(std::move(node), *std::move(types));
}

ValueRef GraphBuilder::Op(const std::string& op, const std::vector<ValueRef>& inputs,
                          const Attributes& attrs) {
  const OpDef* def = FindTensorFlowOp(op);
  const int outputs = def == nullptr || def->output_names.empty()
                          ? 1
                          : std::max(1, static_cast<int>(def->output_names.size()));
  return Outputs(op, inputs, outputs, attrs)[0];
}

ValueRef GraphBuilder::Input(const std::string& name, const TensorType& type) {
  Node node;
  node.op = FindOp("Input");
  node.name = UniqueName(name);
  node.attrs.Set("dtype", type.dtype);
  node.attrs.Set("shape", type.shape);
  const ValueRef value = Raw(std::move(node), {type})[0];
  graph_.inputs.push_back(value.node);
  return value;
}

ValueRef GraphBuilder::Named(const std::string& name, ValueRef value) {
  if (!ok()) return {};
  Node node;
  node.op = FindTensorFlowOp("Identity");
  node.name = UniqueName(name);
  node.inputs = {value};
  return Raw(std::move(node), {type(value)})[0];
}

ValueRef GraphBuilder::Const(const Tensor& tensor) {
  if (!ok()) return {};
  const auto found = tensor.elements() == 0 ? consts_.end() : consts_.find(tensor.data());
  if (found != consts_.end() && type(found->second).dtype == tensor.dtype() &&
      shape(found->second) == SymShape(tensor.shape()))
    return found->second;
  Node node;
  node.op = FindTensorFlowOp("Const");
  node.name = UniqueName(scope_.empty() ? "Const" : absl::StrCat(scope_, "/Const"));
  node.attrs.Set("dtype", tensor.dtype());
  node.attrs.Set("value", tensor);
  const TensorType type{tensor.dtype(), SymShape(tensor.shape())};
  const ValueRef value = Raw(std::move(node), {type})[0];
  if (tensor.elements() != 0) consts_[tensor.data()] = value;
  return value;
}

ValueRef GraphBuilder::Scalar(DType dtype, double value) {
  if (!ok()) return {};
  ValueRef& known = small_[absl::StrCat(DTypeName(dtype), " ", value, " ",
                                        absl::Hex(std::bit_cast<uint64_t>(value)))];
  if (known.node >= 0) return known;
  std::optional<Tensor> tensor = RealScalar(dtype, value);
  if (!tensor.has_value()) {
    Fail(absl::StrCat(value, " is no number of type ", DTypeName(dtype)));
    return {};
  }
  known = Const(*tensor);
  return known;
}

ValueRef GraphBuilder::Ints(const std::vector<int64_t>& values) {
  if (!ok()) return {};
  std::vector<int32_t> narrow;
  for (const int64_t value : values) {
    if (value < INT32_MIN || value > INT32_MAX) {
      Fail(absl::StrCat(value, " is past the sizes that a layer may have"));
      return {};
    }
    narrow.push_back(static_cast<int32_t>(value));
  }
  ValueRef& known = small_[absl::StrCat("[", absl::StrJoin(values, ","), "]")];
  if (known.node < 0) known = Const(Tensor::Vector(DType::kInt32, narrow));
  return known;
}

ValueRef GraphBuilder::Int(int64_t value) {
  if (value < INT32_MIN || value > INT32_MAX)
    Fail(absl::StrCat(value, " is past the sizes that a layer may have"));
  return Scalar(DType::kInt32, static_cast<double>(value));
}

ValueRef GraphBuilder::Text(const std::string& value) {
  Tensor tensor = Tensor::Allocate(DType::kString, Shape());
  *static_cast<std::string*>(tensor.mutable_data()) = value;
  return Const(tensor);
}

int GraphBuilder::rank(ValueRef v) {
  if (!ok()) return 0;
  if (shape(v).rank_known()) return shape(v).rank();
  Fail("the rank of an input is not known");
  return 0;
}

Dim GraphBuilder::dim(ValueRef v, int axis) const {
  const SymShape& s = shape(v);
  if (!s.rank_known()) return Dim::Unknown();
  if (axis < 0) axis += s.rank();
  return axis >= 0 && axis < s.rank() ? s.dim(axis) : Dim::Unknown();
}

int64_t GraphBuilder::Size(ValueRef v, int axis, const std::string& what) {
  if (!ok()) return 1;
  const Dim size = dim(v, axis);
  if (size.concrete() && size.size() >= 0 && size.size() <= INT32_MAX) return size.size();
  Fail(absl::StrCat(what, " must be a number; the input is ", shape(v).ToString()));
  return 1;
}

WantedDim GraphBuilder::DimOf(ValueRef v, int axis) {
  const Dim size = dim(v, axis);
  if (size.concrete()) return size.size();
  return {v, axis < 0 ? axis + rank(v) : axis};
}

ValueRef GraphBuilder::ShapeVector(const std::vector<WantedDim>& dims) {
  std::vector<int64_t> fixed;
  bool all = true;
  for (const WantedDim& d : dims) {
    fixed.push_back(d.size);
    all = all && d.fixed();
  }
  if (all) return Ints(fixed);
  std::vector<ValueRef> parts;
  parts.reserve(dims.size());
  for (const WantedDim& d : dims)
    parts.push_back(d.fixed() ? Int(d.size) : At(Op("Shape", {d.from}), 0, d.axis));
  return Pack(parts, 0);
}

SymShape GraphBuilder::ShapeOf(const std::vector<WantedDim>& dims) const {
  SymShape shape;
  for (const WantedDim& d : dims)
    shape.push_back(d.fixed() && d.size >= 0 ? Dim(d.size) : Dim::Unknown());
  return shape;
}

ValueRef GraphBuilder::Reshape(ValueRef v, const std::vector<WantedDim>& dims) {
  if (!ok()) return {};
  std::vector<int64_t> fixed;
  int open = 0;
  for (const WantedDim& d : dims) {
    fixed.push_back(d.fixed() ? d.size : -1);
    open += fixed.back() < 0 ? 1 : 0;
  }
  const bool zero = std::count(fixed.begin(), fixed.end(), 0) != 0;
  // -1 for the one dim that is open, which the runtime follows best.
  if (open <= 1 && !zero) return Op("Reshape", {v, Ints(fixed)});
  const ValueRef out = Op("Reshape", {v, ShapeVector(dims)});
  if (ok()) Refine(out, ShapeOf(dims));
  return out;
}

ValueRef GraphBuilder::Fill(const std::vector<WantedDim>& dims, ValueRef scalar) {
  const ValueRef out = Op("Fill", {ShapeVector(dims), scalar});
  if (ok()) Refine(out, ShapeOf(dims));
  return out;
}

ValueRef GraphBuilder::Cast(ValueRef v, DType to) {
  if (dtype(v) == to) return v;
  return Op("Cast", {v}, {{"DstT", to}, {"SrcT", dtype(v)}});
}

ValueRef GraphBuilder::Transpose(ValueRef v, const std::vector<int64_t>& order) {
  return Op("Transpose", {v, Ints(order)});
}

ValueRef GraphBuilder::Reduce(const std::string& op, ValueRef v, const std::vector<int64_t>& axes,
                              bool keep) {
  return Op(op, {v, Ints(axes)}, {{"keep_dims", keep}});
}

ValueRef GraphBuilder::Slice(ValueRef v, int axis, int64_t begin, int64_t end) {
  return Stride(v, axis, begin, end, false);
}

ValueRef GraphBuilder::At(ValueRef v, int axis, int64_t index) {
  return Stride(v, axis, index, index == -1 ? kToEnd : index + 1, true);
}

ValueRef GraphBuilder::Stride(ValueRef v, int axis, int64_t begin, int64_t end, bool drop) {
  const int n = rank(v);
  if (!ok()) return {};
  if (axis < 0) axis += n;
  if (axis < 0 || axis >= n) {
    Fail(absl::StrCat("axis ", axis, " of a value of rank ", n));
    return {};
  }
  std::vector<int64_t> from(axis + 1, 0), to(axis + 1, 0), step(axis + 1, 1);
  from[axis] = begin;
  to[axis] = end == kToEnd ? 0 : end;
  const int64_t others = (int64_t{1} << axis) - 1, mine = int64_t{1} << axis;
  return Op("StridedSlice", {v, Ints(from), Ints(to), Ints(step)},
            {{"begin_mask", others},
             {"end_mask", end == kToEnd ? others | mine : others},
             {"shrink_axis_mask", drop ? mine : int64_t{0}}});
}

ValueRef GraphBuilder::ExpandDims(ValueRef v, int axis) { return Op("ExpandDims", {v, Int(axis)}); }

ValueRef GraphBuilder::Squeeze(ValueRef v, const std::vector<int64_t>& axes) {
  return Op("Squeeze", {v}, {{"squeeze_dims", axes}});
}

ValueRef GraphBuilder::Concat(const std::vector<ValueRef>& values, int axis) {
  if (values.size() == 1) return values[0];
  std::vector<ValueRef> inputs = values;
  inputs.push_back(Int(axis));
  return Op("ConcatV2", inputs, {{"N", static_cast<int64_t>(values.size())}});
}

ValueRef GraphBuilder::Pack(const std::vector<ValueRef>& values, int axis) {
  return Op("Pack", values,
            {{"N", static_cast<int64_t>(values.size())}, {"axis", static_cast<int64_t>(axis)}});
}

std::vector<ValueRef> GraphBuilder::Split(ValueRef v, int axis, int parts) {
  return Outputs("Split", {Int(axis), v}, parts, {{"num_split", static_cast<int64_t>(parts)}});
}

ValueRef GraphBuilder::Pad(ValueRef v, const std::vector<std::pair<int64_t, int64_t>>& pads,
                           double value) {
  std::vector<int32_t> flat;
  for (const auto& [before, after] : pads) {
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
      Fail(absl::StrCat("a padding of ", before, " and ", after));
    flat.insert(flat.end(), {static_cast<int32_t>(before), static_cast<int32_t>(after)});
  }
  if (!ok()) return {};
  const Tensor paddings =
      Tensor::Vector(DType::kInt32, flat).Reshaped({static_cast<int64_t>(pads.size()), 2});
  if (value == 0) return Op("Pad", {v, Const(paddings)});
  return Op("PadV2", {v, Const(paddings), Scalar(dtype(v), value)});
}

ValueRef GraphBuilder::MatMul(ValueRef a, ValueRef b) {
  const int ra = rank(a), rb = rank(b);
  if (!ok()) return {};
  if (ra == 2 && rb == 2) return Op("MatMul", {a, b});
  if (rb != 2 || ra < 2) return Op("BatchMatMulV2", {a, b});
  std::vector<WantedDim> out;
  for (int k = 0; k + 1 < ra; ++k) out.push_back(DimOf(a, k));
  const int64_t inner = Size(a, -1, "the last dimension");
  out.emplace_back(Size(b, -1, "the number of units"));
  return Reshape(Op("MatMul", {Reshape(a, {-1, inner}), b}), out);
}

}  // namespace floe::keras
