// What the ops of TensorLists and TensorArrays share. Both keep what is known of their elements in
// TensorType::list, of the list's handle or of the array's flow; "carrier" below is that value.
#pragma once

#include <memory>
#include <utility>

#include "model/ops/op_util.h"

namespace floe::ops {

inline constexpr int kMaxRank = 254;  // as in TensorFlow

inline TensorType ListHandle(ListTypePtr list) {
  return {DType::kVariant, SymShape(), std::move(list)};
}

inline ListTypePtr MakeList(Dim size, bool written, SymShape element) {
  return std::make_shared<const ListType>(ListType{size, written, std::move(element)});
}

// The shape that input i spells: a vector of dims (-1: unknown), or a scalar for any rank.
absl::StatusOr<SymShape> SpelledShape(const InferContext& c, int i);

// What is known of an element that is read under a declared shape.
SymShape ElementShape(const ListTypePtr& list, const SymShape& declared);

// The list after an item of this shape was written into it.
ListTypePtr Written(const ListTypePtr& list, const SymShape& item);

// A shape without its dim 0; unknown rank for a scalar.
SymShape WithoutDim0(const SymShape& shape);
SymShape WithDim0(Dim dim, const SymShape& shape);

// ---- row rules: all inputs but `data` must be the same for every request ----
// Only input `shape`, the shape of an element, may be affine in the number of rows: what it does
// shows in the types. An index, a length or a size may not.

inline constexpr int kNone = -1;

bool OthersConstant(const RowContext& c, std::initializer_list<int> data, int shape = kNone);

// A list of which input `list` says the mark, after `item` was written into it. Items with rows
// make a list of rows.
RowMark MarkOfWrite(const RowContext& c, int list, int item);
// An element of the list.
RowMark MarkOfRead(const RowContext& c, int list, int shape = kNone, int output = 0);
// The elements side by side along a new dim 0: rows go to dim 1.
RowMark MarkOfStack(const RowContext& c, int list, int shape = kNone);
// Dim 0 of input `data` becomes the list's elements: what is time-major has rows in each.
RowMark MarkOfUnstack(const RowContext& c, int list, int data, int shape = kNone);

}  // namespace floe::ops
