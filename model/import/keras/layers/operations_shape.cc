// Operations that move elements: reshape, slices, joins, gathers; and Keras 2's TFOpLambda.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/images.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue Reshape(LayerContext& c) {
  std::vector<WantedDim> dims;
  const KValue& shape = c.Arg(1, "shape");
  if (shape.is_tensor() || shape.kind == KValue::Kind::kList) {
    const ValueRef wanted = shape.is_tensor() ? shape.tensor.value : ValueRef();
    c.Fail(wanted.node >= 0 ? "a shape that is computed is not supported"
                            : "a shape with computed parts is not supported");
    return {};
  }
  for (const int64_t size : IntOptions(c, {"newshape", "shape"})) dims.emplace_back(size);
  const auto open =
      std::count_if(dims.begin(), dims.end(), [](const WantedDim& d) { return d.size < 0; });
  if (open > 1) c.Fail("a shape with two sizes left out");
  return c.b.Reshape(c.In(), dims);
}

int AxisOption(LayerContext& c, int64_t otherwise) {
  const std::vector<int64_t> axes = IntOptions(c, {"axis"});
  return static_cast<int>(
      std::clamp<int64_t>(axes.empty() ? otherwise : axes[0], INT32_MIN, INT32_MAX));
}

KValue ExpandDims(LayerContext& c) {
  ValueRef x = c.In();
  for (const int64_t axis : IntOptions(c, {"axis"})) x = c.b.Op("ExpandDims", {x, c.b.Int(axis)});
  return x;
}

KValue Squeeze(LayerContext& c) { return c.b.Squeeze(c.In(), IntOptions(c, {"axis"})); }

KValue Transpose(LayerContext& c) {
  const ValueRef x = c.In();
  std::vector<int64_t> order = IntOptions(c, {"axes", "perm"});
  if (order.empty()) {
    for (int k = c.b.rank(x) - 1; k >= 0; --k) order.push_back(k);
  }
  return c.b.Transpose(x, order);
}

KValue SwapAxes(LayerContext& c) {
  const ValueRef x = c.In();
  const int rank = c.b.rank(x);
  std::vector<int64_t> order(rank), axes = IntOptions(c, {"axis1"});
  for (const int64_t axis : IntOptions(c, {"axis2"})) axes.push_back(axis);
  for (int k = 0; k < rank; ++k) order[k] = k;
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  if (axes.size() != 2 || axes[0] < 0 || axes[0] >= rank || axes[1] < 0 || axes[1] >= rank) {
    c.Fail("two axes of the input are needed");
    return {};
  }
  std::swap(order[axes[0]], order[axes[1]]);
  return c.b.Transpose(x, order);
}

KValue ConcatenateFunction(LayerContext& c) {
  std::vector<ValueRef> values;
  for (const KTensor& t : c.Inputs()) values.push_back(t.value);
  if (values.empty()) {
    c.Fail("nothing to join");
    return {};
  }
  return c.b.Concat(values, AxisOption(c, c.keras2() ? 0 : -1));
}

KValue Stack(LayerContext& c) {
  std::vector<ValueRef> values;
  for (const KTensor& t : c.Inputs()) values.push_back(t.value);
  if (values.empty()) {
    c.Fail("nothing to join");
    return {};
  }
  return c.b.Pack(values, AxisOption(c, 0));
}

KValue Split(LayerContext& c) {
  const Json& parts = Option(c, {"indices_or_sections", "num_or_size_splits"});
  int64_t count = 0;
  constexpr int64_t kMost = 4096;
  const ValueRef x = c.In();
  const int axis = AxisOption(c, 0);
  std::vector<KValue> out;
  if (ToInt(parts, &count) && count >= 1 && count <= kMost) {
    for (const ValueRef& part : c.b.Split(x, axis, static_cast<int>(count))) out.emplace_back(part);
    return out;
  }
  std::vector<int64_t> at = IntOptions(c, {"indices_or_sections", "num_or_size_splits"});
  if (c.keras2()) {  // sizes
    for (size_t k = 1; k < at.size(); ++k) {
      if (__builtin_add_overflow(at[k], at[k - 1], &at[k])) c.Fail("sizes past every limit");
    }
    if (!at.empty()) at.pop_back();
  }
  int64_t begin = 0;
  for (const int64_t end : at) {
    out.emplace_back(c.b.Slice(x, axis, begin, end));
    begin = end;
  }
  out.emplace_back(c.b.Slice(x, axis, begin, GraphBuilder::kToEnd));
  return out;
}

KValue Unstack(LayerContext& c) {
  const ValueRef x = c.In();
  const int axis = AxisOption(c, 0);
  const int64_t count = c.b.Size(x, axis, "the axis that is unstacked");
  constexpr int64_t kMost = 4096;
  if (count > kMost) c.Fail(absl::StrCat(count, " parts"));
  std::vector<KValue> out;
  for (int64_t k = 0; k < count && c.b.ok(); ++k) out.emplace_back(c.b.At(x, axis, k));
  return out;
}

KValue Tile(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = c.In();
  std::vector<int64_t> times = IntOptions(c, {"repeats", "multiples"});
  const int rank = b.rank(x);
  while (static_cast<int>(times.size()) < rank) times.insert(times.begin(), 1);
  for (int k = rank; k < static_cast<int>(times.size()); ++k) x = b.ExpandDims(x, 0);
  return b.Op("Tile", {x, b.Ints(times)});
}

KValue Flip(LayerContext& c) {
  const ValueRef x = c.In();
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  for (int k = 0; axes.empty() && k < c.b.rank(x); ++k) axes.push_back(k);
  return c.b.Op("ReverseV2", {x, c.b.Ints(axes)});
}

KValue Pad(LayerContext& c) {
  const Json& mode = Option(c, {"mode"});
  const std::string how = mode.is_string() ? mode.get<std::string>() : "constant";
  if (how != "constant" && how != "CONSTANT") c.Fail(absl::StrCat("mode ", Quoted(how)));
  std::vector<std::pair<int64_t, int64_t>> pads;
  const Json* const items = Items(Option(c, {"pad_width", "paddings"}));
  static const Json none;
  for (const Json& item : items == nullptr ? none : *items) {
    const Json* const pair = Items(item);
    int64_t before = 0, after = 0;
    if (pair == nullptr || pair->size() != 2 || !ToInt((*pair)[0], &before) ||
        !ToInt((*pair)[1], &after))
      c.Fail(absl::StrCat("a padding of ", Shown(item)));
    pads.emplace_back(before, after);
  }
  const Json& value = Option(c, {"constant_values"});
  return c.b.Pad(c.In(), pads, value.is_number() ? value.get<double>() : 0);
}

KValue Take(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::vector<int64_t> axes = IntOptions(c, {"axis"});
  ValueRef x = OperandValue(c, Operand(c, 0, {"params", "x"}), {});
  ValueRef at = OperandValue(c, Operand(c, 1, {"indices"}), {});
  if (axes.empty() && !c.keras2()) x = b.Reshape(x, {-1});
  if (b.dtype(at) != DType::kInt64) at = b.Cast(at, DType::kInt32);
  return b.Op("GatherV2", {x, at, b.Int(axes.empty() ? 0 : axes[0])});
}

KValue OneHot(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::vector<int64_t> depth = IntOptions(c, {"num_classes", "depth"});
  if (depth.size() != 1) c.Fail("no number of classes");
  if (!b.ok()) return {};
  const absl::StatusOr<DType> named = DTypeFromName(PolicyName(Option(c, {"dtype"}), true));
  const DType dtype = named.ok() ? *named : DType::kFloat32;
  ValueRef ids = c.In();
  if (b.dtype(ids) != DType::kInt32) ids = b.Cast(ids, DType::kInt64);
  return b.Op("OneHot", {ids, b.Int(depth[0]), b.Scalar(dtype, 1), b.Scalar(dtype, 0)},
              {{"axis", static_cast<int64_t>(AxisOption(c, -1))}});
}

KValue BroadcastTo(LayerContext& c) {
  return c.b.Op("BroadcastTo", {c.In(), c.b.Ints(IntOptions(c, {"shape"}))});
}

KValue ResizeImage(LayerContext& c) {
  const std::vector<int64_t> size = IntOptions(c, {"size"});
  const Json& way = Option(c, {"interpolation", "method"});
  if (size.size() != 2) c.Fail("a height and a width are needed");
  if (!c.b.ok()) return {};
  return ResizeImages(c, c.In(), size[0], size[1],
                      way.is_string() ? way.get<std::string>() : "bilinear",
                      BoolOption(c, {"antialias"}, false));
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
  } else if (class_name == "__slice__" || key.is_object()) {
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
  if (key->kind != KValue::Kind::kJson) {
    c.Fail("an index that is computed is not supported");
    return {};
  }
  Slices s;
  const Json* const items = Items(*key->json);
  if (items == nullptr) {
    AddSlice(c, *key->json, &s);
  } else {
    constexpr size_t kMost = 32;
    for (size_t k = 0; k < std::min(items->size(), kMost); ++k) AddSlice(c, (*items)[k], &s);
  }
  return b.Op("StridedSlice", {c.In(), b.Ints(s.begin), b.Ints(s.end), b.Ints(s.step)},
              {{"begin_mask", s.begin_mask},
               {"end_mask", s.end_mask},
               {"ellipsis_mask", s.ellipsis},
               {"new_axis_mask", s.added},
               {"shrink_axis_mask", s.shrunk}});
}

const OperationRegistrar kShapes[] = {{"Reshape", {"reshape"}, Reshape},
                                      {"ExpandDims", {"expand_dims"}, ExpandDims},
                                      {"Squeeze", {"squeeze"}, Squeeze},
                                      {"Transpose", {"transpose"}, Transpose},
                                      {"Swapaxes", {}, SwapAxes},
                                      {"Concatenate", {"concat"}, ConcatenateFunction},
                                      {"Stack", {"stack"}, Stack},
                                      {"Split", {"split"}, Split},
                                      {"Unstack", {"unstack"}, Unstack},
                                      {"Tile", {"tile"}, Tile},
                                      {"Flip", {"reverse"}, Flip},
                                      {"Pad", {"pad"}, Pad},
                                      {"Take", {"gather"}, Take},
                                      {"OneHot", {"one_hot"}, OneHot},
                                      {"BroadcastTo", {"broadcast_to"}, BroadcastTo},
                                      {"Resize", {"image.resize"}, ResizeImage},
                                      {"GetItem", {"__operators__.getitem"}, GetItem}};

// ---- Keras 2 ----

KValue TensorFlowFunction(LayerContext& c) {
  std::string function = c.config.String("function", "");
  if (c.class_name == "SlicingOpLambda") function = "__operators__.getitem";
  const LayerRule rule = FindFunction(function);
  if (rule == nullptr) {
    c.b.Fail(absl::UnimplementedError(
        absl::StrCat("function tf.", function,
                     " is not supported in a Keras file; export the model with model.export() and "
                     "serve the SavedModel that it writes")));
    return {};
  }
  c.class_name = function;
  return rule(c);
}

const LayerRegistrar kLambda({"TFOpLambda", "SlicingOpLambda"}, TensorFlowFunction);

}  // namespace
}  // namespace floe::keras
