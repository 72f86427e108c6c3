// Operations that join, cut, and pick: concatenate, stack, split, take, one_hot, x[...].
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

int AxisOption(LayerContext& c, int64_t otherwise) {
  return static_cast<int>(
      std::clamp<int64_t>(IntOption(c, {"axis"}, otherwise), INT32_MIN, INT32_MAX));
}

KValue ConcatenateFunction(LayerContext& c) {
  std::vector<Operand> parts = OperandsAt(c, 0, {"xs", "values"});
  const int axis = AxisOption(c, IsKeras3(c) ? -1 : 0);
  for (Operand& part : parts) part = Strong(c, part);
  return Concat(c.b, InOneType(c, parts), axis);
}

KValue StackFunction(LayerContext& c) {
  const std::vector<Operand> parts = OperandsAt(c, 0, {"x", "values"});
  const int axis = AxisOption(c, 0);
  return Pack(c.b, InOneType(c, parts), axis);
}

KValue SplitFunction(LayerContext& c) {
  const Json& parts = Option(c, {"indices_or_sections", "num_or_size_splits"});
  int64_t count = 0;
  constexpr int64_t kMost = 4096;
  const ValueRef x = FirstTensor(c);
  const int axis = AxisOption(c, 0);
  Option(c, {"num"});  // the number of parts, which their sizes tell
  std::vector<KValue> out;
  if (ToInt(parts, &count) && count >= 1 && count <= kMost) {
    for (const ValueRef& part : Split(c.b, x, axis, static_cast<int>(count)))
      out.emplace_back(part);
    return out;
  }
  std::vector<int64_t> at = IntOptions(c, {"indices_or_sections", "num_or_size_splits"});
  if (!IsKeras3(c)) {  // sizes
    for (size_t k = 1; k < at.size(); ++k) {
      if (__builtin_add_overflow(at[k], at[k - 1], &at[k])) c.Fail("sizes past every limit");
    }
    if (!at.empty()) at.pop_back();
  }
  int64_t begin = 0;
  for (const int64_t end : at) {
    out.emplace_back(Slice(c.b, x, axis, begin, end));
    begin = end;
  }
  out.emplace_back(Slice(c.b, x, axis, begin, build::kToEnd));
  return out;
}

KValue Unstack(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  const int axis = AxisOption(c, 0);
  Option(c, {"num"});  // of the parts, which the axis has
  const int64_t count = SizeOf(c.b, x, axis, "the axis that is unstacked");
  constexpr int64_t kMost = 4096;
  if (count > kMost) c.Fail(absl::StrCat(count, " parts"));
  std::vector<KValue> out;
  for (int64_t k = 0; k < count && c.b.ok(); ++k) out.emplace_back(At(c.b, x, axis, k));
  return out;
}

// tf.gather, whose axis is batch_dims where none is named.
KValue Gather(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"params"}), at = TensorAt(c, 1, {"indices"});
  Option(c, {"validate_indices"});  // has had no effect for long
  const int64_t batch_dims = IntOption(c, {"batch_dims"}, 0);
  const ValueRef ids = b.ok() && b.dtype(at) != DType::kInt64 ? Cast(b, at, DType::kInt32) : at;
  return b.Op("GatherV2", {x, ids, Int(b, IntOption(c, {"axis"}, batch_dims))},
              {{"batch_dims", batch_dims}});
}

// Negative indices count from the end.
KValue Take(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c), at = TensorAt(c, 1, {"indices"});
  const bool whole = Option(c, {"axis"}).is_null();
  const int axis = whole ? 0 : AxisOption(c, 0);
  if (whole) x = Reshape(b, x, {-1});
  if (b.dtype(at) != DType::kInt64) at = Cast(b, at, DType::kInt32);
  const ValueRef size =
      Cast(b, At(b, b.Op("Shape", {x}), 0, axis < 0 ? axis + Rank(b, x) : axis), b.dtype(at));
  const ValueRef below = b.Op("Less", {at, Scalar(b, b.dtype(at), 0)});
  return b.Op("GatherV2", {x, b.Op("SelectV2", {below, Add(b, at, size), at}), Int(b, axis)});
}

KValue OneHot(LayerContext& c) {
  GraphBuilder& b = c.b;
  const int64_t depth = IntOption(c, {"num_classes", "depth"}, -1);
  if (depth < 0) c.Fail("no number of classes");
  if (BoolOption(c, {"sparse"}, false)) return c.Refuse("sparse=True");
  ValueRef ids = TensorAt(c, 0, {"x", "indices"});
  const Operand on = OperandAt(c, -1, {"on_value"}), off = OperandAt(c, -1, {"off_value"});
  if (!b.ok()) return {};
  std::optional<DType> named = TypeOption(c, {"dtype"});
  if (!named.has_value() && on.present()) named = b.dtype(on.value);
  if (!named.has_value() && off.present()) named = b.dtype(off.value);
  DType dtype = named.value_or(DType::kFloat32);
  if (named.has_value() && !TypeOption(c, {"dtype"}).has_value()) {
    if (dtype == DType::kInt64) dtype = DType::kInt32;  // of Python's own numbers
    if (dtype == DType::kFloat64) dtype = DType::kFloat32;
  }
  const int axis = AxisOption(c, -1);
  if (b.dtype(ids) != DType::kInt32 && b.dtype(ids) != DType::kUInt8)
    ids = Cast(b, ids, DType::kInt64);
  const auto value = [&](const Operand& operand, double otherwise) {
    return operand.present() ? Cast(b, operand.value, dtype) : Scalar(b, dtype, otherwise);
  };
  return b.Op("OneHot", {ids, Int(b, depth), value(on, 1), value(off, 0)},
              {{"axis", static_cast<int64_t>(axis)}});
}

// ---- x[...] ----

// A part of a slice: a number that is there, or none.
bool Bound(LayerContext& c, const Json& json, int64_t* value) {
  if (json.is_null()) return false;
  if (!ToInt(json, value)) c.Fail(absl::StrCat("a slice with ", Shown(json)));
  return true;
}

struct Slices {
  std::vector<int64_t> begin, end, step;
  int64_t begin_mask = 0, end_mask = 0, ellipsis = 0, added = 0, shrunk = 0;
};

void AddSlice(LayerContext& c, const Json& key, Slices* s) {
  const int64_t bit = int64_t{1} << s->begin.size();
  int64_t begin = 0, end = 0, step = 1;
  const std::string class_name = Text(key, "class_name");
  if (key.is_null()) {
    s->added |= bit;
  } else if (class_name == "__ellipsis__" || key == "..." || class_name == "Ellipsis") {
    s->ellipsis |= bit;
  } else if (ToInt(key, &begin)) {
    if (begin < INT32_MIN || begin >= INT32_MAX) c.Fail(absl::StrCat("an index of ", begin));
    begin = std::clamp<int64_t>(begin, INT32_MIN, INT32_MAX);
    end = begin + 1;
    s->shrunk |= bit;
    if (begin == -1) s->end_mask |= bit;
  } else if (class_name == "__slice__" || (key.is_object() && class_name.empty())) {
    const Json& parts = class_name == "__slice__" ? Member(key, "config") : key;
    if (!Bound(c, Member(parts, "start"), &begin)) s->begin_mask |= bit;
    if (!Bound(c, Member(parts, "stop"), &end)) s->end_mask |= bit;
    Bound(c, Member(parts, "step"), &step);
  } else {
    c.Fail(absl::StrCat("an index of ", Shown(key)));
  }
  s->begin.push_back(begin);
  s->end.push_back(end);
  s->step.push_back(step);
}

KValue GetItem(LayerContext& c) {
  GraphBuilder& b = c.b;
  const KValue* key = &c.Arg(1, "slice_spec");
  if (key->is_none()) key = &c.Arg(-1, "key");
  if (key->kind != KValue::Kind::kJson) return c.Refuse("an index that is computed");
  Slices s;
  const Json* const items = Items(*key->json);
  constexpr size_t kMost = 32;
  if (items == nullptr) {
    AddSlice(c, *key->json, &s);
  } else if (items->size() > kMost) {
    c.Fail(absl::StrCat(items->size(), " indices"));
  } else {
    for (const Json& item : *items) AddSlice(c, item, &s);
  }
  return b.Op("StridedSlice",
              {TensorAt(c, 0, {"x", "tensor"}), Ints(b, s.begin), Ints(b, s.end), Ints(b, s.step)},
              {{"begin_mask", s.begin_mask},
               {"end_mask", s.end_mask},
               {"ellipsis_mask", s.ellipsis},
               {"new_axis_mask", s.added},
               {"shrink_axis_mask", s.shrunk}});
}

const OperationRegistrar kParts[] = {{"Concatenate", {"concat"}, ConcatenateFunction},
                                     {"Stack", {"stack"}, StackFunction},
                                     {"Split", {"split"}, SplitFunction},
                                     {"Unstack", {"unstack"}, Unstack},
                                     {"", {"gather"}, Gather},
                                     {"Take", {}, Take},
                                     {"OneHot", {"one_hot"}, OneHot},
                                     {"GetItem", {"__operators__.getitem"}, GetItem}};

}  // namespace
}  // namespace floe::keras
