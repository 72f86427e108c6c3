// What the ops of TensorLists and TensorArrays share. Both keep what is known of their elements in
// TensorType::list, of the list's handle or of the array's flow; "carrier" below is that value.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// An op over lists. Handles are never constants of a graph, so that files of one can hold them all:
// hence `stateful`.
OpDef ListOp(const char* name, InferFunction infer, RowRule rows,
             std::vector<std::string> outputs = {});

// ---- row rules: all inputs but those named must be the same for every request ----

inline constexpr int kNone = -1;

// Which inputs of an op are what.
struct ListInputs {
  int list = kNone;   // says the mark of the list
  int data = kNone;   // an item, or the items side by side
  int index = kNone;  // of the item; of each item, in order, when many are moved
  int shape = kNone;  // of an element; it may be affine in rows: what it does shows in the types
  int array = kNone;  // the handle of a TensorArray; it has the mark of a new list
};

// A list of `size` elements, before any was written.
RowMark MarkOfNew(const RowContext& c, int shape, int size);
// The list after an item was written into it. Items with rows make a list of rows.
RowMark MarkOfWrite(const RowContext& c, const ListInputs& in);
// An element of the list.
RowMark MarkOfRead(const RowContext& c, const ListInputs& in, int output = 0);
// The elements side by side along a new dim 0: their rows go to dim 1.
RowMark MarkOfStack(const RowContext& c, const ListInputs& in);
// Dim 0 of the data becomes the list's elements: what is time-major has rows in each.
RowMark MarkOfUnstack(const RowContext& c, const ListInputs& in);

}  // namespace floe::ops
