// Loops over time that run a recurrent cell become one FusedRecurrent node. A loop is taken when
// every one of its variables is known: a counter, a list that is read or written at the counter, a
// state of the cell, or a value that stays.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"
#include "runtime/passes/recurrent_loop.h"

namespace floe {
namespace {

bool IsLoopOverLists(const Graph& graph, const Node& node) {
  return node.op->name == "While" && node.subgraphs.size() == 2 &&
         std::any_of(node.inputs.begin(), node.inputs.end(), [&](const ValueRef& in) {
           const std::string& made = graph.node(in.node).op->name;
           return made == "TensorListFromTensor" || made == "TensorArrayScatterV3";
         });
}

int64_t CountLoops(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return IsLoopOverLists(graph, node); });
}

// One class: the steps of one rewrite, over one graph and what has been found in it.
class RecurrentFuser {
 public:
  RecurrentFuser(const Graph& graph, const Analysis& analysis, const KernelOptions& options)
      : graph_(graph), analysis_(analysis), options_(options), rebuild_(graph) {
    for (int i = 0; i < graph.size(); ++i) {
      for (const ValueRef& in : graph.node(i).inputs) readers_[in].push_back(i);
    }
  }

  absl::StatusOr<Graph> Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (replaced_.count(i) != 0) continue;
      if (!IsLoopOverLists(graph_, node) || !node.control_inputs.empty()) {
        rebuild_.Keep(i);
        continue;
      }
      FLOE_ASSIGN_OR_RETURN(const auto found,
                            MatchRecurrentLoop({graph_, analysis_, options_, units_}, node));
      if (!found.has_value() || !ReadersFit(i, *found)) {
        rebuild_.Keep(i);
      } else {
        Replace(i, *found);
      }
    }
    return rebuild_.Finish();
  }

 private:
  using Found = RecurrentLoop;

  bool IsOutput(ValueRef ref) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), ref) != graph_.outputs.end();
  }
  const std::vector<int>& Readers(ValueRef ref) const {
    static const std::vector<int> none;
    const auto found = readers_.find(ref);
    return found == readers_.end() ? none : found->second;
  }

  // The list is stacked and nothing else; counters have a value that is at hand.
  bool ReadersFit(int i, const Found& found) const {
    for (int k = 0; k < static_cast<int>(found.ends.size()); ++k) {
      const ValueRef end{i, k};
      if (found.ends[k] == Found::End::kSteps && IsRead(end) && !CanCount(i, k, found))
        return false;
      if (found.ends[k] != Found::End::kSequence && found.ends[k] != Found::End::kLastAsList)
        continue;
      const bool last = found.ends[k] == Found::End::kLastAsList;
      if (IsOutput(end)) return false;
      if (found.written.node >= 0) {
        if (!ArrayReadersFit(i, k, found)) return false;
        continue;
      }
      for (int reader : Readers(end)) {
        const Node& stack = graph_.node(reader);
        const int64_t wanted = stack.attrs.Int("num_elements", -1);
        if (stack.op->name != "TensorListStack" || !stack.control_inputs.empty() ||
            !StackFits(stack, found.cell.spec.units) ||
            (wanted >= 0 && wanted != (last ? 1 : found.steps)))
          return false;
      }
    }
    return std::all_of(found.filled.begin(), found.filled.end(), [&](const auto& array) {
      return OnlyReaders(array.first, {i, array.second}) &&
             OnlyReaders({array.first.node, 1}, {array.second});
    });
  }

  bool OnlyReaders(ValueRef ref, const std::vector<int>& known) const {
    return !IsOutput(ref) && std::all_of(Readers(ref).begin(), Readers(ref).end(), [&](int reader) {
      return std::find(known.begin(), known.end(), reader) != known.end();
    });
  }

  // The array is gathered as a whole once the loop has run, and nothing else is done with it.
  bool ArrayReadersFit(int i, int k, const Found& found) const {
    const ValueRef end{i, k};
    std::vector<int> known = Readers(end);
    for (int reader : known) {
      const Node& node = graph_.node(reader);
      if (!node.control_inputs.empty() || node.inputs[0] != found.written) return false;
      if (node.op->name == "TensorArraySizeV3") {
        if (found.steps < 0 && analysis_.at(found.length).type.dtype != DType::kInt32) return false;
        continue;
      }
      if (node.op->name == "TensorArrayReadV3" && IsLast(node.inputs[1], i, found)) continue;
      if (node.op->name != "TensorArrayGatherV3" || node.inputs[2] != end ||
          !ElementFits(node, found.cell.spec.units) || !IsWhole(node.inputs[1], end, found))
        return false;
    }
    known.push_back(i);
    return OnlyReaders(found.written, known) && OnlyReaders({found.written.node, 1}, {i});
  }

  // The number of the last step: one less than a counter that began with 0, or than the length.
  bool IsLast(ValueRef index, int i, const Found& found) const {
    const auto number = IntOf(graph_, index);
    if (number.has_value()) return found.steps > 0 && *number == found.steps - 1;
    const Node& node = graph_.node(index.node);
    if (node.op->name != "Sub" || IntOf(graph_, node.inputs[1]) != 1) return false;
    const ValueRef count = node.inputs[0];
    if (count.node == i)
      return found.ends[count.output] == Found::End::kSteps &&
             IntOf(graph_, graph_.node(i).inputs[count.output]) == 0;
    return std::find(found.counts.begin(), found.counts.end(), count) != found.counts.end();
  }

  // The numbers of all steps.
  bool IsWhole(ValueRef indices, ValueRef end, const Found& found) const {
    const Tensor* values = ConstantOf(graph_, indices);
    if (values != nullptr) return values->elements() == found.steps && CountsUp(*values);
    const Node& range = graph_.node(indices.node);
    if (range.op->name != "Range" || IntOf(graph_, range.inputs[0]) != 0 ||
        IntOf(graph_, range.inputs[2]) != 1)
      return false;
    const ValueRef limit = range.inputs[1];
    const Node& size = graph_.node(limit.node);
    if (size.op->name == "TensorArraySizeV3" && size.inputs[1] == end) return true;
    const auto number = IntOf(graph_, limit);
    if (number.has_value()) return number == found.steps;
    return std::find(found.counts.begin(), found.counts.end(), limit) != found.counts.end();
  }

  bool IsRead(ValueRef ref) const { return IsOutput(ref) || !Readers(ref).empty(); }

  // Whether the counter's last value is a constant, or the length of the sequence.
  bool CanCount(int i, int k, const Found& found) const {
    const ValueRef begin = graph_.node(i).inputs[k];
    const auto first = IntOf(graph_, begin);
    return found.steps >= 0 ? first.has_value()
                            : first == 0 && analysis_.at(begin).type.dtype ==
                                                analysis_.at(found.length).type.dtype;
  }

  bool StackFits(const Node& stack, int64_t units) const {
    const Tensor* shape = ConstantOf(graph_, stack.inputs[1]);
    if (shape == nullptr) return false;
    const auto dims = IntegerValues(shape->view());
    if (!dims.ok() || dims->size() > 2 || (!dims->empty() && (*dims)[0] >= 0)) return false;
    return dims->size() != 2 || (*dims)[1] < 0 || (*dims)[1] == units;
  }

  ValueRef Constant(const std::string& name, const Tensor& value) {
    return {rebuild_.Append(ConstNode(name, value)), 0};
  }

  Node TimeSwapped(const std::string& name, ValueRef x, int rank = 3) {
    Node node;
    node.name = name;
    node.op = FindOp("Transpose");
    node.attrs.Set("Tperm", DType::kInt64);
    std::vector<int64_t> dims = {1, 0, 2};
    dims.resize(rank);
    const Tensor order = Tensor::Vector(DType::kInt64, dims);
    node.inputs = {x, Constant(absl::StrCat(name, "/perm"), order)};
    return node;
  }

  void Replace(int i, const Found& found) {
    const std::string& name = graph_.node(i).name;
    Node node;
    node.name = name;
    node.op = FindOp("FusedRecurrent");
    node.num_outputs = 3;
    ops::RecurrentSpec spec = found.cell.spec;
    spec.steps = found.steps;
    spec.backwards = found.backwards;
    spec.masked = found.mask.node >= 0;
    spec.zero_output = found.zero_output;
    spec.sequence = TakeStacks(i, found);
    const std::string x = absl::StrCat(name, "/rows_first");
    node.inputs = {{rebuild_.Append(TimeSwapped(x, rebuild_.Map(found.sequence))), 0}};
    for (const ValueRef& state : found.states) node.inputs.push_back(rebuild_.Map(state));
    if (spec.masked) node.inputs.push_back(Mask(name, found.mask));
    if (!spec.projected) node.inputs.push_back(Constant(absl::StrCat(name, "/W"), found.cell.w));
    node.inputs.push_back(Constant(absl::StrCat(name, "/R"), found.cell.r));
    node.inputs.push_back(Constant(absl::StrCat(name, "/b"), found.cell.b));
    if (spec.rb() >= 0) node.inputs.push_back(Constant(absl::StrCat(name, "/rb"), found.cell.rb));
    spec.ToAttrs(&node.attrs);
    const int fused = rebuild_.Emit(i, std::move(node));
    EmitEnds(i, fused, found);
  }

  // [batch, time]
  ValueRef Mask(const std::string& name, ValueRef mask) {
    const int rank = analysis_.at(mask).type.shape.rank();
    const std::string swapped = absl::StrCat(name, "/mask_rows_first");
    const ValueRef rows_first = {rebuild_.Append(TimeSwapped(swapped, rebuild_.Map(mask), rank)),
                                 0};
    if (rank == 2) return rows_first;
    Node node;
    node.name = absl::StrCat(name, "/mask");
    node.op = FindOp("Squeeze");
    node.attrs.Set("squeeze_dims", std::vector<int64_t>{2});
    node.inputs = {rows_first};
    return {rebuild_.Append(std::move(node)), 0};
  }

  // The output of the last step.
  ValueRef Last(int i, int fused, const Found& found) {
    if (found.output_is_h) return {fused, 1};
    const auto known = last_.find(i);
    if (known != last_.end()) return known->second;
    Node node;
    node.name = absl::StrCat(graph_.node(i).name, "/last");
    node.op = FindOp("StridedSlice");
    for (const char* mask : {"begin_mask", "end_mask"}) node.attrs.Set(mask, int64_t{1});
    node.attrs.Set("shrink_axis_mask", int64_t{2});
    node.inputs = {{fused, 0}};
    const std::pair<const char*, std::vector<int32_t>> bounds[] = {
        {"/begin", {0, -1}}, {"/end", {0, 0}}, {"/strides", {1, 1}}};
    for (const auto& [suffix, values] : bounds)
      node.inputs.push_back(
          Constant(absl::StrCat(node.name, suffix), Tensor::Vector(DType::kInt32, values)));
    return last_[i] = {rebuild_.Append(std::move(node)), 0};
  }

  void EmitEnds(int i, int fused, const Found& found) {
    const Node& loop = graph_.node(i);
    for (int k = 0; k < static_cast<int>(found.ends.size()); ++k) {
      const ValueRef end{i, k};
      switch (found.ends[k]) {
        case Found::End::kSame:
          rebuild_.Replace(i, k, rebuild_.Map(loop.inputs[k]));
          break;
        case Found::End::kSteps:
          if (IsRead(end)) rebuild_.Replace(i, k, Counted(loop, k, found));
          break;
        case Found::End::kOutput:
          if (IsRead(end)) rebuild_.Replace(i, k, Last(i, fused, found));
          units_[end] = found.cell.spec.units;
          break;
        case Found::End::kH:
          rebuild_.Replace(i, k, {fused, 1});
          units_[end] = found.cell.spec.units;
          break;
        case Found::End::kC:
          units_[end] = found.cell.spec.units;
          rebuild_.Replace(i, k, {fused, 2});
          break;
        case Found::End::kSequence:
        case Found::End::kLastAsList:
          for (int reader : Readers(end)) EmitStack(reader, i, fused, found, found.ends[k]);
          break;
      }
    }
  }

  // A counter after the last step.
  ValueRef Counted(const Node& loop, int k, const Found& found) {
    if (found.steps < 0) return rebuild_.Map(found.length);
    const DType dtype = analysis_.at(loop.inputs[k]).type.dtype;
    const int64_t value = *IntOf(graph_, loop.inputs[k]) + found.steps;
    const Tensor after = dtype == DType::kInt64
                             ? Tensor::Scalar(dtype, value)
                             : Tensor::Scalar(dtype, static_cast<int32_t>(value));
    return Constant(absl::StrCat(loop.name, "/counter_", k), after);
  }

  // Slices that take the last step of a stacked list, and the whole stack otherwise. True when all
  // of the sequence is wanted.
  bool TakeStacks(int i, const Found& found) {
    bool sequence = false;
    for (int k = 0; k < static_cast<int>(found.ends.size()); ++k) {
      if (found.ends[k] == Found::End::kOutput)
        sequence = sequence || (IsRead({i, k}) && !found.output_is_h);
      if (found.ends[k] != Found::End::kSequence && found.ends[k] != Found::End::kLastAsList)
        continue;
      for (int stack : Readers({i, k})) {
        replaced_.insert(stack);
        const std::string& op = graph_.node(stack).op->name;
        if (op == "TensorArrayReadV3") sequence = sequence || !found.output_is_h;
        if (op == "TensorArrayReadV3" || op == "TensorArraySizeV3") continue;
        const bool whole = !OnlyLast(stack);
        whole_[stack] = whole;
        if (!whole)
          for (int slice : Readers({stack, 0})) replaced_.insert(slice);
        sequence =
            sequence || !found.output_is_h || (whole && found.ends[k] == Found::End::kSequence);
      }
    }
    return sequence;
  }

  bool OnlyLast(int stack) const {
    const ValueRef value{stack, 0};
    if (IsOutput(value)) return false;
    return std::all_of(Readers(value).begin(), Readers(value).end(), [&](int reader) {
      const Node& node = graph_.node(reader);
      return node.control_inputs.empty() && node.inputs[0] == value && IsLastStep(node);
    });
  }

  bool IsLastStep(const Node& node) const {
    // Any size will do where the slice counts from the end.
    const auto slice = SliceAlong(graph_, node, 3, 0, kSomeSteps);
    return slice.has_value() && slice->shrink && slice->begin == kSomeSteps - 1;
  }
  static constexpr int64_t kSomeSteps = int64_t{1} << 40;

  void EmitStack(int stack, int i, int fused, const Found& found, Found::End end) {
    if (graph_.node(stack).op->name == "TensorArraySizeV3") {
      const auto steps = static_cast<int32_t>(found.steps);
      rebuild_.Replace(stack, 0,
                       found.steps < 0 ? rebuild_.Map(found.length)
                                       : Constant(absl::StrCat(graph_.node(stack).name, "/steps"),
                                                  Tensor::Scalar(DType::kInt32, steps)));
    } else if (graph_.node(stack).op->name == "TensorArrayReadV3") {
      rebuild_.Replace(stack, 0, Last(i, fused, found));
    } else if (!whole_.at(stack)) {
      for (int slice : Readers({stack, 0})) rebuild_.Replace(slice, 0, Last(i, fused, found));
    } else if (end == Found::End::kSequence) {
      rebuild_.Emit(stack, TimeSwapped(graph_.node(stack).name, {fused, 0}));
    } else {
      Node node;
      node.name = graph_.node(stack).name;
      node.op = FindOp("ExpandDims");
      node.attrs.Set("Tdim", DType::kInt32);
      node.inputs = {Last(i, fused, found), Constant(absl::StrCat(node.name, "/axis"),
                                                     Tensor::Scalar(DType::kInt32, int32_t{0}))};
      rebuild_.Emit(stack, std::move(node));
    }
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const KernelOptions& options_;
  Rebuild rebuild_;
  std::map<ValueRef, std::vector<int>> readers_;
  std::map<ValueRef, int64_t> units_;  // of states that fused loops leave
  std::set<int> replaced_;             // emitted with their loop
  std::map<int, ValueRef> last_;       // by loop: the output of its last step, once emitted
  std::map<int, bool> whole_;          // by stack: more of it is read than the last step
};

}  // namespace

absl::Status FuseRecurrent(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options) {
  std::vector<ValueInfo> infos;
  for (const TensorType& type : inputs) infos.push_back({type, {}, {}});
  const std::vector<RowMark> marks(infos.size(), RowMark::kUnknown);
  // What a layer gives may only be known once the layers in front of it are fused.
  int64_t before = 0, loops = CountLoops(*graph);
  do {
    if (loops == 0) return absl::OkStatus();
    FLOE_ASSIGN_OR_RETURN(const Analysis analysis, Analyze(*graph, infos, marks, options));
    FLOE_ASSIGN_OR_RETURN(*graph, RecurrentFuser(*graph, analysis, options).Run());
    before = std::exchange(loops, CountLoops(*graph));
  } while (loops < before);
  return absl::OkStatus();
}

}  // namespace floe
