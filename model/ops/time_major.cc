#include "model/ops/time_major.h"

#include <algorithm>

#include "model/ops/op_util.h"
#include "model/ops/strided_slice.h"

namespace floe::ops {
namespace {

RowMark RowsInDim1Or(const RowContext& c, bool keeps) {
  return keeps && RowsInDim1(c.outputs[0].shape) ? RowMark::kRowsDim1 : Lost(c);
}

RowMark BlocksInDim1Or(const RowContext& c, bool keeps) {
  return keeps && BlocksInDim1(c.outputs[0].shape) ? RowMark::kRowsDim1 : Lost(c);
}

// Input 0 is time-major, with one step of dim 1 for each row, and the others are known. `shape`: an
// input that may be affine in rows, because all that it does shows in the type of the output.
bool OnlyInput0(const RowContext& c, size_t shape = 0) {
  if (c.marks[0] != RowMark::kRowsDim1 || !RowsInDim1(c.inputs[0].type.shape)) return false;
  for (size_t i = 1; i < c.marks.size(); ++i) {
    if (c.marks[i] != RowMark::kConstant && !(i == shape && c.inputs[i].constant.valid()))
      return false;
  }
  return true;
}

}  // namespace

bool RowsInDim1(const SymShape& shape) {
  if (!shape.rank_known() || shape.rank() < 2 || shape.dim(1) != Dim::Rows()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != 1 && !shape.dim(i).concrete()) return false;
  }
  return true;
}

bool BlocksInDim1(const SymShape& shape) {
  if (!shape.rank_known() || shape.rank() < 2) return false;
  const Dim rows = shape.dim(1);
  if (!rows.has_rows() || rows.base() != 0 || rows.per_row() <= 0) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != 1 && !shape.dim(i).concrete()) return false;
  }
  return true;
}

RowMark TimeMajorSameBytes(const RowContext& c) {
  const auto behind_one = [](const SymShape& shape) {
    return BlocksInDim1(shape) && shape.dim(0) == Dim(1);
  };
  const bool in = c.marks[0] == RowMark::kRows       ? LeadingRows(c.inputs[0].type)
                  : c.marks[0] == RowMark::kRowsDim1 ? behind_one(c.inputs[0].type.shape)
                                                     : false;
  if (!in) return Lost(c);
  // What the other input asks for shows in the type of the output.
  if (LeadingRows(c.outputs[0])) return RowMark::kRows;
  return behind_one(c.outputs[0].shape) ? RowMark::kRowsDim1 : Lost(c);
}

RowMark TimeMajorElementwise(const RowContext& c) {
  const SymShape& out = c.outputs[0].shape;
  if (!BlocksInDim1(out)) return Lost(c);
  for (size_t i = 0; i < c.marks.size(); ++i) {
    const SymShape& in = c.inputs[i].type.shape;
    if (!in.rank_known()) return Lost(c);
    const int axis = 1 - (out.rank() - in.rank());  // of the input, laid over dim 1
    const bool fits =
        c.marks[i] == RowMark::kRowsDim1
            ? in.rank() == out.rank() && in.dim(1) == out.dim(1)
            : c.marks[i] == RowMark::kConstant && (axis < 0 || in.dim(axis) == Dim(1));
    if (!fits) return Lost(c);
  }
  return RowMark::kRowsDim1;
}

RowMark TimeMajorSame(const RowContext& c) { return RowsInDim1Or(c, OnlyInput0(c)); }

RowMark TimeMajorTranspose(const RowContext& c) {
  std::vector<int64_t> perm;
  const SymShape& in = c.inputs[0].type.shape;
  if (!ConstantInts(c.inputs[1], &perm) || perm.size() < 2 || !in.rank_known()) return Lost(c);
  for (int64_t& p : perm) p += p < 0 ? in.rank() : 0;
  // Where the rows' blocks go, whatever their size, shows in the permutation alone.
  if (c.marks[0] == RowMark::kRows)
    return BlocksInDim1Or(c, perm[1] == 0 && LeadingRows(c.inputs[0].type));
  if (c.marks[0] != RowMark::kRowsDim1 || !BlocksInDim1(in)) return Lost(c);
  if (perm[0] == 1) return LeadingRows(c.outputs[0]) ? RowMark::kRows : Lost(c);
  return BlocksInDim1Or(c, perm[1] == 1);
}

RowMark TimeMajorStridedSlice(const RowContext& c) {
  const SymShape &in = c.inputs[0].type.shape, &out = c.outputs[0].shape;
  std::vector<int64_t> begin, stride;
  const bool known =
      OnlyInput0(c, 2) && ConstantInts(c.inputs[1], &begin) && ConstantInts(c.inputs[3], &stride);
  if (!known) return Lost(c);
  const auto dims =
      ResolveStridedSlice(SliceMasks(c.node.attrs), static_cast<int>(begin.size()), in.rank());
  if (!dims.ok() || dims->size() < 2) return Lost(c);
  const SliceDim &time = (*dims)[0], &rows = (*dims)[1];
  const bool whole =
      rows.entry < 0 || (stride[rows.entry] == 1 && (rows.begin_masked || begin[rows.entry] == 0));
  if (time.axis != 0 || rows.axis != 1 || rows.shrink || !whole || !out.rank_known())
    return Lost(c);
  // The end of the slice is judged by what is left.
  if (time.shrink)
    return out.rank() > 0 && out.dim(0) == Dim::Rows() && LeadingRows(c.outputs[0]) ? RowMark::kRows
                                                                                    : Lost(c);
  return RowsInDim1Or(c, true);
}

RowMark TimeMajorReverse(const RowContext& c) {
  std::vector<int64_t> axes;
  if (!OnlyInput0(c) || !ConstantInts(c.inputs[1], &axes)) return Lost(c);
  const int rank = c.inputs[0].type.shape.rank();
  return RowsInDim1Or(c, std::none_of(axes.begin(), axes.end(),
                                      [&](int64_t a) { return a == 1 || a == 1 - rank; }));
}

RowMark TimeMajorPack(const RowContext& c) {
  const int64_t axis = c.node.attrs.Int("axis");
  const SymShape& out = c.outputs[0].shape;
  if (!BlocksInDim1(out) || (axis != 0 && axis != -out.rank())) return Lost(c);
  for (size_t i = 0; i < c.marks.size(); ++i) {
    const SymShape& in = c.inputs[i].type.shape;
    if (c.marks[i] != RowMark::kRows || !LeadingRows(c.inputs[i].type) || in.dim(0) != out.dim(1))
      return Lost(c);
  }
  return RowMark::kRowsDim1;
}

RowMark TimeMajorUnpack(const RowContext& c) {
  const int64_t axis = c.node.attrs.Int("axis");
  const SymShape& in = c.inputs[0].type.shape;
  const bool apart = c.marks[0] == RowMark::kRowsDim1 && BlocksInDim1(in) && !c.outputs.empty() &&
                     (axis == 0 || axis == -in.rank());
  return apart && LeadingRows(c.outputs[0]) ? RowMark::kRows : Lost(c);
}

RowMark TimeMajorConcat(const RowContext& c) {
  const size_t parts = c.inputs.size() - 1;
  std::vector<int64_t> axis;
  if (!ConstantInts(c.inputs[parts], &axis) || axis.size() != 1) return Lost(c);
  for (size_t i = 0; i < parts; ++i) {
    if (c.marks[i] != RowMark::kRowsDim1 || !RowsInDim1(c.inputs[i].type.shape)) return Lost(c);
  }
  return RowsInDim1Or(c, axis[0] != 1 && axis[0] != 1 - c.inputs[0].type.shape.rank());
}

}  // namespace floe::ops
