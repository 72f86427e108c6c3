// CompiledSignature -> Plan: shapes made concrete, steps chosen, memory placed.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "runtime/analyze.h"
#include "runtime/evaluate.h"
#include "runtime/input_shape.h"
#include "runtime/line_windows.h"
#include "runtime/memory_plan.h"
#include "runtime/passes/passes.h"
#include "runtime/plan.h"

namespace floe {

// One class: the steps of one binding, all of which write the plan that is being made.
class Binder {
 public:
  // `why_not_rows`: why rows were not left open, where they could have been.
  Binder(const CompiledSignature& signature, const Analysis& analysis, bool rows,
         std::string why_not_rows = "")
      : why_not_rows_(std::move(why_not_rows)),
        signature_(signature),
        graph_(signature.graph()),
        analysis_(analysis),
        plan_(new Plan()) {
    plan_->program_ = signature.program_;
    plan_->has_rows_ = rows;
  }

  std::shared_ptr<const Plan> Run() {
    MakeSlots();
    FindNeeded();
    for (int i = 0; i < graph_.size(); ++i) MakeStep(i);
    for (int input : graph_.inputs) {
      plan_->input_slots_.push_back(SlotOf({input, 0}));
      plan_->input_types_.push_back(TypeOf({input, 0}));
    }
    for (const ValueRef& out : graph_.outputs) {
      plan_->output_slots_.push_back(SlotOf(out));
      plan_->output_types_.push_back(TypeOf(out));
    }
    if (signature_.options_.line_windows)
      MakeLineWindows(graph_, plan_->output_slots_, &plan_->slots_, &plan_->steps_);
    FindLifetimes();
    PlaceMemory();
    IndexInputs();
    ExplainBatching();
    return plan_;
  }

 private:
  const TensorType& TypeOf(ValueRef ref) const { return analysis_.at(ref).type; }
  int SlotOf(ValueRef ref) const { return first_slot_[ref.node] + ref.output; }
  Slot& slot(int i) { return plan_->slots_[i]; }
  int Root(int i) const { return plan_->slots_[i].root; }

  void MakeSlots() {
    for (int i = 0; i < graph_.size(); ++i) {
      first_slot_.push_back(static_cast<int>(plan_->slots_.size()));
      for (const ValueInfo& value : analysis_.values[i]) {
        Slot s;
        s.type = value.type;
        s.root = static_cast<int>(plan_->slots_.size());
        if (value.has_constant()) {
          s.home = Slot::Home::kConstant;
          s.constant = value.constant;
        } else if (value.constant.valid()) {
          s.home = Slot::Home::kArena;
          s.constant = value.constant;
          s.per_row = value.per_row;
        } else if (graph_.node(i).op->name == "Input") {
          s.home = Slot::Home::kInput;
        }
        plan_->slots_.push_back(std::move(s));
      }
    }
  }

  // True when input k of the node need not be computed: inference has read it already.
  bool OnlyShapes(const Node& node, size_t k) const {
    return k < 64 && (node.op->shape_inputs >> k & 1) != 0 &&
           analysis_.at(node.inputs[k]).constant.valid();
  }

  void FindNeeded() {
    needed_.assign(graph_.size(), false);
    for (const ValueRef& out : graph_.outputs) needed_[out.node] = true;
    for (int i = graph_.size() - 1; i >= 0; --i) {
      needed_[i] = needed_[i] || HasEffect(graph_.node(i));
      if (!needed_[i] || !DoesWork(i)) continue;
      const Node& node = graph_.node(i);
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (!OnlyShapes(node, k)) needed_[node.inputs[k].node] = true;
      }
    }
  }

  // Inputs, constants and values already known do not, for any number of rows.
  bool DoesWork(int i) const {
    const std::vector<ValueInfo>& values = analysis_.values[i];
    if (HasEffect(graph_.node(i))) return true;
    if (graph_.node(i).op->name == "Input" || graph_.node(i).op->name == "Const" || values.empty())
      return false;
    return !std::all_of(values.begin(), values.end(),
                        [](const ValueInfo& v) { return v.constant.valid(); });
  }

  static bool IsStatic(const TensorType& type) {
    return type.shape.known() && type.shape.elements().known() && DTypeSize(type.dtype) != 0;
  }

  // A value in memory of the run, or one whose shape the run settles though its memory is planned.
  bool SettledByRun(int s) const {
    return plan_->slots_[s].home == Slot::Home::kDynamic ||
           plan_->slots_[Root(s)].home == Slot::Home::kDynamic;
  }

  void MakeStep(int i) {
    if (!needed_[i] || !DoesWork(i)) return;
    const Node& node = graph_.node(i);
    Step step;
    step.node = i;
    step.kernel = signature_.program_->kernels[i].get();
    if (!signature_.program_->subprograms[i].empty())
      step.programs = &signature_.program_->subprograms[i];
    for (const ValueRef& in : node.inputs) {
      step.inputs.push_back(SlotOf(in));
      step.dynamic = step.dynamic || SettledByRun(SlotOf(in));
    }
    bool fixed_alias = node.op->alias && !step.dynamic;
    for (int k = 0; k < static_cast<int>(analysis_.values[i].size()); ++k) {
      const int s = SlotOf({i, k});
      step.outputs.push_back(s);
      // Known already, of a node with other outputs to compute: written anyway.
      slot(s).constant = slot(s).per_row = Tensor();
      // What an alias of the run shows is known only to the run, whatever its type says.
      const bool fixed =
          IsStatic(slot(s).type) && !node.op->allocates && !(node.op->alias && step.dynamic);
      slot(s).home = fixed ? Slot::Home::kArena : Slot::Home::kDynamic;
      if (!fixed) step.dynamic = true;
      fixed_alias = fixed_alias && fixed;
    }
    plan_->has_dynamic_ |= step.dynamic;
    const int from = step.inputs.empty() ? -1 : step.inputs[0];
    if (node.op->alias) slot(step.outputs[0]).root = Root(from);
    if (fixed_alias) {
      slot(step.outputs[0]).home = slot(from).home;
      slot(step.outputs[0]).constant = slot(from).constant;
      return;
    }
    step.first_arg = plan_->args_;
    plan_->args_ += static_cast<int>(step.inputs.size() + step.outputs.size());
    plan_->steps_.push_back(std::move(step));
  }

  struct Lifetime {
    int first = INT32_MAX, last = -1;
    void Cover(int step) {
      first = std::min(first, step);
      last = std::max(last, step);
    }
  };

  void FindLifetimes() {
    lifetimes_.assign(plan_->slots_.size(), {});
    const int end = static_cast<int>(plan_->steps_.size());
    for (int s = 0; s < end; ++s) {
      const Step& step = plan_->steps_[s];
      for (int in : step.inputs) lifetimes_[Root(in)].Cover(s);
      for (int out : step.outputs) lifetimes_[Root(out)].Cover(s);
    }
    // Inputs stay whole, so that a prepared context may run again; outputs are read afterwards.
    for (int in : plan_->input_slots_) {
      lifetimes_[in].Cover(-1);
      lifetimes_[in].Cover(end);
    }
    for (int out : plan_->output_slots_) lifetimes_[Root(out)].Cover(end);
    for (size_t i = 0; i < plan_->slots_.size(); ++i) {
      if (!plan_->slots_[i].per_row.valid() || lifetimes_[i].last < 0) continue;
      lifetimes_[i].Cover(-1);  // written once, read by every run
      lifetimes_[i].Cover(end);
      plan_->affine_slots_.push_back(static_cast<int>(i));
    }
    const std::vector<int> last_reads = LastReads();
    for (int s = 0; s < end; ++s) FindLastReads(s, last_reads);
    for (int s = 0; s < end; ++s) ReuseInput(s);
  }

  void FindLastReads(int s, const std::vector<int>& last_reads) {
    Step& step = plan_->steps_[s];
    for (size_t k = 0; k < std::min<size_t>(step.inputs.size(), 64); ++k) {
      const int root = Root(step.inputs[k]);
      const bool twice = std::count_if(step.inputs.begin(), step.inputs.end(),
                                       [&](int in) { return Root(in) == root; }) != 1;
      if (!twice && slot(root).home != Slot::Home::kConstant && last_reads[root] == s)
        step.last_reads |= uint64_t{1} << k;
    }
  }

  // By root: the last step that reads it, or INT32_MAX for outputs, which are read afterwards.
  // Inputs live to the end only because a prepared context may run again; a run's own reads are
  // what matters here.
  std::vector<int> LastReads() const {
    std::vector<int> last(plan_->slots_.size(), -1);
    for (size_t s = 0; s < plan_->steps_.size(); ++s) {
      for (int in : plan_->steps_[s].inputs) last[Root(in)] = static_cast<int>(s);
    }
    for (int out : plan_->output_slots_) last[Root(out)] = INT32_MAX;
    return last;
  }

  // An element-wise step writes over the first of its inputs that nobody reads again.
  void ReuseInput(int s) {
    const Step& step = plan_->steps_[s];
    const uint64_t inputs = graph_.node(step.node).op->in_place;
    if (inputs == 0 || step.dynamic || step.outputs.size() != 1) return;
    const int to = step.outputs[0];
    for (size_t k = 0; k < std::min<size_t>(step.inputs.size(), 64); ++k) {
      if ((inputs >> k & 1) == 0 || !MayOverwrite(s, step.inputs[k], to)) continue;
      const int from = Root(step.inputs[k]);
      for (Slot& other : plan_->slots_) {
        if (other.root == to) other.root = from;
      }
      lifetimes_[from].last = lifetimes_[to].last;
      return;
    }
  }

  // Whether slot `to` may lie where input `in` of step s does.
  bool MayOverwrite(int s, int in, int to) {
    const Step& step = plan_->steps_[s];
    const int from = Root(in);
    if (slot(in).line_stride != 0 || slot(to).line_stride != 0) return false;
    if (slot(from).home != Slot::Home::kArena || slot(to).home != Slot::Home::kArena ||
        lifetimes_[from].last != s)
      return false;
    if (Bytes(slot(in).type) != Bytes(slot(to).type) ||
        Bytes(slot(from).type) != Bytes(slot(to).type))
      return false;
    // As many bytes in wider elements are fewer elements, which are read again after the first was
    // written over.
    if (DTypeSize(slot(in).type.dtype) != DTypeSize(slot(to).type.dtype)) return false;
    return std::count_if(step.inputs.begin(), step.inputs.end(),
                         [&](int other) { return Root(other) == from; }) == 1;
  }

  static std::pair<int64_t, int64_t> Bytes(const TensorType& type) {
    const Dim bytes = type.shape.elements() * Dim(static_cast<int64_t>(DTypeSize(type.dtype)));
    return {bytes.base(), bytes.per_row()};
  }

  // Blocks to be placed, and where their offsets go.
  struct Region {
    std::vector<Block> blocks;
    std::vector<AffineBytes*> at;

    void Add(const Block& block, AffineBytes* offset) {
      blocks.push_back(block);
      at.push_back(offset);
    }
  };

  // Blocks whose size has rows live in a region of their own that scales with rows; the others in
  // front of it, but for scratch that fits between the growing ones: it is no larger with more
  // rows.
  void PlaceMemory() {
    Region fixed, growing, scratch;
    for (size_t i = 0; i < plan_->slots_.size(); ++i) {
      Slot& s = plan_->slots_[i];
      const bool own = s.root == static_cast<int>(i) &&
                       (s.home == Slot::Home::kArena || s.home == Slot::Home::kInput);
      if (!own || !IsStatic(s.type) || lifetimes_[i].last < 0) continue;
      const auto [base, per_row] = Bytes(s.type);
      (per_row != 0 ? growing : fixed)
          .Add({MostPerRow(base, per_row), lifetimes_[i].first, lifetimes_[i].last}, &s.offset);
    }
    for (size_t i = 0; i < plan_->steps_.size(); ++i) {
      Step& step = plan_->steps_[i];
      const int s = static_cast<int>(i);
      FindScratch(s);
      const auto [base, per_row] = step.scratch_bytes;
      if (base + per_row > 0)
        (per_row != 0 ? growing : scratch)
            .Add({MostPerRow(base, per_row), s, s}, &step.scratch_offset);
    }
    plan_->arena_per_row_ = PlaceBlocks(&growing.blocks);
    const std::vector<bool> fits =
        PlaceInGaps(growing.blocks, plan_->arena_per_row_, &scratch.blocks);
    for (size_t i = 0; i < fits.size(); ++i)
      (fits[i] ? growing : fixed).Add(scratch.blocks[i], scratch.at[i]);
    plan_->arena_base_ = PlaceBlocks(&fixed.blocks);
    for (size_t i = 0; i < fixed.at.size(); ++i) *fixed.at[i] = {fixed.blocks[i].offset, 0};
    for (size_t i = 0; i < growing.at.size(); ++i)
      *growing.at[i] = {plan_->arena_base_, growing.blocks[i].offset};
  }

  // base + per_row * rows <= rows times this, as rows >= 1.
  static int64_t MostPerRow(int64_t base, int64_t per_row) {
    return std::max<int64_t>(base, 0) + per_row;
  }

  // Whether a kernel sees the rows as its outermost dimension only and takes them one by one.
  bool TakesRowByRow(const Step& step) const {
    const auto inner = [this](int s) {
      const SymShape& shape = plan_->slots_[s].type.shape;
      for (int axis = 1; axis < shape.rank(); ++axis) {
        if (shape.dim(axis).per_row() != 0) return true;
      }
      return false;
    };
    const std::vector<RowMark>& marks = analysis_.marks[step.node];
    return std::none_of(step.inputs.begin(), step.inputs.end(), inner) &&
           std::none_of(step.outputs.begin(), step.outputs.end(), inner) &&
           std::all_of(marks.begin(), marks.end(), [](RowMark mark) {
             return mark == RowMark::kRows || mark == RowMark::kConstant;
           });
  }

  // Scratch is affine in the rows that a kernel takes one by one, but where a bound ends that:
  // more rows than two tell. In another place, as channels, they may make it anything, and no
  // number of rows that is tried says what the next one needs.
  void FindScratch(int s) {
    Step& step = plan_->steps_[s];
    if (step.dynamic || step.kernel == nullptr) return;
    const int64_t one = plan_->ScratchBytes(step, 1);
    const int64_t per_row = plan_->has_rows_ ? plan_->ScratchBytes(step, 2) - one : 0;
    const AffineBytes bytes{one - per_row, per_row};
    step.scratch_by_run = plan_->has_rows_ && !TakesRowByRow(step);
    for (const int64_t rows : {3, 4, 5, 8, 17, 64, 333, 1024}) {
      if (!plan_->has_rows_ || step.scratch_by_run) break;
      step.scratch_by_run = per_row < 0 || plan_->ScratchBytes(step, rows) != bytes.At(rows);
    }
    if (step.scratch_by_run) {
      plan_->run_scratch_steps_.push_back(s);
    } else {
      step.scratch_bytes = bytes;
    }
  }

  void IndexInputs() {
    for (int input : plan_->input_slots_) {
      std::vector<int> views, args;
      for (size_t i = 0; i < plan_->slots_.size(); ++i) {
        if (Root(static_cast<int>(i)) == input) views.push_back(static_cast<int>(i));
      }
      for (const Step& step : plan_->steps_) {
        for (size_t k = 0; k < step.inputs.size(); ++k) {
          if (Root(step.inputs[k]) == input) args.push_back(step.first_arg + static_cast<int>(k));
        }
      }
      plan_->input_views_.push_back(std::move(views));
      plan_->input_args_.push_back(std::move(args));
    }
  }

  void ExplainBatching() {
    std::string& why = plan_->why_not_batchable_;
    if (!plan_->has_rows_) {
      why = why_not_rows_.empty() ? "no input has an open first dimension" : why_not_rows_;
      return;
    }
    for (size_t k = 0; k < graph_.outputs.size() && why.empty(); ++k) {
      const ValueRef out = graph_.outputs[k];
      const std::string name =
          absl::StrCat("output ", Quoted(signature_.signature().outputs[k].key));
      const SymShape& shape = TypeOf(out).shape;
      const RowMark mark = analysis_.mark(out);
      if (mark == RowMark::kConstant) {
        why = absl::StrCat(name, " has no rows: it is the same for every request");
      } else if (mark == RowMark::kRowsDim1) {
        const Node& node = graph_.node(out.node);
        why = absl::StrCat(name, " has the request's rows in dimension 1 at node ",
                           Quoted(node.name), " (", node.op->name, ")");
      } else if (mark != RowMark::kRows && analysis_.flats[out.node][out.output].known()) {
        why = absl::StrCat(name, " is as long as the contents of all rows say, at node ",
                           Quoted(graph_.node(out.node).name), " (", graph_.node(out.node).op->name,
                           ")");
      } else if (mark != RowMark::kRows) {
        why = absl::StrCat(name,
                           mark == RowMark::kUnknown ? " cannot be proved row-wise" : " mixes rows",
                           Where(out.node));
      } else if (!shape.rank_known() || shape.rank() == 0 || shape.dim(0) != Dim::Rows()) {
        why = absl::StrCat(name, " has shape ", shape.ToString(),
                           ", whose first dimension is not the request's rows");
      }
    }
  }

  std::string Where(int output) const {
    const std::string& culprit = analysis_.culprit[output];
    return culprit.empty() ? "" : absl::StrCat(" at node ", culprit);
  }

  const std::string why_not_rows_;
  const CompiledSignature& signature_;
  const Graph& graph_;
  const Analysis& analysis_;
  std::shared_ptr<Plan> plan_;
  std::vector<int> first_slot_;
  std::vector<bool> needed_;
  std::vector<Lifetime> lifetimes_;
};

int64_t Plan::ScratchBytes(const Step& step, int64_t rows) const {
  if (step.dynamic || step.kernel == nullptr) return 0;
  std::vector<Shape> in, out;
  for (int s : step.inputs) in.push_back(slots_[s].type.shape.At(rows));
  for (int s : step.outputs) out.push_back(slots_[s].type.shape.At(rows));
  return step.kernel->ScratchBytes(in, out);
}

std::optional<int64_t> Plan::ScratchOffset(const Step& step, int64_t rows) const {
  const int64_t sized = std::max<int64_t>(rows, 1);
  if (step.scratch_by_run) return arena_base_ + arena_per_row_ * sized;
  if (step.scratch_bytes.base + step.scratch_bytes.per_row <= 0) return std::nullopt;
  return step.scratch_offset.At(sized);
}

int64_t Plan::RunScratchBytes(int64_t rows) const {
  int64_t most = 0;
  for (int s : run_scratch_steps_) most = std::max(most, ScratchBytes(steps_[s], rows));
  return most;
}

bool PlanKey::operator<(const PlanKey& o) const {
  if (rows != o.rows) return rows < o.rows;
  if (lists != o.lists) return lists < o.lists;
  return std::lexicographical_compare(shapes.begin(), shapes.end(), o.shapes.begin(),
                                      o.shapes.end(), [](const Shape& a, const Shape& b) {
                                        return std::lexicographical_compare(
                                            a.dims().begin(), a.dims().end(), b.dims().begin(),
                                            b.dims().end());
                                      });
}

std::shared_ptr<const Plan> CompiledSignature::FindPlan(const PlanKey& key) const {
  {
    MutexLock lock(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) {
      plans_.splice(plans_.begin(), plans_, found->second);
      return found->second->plan;
    }
    if (dropped_.empty()) return nullptr;
  }
  return KeepPlan(key, nullptr);
}

// The plan to use for the key: the first that was kept, if anybody holds it still. Null: there is
// none, and none was given.
std::shared_ptr<const Plan> CompiledSignature::KeepPlan(const PlanKey& key,
                                                        std::shared_ptr<const Plan> plan) const {
  std::list<Cached> dropped;  // freed after the lock
  MutexLock lock(mutex_);
  if (const auto found = index_.find(key); found != index_.end()) return found->second->plan;
  if (const auto held = dropped_.find(key); held != dropped_.end()) {
    if (std::shared_ptr<const Plan> same = held->second.lock()) plan = std::move(same);
    dropped_.erase(held);
  }
  if (plan == nullptr) return nullptr;
  plans_.push_front({key, plan});
  index_[key] = plans_.begin();
  while (plans_.size() > options_.max_plans) {
    std::erase_if(dropped_, [](const auto& one) { return one.second.expired(); });
    index_.erase(plans_.back().key);
    if (plans_.back().plan.use_count() > 1) dropped_[plans_.back().key] = plans_.back().plan;
    dropped.splice(dropped.begin(), plans_, std::prev(plans_.end()));
  }
  return plan;
}

absl::Status CompiledSignature::CheckShapes(absl::Span<const Shape> shapes) const {
  if (shapes.size() != signature_.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", shapes.size(), " inputs, the signature has ", signature_.inputs.size()));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    FLOE_RETURN_IF_ERROR(CheckType({signature_.inputs[i].type.dtype, SymShape(shapes[i])}));
    FLOE_RETURN_IF_ERROR(CheckInputShape(signature_.inputs[i], shapes[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Plan>> CompiledSignature::Bind(
    absl::Span<const Shape> shapes) const {
  FLOE_RETURN_IF_ERROR(CheckShapes(shapes));
  // Rows may stay open when all inputs that have rows have equally many.
  int64_t rows = -1;
  bool open = false, equal = true;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!input_has_rows_[i] || shapes[i].rank() == 0) continue;
    equal = equal && (!open || shapes[i].dim(0) == rows);
    rows = shapes[i].dim(0);
    open = true;
  }
  if (!open) return BindConcrete(shapes, "");
  if (!equal) return BindConcrete(shapes, "the inputs disagree in their first dimension");

  PlanKey key;
  std::vector<ValueInfo> inputs;
  std::vector<RowMark> marks;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const bool has_rows = input_has_rows_[i] && shapes[i].rank() > 0;
    key.shapes.push_back(shapes[i]);
    if (has_rows) key.shapes.back().set_dim(0, -1);  // open, and told from a lower rank
  }
  std::shared_ptr<const Plan> plan = FindPlan(key);
  if (plan == nullptr) {
    const PlanKey concrete{{shapes.begin(), shapes.end()}, false};
    if (std::shared_ptr<const Plan> found = FindPlan(concrete)) return found;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const bool has_rows = input_has_rows_[i] && shapes[i].rank() > 0;
      SymShape shape(shapes[i]);
      if (has_rows) shape.set_dim(0, Dim::Rows());
      inputs.push_back({TensorType{signature_.inputs[i].type.dtype, shape}, {}, {}});
      marks.push_back(has_rows ? RowMark::kRows : RowMark::kConstant);
    }
    const DefaultBudget budget(options_.limits);
    const VisitScope visits;
    const auto analysis = Analyze(graph(), inputs, marks, options_.kernels);
    // Shapes that only fit a given number of rows are an answer too: such a signature runs
    // unbatched.
    if (!analysis.ok()) return BindConcrete(shapes, std::string(analysis.status().message()));
    plan = Binder(*this, *analysis, true).Run();
    plan = KeepPlan(key, std::move(plan));
  }
  if (plan->batchable() || !plan->has_dynamic_steps()) return plan;
  return BindConcrete(shapes, plan->why_not_batchable());
}

absl::StatusOr<std::shared_ptr<const Plan>> CompiledSignature::BindSubgraph(
    absl::Span<const Shape> shapes, absl::Span<const ListTypePtr> lists) const {
  const bool known = std::any_of(lists.begin(), lists.end(),
                                 [](const ListTypePtr& list) { return list != nullptr; });
  if (!known) return Bind(shapes);
  FLOE_RETURN_IF_ERROR(CheckShapes(shapes));
  return BindConcrete(shapes, "", lists);
}

absl::StatusOr<std::shared_ptr<const Plan>> CompiledSignature::BindConcrete(
    absl::Span<const Shape> shapes, absl::string_view why_not_rows,
    absl::Span<const ListTypePtr> lists) const {
  PlanKey key;
  key.rows = false;
  key.shapes.assign(shapes.begin(), shapes.end());
  for (const ListTypePtr& list : lists) {
    if (list != nullptr) absl::StrAppend(&key.lists, list->written, list->element.ToString());
    absl::StrAppend(&key.lists, ";");
  }
  if (std::shared_ptr<const Plan> found = FindPlan(key)) return found;
  std::vector<ValueInfo> inputs;
  for (size_t i = 0; i < shapes.size(); ++i)
    inputs.push_back({TensorType{signature_.inputs[i].type.dtype, SymShape(shapes[i]),
                                 i < lists.size() ? lists[i] : nullptr},
                      {},
                      {}});
  const std::vector<RowMark> marks(shapes.size(), RowMark::kUnknown);
  const DefaultBudget budget(options_.limits);
  const VisitScope visits;
  absl::StatusOr<Analysis> analysis = Analyze(graph(), inputs, marks, options_.kernels);
  if (!analysis.ok()) {
    std::string came;
    for (size_t i = 0; i < shapes.size(); ++i)
      absl::StrAppend(&came, i == 0 ? "" : ", ", Quoted(signature_.inputs[i].key), " ",
                      shapes[i].ToString());
    return Annotate(analysis.status(), absl::StrCat("inputs ", came, " do not fit the model"));
  }
  std::shared_ptr<const Plan> plan =
      Binder(*this, *analysis, false, std::string(why_not_rows)).Run();
  return KeepPlan(key, std::move(plan));
}

}  // namespace floe
