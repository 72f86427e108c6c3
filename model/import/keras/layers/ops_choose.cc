// Choices among values, unique ones, and a piece that is put in the place of another.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

// The first choice whose condition is true.
KValue Select(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::vector<Operand> conditions = OperandsAt(c, 0, {"condlist"});
  std::vector<Operand> choices = OperandsAt(c, 1, {"choicelist"});
  const Operand otherwise = OperandAt(c, 2, {"default"});
  if (!b.ok()) return {};
  if (conditions.size() != choices.size() || choices.empty())
    c.Fail(absl::StrCat(conditions.size(), " conditions and ", choices.size(), " choices"));
  Operand last = otherwise;
  if (!last.present()) last = {Int64(b, 0), true, true};
  choices.push_back(last);
  const std::vector<ValueRef> values = InOneType(c, choices);
  ValueRef y = values.back();
  for (size_t k = conditions.size(); k > 0 && b.ok(); --k) {
    const ValueRef condition = Cast(b, conditions[k - 1].value, DType::kBool);
    y = b.Op("SelectV2", {condition, values[k - 1], y});
  }
  return y;
}

KValue Unique(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const bool sorted = BoolOption(c, {"sorted"}, true),
             places = BoolOption(c, {"return_index"}, false),
             inverse = BoolOption(c, {"return_inverse"}, false),
             counts = BoolOption(c, {"return_counts"}, false);
  if (!Option(c, {"axis"}).is_null()) return c.Refuse("the unique slices of an axis");
  const int64_t size = IntOption(c, {"size"}, -1);
  const double fill = NumberOption(c, {"fill_value"}, 0);
  const ValueRef shape = b.Op("Shape", {x});
  x = Reshape(b, x, {-1});
  if (b.ok() && b.dtype(x) == DType::kBool) return c.Refuse("unique bools");
  const std::vector<ValueRef> found = b.Outputs("UniqueWithCounts", {x}, 3);
  if (!b.ok()) return {};
  ValueRef y = found[0], at = found[1], count = found[2];
  const auto number = [&](ValueRef v) { return At(b, b.Op("Shape", {v}), 0, 0); };
  const ValueRef order_of = b.Op("Range", {Int(b, 0), number(x), Int(b, 1)});
  ValueRef first = b.Op("UnsortedSegmentMin", {order_of, at, number(y)});
  const auto taken = [&](ValueRef v, ValueRef ids) {
    return b.Op("GatherV2", {v, ids, Int(b, 0)});
  };
  if (sorted) {
    const ValueRef order = SortLast(b, y, true, true);
    y = taken(y, order);
    first = taken(first, order);
    count = taken(count, order);
    at = taken(b.Op("InvertPermutation", {order}), at);
  }
  if (size >= 0) {
    const ValueRef there = b.Op("Minimum", {number(y), Int(b, size)});
    const ValueRef kept = b.Op("Range", {Int(b, 0), there, Int(b, 1)});
    const ValueRef more = Sub(b, Int(b, size), there);
    const ValueRef pads = Reshape(b, Pack(b, {Int(b, 0), more}, 0), {1, 2});
    const auto sized = [&](ValueRef v, double value) {
      const ValueRef z = b.Op("PadV2", {taken(v, kept), pads, Scalar(b, b.dtype(v), value)});
      b.Refine(z, SymShape{Dim(size)});
      return z;
    };
    y = sized(y, fill);
    first = sized(first, 1);
    count = sized(count, 0);
  }
  if (!places && !inverse && !counts) return y;
  std::vector<KValue> out{y};
  if (places) out.emplace_back(first);
  if (inverse) out.emplace_back(b.Op("Reshape", {at, shape}));
  if (counts) out.emplace_back(count);
  return out;
}

// A piece put into x at constant places, which are moved so that it fits.
KValue SliceUpdate(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"inputs"}), piece = TensorAt(c, 2, {"updates"});
  const KValue& given = c.Arg(1, "start_indices");
  const KValue& named = given.is_none() ? c.Arg(-1, "start_indices") : given;
  if (named.kind != KValue::Kind::kJson) return c.Refuse("a place that is computed");
  const Json* items = Items(*named.json);
  if (items == nullptr) items = Items(Member(Member(*named.json, "config"), "value"));
  const int rank = Rank(b, x);
  if (b.ok() &&
      (items == nullptr || static_cast<int>(items->size()) != rank || Rank(b, piece) != rank))
    c.Fail("a place and a piece of the input's rank are needed");
  if (!b.ok()) return {};
  std::vector<std::pair<int64_t, int64_t>> pads;
  for (int k = 0; k < rank; ++k) {
    int64_t begin = 0;
    if (!ToInt((*items)[k], &begin)) c.Fail(absl::StrCat("a place of ", Shown((*items)[k])));
    const Dim whole = SizeAt(b, x, k), part = SizeAt(b, piece, k);
    if (!whole.concrete() || !part.concrete()) {
      if (begin != 0 || whole.concrete() != part.concrete())
        return c.Refuse("a place along an axis whose size is not known");
      pads.emplace_back(0, 0);
      continue;
    }
    const int64_t room = whole.size() - part.size();
    if (room < 0) c.Fail("a piece that is larger than the input");
    if (!b.ok()) return {};
    begin = std::clamp<int64_t>(begin, 0, room);
    pads.emplace_back(begin, room - begin);
  }
  const ValueRef mask = Pad(b, b.Op("OnesLike", {Cast(b, piece, DType::kBool)}), pads);
  return b.Op("SelectV2", {mask, Pad(b, Cast(b, piece, b.dtype(x)), pads), x});
}

const OperationRegistrar kChoices[] = {
    {"Select", {}, Select}, {"Unique", {}, Unique}, {"SliceUpdate", {}, SliceUpdate}};

}  // namespace
}  // namespace floe::keras
