#include "model/list_type.h"

namespace floe {

bool SameLists(const ListTypePtr& a, const ListTypePtr& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return *a == *b;
}

SymShape JoinShapes(const SymShape& a, const SymShape& b) {
  if (!a.rank_known() || !b.rank_known() || a.rank() != b.rank()) return SymShape::UnknownRank();
  SymShape joined = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) joined.set_dim(i, Dim::Unknown());
  }
  return joined;
}

ListTypePtr JoinLists(const ListTypePtr& a, const ListTypePtr& b) {
  if (a == nullptr || b == nullptr) return nullptr;
  if (a->written && !b->written) return JoinLists(b, a);
  auto joined = std::make_shared<ListType>(*b);
  if (a->size != b->size) joined->size = Dim::Unknown();
  // A declared shape with open dims says nothing about a list in which nothing is.
  const bool open = b->written && !a->written && !a->element.known();
  if (!open) joined->element = JoinShapes(a->element, b->element);
  return joined;
}

}  // namespace floe
