// OpDef: the meaning of one op, apart from how it is computed: arity, type inference, what it does
// to request rows, and the names other frameworks know it by. One file a small family in
// model/ops/; each registers itself, there is no list to edit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "model/graph.h"

namespace floe {

// What is known about one value while shapes are inferred. `constant` is set for values known
// without running (weights, shape arithmetic). A small integer value that is affine in rows has
// `per_row` too: the value is constant + per_row * rows, element by element.
struct ValueInfo {
  TensorType type;
  Tensor constant;
  Tensor per_row;
  bool has_constant() const { return constant.valid() && !per_row.valid(); }
  // A scalar that is the number of request rows.
  bool IsRowCount() const;
};

struct InferContext {
  const Node& node;
  absl::Span<const ValueInfo> inputs;

  int num_inputs() const { return static_cast<int>(inputs.size()); }
  DType dtype(int i) const { return inputs[i].type.dtype; }
  const SymShape& shape(int i) const { return inputs[i].type.shape; }
  const Attrs& attrs() const { return node.attrs; }
  // Elements of an integer input as dims, when its value is known.
  // Error when known but not int32/int64; an empty optional-like `known=false` otherwise.
  absl::StatusOr<bool> DimsOf(int i, std::vector<Dim>* dims) const;
  // The same where rows may not appear; false also for values that depend on rows.
  absl::StatusOr<bool> IntsOf(int i, std::vector<int64_t>* values) const;
};
using Types = std::vector<TensorType>;

// What an op does to the mark "dim 0 holds request rows".
enum class RowMark : uint8_t {
  kConstant,  // the same for every request and every number of rows
  kRows,  // dim 0 = k * rows, block i depends on request row i alone; of a list: every element's
          // dim 0
  kRowsDim1,  // the same of dim 1 = rows (time-major sequences); only OpDef::time_major rules see
              // it
  // Of a loop that takes one request row after the other, and of the lists it reads and writes.
  kRowNumber,  // the number of the loop's row, or [rows] that counts from 0
  kOfRow,      // depends on the loop's row alone
  kRowList,    // element i depends on request row i alone
  kMixed,      // depends on other rows or on their number
  kUnknown,    // the op has no rule
};
struct RowContext {
  const Node& node;
  absl::Span<const RowMark> marks;  // of the inputs
  absl::Span<const ValueInfo> inputs;
  absl::Span<const TensorType> outputs;
  // True when every input but those in [0, n) is kConstant.
  bool OthersConstant(int n) const;
};
// One mark for all outputs.
using RowRule = RowMark (*)(const RowContext&);

// Rules shared by many ops.
RowMark RowsElementwise(const RowContext&);  // broadcasting; any number of inputs
RowMark RowsOfInput0(
    const RowContext&);  // rows of input 0 stay rows; the other inputs must be constant
RowMark RowsNever(const RowContext&);  // constant from constants, otherwise mixed

// How the value of an integer output follows from integer inputs that are affine in rows.
enum class ValueRule : uint8_t {
  kNone,
  kLinear,   // moves or adds elements: the kernel is applied to both parts
  kProduct,  // multiplies: allowed when at most one factor depends on rows
  // Known from the types of the inputs alone; output i tells of input i.
  kShapeOf,
  kElementsOf,
  kRankOf,
};

struct InputRange {
  int first = 0;
  int last = -1;  // this one too; -1 is a node's last input, -2 the one before
};

struct OpDef {
  std::string name;
  int min_inputs = 0;
  int max_inputs = 0;  // -1: any number
  int outputs = 1;     // -1: the node's num_outputs
  // TensorFlow's names of the outputs in order, which nodes in function bodies refer to; needed
  // unless there is exactly one. "name:attr" stands for as many as the integer attribute says, or
  // as the list of types has entries. When given, it sets `outputs`.
  std::vector<std::string> output_names;
  // Attributes naming the functions that the op runs; import makes subgraphs of them.
  std::vector<std::string> functions;
  // Types of the outputs; errors name dims and attributes (the caller adds the node and op).
  absl::StatusOr<Types> (*infer)(const InferContext&) = nullptr;
  RowRule rows = nullptr;  // null: kUnknown
  // Asked instead when an input is kRowsDim1 or the output would be; null: such inputs count as
  // mixed.
  RowRule time_major = nullptr;
  // Asked instead when an input is kRowNumber or kRowList; null: such inputs count as mixed. What
  // an op gives for kOfRow and constants is kOfRow without a rule.
  RowRule by_row = nullptr;
  ValueRule values = ValueRule::kNone;
  // Inputs whose elements the value rule moves or adds; without: all that are not shape_inputs.
  std::optional<InputRange> value_inputs;
  bool alias = false;  // output 0 is input 0's bytes under another shape; no work at run time
  // Inputs that output 0 may overwrite where both have the same size (bit i = input i).
  uint64_t in_place = 0;
  // Output shapes depend on data: the kernel asks KernelContext::allocator for each output once its
  // size is known.
  bool allocates = false;
  bool effect = false;    // runs although nobody reads its outputs (Assert)
  bool stateful = false;  // never folded or merged (random numbers, tables)
  // Inputs that only shape inference reads (bit i = input i): with their value known before the run
  // they are not computed.
  uint64_t shape_inputs = 0;
  // Floating-point operations of one evaluation, for `inspect`; null: one per output element.
  double (*flops)(const Node&, absl::Span<const TensorType> in, absl::Span<const TensorType> out,
                  int64_t rows) = nullptr;
  // The inputs in order, by dtypes, letters for shared ones, and dims in brackets; the grammar is
  // in check_inputs.h. `infer` and the kernel see inputs that fit. Null: nothing is checked. It
  // says how many inputs there are, where min_inputs and max_inputs do not.
  const char* input_types = nullptr;
  // TensorFlow's ops that mean this, with its attributes; unset: that of its name; {""}: none.
  std::vector<std::string> tensorflow;
  // For docs/ops.md: why the op has no kernel of its own (null: it has one), and what of
  // TensorFlow's meaning is missing.
  const char* without_kernel = nullptr;
  const char* limits = nullptr;
};

// Registers at start-up (static objects of model/ops/*.cc).
class OpRegistrar {
 public:
  // `input_types`: def's field of this name, for an OpDef that a function makes.
  explicit OpRegistrar(OpDef def, const char* input_types = nullptr);
};

const OpDef* FindOp(const std::string& name);            // null when unknown
const OpDef* FindTensorFlowOp(const std::string& name);  // by TensorFlow's name
std::vector<const OpDef*> AllOps();                      // by name

// ---- helpers for infer functions ----
absl::Status Bad(const std::string& message);  // INVALID_ARGUMENT
// NumPy broadcasting of known or partly known shapes; an error names both.
absl::StatusOr<SymShape> BroadcastShapes(const SymShape& a, const SymShape& b);
// Output = input 0.
absl::StatusOr<Types> InferSame(const InferContext& c);

}  // namespace floe
