// What is known of a list's elements before a run. Carried by the type of its handle (of a
// TensorArray: of its flow).
#pragma once

#include <memory>

#include "model/shape.h"

namespace floe {

struct ListType {
  Dim size = Dim::Unknown();  // number of elements
  bool written = false;       // false: no element was written yet
  SymShape element =
      SymShape::UnknownRank();  // what every written element has; before that, what was declared

  bool operator==(const ListType& o) const {
    return size == o.size && written == o.written && element == o.element;
  }
};
using ListTypePtr = std::shared_ptr<const ListType>;  // null: nothing is known, or not a list

bool SameLists(const ListTypePtr& a, const ListTypePtr& b);

// The shape that says no more than both do.
SymShape JoinShapes(const SymShape& a, const SymShape& b);

// What holds for either list. Elements that were never written take their shape from the others.
ListTypePtr JoinLists(const ListTypePtr& a, const ListTypePtr& b);

}  // namespace floe
