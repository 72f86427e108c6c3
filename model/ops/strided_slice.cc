#include "model/ops/strided_slice.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace ops {

SliceMasks::SliceMasks(const Attrs& attrs)
    : begin(attrs.Int("begin_mask")),
      end(attrs.Int("end_mask")),
      ellipsis(attrs.Int("ellipsis_mask")),
      new_axis(attrs.Int("new_axis_mask")),
      shrink(attrs.Int("shrink_axis_mask")) {}

absl::StatusOr<SliceDims> ResolveStridedSlice(const SliceMasks& masks, int entries, int rank) {
  const auto bit = [](int64_t mask, int i) { return i < 63 && ((mask >> i) & 1) != 0; };
  int consumed = 0, ellipses = 0;  // entries that name an axis
  for (int i = 0; i < entries; ++i) {
    if (bit(masks.ellipsis, i)) {
      ++ellipses;
    } else if (!bit(masks.new_axis, i)) {
      ++consumed;
    }
  }
  if (ellipses > 1) return Bad("ellipsis_mask has more than one bit");
  if (consumed > rank)
    return Bad(absl::StrCat("slices ", consumed, " axes of a tensor of rank ", rank));
  SliceDims dims;
  int axis = 0;
  const auto fill = [&](int count) {
    for (int k = 0; k < count; ++k) dims.push_back({.axis = axis++});
  };
  for (int i = 0; i < entries; ++i) {
    if (bit(masks.ellipsis, i)) {
      fill(rank - consumed);
    } else if (bit(masks.new_axis, i)) {
      dims.push_back({});
    } else {
      const bool shrink = bit(masks.shrink, i);
      dims.push_back(
          {axis++, i, shrink, !shrink && bit(masks.begin, i), !shrink && bit(masks.end, i)});
    }
  }
  fill(rank - axis);
  return dims;
}

}  // namespace ops

namespace {

// a clamped to [0, size], known only when that is certain for every number of rows.
Dim ClampFrom0(Dim a, Dim size) {
  if (a.concrete() && size.concrete()) return std::min(std::max<int64_t>(a.size(), 0), size.size());
  if (!a.known() || !size.known() || a.base() < 0 || a.per_row() < 0) return Dim::Unknown();
  return a.base() <= size.base() && a.per_row() <= size.per_row() ? a : Dim::Unknown();
}

// A bound counted from the end when negative.
Dim Position(Dim bound, Dim size) {
  if (!bound.known() || !size.known()) return Dim::Unknown();
  if (!bound.concrete() || bound.size() >= 0) return ClampFrom0(bound, size);
  const Dim from_end = size + bound;
  if (size.concrete()) return ClampFrom0(from_end, size);
  return from_end.base() >= 0 ? from_end : Dim::Unknown();
}

int64_t CountConcrete(int64_t begin, int64_t end, int64_t stride, bool begin_masked,
                      bool end_masked, int64_t size) {
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  const auto place = [&](int64_t v) { return std::min(std::max(v < 0 ? v + size : v, low), high); };
  const int64_t b = begin_masked ? (stride > 0 ? low : high) : place(begin);
  const int64_t e = end_masked ? (stride > 0 ? high : low) : place(end);
  const int64_t span = stride > 0 ? e - b : b - e;
  // The least integer has no positive counterpart.
  const uint64_t step = stride < 0 ? 0 - static_cast<uint64_t>(stride) : stride;
  return span <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(span - 1) / step) + 1;
}

Dim CountSlice(const ops::SliceDim& d, Dim begin, Dim end, int64_t stride, Dim size) {
  const bool numbers =
      size.concrete() && (d.begin_masked || begin.concrete()) && (d.end_masked || end.concrete());
  if (numbers)
    return CountConcrete(begin.base(), end.base(), stride, d.begin_masked, d.end_masked,
                         size.size());
  if (d.begin_masked && d.end_masked && (stride == 1 || stride == -1)) return size;
  if (stride != 1) return Dim::Unknown();
  const Dim from = d.begin_masked ? Dim(0) : Position(begin, size);
  const Dim to = d.end_masked ? size : Position(end, size);
  if (!from.known() || !to.known()) return Dim::Unknown();
  const Dim count = Dim::Affine(to.base() - from.base(), to.per_row() - from.per_row());
  return count.base() >= 0 && count.per_row() >= 0 ? count : Dim::Unknown();
}

absl::Status CheckIndex(Dim index, Dim size, int axis) {
  if (!index.concrete() || !size.concrete()) return absl::OkStatus();
  if (index.size() >= -size.size() && index.size() < size.size()) return absl::OkStatus();
  return Bad(absl::StrCat("index ", index.size(), " is outside dimension ", axis, " of size ",
                          size.size()));
}

// Number of entries of the specification, which all three vectors have; -1 when unknown.
absl::StatusOr<int> Entries(const InferContext& c) {
  constexpr int64_t kMost = 512;  // every axis that a tensor may have, and as many new ones
  Dim entries = Dim::Unknown();
  for (int i = 1; i < 4; ++i) {
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, 1));
    const Dim own = ops::RankOf(c, i) == 1 ? c.shape(i).dim(0) : Dim::Unknown();
    if (ops::Differ(own, entries)) return Bad("begin, end and strides differ in length");
    if (own.known()) entries = own;
  }
  if (!entries.concrete()) return -1;
  if (entries.size() > kMost) return Bad(absl::StrCat("a slice of ", entries.size(), " entries"));
  return static_cast<int>(entries.size());
}

// The numbers of input i. The least integer is no dim; the next one lies as far outside of any
// tensor.
absl::StatusOr<bool> PositionsOf(const InferContext& c, int i, std::vector<Dim>* dims) {
  std::vector<int64_t> values;
  FLOE_ASSIGN_OR_RETURN(const bool numbers, c.IntsOf(i, &values));
  if (!numbers) return c.DimsOf(i, dims);
  dims->clear();
  for (int64_t value : values) dims->push_back(std::max(value, INT64_MIN + 1));
  return true;
}

absl::StatusOr<Types> InferStridedSlice(const InferContext& c) {
  const SymShape& in = c.shape(0);
  FLOE_ASSIGN_OR_RETURN(const int entries, Entries(c));
  if (!in.rank_known() || entries < 0) return ops::One(c.dtype(0), SymShape::UnknownRank());
  FLOE_ASSIGN_OR_RETURN(const ops::SliceDims dims,
                        ops::ResolveStridedSlice(ops::SliceMasks(c.attrs()), entries, in.rank()));
  std::vector<Dim> begin, end, stride;
  FLOE_ASSIGN_OR_RETURN(const bool begin_known, PositionsOf(c, 1, &begin));
  FLOE_ASSIGN_OR_RETURN(const bool end_known, PositionsOf(c, 2, &end));
  FLOE_ASSIGN_OR_RETURN(const bool stride_known, PositionsOf(c, 3, &stride));
  for (auto [known, values] :
       {std::pair{begin_known, &begin}, {end_known, &end}, {stride_known, &stride}}) {
    if (!known) values->assign(entries, Dim::Unknown());
  }
  SymShape out;
  for (const ops::SliceDim& d : dims) {
    if (d.axis < 0) {
      out.push_back(1);
    } else if (d.entry < 0) {
      out.push_back(in.dim(d.axis));
    } else if (d.shrink) {
      const Dim step = stride[d.entry];
      if (step.concrete() && step.size() <= 0)
        return Bad(absl::StrCat("stride ", step.size(), " of axis ", d.axis,
                                ", which gives one element, is not positive"));
      FLOE_RETURN_IF_ERROR(CheckIndex(begin[d.entry], in.dim(d.axis), d.axis));
    } else {
      const Dim step = stride[d.entry];
      if (step == Dim(0)) return Bad(absl::StrCat("stride of axis ", d.axis, " is 0"));
      out.push_back(step.concrete()
                        ? CountSlice(d, begin[d.entry], end[d.entry], step.size(), in.dim(d.axis))
                        : Dim::Unknown());
    }
  }
  return ops::One(c.dtype(0), std::move(out));
}

// Rows stay rows when axis 0 comes first and is taken in full, in order.
RowMark StridedSliceRows(const RowContext& c) {
  const SymShape &in = c.inputs[0].type.shape, &out = c.outputs[0].shape,
                 &spec = c.inputs[1].type.shape;
  if (c.marks[0] != RowMark::kRows) {
    // Which part of a constant is taken must not depend on the request.
    RowMark mark = c.marks[0];
    for (int i = 1; i < 4 && mark == RowMark::kConstant; ++i) {
      if (!c.inputs[i].has_constant()) mark = c.marks[i];
    }
    return ops::Checked(mark == RowMark::kRows ? RowMark::kMixed : mark, c);
  }
  if (!in.rank_known() || !out.rank_known() || out.rank() == 0 || !spec.rank_known() ||
      spec.rank() != 1 || !spec.dim(0).concrete()) {
    return RowMark::kMixed;
  }
  auto dims = ops::ResolveStridedSlice(ops::SliceMasks(c.node.attrs),
                                       static_cast<int>(spec.dim(0).size()), in.rank());
  if (!dims.ok() || dims->empty()) return RowMark::kMixed;
  // Indices of the inner axes may come from the request's own data only when they are known here.
  for (int i : {1, 3}) {
    if (!c.inputs[i].has_constant()) return RowMark::kMixed;
  }
  const ops::SliceDim& first = dims->front();
  if (first.axis != 0 || first.shrink || out.dim(0) != in.dim(0)) return RowMark::kMixed;
  if (first.entry < 0) return ops::MarkOfData(c, 0, true);
  std::vector<int64_t> begin, stride;
  const bool known =
      ops::ConstantInts(c.inputs[1], &begin) && ops::ConstantInts(c.inputs[3], &stride);
  return ops::MarkOfData(
      c, 0, known && stride[first.entry] == 1 && (first.begin_masked || begin[first.entry] == 0));
}

const OpRegistrar kStridedSlice({.name = "StridedSlice",
                                 .infer = InferStridedSlice,
                                 .rows = StridedSliceRows,
                                 .time_major = ops::TimeMajorStridedSlice,
                                 .values = ValueRule::kLinear,
                                 .shape_inputs = 14,
                                 .input_types = "T U U U"});

absl::StatusOr<Types> InferSliceOp(const InferContext& c) {
  const SymShape& in = c.shape(0);
  if (!in.rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  std::vector<Dim> begin, size;
  FLOE_ASSIGN_OR_RETURN(const bool begin_known, PositionsOf(c, 1, &begin));
  FLOE_ASSIGN_OR_RETURN(const bool size_known, PositionsOf(c, 2, &size));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  if (ops::RankOf(c, 1) == 1 && ops::Differ(c.shape(1).dim(0), Dim(in.rank())))
    return Bad(absl::StrCat("begin has shape ", c.shape(1).ToString(), ", input has shape ",
                            in.ToString()));
  if (!begin_known) begin.assign(in.rank(), Dim::Unknown());
  if (!size_known) return ops::One(c.dtype(0), ops::UnknownDims(in.rank()));
  if (static_cast<int>(begin.size()) != in.rank() || static_cast<int>(size.size()) != in.rank()) {
    return Bad(absl::StrCat("begin and size have ", begin.size(), " and ", size.size(),
                            " elements, input has shape ", in.ToString()));
  }
  SymShape out;
  for (int i = 0; i < in.rank(); ++i) {
    const Dim whole = in.dim(i);
    Dim count = size[i];
    if (count == Dim(-1)) {
      count = begin[i] == Dim(0) ? whole : Position(begin[i], whole);
      if (begin[i] != Dim(0) && count.known())
        count = Dim::Affine(whole.base() - count.base(), whole.per_row() - count.per_row());
    }
    if (begin[i].concrete() && count.concrete() && whole.concrete() &&
        (begin[i].size() < 0 || count.size() < 0 ||
         begin[i].size() > whole.size() - count.size())) {
      return Bad(absl::StrCat("begin ", begin[i].size(), " and size ", size[i].size(),
                              " leave dimension ", i, " of ", in.ToString()));
    }
    out.push_back(count);
  }
  return ops::One(c.dtype(0), std::move(out));
}

RowMark SliceRows(const RowContext& c) {
  const SymShape &in = c.inputs[0].type.shape, &out = c.outputs[0].shape;
  std::vector<int64_t> begin;
  const bool known = ops::ConstantInts(c.inputs[1], &begin);
  if (!known) return c.marks[0] == RowMark::kUnknown ? RowMark::kUnknown : RowMark::kMixed;
  const bool keeps = in.rank_known() && out.rank_known() && out.rank() > 0 && !begin.empty() &&
                     begin[0] == 0 && out.dim(0) == in.dim(0);
  return ops::MarkOfData(c, 0, keeps);
}

const OpRegistrar kSlice({.name = "Slice",
                          .infer = InferSliceOp,
                          .rows = SliceRows,
                          .values = ValueRule::kLinear,
                          .shape_inputs = 6,
                          .input_types = "T i i"});

}  // namespace
}  // namespace floe
