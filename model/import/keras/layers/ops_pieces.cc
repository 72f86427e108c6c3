// Operations that take pieces out of tensors, or put pieces into them.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/axes.h"
#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

constexpr int64_t kMostParts = 4096;

// hsplit, vsplit, dsplit and array_split.
KValue SplitAlong(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string name = OperationName(c);
  const ValueRef x = FirstTensor(c);
  const int rank = Rank(b, x);
  int64_t axis = name == "Vsplit" ? 0 : name == "Dsplit" ? 2 : rank == 1 ? 0 : 1;
  const bool uneven = name == "ArraySplit";
  if (uneven) axis = IntOption(c, {"axis"}, 0);
  if (axis < 0) axis += rank;
  if (b.ok() && (axis < 0 || axis >= rank)) c.Fail("an axis past the rank");
  const Json& parts = Option(c, {"indices_or_sections"});
  std::vector<int64_t> at = IntOptions(c, {"indices_or_sections"});
  int64_t count = 0;
  if (!b.ok()) return {};
  if (ToInt(parts, &count)) {
    if (count < 1 || count > kMostParts) c.Fail(absl::StrCat(count, " parts"));
    const int64_t size = SizeOf(b, x, static_cast<int>(axis), "the axis that is split");
    if (!b.ok()) return {};
    if (!uneven && size % count != 0) c.Fail(absl::StrCat(size, " elements in ", count, " parts"));
    at.clear();
    for (int64_t k = 1; k < count; ++k)
      at.push_back(k * (size / count) + std::min(k, size % count));
  } else if (uneven) {
    return c.Refuse("array_split at indices");
  }
  std::vector<KValue> out;
  int64_t begin = 0;
  for (const int64_t end : at) {
    out.emplace_back(Slice(b, x, static_cast<int>(axis), begin, end));
    begin = end;
  }
  out.emplace_back(Slice(b, x, static_cast<int>(axis), begin, build::kToEnd));
  return out;
}

KValue TakeAlongAxis(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c), at = Cast(b, TensorAt(c, 1, {"indices"}), DType::kInt64);
  const bool whole = Option(c, {"axis"}).is_null();
  if (whole) x = Reshape(b, x, {-1});
  const int rank = Rank(b, x);
  const int axis = AxisOf(b, x, whole ? 0 : IntOption(c, {"axis"}, 0));
  if (b.ok() && Rank(b, at) != rank) c.Fail("indices of another rank");
  if (!b.ok()) return {};
  // Both are made as large as the other but for the axis.
  const auto spread = [&](ValueRef v, ValueRef other) {
    const ValueRef one = b.Op("ZerosLike", {Slice(b, Cast(b, other, DType::kBool), axis, 0, 1)});
    const ValueRef shape = b.Op("Shape", {one}), mine = b.Op("Shape", {v});
    return b.Op("BroadcastTo", {v, b.Op("Maximum", {shape, mine})});
  };
  bool alike = true;
  for (int k = 0; k < rank; ++k) {
    const Dim m = SizeAt(b, x, k), n = SizeAt(b, at, k);
    alike = alike && (k == axis || (m.concrete() && n.concrete() && m.size() == n.size()) ||
                      (!m.concrete() && !n.concrete()));
  }
  const ValueRef wide = alike ? x : spread(x, at);
  if (!alike) at = spread(at, x);
  const ValueRef size = Cast(b, At(b, b.Op("Shape", {x}), 0, axis), DType::kInt64);
  at = b.Op("SelectV2", {b.Op("Less", {at, Int64(b, 0)}), Add(b, at, size), at});
  const auto turned = [&](ValueRef v) { return SwapAxes(b, v, axis, -1); };
  const ValueRef y = b.Op("GatherV2", {turned(wide), turned(at), Int(b, rank - 1)},
                          {{"batch_dims", static_cast<int64_t>(rank - 1)}});
  return turned(y);
}

KValue UnravelIndex(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef at = TensorAt(c, 0, {"indices"});
  const std::vector<int64_t> dims = IntOptions(c, {"shape"});
  const bool vector = Rank(b, at) == 1;
  if (!b.ok()) return {};
  const DType dtype = b.dtype(at);
  // Keras takes the dims from the end for a vector, and from the start otherwise.
  std::vector<KValue> out;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t dim = vector ? dims[dims.size() - 1 - k] : dims[k];
    const ValueRef size = Scalar(b, dtype, static_cast<double>(dim));
    out.emplace_back(b.Op("FloorMod", {at, size}));
    at = b.Op("FloorDiv", {at, size});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

KValue Slice(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"inputs", "input_"});
  if (IsKeras3(c))
    return b.Op("Slice", {x, VectorAt(c, 1, "start_indices"), Ints(b, IntOptions(c, {"shape"}))});
  return b.Op("Slice", {x, VectorAt(c, 1, "begin"), VectorAt(c, 2, "size")});
}

// What TensorFlow does with indices past the end: its default alone.
void CheckIndexPolicy(LayerContext& c) {
  const std::string policy = TextOption(c, {"bad_indices_policy"}, "");
  if (!policy.empty() && policy != "DEFAULT")
    c.Refuse(absl::StrCat("bad_indices_policy ", Quoted(policy)));
}

KValue Scatter(LayerContext& c) {
  GraphBuilder& b = c.b;
  if (!IsKeras3(c)) CheckIndexPolicy(c);
  const ValueRef at = TensorAt(c, 0, {"indices"}), values = TensorAt(c, 1, {"values", "updates"});
  if (!b.ok()) return {};
  const ValueRef dims = IsKeras3(c) ? Ints(b, IntOptions(c, {"shape"})) : VectorAt(c, 2, "shape");
  return b.Op("ScatterNd", {Cast(b, at, DType::kInt32), values, dims});
}

KValue ScatterUpdate(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"inputs", "tensor"}), at = TensorAt(c, 1, {"indices"}),
                 values = TensorAt(c, 2, {"updates"});
  std::string how = TextOption(c, {"reduction"}, "");
  if (!IsKeras3(c)) CheckIndexPolicy(c);
  if (c.class_name == "tensor_scatter_nd_add") how = "add";
  const char* const op = how.empty()    ? "TensorScatterUpdate"
                         : how == "add" ? "TensorScatterAdd"
                         : how == "max" ? "TensorScatterMax"
                         : how == "min" ? "TensorScatterMin"
                                        : nullptr;
  if (op == nullptr) return c.Refuse(absl::StrCat("reduction ", Quoted(how)));
  const ValueRef ids = b.dtype(at) == DType::kInt64 ? at : Cast(b, at, DType::kInt32);
  return b.Op(op, {x, ids, Cast(b, values, b.dtype(x))});
}

KValue GatherNd(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"params"}), at = TensorAt(c, 1, {"indices"});
  const int64_t batch_dims = IntOption(c, {"batch_dims"}, 0);
  CheckIndexPolicy(c);
  if (batch_dims == 0) return b.Op("GatherNd", {x, at});
  if (SizeOf(b, at, -1, "the depth of the indices") != 1)
    return c.Refuse("batch_dims with indices of several axes");
  return b.Op("GatherV2", {x, Squeeze(b, at, {-1}), Int(b, batch_dims)},
              {{"batch_dims", batch_dims}});
}

KValue Nonzero(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const int rank = Rank(b, x);
  if (!b.ok()) return {};
  const ValueRef at = Cast(b, b.Op("Where", {Cast(b, x, DType::kBool)}), DType::kInt32);
  std::vector<KValue> out;
  out.reserve(rank);
  for (int k = 0; k < rank; ++k) out.emplace_back(At(b, at, 1, k));
  return out;
}

KValue IsIn(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Operand x = Strong(c, OperandAt(c, 0, {"x1"})), y = Strong(c, OperandAt(c, 1, {"x2"}));
  BoolOption(c, {"assume_unique"}, false);  // how it is found
  const bool invert = BoolOption(c, {"invert"}, false);
  if (!x.present() || !y.present()) c.Fail("it needs two arguments");
  if (!b.ok()) return {};
  const std::vector<ValueRef> both = InOneType(c, {x, y});
  const int rank = Rank(b, both[0]);
  const ValueRef found = b.Op("Equal", {ExpandDims(b, both[0], -1), Reshape(b, both[1], {-1})});
  const ValueRef any = Reduce(b, "Any", found, {rank}, false);
  return invert ? b.Op("LogicalNot", {any}) : any;
}

KValue Bincount(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const Operand given = OperandAt(c, -1, {"weights"});
  const Json& option = c.config.At("weights");
  if (!option.is_null() && !given.present()) return c.Refuse("weights that are a constant");
  const int64_t least = IntOption(c, {"minlength"}, 0);
  if (BoolOption(c, {"sparse"}, false)) return c.Refuse("sparse=True");
  if (!b.ok()) return {};
  DType dtype = DType::kInt32;
  if (given.present()) dtype = ResultType({{b.dtype(x)}, {b.dtype(given.value)}});
  if (b.dtype(x) != DType::kInt64) x = Cast(b, x, DType::kInt32);
  const int rank = Rank(b, x);
  if (b.ok() && rank != 1 && rank != 2) c.Fail("a vector or a matrix is needed");
  if (!b.ok()) return {};
  const DType index = b.dtype(x);
  // An empty input has no greatest number: the least length is what it gives.
  const ValueRef flat = Concat(b, {Reshape(b, x, {-1}), Cast(b, Ints(b, {-1}), index)}, 0);
  const ValueRef most = Add(b, Reduce(b, "Max", flat, {0}, false), 1);
  const ValueRef size = b.Op("Maximum", {most, Scalar(b, index, static_cast<double>(least))});
  ValueRef weights = given.present() ? given.value : Cast(b, Ints(b, {}), DType::kInt32);
  if (given.present() && IsInteger(b.dtype(weights)) && b.dtype(weights) != DType::kInt64)
    weights = Cast(b, weights, DType::kInt32);
  if (given.present() && b.dtype(weights) == DType::kFloat16)
    weights = Cast(b, weights, DType::kFloat32);
  const ValueRef counts = b.Op("DenseBincount", {x, size, weights}, {{"binary_output", false}});
  return b.ok() ? KValue(Cast(b, counts, dtype)) : KValue();
}

KValue MeshGrid(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string indexing = TextOption(c, {"indexing"}, "xy");
  std::vector<ValueRef> values;
  for (int k = 0; k < static_cast<int>(c.call.args.size()); ++k) {
    for (const Operand& part : OperandsAt(c, k, {})) values.push_back(Strong(c, part).value);
  }
  const int n = static_cast<int>(values.size());
  if (indexing != "xy" && indexing != "ij") c.Fail(absl::StrCat("indexing ", Quoted(indexing)));
  if (n == 0) c.Fail("no values");
  if (!b.ok()) return {};
  std::vector<int> place(n);
  for (int k = 0; k < n; ++k) place[k] = k;
  if (indexing == "xy" && n > 1) std::swap(place[0], place[1]);
  std::vector<ValueRef> sizes(n);
  for (int k = 0; k < n; ++k) {
    values[k] = Reshape(b, values[k], {-1});
    sizes[place[k]] = At(b, b.Op("Shape", {values[k]}), 0, 0);
  }
  const ValueRef dims = Pack(b, sizes, 0);
  std::vector<KValue> out;
  for (int k = 0; k < n; ++k) {
    std::vector<WantedDim> mine(n, WantedDim(1));
    mine[place[k]] = WantedDim(-1);
    out.emplace_back(b.Op("BroadcastTo", {Reshape(b, values[k], mine), dims}));
  }
  return out;
}

const OperationRegistrar kPieces[] = {
    {"Hsplit", {}, SplitAlong},
    {"Vsplit", {}, SplitAlong},
    {"Dsplit", {}, SplitAlong},
    {"ArraySplit", {}, SplitAlong},
    {"TakeAlongAxis", {}, TakeAlongAxis},
    {"UnravelIndex", {}, UnravelIndex},
    {"Slice", {"slice"}, Slice},
    {"Scatter", {"scatter_nd"}, Scatter},
    {"ScatterUpdate", {"tensor_scatter_nd_update", "tensor_scatter_nd_add"}, ScatterUpdate},
    {"", {"gather_nd"}, GatherNd},
    {"Nonzero", {}, Nonzero},
    {"IsIn", {}, IsIn},
    {"Bincount", {}, Bincount},
    {"Meshgrid", {"meshgrid"}, MeshGrid}};

}  // namespace
}  // namespace floe::keras
