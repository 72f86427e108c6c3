// Reads arithmetic as a polynomial in a few values, so that a pass recognises a formula however its
// graph orders and groups it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/graph.h"

namespace floe {

// Exponents of the variables in one product.
using Powers = std::array<int, 3>;
// The sum of these products. Each has one factor for each place of the last dim, or a single one
// for all places when the reader's width is 1.
using Terms = std::map<Powers, std::vector<double>>;

// A value that is not looked into: variable `index` to the power `power` (-1 for a square root
// whose reciprocal is the variable).
struct TermVariable {
  ValueRef value;
  int index = 0;
  int power = 1;
};

// How much reading one pass does, in factors of nodes: graphs come from strangers. Without any
// left, nothing is read any more.
struct TermBudget {
  int64_t left = int64_t{1} << 26;
};

class TermReader {
 public:
  // Constants count when they broadcast along the last dim of values of rank `rank`, which are
  // `width` long, or are single numbers. `width` 1 takes single numbers alone.
  TermReader(const Graph& graph, std::vector<TermVariable> variables, int rank, int64_t width,
             TermBudget* budget)
      : graph_(graph),
        variables_(std::move(variables)),
        rank_(rank),
        width_(width),
        budget_(*budget) {}

  // Nothing when the value is made of something else, or by more than a few operations.
  std::optional<Terms> Read(ValueRef ref) { return Read(ref, 0); }
  // The nodes between the variables and what was read, that included.
  const std::set<int>& inner() const { return inner_; }

 private:
  std::optional<Terms> Read(ValueRef ref, int depth);
  std::optional<Terms> Combine(const Node& node, int depth);
  std::optional<Terms> Constant(const Tensor& value) const;

  const Graph& graph_;
  const std::vector<TermVariable> variables_;
  const int rank_;
  const int64_t width_;
  TermBudget& budget_;
  std::map<ValueRef, std::optional<Terms>> known_;
  std::set<int> inner_;
};

// Whether `terms` has exactly the products of `wanted`, with factors that differ by no more than a
// millionth. Products whose factors are all 0 do not count.
bool SameTerms(const Terms& terms, const Terms& wanted);

// The ops that TermReader looks into.
bool IsArithmetic(const Node& node);

}  // namespace floe
