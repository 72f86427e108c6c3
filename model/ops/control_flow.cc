// Ops of control flow as files write them, and the structured If that replaces them.
#include "absl/strings/str_cat.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// Switch(data, predicate): output 0 lives when the predicate is false, output 1 when it is true.
absl::StatusOr<Types> InferSwitch(const InferContext& c) {
  return Types{c.inputs[0].type, c.inputs[0].type};
}

// Merge(a, b, ...): the one living input, and its index.
absl::StatusOr<Types> InferMerge(const InferContext& c) {
  TensorType out = c.inputs[0].type;
  for (const ValueInfo& in : c.inputs) {
    if (in.type.dtype != out.dtype) return Bad("inputs of different dtypes");
    out.shape = JoinShapes(out.shape, in.type.shape);
    out.list = JoinLists(out.list, in.type.list);
  }
  return Types{out, TensorType{DType::kInt32, SymShape()}};
}

absl::StatusOr<Types> InferUnsupported(const InferContext& c) {
  return absl::UnimplementedError(
      absl::StrCat("op ", c.attrs().String("tensorflow_op"), " is not supported"));
}

// Assert(condition, data...): fails the run with the data in the message.
const OpRegistrar kAssert({.name = "Assert",
                           .outputs = 0,
                           .infer = ops::InferNothing,
                           .effect = true,
                           .input_types = "bool ?"});

// _SwitchN(data, index): the output that the index names lives, or the last one.
absl::StatusOr<Types> InferSwitchN(const InferContext& c) {
  return Types(c.node.num_outputs, c.inputs[0].type);
}

constexpr const char* kRebuilt = "rebuilt into If, Case and While at load";
const OpRegistrar kSwitch({.name = "Switch",
                           .output_names = {"output_false", "output_true"},
                           .infer = InferSwitch,
                           .input_types = "T bool",
                           .tensorflow = {"Switch", "RefSwitch"},
                           .without_kernel = kRebuilt});
const OpRegistrar kSwitchN({.name = "SwitchN",
                            .output_names = {"outputs:num_outs"},
                            .infer = InferSwitchN,
                            .input_types = "T int32",
                            .tensorflow = {"_SwitchN"},
                            .without_kernel = kRebuilt});
const OpRegistrar kMerge({.name = "Merge",
                          .output_names = {"output", "value_index"},
                          .infer = InferMerge,
                          .input_types = "T*",
                          .tensorflow = {"Merge", "RefMerge"},
                          .without_kernel = kRebuilt});

// Loops of control-flow form 1; import turns them into While.
OpDef LoopOp(const std::string& name, std::vector<std::string> tensorflow) {
  return {.name = name,
          .infer = InferUnsupported,
          .tensorflow = std::move(tensorflow),
          .without_kernel = kRebuilt};
}
const OpRegistrar kLoops[] = {
    OpRegistrar(LoopOp("Enter", {"Enter", "RefEnter"}), "T"),
    OpRegistrar(LoopOp("Exit", {"Exit", "RefExit"}), "T"),
    OpRegistrar(LoopOp("NextIteration", {"NextIteration", "RefNextIteration"}), "T"),
    OpRegistrar(LoopOp("LoopCond", {"LoopCond"}), "bool"),
};

// Ops with subgraphs, whose types the analysis infers.
OpDef Functional(const std::string& name, std::vector<std::string> functions,
                 const std::string& output, std::vector<std::string> tensorflow) {
  return {.name = name,
          .max_inputs = -1,
          .output_names = {output},
          .functions = std::move(functions),
          .infer = InferUnsupported,
          .tensorflow = std::move(tensorflow),
          .without_kernel = "its functions are run as plans of their own"};
}
OpDef Call() {
  OpDef def = Functional("PartitionedCall", {"f"}, "output:Tout",
                         {"PartitionedCall", "StatefulPartitionedCall"});
  def.without_kernel = "inlined at load";
  return def;
}
// OnDevice(values...): the subgraph takes them, and runs on a device.
OpDef Island() {
  OpDef def = Functional("OnDevice", {}, "", {ops::kNotInFiles});
  def.output_names = {};
  def.outputs = -1;
  return def;
}
const OpRegistrar kFunctional[] = {
    // If(predicate, captured...): subgraphs {then, else} take the captured values.
    OpRegistrar(
        Functional("If", {"then_branch", "else_branch"}, "output:Tout", {"If", "StatelessIf"})),
    // Case(index, captured...): as If, with a subgraph for each index; one past the end takes the
    // last.
    OpRegistrar(Functional("Case", {"branches"}, "output:Tout", {"Case", "StatelessCase"}),
                "int32 ?"),
    // While(variables...): subgraphs {condition, body}.
    OpRegistrar(Functional("While", {"cond", "body"}, "output:T", {"While", "StatelessWhile"})),
    OpRegistrar(Call()),
    OpRegistrar(Island()),
};
// An op this build does not know; harmless until an output needs it.
const OpRegistrar kUnsupported({.name = "Unsupported",
                                .max_inputs = -1,
                                .outputs = -1,
                                .infer = InferUnsupported,
                                .stateful = true,
                                .tensorflow = {ops::kNotInFiles}});
// Fed by callers, or else input 0.
const OpRegistrar kPlaceholderWithDefault({.name = "PlaceholderWithDefault",
                                           .infer = InferSame,
                                           .rows = RowsOfInput0,
                                           .alias = true,
                                           .input_types = "T"});

}  // namespace
}  // namespace floe
