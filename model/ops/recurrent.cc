#include "model/ops/recurrent.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace ops {
namespace {

constexpr const char* kCells[] = {"LSTM", "GRU", "GRU, reset before", "SimpleRNN"};
constexpr const char* kFunctions[] = {"Identity", "Sigmoid", "Tanh",       "Relu",  "Relu6",
                                      "Elu",      "Selu",    "LeakyRelu",  "Swish", "Softplus",
                                      "Softsign", "Exp",     "HardSigmoid"};
constexpr int64_t kMostUnits = int64_t{1} << 28;

template <typename E, size_t kCount>
bool Find(const char* const (&names)[kCount], const std::string& name, E* found) {
  for (size_t i = 0; i < kCount; ++i) {
    if (name == names[i]) {
      *found = static_cast<E>(i);
      return true;
    }
  }
  return false;
}

size_t GatesOf(RecurrentCell cell) {
  return cell == RecurrentCell::kLstm ? 5 : cell == RecurrentCell::kSimple ? 1 : 3;
}

}  // namespace

const char* RecurrentCellName(RecurrentCell cell) { return kCells[static_cast<size_t>(cell)]; }
const char* RecurrentFunctionName(RecurrentFunction function) {
  return kFunctions[static_cast<size_t>(function)];
}

int RecurrentSpec::columns() const { return has_c() ? 4 : cell == RecurrentCell::kSimple ? 1 : 3; }

absl::StatusOr<RecurrentSpec> RecurrentSpec::FromAttrs(const Attrs& attrs) {
  RecurrentSpec spec;
  const std::string cell = attrs.String("cell");
  if (!Find(kCells, cell, &spec.cell)) return Bad(absl::StrCat("cell is '", cell, "'"));
  const auto names = attrs.Get<std::vector<std::string>>("functions", {});
  const auto scales = attrs.Get<std::vector<float>>("scales", {}),
             shifts = attrs.Get<std::vector<float>>("shifts", {});
  if (names.size() != GatesOf(spec.cell) || scales.size() != names.size() ||
      shifts.size() != names.size())
    return Bad(absl::StrCat("a ", cell, " has ", names.size(), " functions"));
  for (size_t k = 0; k < names.size(); ++k) {
    RecurrentGate gate{RecurrentFunction::kLinear, scales[k], shifts[k]};
    if (!Find(kFunctions, names[k], &gate.function))
      return Bad(absl::StrCat("function ", k, " is '", names[k], "'"));
    spec.gates.push_back(gate);
  }
  spec.units = attrs.Int("units");
  spec.steps = attrs.Int("steps", -1);
  if (spec.units < 1 || spec.units > kMostUnits || spec.steps < -1 || spec.steps == 0)
    return Bad(absl::StrCat("units is ", spec.units, ", steps is ", spec.steps));
  spec.backwards = attrs.Bool("backwards");
  spec.sequence = attrs.Bool("sequence");
  spec.projected = attrs.Bool("projected");
  spec.masked = attrs.Bool("masked");
  spec.zero_output = attrs.Bool("zero_output");
  return spec;
}

void RecurrentSpec::ToAttrs(Attrs* attrs) const {
  std::vector<std::string> names;
  std::vector<float> scales, shifts;
  for (const RecurrentGate& gate : gates) {
    names.emplace_back(RecurrentFunctionName(gate.function));
    scales.push_back(gate.scale);
    shifts.push_back(gate.shift);
  }
  attrs->Set("cell", std::string(RecurrentCellName(cell)));
  attrs->Set("functions", names);
  attrs->Set("scales", scales);
  attrs->Set("shifts", shifts);
  attrs->Set("units", units);
  attrs->Set("steps", steps);
  attrs->Set("backwards", backwards);
  attrs->Set("sequence", sequence);
  attrs->Set("projected", projected);
  attrs->Set("masked", masked);
  attrs->Set("zero_output", zero_output);
}

}  // namespace ops

namespace {

using ops::RecurrentSpec;

absl::Status ExpectShape(const InferContext& c, int i, const SymShape& shape) {
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, DType::kFloat32));
  const auto merged = ops::Merge(c.shape(i), shape);
  return merged.ok() ? absl::OkStatus()
                     : Bad(absl::StrCat("input ", i, " is ", c.shape(i).ToString(), ", expected ",
                                        shape.ToString()));
}

// The batch of both, one of which may be 1.
absl::StatusOr<Dim> JoinBatch(const InferContext& c, Dim batch, int i) {
  if (!c.shape(i).rank_known()) return Dim::Unknown();
  FLOE_ASSIGN_OR_RETURN(const SymShape joined,
                        BroadcastShapes(SymShape({batch}), SymShape({c.shape(i).dim(0)})));
  return joined.dim(0);
}

absl::StatusOr<Types> InferRecurrent(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const RecurrentSpec spec, RecurrentSpec::FromAttrs(c.attrs()));
  FLOE_RETURN_IF_ERROR(ops::ExpectInputs(c, spec.inputs()));
  const int64_t units = spec.units, columns = spec.columns() * units;
  const Dim any = Dim::Unknown();
  FLOE_RETURN_IF_ERROR(ExpectShape(c, 0, {any, any, spec.projected ? Dim(columns) : any}));
  FLOE_RETURN_IF_ERROR(ExpectShape(c, 1, {any, units}));
  if (spec.has_c()) FLOE_RETURN_IF_ERROR(ExpectShape(c, spec.c(), {any, units}));
  if (!spec.projected) {
    const SymShape& x = c.shape(0);
    FLOE_RETURN_IF_ERROR(ExpectShape(
        c, spec.w(), {x.rank_known() && x.dim(2).concrete() ? x.dim(2) : any, columns}));
  }
  FLOE_RETURN_IF_ERROR(ExpectShape(c, spec.r(), {units, columns}));
  FLOE_RETURN_IF_ERROR(ExpectShape(c, spec.b(), {columns}));
  if (spec.rb() >= 0) FLOE_RETURN_IF_ERROR(ExpectShape(c, spec.rb(), {units}));
  Dim batch = c.shape(0).rank_known() ? c.shape(0).dim(0) : any;
  const Dim time = c.shape(0).rank_known() ? c.shape(0).dim(1) : any;
  FLOE_ASSIGN_OR_RETURN(batch, JoinBatch(c, batch, 1));
  if (spec.has_c()) {
    FLOE_ASSIGN_OR_RETURN(batch, JoinBatch(c, batch, spec.c()));
  }
  if (spec.masked) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, spec.mask(), DType::kBool));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, spec.mask(), 2));
    FLOE_ASSIGN_OR_RETURN(batch, JoinBatch(c, batch, spec.mask()));
  }
  const Dim steps = spec.steps > 0 ? Dim(spec.steps) : time;
  if (steps.concrete() && time.concrete() && steps.size() > time.size())
    return Bad(absl::StrCat(steps.size(), " steps of a sequence of ", time.size()));
  return Types{{DType::kFloat32, {batch, spec.sequence ? steps : Dim(0), units}},
               {DType::kFloat32, {batch, units}},
               {DType::kFloat32, {batch, spec.has_c() ? Dim(units) : Dim(0)}}};
}

RowMark RecurrentRows(const RowContext& c) {
  const auto spec = RecurrentSpec::FromAttrs(c.node.attrs);
  if (!spec.ok() || c.outputs.size() != 3) return RowMark::kUnknown;
  bool constant = true;
  for (const RowMark mark : c.marks) constant = constant && mark == RowMark::kConstant;
  if (constant) return RowMark::kConstant;
  if (!ops::LeadingRows(c.outputs[1])) return ops::Lost(c);
  for (size_t i = 0; i < c.marks.size(); ++i) {
    if (static_cast<int>(i) >= spec->weights()) {
      if (c.marks[i] != RowMark::kConstant) return ops::Lost(c);
      continue;
    }
    const SymShape& in = c.inputs[i].type.shape;
    if (!in.rank_known() || in.rank() < 2) return ops::Lost(c);
    const bool fits = c.marks[i] == RowMark::kRows       ? in.dim(0) == c.outputs[1].shape.dim(0)
                      : c.marks[i] == RowMark::kConstant ? in.dim(0) == Dim(1)
                                                         : false;
    if (!fits) return ops::Lost(c);
  }
  return RowMark::kRows;
}

double RecurrentFlops(const Node& node, absl::Span<const TensorType> in,
                      absl::Span<const TensorType> out, int64_t rows) {
  const auto spec = RecurrentSpec::FromAttrs(node.attrs);
  if (!spec.ok() || !in[0].shape.known() || !out[1].shape.known()) return 0;
  const Shape x = in[0].shape.At(rows), h = out[1].shape.At(rows);
  const auto columns = static_cast<double>(spec->columns() * spec->units);
  const auto steps = static_cast<double>(spec->steps > 0 ? spec->steps : x.dim(1));
  const auto inner = static_cast<double>(spec->units + (spec->projected ? 0 : x.dim(2)));
  return static_cast<double>(h.dim(0)) * steps * columns * (2 * inner + 4);
}

const OpRegistrar kFusedRecurrent({.name = "FusedRecurrent",
                                   .min_inputs = 4,
                                   .max_inputs = 8,
                                   .output_names = {"sequence", "h", "c"},
                                   .infer = InferRecurrent,
                                   .rows = RecurrentRows,
                                   .flops = RecurrentFlops,
                                   .tensorflow = {ops::kNotInFiles}});

}  // namespace
}  // namespace floe
