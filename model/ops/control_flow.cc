// Ops of control flow as files write them, and the structured If that replaces them.
#include "absl/strings/str_cat.h"
#include "model/op_def.h"

namespace floe {
namespace {

// Assert(condition, data...): fails the run with the data in the message.
absl::StatusOr<Types> InferAssert(const InferContext&) { return Types{}; }

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

const OpRegistrar kAssert({.name = "Assert",
                           .min_inputs = 1,
                           .max_inputs = -1,
                           .outputs = 0,
                           .infer = InferAssert,
                           .effect = true,
                           .tensorflow = {"Assert"}});
const OpRegistrar kSwitch({.name = "Switch",
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .outputs = 2,
                           .infer = InferSwitch,
                           .tensorflow = {"Switch", "RefSwitch"}});
const OpRegistrar kMerge({.name = "Merge",
                          .min_inputs = 1,
                          .max_inputs = -1,
                          .outputs = 2,
                          .infer = InferMerge,
                          .tensorflow = {"Merge", "RefMerge"}});
// Loops of control-flow form 1; import turns them into While.
const OpRegistrar kEnter({.name = "Enter",
                          .min_inputs = 1,
                          .max_inputs = 1,
                          .infer = InferUnsupported,
                          .tensorflow = {"Enter", "RefEnter"}});
const OpRegistrar kExit({.name = "Exit",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .infer = InferUnsupported,
                         .tensorflow = {"Exit", "RefExit"}});
const OpRegistrar kNextIteration({.name = "NextIteration",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .infer = InferUnsupported,
                                  .tensorflow = {"NextIteration", "RefNextIteration"}});
const OpRegistrar kLoopCond({.name = "LoopCond",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .infer = InferUnsupported,
                             .tensorflow = {"LoopCond"}});
// If(predicate, captured...): subgraphs {then, else} take the captured values; the analysis infers
// them.
const OpRegistrar kIf(
    {.name = "If", .min_inputs = 1, .max_inputs = -1, .outputs = -1, .infer = InferUnsupported});
// Case(index, captured...): as If, with a subgraph for each index; one past the end takes the last.
const OpRegistrar kCase(
    {.name = "Case", .min_inputs = 1, .max_inputs = -1, .outputs = -1, .infer = InferUnsupported});
// While(variables...): subgraphs {condition, body}.
const OpRegistrar kWhile(
    {.name = "While", .min_inputs = 1, .max_inputs = -1, .outputs = -1, .infer = InferUnsupported});
// An op this build does not know; harmless until an output needs it.
const OpRegistrar kUnsupported({.name = "Unsupported",
                                .min_inputs = 0,
                                .max_inputs = -1,
                                .outputs = -1,
                                .infer = InferUnsupported,
                                .stateful = true});
// Fed by callers, or else input 0.
const OpRegistrar kPlaceholderWithDefault({.name = "PlaceholderWithDefault",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .infer = InferSame,
                                           .rows = RowsOfInput0,
                                           .alias = true,
                                           .tensorflow = {"PlaceholderWithDefault"}});

}  // namespace
}  // namespace floe
