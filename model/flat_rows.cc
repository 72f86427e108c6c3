#include "model/flat_rows.h"

#include <map>

namespace floe {
namespace {

// Function-local, because registrars of other files run before this file's own statics may exist.
std::map<std::string, FlatRule>& Rules() {
  static std::map<std::string, FlatRule> rules;
  return rules;
}

}  // namespace

bool FlatContext::OnePerRow(int i) const {
  const SymShape& shape = inputs[i].type.shape;
  return marks[i] == RowMark::kRows && shape.rank_known() && shape.rank() == 1 &&
         shape.dim(0) == Dim::Rows();
}

int FlatContext::Rank(int i) const {
  const SymShape& shape = inputs[i].type.shape;
  return shape.rank_known() ? shape.rank() : -1;
}

FlatRuleRegistrar::FlatRuleRegistrar(std::initializer_list<const char*> ops, FlatRule rule) {
  for (const char* op : ops) Rules()[op] = rule;
}

FlatRule FindFlatRule(const std::string& op) {
  const auto found = Rules().find(op);
  return found == Rules().end() ? nullptr : found->second;
}

}  // namespace floe
