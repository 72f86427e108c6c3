#include "runtime/passes/terms.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "model/op_def.h"
#include "runtime/passes/graph_util.h"

namespace floe {
namespace {

constexpr int kMaxDepth = 12, kMaxPower = 4;
constexpr size_t kMaxTerms = 8, kMaxNodes = 48;

Terms Sum(Terms a, const Terms& b, double sign) {
  for (const auto& [powers, factors] : b) {
    std::vector<double>& to = a[powers];
    to.resize(factors.size(), 0);
    for (size_t i = 0; i < factors.size(); ++i) to[i] += sign * factors[i];
  }
  return a;
}

std::optional<Terms> Product(const Terms& a, const Terms& b) {
  if (a.size() * b.size() > kMaxTerms) return std::nullopt;
  Terms product;
  for (const auto& [p, f] : a) {
    for (const auto& [q, g] : b) {
      Powers powers;
      for (size_t i = 0; i < powers.size(); ++i) {
        powers[i] = p[i] + q[i];
        if (std::abs(powers[i]) > kMaxPower) return std::nullopt;
      }
      std::vector<double>& to = product[powers];
      to.resize(f.size(), 0);
      for (size_t i = 0; i < f.size(); ++i) to[i] += f[i] * g[i];
    }
  }
  return product;
}

// Of a single product.
std::optional<Terms> Reciprocal(const Terms& terms) {
  if (terms.size() != 1) return std::nullopt;
  Powers powers = terms.begin()->first;
  std::vector<double> factors = terms.begin()->second;
  for (int& power : powers) power = -power;
  for (double& factor : factors) {
    if (factor == 0) return std::nullopt;
    factor = 1 / factor;
  }
  return Terms{{powers, std::move(factors)}};
}

std::optional<Terms> Power(const Terms& terms, int exponent) {
  std::optional<Terms> result = terms;
  for (int i = 1; i < exponent && result.has_value(); ++i) result = Product(*result, terms);
  return result;
}

bool AllZero(const std::vector<double>& factors) {
  return std::all_of(factors.begin(), factors.end(), [](double f) { return f == 0; });
}

}  // namespace

bool IsArithmetic(const Node& node) {
  static const std::set<std::string> names = {
      "Add", "Sub", "Mul", "RealDiv", "Neg", "Square", "SquaredDifference", "Pow", "Reciprocal"};
  return names.count(node.op->name) != 0 && node.control_inputs.empty();
}

bool SameTerms(const Terms& terms, const Terms& wanted) {
  constexpr double kTolerance = 1e-6;
  for (const auto& [powers, factors] : terms) {
    const auto want = wanted.find(powers);
    if (want == wanted.end()) {
      if (!AllZero(factors)) return false;
      continue;
    }
    if (want->second.size() != factors.size()) return false;
    for (size_t i = 0; i < factors.size(); ++i) {
      const double w = want->second[i];
      if (!(std::abs(factors[i] - w) <= kTolerance * std::abs(w))) return false;
    }
  }
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& want) {
    return terms.count(want.first) != 0 || AllZero(want.second);
  });
}

std::optional<Terms> TermReader::Constant(const Tensor& value) const {
  std::vector<float> numbers;
  if (value.elements() == 0 || !AlongAxis(value, rank_, rank_ - 1, width_, &numbers))
    return std::nullopt;
  return Terms{{Powers{}, std::vector<double>(numbers.begin(), numbers.end())}};
}

std::optional<Terms> TermReader::Read(ValueRef ref, int depth) {
  for (const TermVariable& variable : variables_) {
    if (!(variable.value == ref)) continue;
    Powers powers{};
    powers[variable.index] = variable.power;
    return Terms{{powers, std::vector<double>(static_cast<size_t>(width_), 1.0)}};
  }
  if (const Tensor* constant = ConstantOf(graph_, ref)) return Constant(*constant);
  const Node& node = graph_.node(ref.node);
  if (depth >= kMaxDepth || !IsArithmetic(node)) return std::nullopt;
  const auto known = known_.find(ref);
  if (known != known_.end()) return known->second;
  constexpr int64_t kNodeCost = 64;  // whatever the width
  budget_.left -= width_ + kNodeCost;
  if (known_.size() >= kMaxNodes || budget_.left < 0) return std::nullopt;
  std::optional<Terms> terms = Combine(node, depth);
  if (terms.has_value() && terms->size() > kMaxTerms) terms.reset();
  if (terms.has_value()) inner_.insert(ref.node);
  known_[ref] = terms;
  return terms;
}

std::optional<Terms> TermReader::Combine(const Node& node, int depth) {
  const std::string& op = node.op->name;
  const std::optional<Terms> a = Read(node.inputs[0], depth + 1);
  if (!a.has_value()) return std::nullopt;
  if (op == "Neg") return Sum({}, *a, -1);
  if (op == "Square") return Product(*a, *a);
  if (op == "Reciprocal") return Reciprocal(*a);
  if (op == "Pow") {
    const Tensor* exponent = ConstantOf(graph_, node.inputs[1]);
    if (exponent == nullptr || exponent->dtype() != DType::kFloat32 || exponent->elements() != 1 ||
        exponent->shape().rank() > rank_)
      return std::nullopt;
    const float e = exponent->as<float>()[0];
    if (e != 2 && e != 3) return std::nullopt;
    return Power(*a, static_cast<int>(e));
  }
  const std::optional<Terms> b = Read(node.inputs[1], depth + 1);
  if (!b.has_value()) return std::nullopt;
  if (op == "Add") return Sum(*a, *b, 1);
  if (op == "Sub") return Sum(*a, *b, -1);
  if (op == "Mul") return Product(*a, *b);
  if (op == "SquaredDifference") {
    const Terms difference = Sum(*a, *b, -1);
    return Product(difference, difference);
  }
  const std::optional<Terms> inverse = Reciprocal(*b);
  return inverse.has_value() ? Product(*a, *inverse) : std::nullopt;
}

}  // namespace floe
