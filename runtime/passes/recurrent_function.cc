#include "runtime/passes/recurrent_function.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "runtime/passes/graph_util.h"

namespace floe {
namespace {

using ops::RecurrentFunction;

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {}

  std::optional<AppliedFunction> Find(ValueRef ref) const {
    static const std::map<std::string, RecurrentFunction> plain = {
        {"Sigmoid", RecurrentFunction::kSigmoid},
        {"Tanh", RecurrentFunction::kTanh},
        {"Relu", RecurrentFunction::kRelu},
        {"Relu6", RecurrentFunction::kRelu6},
        {"Elu", RecurrentFunction::kElu},
        {"Selu", RecurrentFunction::kSelu},
        {"LeakyRelu", RecurrentFunction::kLeakyRelu},
        {"Softplus", RecurrentFunction::kSoftplus},
        {"Softsign", RecurrentFunction::kSoftsign},
        {"Exp", RecurrentFunction::kExp}};
    const Node& node = At(ref);
    const auto found = plain.find(node.op->name);
    if (found != plain.end()) {
      AppliedFunction applied{{found->second, 1, 0}, node.inputs[0]};
      if (found->second == RecurrentFunction::kLeakyRelu)
        applied.gate.scale = node.attrs.Float("alpha", 0.2f);
      return applied;
    }
    if (const auto hard = HardSigmoid(ref)) return hard;
    if (node.op->name != "Mul") return std::nullopt;
    for (int side : {0, 1}) {
      const ValueRef x = node.inputs[side], sigmoid = node.inputs[1 - side];
      if (Is(sigmoid, "Sigmoid") && WithoutOne(At(sigmoid).inputs[0]) == x)
        return AppliedFunction{{RecurrentFunction::kSwish, 1, 0}, x};
    }
    return std::nullopt;
  }

  // A constant factor or addend, and the other operand.
  std::optional<std::pair<float, ValueRef>> WithConstant(ValueRef ref, const char* op) const {
    if (!Is(ref, op)) return std::nullopt;
    const auto& in = At(ref).inputs;
    for (int side : {1, 0}) {
      if (side == 0 && std::string(op) == "RealDiv") break;
      if (const auto value = ConstantFloat(graph_, in[side]))
        return std::make_pair(*value, in[1 - side]);
    }
    return std::nullopt;
  }

  // x of x * 1: Keras gives its swish a factor.
  ValueRef WithoutOne(ValueRef ref) const {
    const auto scaled = WithConstant(ref, "Mul");
    return scaled.has_value() && scaled->first == 1 ? scaled->second : ref;
  }

  // x * a or x / a.
  std::optional<std::pair<float, ValueRef>> Scaled(ValueRef ref) const {
    auto scaled = WithConstant(ref, "Mul");
    if (scaled.has_value()) return scaled;
    scaled = WithConstant(ref, "RealDiv");
    if (scaled.has_value()) scaled->first = 1 / scaled->first;
    return scaled;
  }

  // min(max(x, 0), 1), however it is put.
  std::optional<ValueRef> CutToOne(ValueRef ref) const {
    const Node& node = At(ref);
    if (node.op->name == "ClipByValue") {
      const auto low = ConstantFloat(graph_, node.inputs[1]),
                 high = ConstantFloat(graph_, node.inputs[2]);
      if (low != 0.0f || high != 1.0f) return std::nullopt;
      return node.inputs[0];
    }
    for (const bool low_inside : {true, false}) {
      const auto outer = WithConstant(ref, low_inside ? "Minimum" : "Maximum");
      if (!outer.has_value() || outer->first != (low_inside ? 1.0f : 0.0f)) continue;
      const auto inner = WithConstant(outer->second, low_inside ? "Maximum" : "Minimum");
      if (inner.has_value() && inner->first == (low_inside ? 0.0f : 1.0f)) return inner->second;
      if (low_inside && Is(outer->second, "Relu")) return At(outer->second).inputs[0];
    }
    return std::nullopt;
  }

  std::optional<AppliedFunction> HardSigmoid(ValueRef ref) const {
    if (const auto line = CutToOne(ref)) {
      AppliedFunction applied{{RecurrentFunction::kHardSigmoid, 1, 0}, *line};
      if (const auto shifted = WithConstant(applied.of, "Add")) {
        applied.gate.shift = shifted->first;
        applied.of = shifted->second;
      }
      if (const auto scaled = Scaled(applied.of)) {
        applied.gate.scale = scaled->first;
        applied.of = scaled->second;
      }
      return applied;
    }
    // relu6(x + shift) / 6
    const auto scaled = Scaled(ref);
    if (!scaled.has_value() || !Is(scaled->second, "Relu6") ||
        std::abs(scaled->first * 6 - 1) > 1e-6f)
      return std::nullopt;
    AppliedFunction applied{{RecurrentFunction::kHardSigmoid, scaled->first, 0},
                            At(scaled->second).inputs[0]};
    if (const auto shifted = WithConstant(applied.of, "Add")) {
      applied.gate.shift = shifted->first * scaled->first;
      applied.of = shifted->second;
    }
    return applied;
  }

 private:
  const Node& At(ValueRef ref) const { return graph_.node(ref.node); }
  bool Is(ValueRef ref, const char* op) const { return At(ref).op->name == op; }

  const Graph& graph_;
};

}  // namespace

std::optional<AppliedFunction> RecurrentFunctionOf(const Graph& graph, ValueRef ref) {
  return Finder(graph).Find(ref);
}

std::optional<float> ConstantFloat(const Graph& graph, ValueRef ref) {
  const Tensor* value = ConstantOf(graph, ref);
  if (value == nullptr || value->dtype() != DType::kFloat32 || value->elements() != 1 ||
      value->shape().rank() > 2)
    return std::nullopt;
  return value->as<float>()[0];
}

}  // namespace floe
