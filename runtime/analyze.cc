#include "runtime/analyze.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "runtime/evaluate.h"
#include "runtime/row_marks.h"

namespace floe {
namespace {

constexpr int64_t kMaxShapeElements = 1024;
// A result may have so many times the bytes of its inputs: from int8 to float64.
constexpr int64_t kMaxGrowth = 8;
constexpr int64_t kSmallResult = int64_t{16} << 20;    // whatever its inputs are
constexpr int64_t kTinyResult = int64_t{64} << 10;     // nor counted
constexpr int64_t kAnalysedBytes = int64_t{16} << 20;  // where folding has been

thread_local int64_t* folding_left = nullptr;

bool IsShapeDType(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

Tensor FromDims(DType dtype, const std::vector<int64_t>& values, bool scalar) {
  Tensor t =
      Tensor::Allocate(dtype, scalar ? Shape() : Shape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kInt32) {
      static_cast<int32_t*>(t.mutable_data())[i] = static_cast<int32_t>(values[i]);
    } else {
      static_cast<int64_t*>(t.mutable_data())[i] = values[i];
    }
  }
  return t;
}

void SetDims(const std::vector<Dim>& dims, bool scalar, ValueInfo* info) {
  std::vector<int64_t> base, per_row;
  bool rows = false;
  for (Dim d : dims) {
    base.push_back(d.base());
    per_row.push_back(d.per_row());
    rows |= d.per_row() != 0;
  }
  info->constant = FromDims(info->type.dtype, base, scalar);
  if (rows) info->per_row = FromDims(info->type.dtype, per_row, scalar);
}

// Shape, Size and their like read types, not values.
void InferTypeReaders(const Node& node, absl::Span<const ValueInfo> inputs,
                      std::vector<ValueInfo>* out) {
  const ValueRule rule = node.op->values;
  for (size_t i = 0; i < out->size() && i < inputs.size(); ++i) {
    const SymShape& shape = inputs[i].type.shape;
    ValueInfo& info = (*out)[i];
    if (!IsShapeDType(info.type.dtype)) continue;
    if (rule == ValueRule::kShapeOf && shape.known()) {
      SetDims(std::vector<Dim>(shape.dims().begin(), shape.dims().end()), false, &info);
    } else if (rule == ValueRule::kElementsOf && shape.elements().known()) {
      SetDims({shape.elements()}, true, &info);
    } else if (rule == ValueRule::kRankOf && shape.rank_known()) {
      SetDims({Dim(shape.rank())}, true, &info);
    }
  }
}

bool AllZero(const Tensor& t) {
  const char* data = t.as<char>();
  return std::all_of(data, data + t.bytes(), [](char c) { return c == 0; });
}

Tensor ZerosLike(const Tensor& t) {
  Tensor zeros = Tensor::Allocate(t.dtype(), t.shape());
  if (zeros.bytes() != 0) std::memset(zeros.mutable_data(), 0, zeros.bytes());
  return zeros;
}

// Integer values that are affine in rows, carried through ops that move, add or multiply elements.
class AffineValues {
 public:
  AffineValues(const Node& node, absl::Span<const ValueInfo> inputs,
               const std::vector<ValueInfo>& out, const KernelOptions& options)
      : node_(node), inputs_(inputs), out_(out), options_(options) {}

  bool Applies() const {
    const ValueRule rule = node_.op->values;
    if ((rule != ValueRule::kLinear && rule != ValueRule::kProduct) || !CanEvaluate(node_))
      return false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].constant.valid() || (!IsData(i) && inputs_[i].per_row.valid())) return false;
      if (IsData(i) && (!IsShapeDType(inputs_[i].type.dtype) ||
                        inputs_[i].constant.elements() > kMaxShapeElements))
        return false;
    }
    return std::all_of(out_.begin(), out_.end(), [](const ValueInfo& o) {
      return o.type.shape.concrete() && IsShapeDType(o.type.dtype);
    });
  }

  absl::Status Evaluate(std::vector<ValueInfo>* out) const {
    if (node_.op->values == ValueRule::kProduct) return Product(out);
    std::vector<Tensor> base, slope;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      base.push_back(inputs_[i].constant);
      slope.push_back(!IsData(i) ? inputs_[i].constant : Slope(i));
    }
    return Store(base, slope, out);
  }

 private:
  bool IsData(size_t i) const {
    if (const std::optional<InputRange>& data = node_.op->value_inputs) {
      const int last = data->last + (data->last < 0 ? static_cast<int>(inputs_.size()) : 0);
      return static_cast<int>(i) >= data->first && static_cast<int>(i) <= last;
    }
    return i >= 64 || (node_.op->shape_inputs >> i & 1) == 0;
  }
  Tensor Slope(size_t i) const {
    return inputs_[i].per_row.valid() ? inputs_[i].per_row : ZerosLike(inputs_[i].constant);
  }

  // (a + b r)(c + d r) with b d = 0 is ac + (bc + ad) r. Of one input's elements at most one may
  // depend on rows.
  absl::Status Product(std::vector<ValueInfo>* out) const {
    std::vector<Tensor> base;
    for (const ValueInfo& in : inputs_) base.push_back(in.constant);
    if (!IsData(1)) {
      std::vector<Tensor> slope = base;
      FLOE_ASSIGN_OR_RETURN(std::vector<int64_t> values, IntegerValues(inputs_[0].constant.view()));
      FLOE_ASSIGN_OR_RETURN(std::vector<int64_t> slopes, IntegerValues(Slope(0).view()));
      if (inputs_[0].constant.shape().rank() != 1 ||
          std::count_if(slopes.begin(), slopes.end(), [](int64_t s) { return s != 0; }) > 1) {
        return absl::OkStatus();
      }
      for (size_t i = 0; i < values.size(); ++i) {
        if (slopes[i] != 0) values[i] = slopes[i];
      }
      slope[0] = FromDims(inputs_[0].type.dtype, values, false);
      return Store(base, slope, out);
    }
    if (inputs_.size() != 2 || (inputs_[0].per_row.valid() && inputs_[1].per_row.valid()))
      return absl::OkStatus();
    std::vector<Tensor> slope = base;
    const size_t with_rows = inputs_[0].per_row.valid() ? 0 : 1;
    slope[with_rows] = Slope(with_rows);
    return Store(base, slope, out);
  }

  absl::Status Store(const std::vector<Tensor>& base, const std::vector<Tensor>& slope,
                     std::vector<ValueInfo>* out) const {
    Types types;
    for (const ValueInfo& o : out_) types.push_back(o.type);
    FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> bases, EvaluateNode(node_, base, types, options_));
    FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> slopes, EvaluateNode(node_, slope, types, options_));
    for (size_t k = 0; k < out->size(); ++k) {
      (*out)[k].constant = bases[k];
      if (!AllZero(slopes[k])) (*out)[k].per_row = slopes[k];
    }
    return absl::OkStatus();
  }

  const Node& node_;
  absl::Span<const ValueInfo> inputs_;
  const std::vector<ValueInfo>& out_;
  const KernelOptions& options_;
};

bool AllConstant(absl::Span<const ValueInfo> inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const ValueInfo& v) { return v.has_constant(); });
}

bool Foldable(const std::vector<ValueInfo>& out) {
  return std::all_of(out.begin(), out.end(), [](const ValueInfo& o) {
    if (!o.type.shape.concrete() ||
        (DTypeSize(o.type.dtype) == 0 && o.type.dtype != DType::kString))
      return false;
    return CheckedElements(o.type.shape.At(0).dims(), 1).ok();
  });
}

int64_t HeldByAll(absl::Span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += HeldMemory(tensor.view());
  return bytes;
}

// Results of at most `most` bytes; RESOURCE_EXHAUSTED beyond, also before the kernel has made them.
absl::StatusOr<std::vector<Tensor>> EvaluateWithin(int64_t most, const Node& node,
                                                   const std::vector<Tensor>& values,
                                                   const Types& types,
                                                   const KernelOptions& options) {
  const Budget* const outer = Budget::Current();
  ResourceLimits limits = outer == nullptr ? ResourceLimits() : outer->limits();
  limits.max_value_bytes = std::min(limits.max_value_bytes, most);
  limits.max_bytes = std::min(limits.max_bytes, 4 * most);
  Budget budget(limits);
  const BudgetScope scope(&budget);
  FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> results, EvaluateNode(node, values, types, options));
  if (HeldByAll(results) > most) return absl::ResourceExhaustedError("too large a constant");
  return results;
}

// The node's outputs as constants; none where they would be too large.
absl::StatusOr<std::vector<Tensor>> FoldedValues(const Node& node,
                                                 absl::Span<const ValueInfo> inputs,
                                                 const Types& types, const KernelOptions& options) {
  std::vector<Tensor> values;
  for (const ValueInfo& v : inputs) values.push_back(v.constant);
  if (node.op->alias) return EvaluateNode(node, values, types, options);
  int64_t most = std::max(kSmallResult, kMaxGrowth * HeldByAll(values));
  if (folding_left != nullptr) most = std::min(most, std::max(*folding_left, kTinyResult));
  auto results = EvaluateWithin(most, node, values, types, options);
  if (absl::IsResourceExhausted(results.status())) return std::vector<Tensor>();
  if (!results.ok()) return results;
  const int64_t bytes = HeldByAll(*results);
  if (folding_left != nullptr && bytes > kTinyResult) *folding_left -= bytes;
  return results;
}

}  // namespace

FoldingScope::FoldingScope(int64_t bytes) : left_(bytes), outermost_(folding_left == nullptr) {
  if (outermost_) folding_left = &left_;
}
FoldingScope::~FoldingScope() {
  if (outermost_) folding_left = nullptr;
}

absl::StatusOr<std::vector<ValueInfo>> InferNode(const Node& node,
                                                 absl::Span<const ValueInfo> inputs,
                                                 const KernelOptions& options) {
  FLOE_RETURN_IF_ERROR(SpendVisits(1));
  if (node.op->name == "Const") {
    const Tensor* value = node.attrs.Find<Tensor>("value");
    if (value == nullptr) {  // packed by its users and released; its type is what is left
      return std::vector<ValueInfo>{
          {TensorType{node.attrs.Type("dtype"), node.attrs.Get<SymShape>("shape", SymShape())},
           {},
           {}}};
    }
    return std::vector<ValueInfo>{
        {TensorType{value->dtype(), SymShape(value->shape())}, *value, {}}};
  }
  if (!node.subgraphs.empty()) {
    const std::vector<RowMark> marks(inputs.size(), RowMark::kUnknown);
    FLOE_ASSIGN_OR_RETURN(ControlAnalysis control, AnalyzeControl(node, inputs, marks, options));
    return std::move(control.values);
  }
  FLOE_ASSIGN_OR_RETURN(const Types types, InferTypes(node, inputs));
  std::vector<ValueInfo> out;
  for (const TensorType& type : types) out.push_back({type, {}, {}});
  InferTypeReaders(node, inputs, &out);
  if (std::any_of(out.begin(), out.end(), [](const ValueInfo& o) { return o.constant.valid(); }))
    return out;
  if (CanEvaluate(node) && AllConstant(inputs) && (node.op->allocates || Foldable(out))) {
    const absl::StatusOr<std::vector<Tensor>> folded = FoldedValues(node, inputs, types, options);
    if (!folded.ok()) {
      if (absl::IsUnimplemented(folded.status()))
        return out;  // reported with all others when kernels are chosen
      return folded.status();
    }
    if (folded->empty()) return out;
    for (size_t k = 0; k < out.size(); ++k) {
      out[k].constant = (*folded)[k];
      out[k].type.shape = SymShape((*folded)[k].shape());
    }
    return out;
  }
  const AffineValues affine(node, inputs, out, options);
  if (affine.Applies()) {
    std::vector<ValueInfo> known = out;
    const absl::Status evaluated = affine.Evaluate(&known);
    if (evaluated.ok()) return known;
    if (!absl::IsUnimplemented(evaluated)) return evaluated;
  }
  return out;
}

namespace {

// Rows that a value's type leaves no dimension for are lost: control flow joins types on the way,
// and a rule has one mark for outputs of several ranks. Rules look at the dimension that a mark
// promises.
RowMark Tenable(RowMark mark, const TensorType& type) {
  const int least = mark == RowMark::kRows ? 1 : mark == RowMark::kRowsDim1 ? 2 : 0;
  if (least == 0 || IsHandle(type.dtype) || type.list != nullptr) return mark;
  return type.shape.rank_known() && type.shape.rank() >= least ? mark : RowMark::kMixed;
}

// Not the same for every number of rows, but nothing that an output may be.
bool IsBad(RowMark mark) {
  return mark == RowMark::kMixed || mark == RowMark::kUnknown || mark == RowMark::kRowNumber;
}

class Analyzer {
 public:
  Analyzer(const Graph& graph, const KernelOptions& options) : graph_(graph), options_(options) {
    analysis_.values.resize(graph.size());
    analysis_.marks.resize(graph.size());
    analysis_.flats.resize(graph.size());
    analysis_.culprit.resize(graph.size());
  }

  absl::StatusOr<Analysis> Run(absl::Span<const ValueInfo> inputs,
                               absl::Span<const RowMark> marks) {
    for (size_t k = 0; k < graph_.inputs.size(); ++k) {
      analysis_.values[graph_.inputs[k]] = {inputs[k]};
      analysis_.marks[graph_.inputs[k]] = {Tenable(marks[k], inputs[k].type)};
      analysis_.flats[graph_.inputs[k]].resize(1);
    }
    for (int i = 0; i < graph_.size(); ++i) {
      if (!analysis_.values[i].empty()) continue;
      NoteNode("analysing", graph_.node(i));
      FLOE_RETURN_IF_ERROR(AtNode(graph_.node(i), Visit(i)));
      for (size_t k = 0; k < analysis_.marks[i].size(); ++k)
        analysis_.marks[i][k] = Tenable(analysis_.marks[i][k], analysis_.values[i][k].type);
      if (analysis_.culprit[i].empty()) Blame(i, "");
    }
    return std::move(analysis_);
  }

 private:
  absl::Status Visit(int i) {
    const Node& node = graph_.node(i);
    in_ = {};
    for (const ValueRef& input : node.inputs) {
      in_.infos.push_back(analysis_.at(input));
      in_.marks.push_back(analysis_.mark(input));
      in_.flats.push_back(analysis_.flats[input.node][input.output]);
    }
    if (!node.subgraphs.empty()) {
      FLOE_ASSIGN_OR_RETURN(ControlAnalysis control,
                            AnalyzeControl(node, in_.infos, in_.marks, options_));
      analysis_.values[i] = std::move(control.values);
      analysis_.marks[i] = std::move(control.marks);
      analysis_.flats[i].resize(analysis_.values[i].size());
      Blame(i, control.culprit, control.over_rows);
      return absl::OkStatus();
    }
    FLOE_ASSIGN_OR_RETURN(analysis_.values[i], InferNode(node, in_.infos, options_));
    Mark(i);
    FLOE_RETURN_IF_ERROR(FollowFlatRows(node, i, in_, options_, &analysis_.values[i],
                                        &analysis_.marks[i], &analysis_.flats[i]));
    Blame(i, "");
    return absl::OkStatus();
  }

  void Mark(int i) {
    const Node& node = graph_.node(i);
    const std::vector<ValueInfo>& out = analysis_.values[i];
    std::vector<RowMark>& marks = analysis_.marks[i];
    marks.assign(out.size(), RowMark::kConstant);
    if (node.op->name == "Const" || out.empty()) return;
    if (std::all_of(out.begin(), out.end(), [](const ValueInfo& o) { return o.has_constant(); }))
      return;
    Types types;
    for (const ValueInfo& o : out) types.push_back(o.type);
    marks.assign(out.size(), MarkOfNode(node, in_, types));
    for (size_t k = 0; k < out.size(); ++k) {
      // Known without running, but another number for each number of rows.
      if (out[k].per_row.valid()) marks[k] = RowMark::kMixed;
      if (out[k].has_constant()) marks[k] = RowMark::kConstant;
    }
  }

  bool LosesRows(int i) const {
    for (size_t k = 0; k < analysis_.marks[i].size(); ++k) {
      if (IsBad(analysis_.marks[i][k]) && !analysis_.flats[i][k].known()) return true;
    }
    return false;
  }

  // Records where rows were lost: in an input already, or here. A loop over rows has their number
  // as an input, which is not to blame.
  void Blame(int i, const std::string& inside, bool over_rows = false) {
    const Node& node = graph_.node(i);
    if (!LosesRows(i)) return;
    const bool of_elements = std::any_of(in_.flats.begin(), in_.flats.end(),
                                         [](const Flat& flat) { return flat.known(); });
    for (size_t k = 0; k < node.inputs.size() && !over_rows; ++k) {
      // The rule has seen in the types what a known shape does.
      if (k < 64 && (node.op->shape_inputs >> k & 1) != 0 && in_.infos[k].constant.valid())
        continue;
      // That rows are counted is no reason where their elements are lost.
      if (of_elements && in_.infos[k].IsRowCount()) continue;
      if (IsBad(in_.marks[k]) && !analysis_.culprit[node.inputs[k].node].empty()) {
        analysis_.culprit[i] = analysis_.culprit[node.inputs[k].node];
        return;
      }
    }
    analysis_.culprit[i] = absl::StrCat(Quoted(node.name), " (", node.op->name, ")");
    if (!inside.empty())
      analysis_.culprit[i] = absl::StrCat(inside, " inside ", analysis_.culprit[i]);
  }

  const Graph& graph_;
  const KernelOptions& options_;
  Analysis analysis_;
  NodeInputs in_;  // of the node being visited
};

}  // namespace

absl::StatusOr<Analysis> Analyze(const Graph& graph, absl::Span<const ValueInfo> inputs,
                                 absl::Span<const RowMark> marks, const KernelOptions& options) {
  const FoldingScope scope(kAnalysedBytes);
  return Analyzer(graph, options).Run(inputs, marks);
}

absl::StatusOr<Analysis> AnalyzeTypes(const Graph& graph, absl::Span<const TensorType> inputs,
                                      const KernelOptions& options) {
  std::vector<ValueInfo> infos;
  for (const TensorType& type : inputs) infos.push_back({type, {}, {}});
  const std::vector<RowMark> marks(infos.size(), RowMark::kUnknown);
  return Analyze(graph, infos, marks, options);
}

absl::StatusOr<Analysis> AnalyzeWithRows(const Graph& graph, absl::Span<const TensorType> inputs,
                                         const KernelOptions& options) {
  std::vector<TensorType> named(inputs.begin(), inputs.end());
  const auto open = std::find_if(named.begin(), named.end(), [](const TensorType& type) {
    return !type.shape.rank_known() || (type.shape.rank() > 0 && !type.shape.dim(0).known());
  });
  // Equal names for several open sizes would claim that these are equal.
  if (open != named.end() && open->shape.rank_known()) {
    open->shape.set_dim(0, Dim::Rows());
    absl::StatusOr<Analysis> analysis = AnalyzeTypes(graph, named, options);
    if (analysis.ok()) return analysis;
  }
  return AnalyzeTypes(graph, inputs, options);
}

}  // namespace floe
