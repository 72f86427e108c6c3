// Runs every signature with zeros, estimates its runs, and chooses the best batch size by that.
#include "server/loading/warm_up.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads.h"
#include "runtime/estimate.h"
#include "runtime/made_up_inputs.h"

namespace floe::server {
namespace {

// The estimates of a run grow by this factor in rows.
constexpr int64_t kEstimateEvery = 4;

// Where data decide about the work, a run of so many rows shows what each adds, if it is not
// expected to take longer. A trial load does it too.
constexpr int64_t kFewRowsOfFirstRun = 8;
constexpr double kFirstRunsMicros = 50'000;

// Of a batch beyond its run: waking a worker, forming the batch, and finding caches full of what
// other threads did. From 1 to 8 rows it was 60 us of CPU for a network of 60 us a row. For one
// with 13 MB of weights it was 100 us.
constexpr double kBatchOverheadMicros = 80;

// The most rows of a batch whose non-batch dimensions had to be guessed, or whose work depends on
// data.
constexpr int64_t kRowsOfGuesses = 64;

// Threads run models that are as quick as this once before they serve.
constexpr double kFirstRunMicros = 2000;

// Slots run a largest batch that is as quick as this once. For others they get the memory alone.
constexpr double kFirstBatchMicros = 100;

// Whether runs of the same shapes take the same time, whatever the values are: no strings of any
// length, no loops, no shapes that depend on data.
bool ShapesTellWork(const Plan& plan) {
  const auto& inputs = plan.input_types();
  return WorkIsKnown(plan) &&
         std::none_of(inputs.begin(), inputs.end(),
                      [](const TensorType& type) { return type.dtype == DType::kString; });
}

absl::Status StillWanted(const WarmUpLimits& limits) {
  if (limits.cancel == nullptr || !limits.cancel->cancelled()) return absl::OkStatus();
  return absl::CancelledError("the load was given up");
}

absl::Status SayHowLong(const absl::Status& status, const WarmUpLimits& limits) {
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(absl::StrCat(
      "a run took longer than ", std::chrono::duration<double>(limits.longest).count(), " s"));
}

// How long the run took.
absl::StatusOr<Duration> RunZeros(const CompiledSignature& variant,
                                  std::shared_ptr<const Plan> plan, int64_t rows,
                                  const WarmUpLimits& limits, ExecContext& context) {
  FLOE_RETURN_IF_ERROR(context.Prepare(std::move(plan), rows));
  const std::vector<Tensor> texts = ZeroInputs(variant.signature().inputs.size(), &context);
  const TimePoint start = Clock::Steady().Now();
  FLOE_RETURN_IF_ERROR(SayHowLong(RunWithin(LimitsNow(limits), &context), limits));
  return Clock::Steady().Now() - start;
}

// Failures do not matter here: what the first run could do, the others can. A long run gains little
// from an earlier one, unless that found out how much memory it needs.
void WarmFrom(int first_slot, const RunCost& cost, const std::shared_ptr<const Plan>& plan,
              const WarmUpOptions& options, PlanExecutor* executor) {
  const int64_t most = cost.max_rows > 0 ? cost.max_rows : options.max_rows;
  const auto warm = [&](int64_t rows, bool worth_it, ExecContext& context) {
    if (worth_it) {
      (void)RunZeros(*cost.variant, plan, rows, options.limits, context);
    } else {
      (void)context.Prepare(plan, rows);
    }
  };
  const bool quick = cost.curve.Micros(1) <= kShortRunMicros;
  const bool all_quick = cost.curve.Micros(most) <= kFirstBatchMicros;
  for (int slot = first_slot; slot < executor->slots(); ++slot) {
    ExecContext& context = executor->context(slot);
    if (plan->has_rows() && most > 1) warm(most, all_quick, context);
    // Last, because it is what the first request is most likely to be.
    warm(1, quick || !cost.exact, context);
  }
}

// The plan of what ran. Null only when memory or time ran out since.
std::shared_ptr<const Plan> PlanOfOneRow(const CompiledSignature& variant) {
  bool known = true;
  auto plan = variant.Bind(*GuessShapes(variant, 1, &known));
  return plan.ok() ? *std::move(plan) : nullptr;
}

// The first that runs the variant's program; null: none does.
const RunCost* FindShared(const std::vector<RunCost>& costs, const CompiledSignature& variant) {
  for (const RunCost& cost : costs)
    if (cost.variant->SharesProgram(variant)) return &cost;
  return nullptr;
}

// The numbers of rows for which devices get graphs: those allowed, or powers of two.
std::vector<int64_t> SizesOfRuns(const std::vector<int64_t>& allowed, int64_t most) {
  std::vector<int64_t> sizes;
  for (const int64_t size : allowed)
    if (size < most) sizes.push_back(size);
  for (int64_t size = 1; allowed.empty() && size < most; size *= 2) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

// Warms one variant.
class VariantWarmer {
 public:
  VariantWarmer(const CompiledSignature& variant, const std::string& name, PlanExecutor* executor,
                const WarmUpOptions& options)
      : variant_(variant), name_(name), executor_(executor), options_(options) {}

  absl::Status Warm(WarmUpReport* report) {
    if (const RunCost* const same = FindShared(report->costs, variant_)) {
      RunCost cost = *same;
      cost.variant = &variant_;
      report->costs.push_back(std::move(cost));
      return absl::OkStatus();
    }
    bool known = true;
    const auto shapes = GuessShapes(variant_, 1, &known);
    if (!shapes) return Skip(report, "the rank of an input is not known");
    auto plan = variant_.Bind(*shapes);
    if (!plan.ok() && known)
      return Annotate(plan.status(), absl::StrCat("warm-up of signature '", name_, "'"));
    if (!plan.ok()) return Skip(report, std::string(plan.status().message()));

    RunCost cost;
    cost.variant = &variant_;
    cost.exact = known && ShapesTellWork(**plan);
    // Zeros may be values the model refuses; requests will bring others.
    if (absl::Status s = RunFirst(*plan, &cost.curve, report); !s.ok()) {
      FLOE_RETURN_IF_ERROR(Skip(report, std::string(s.message())));
      cost.max_rows = std::min(kRowsOfGuesses, options_.max_rows);
      return options_.trial ? absl::OkStatus() : PrepareIslands(*plan, known, &cost, report);
    }
    cost.why_not_batchable = (*plan)->why_not_batchable();
    if (!options_.trial) {
      Choose(**plan, known, &cost);
      FLOE_RETURN_IF_ERROR(PrepareIslands(*plan, known, &cost, report));
      WarmFrom(0, cost, *plan, options_, executor_);
    }
    report->costs.push_back(std::move(cost));
    return absl::OkStatus();
  }

 private:
  absl::Status Skip(WarmUpReport* report, const std::string& why) {
    report->notes.push_back(absl::StrCat("warm-up of signature '", name_, "' skipped: ", why));
    return absl::OkStatus();
  }

  // Where values may change the work, or its shapes are a guess, the estimate is not worth a batch
  // of more than so many rows.
  void Choose(const Plan& plan, bool known, RunCost* cost) const {
    const int64_t most = LargestBatch(plan);
    if (options_.choose_rows) {
      cost->max_rows = known ? cost->curve.BestRows(kBatchOverheadMicros, most)
                             : RowsWithin(plan, options_.max_arena_bytes);
      if (!known || !WorkIsKnown(plan))
        cost->max_rows = std::min({cost->max_rows, kRowsOfGuesses, options_.max_rows});
    }
    cost->batch_gain = cost->curve.BatchGain(kBatchOverheadMicros);
  }

  // On all slots. Where rows are chosen, batches are smaller if a device has no room for them. Of
  // guessed shapes nothing is made.
  absl::Status PrepareIslands(const std::shared_ptr<const Plan>& plan, bool known, RunCost* cost,
                              WarmUpReport* report) {
    int64_t most = 1;
    if (plan->has_rows()) most = cost->max_rows > 0 ? cost->max_rows : options_.max_rows;
    const int64_t wanted = most;
    while (true) {
      const std::vector<int64_t> sizes = SizesOfRuns(executor_->options().allowed_rows, most);
      absl::Status made;
      for (int slot = 0; slot < executor_->slots() && made.ok(); ++slot)
        made = executor_->context(slot).PrepareIslands(known ? plan : nullptr, sizes);
      if (made.ok()) break;
      if (!options_.choose_rows || most == 1 || !absl::IsResourceExhausted(made))
        return Annotate(made, absl::StrCat("warm-up of signature '", name_, "'"));
      most = (most + 1) / 2;
    }
    if (most == wanted) return absl::OkStatus();
    cost->max_rows = most;
    report->notes.push_back(absl::StrCat("batches of signature '", name_, "' have at most ", most,
                                         " rows and not ", wanted,
                                         ", because the device's memory is short"));
    return absl::OkStatus();
  }

  // On a context of its own, so that slots keep nothing of it.
  absl::Status RunFirst(const std::shared_ptr<const Plan>& plan, CostCurve* curve,
                        WarmUpReport* report) {
    // Its threads are as nice as the load, where those of slots will serve.
    ThreadTraits traits = ScopedThreadTraits::Current();
    traits.nice = std::max(traits.nice, NicenessBeyondProcess());
    const ScopedThreadTraits scope(&traits);
    ExecContext context(executor_->context(0).pool().threads());
    context.budget().SetLimits(executor_->context(0).budget().limits());
    const bool known = WorkIsKnown(*plan);
    if (known) Estimate(*plan, curve);
    FLOE_RETURN_IF_ERROR(FirstRun(plan, 1, context, known ? nullptr : curve, report));
    const int64_t rows = std::min(kFewRowsOfFirstRun, options_.max_rows);
    if ((options_.trial || !known) && plan->has_rows() && rows > 1 &&
        curve->Micros(rows) <= kFirstRunsMicros)
      (void)FirstRun(plan, rows, context, known ? nullptr : curve, report);
    return absl::OkStatus();
  }

  // Adds the estimate of what ran to `curve`, unless that is null.
  absl::Status FirstRun(const std::shared_ptr<const Plan>& plan, int64_t rows, ExecContext& context,
                        CostCurve* curve, WarmUpReport* report) {
    RunEstimate estimate;
    context.Observe(curve == nullptr ? nullptr : &estimate);
    FLOE_ASSIGN_OR_RETURN(const Duration took,
                          RunZeros(variant_, plan, rows, options_.limits, context));
    report->slowest = std::max(report->slowest, took);
    if (curve != nullptr) curve->Add(rows, estimate.micros(Threads()));
    return absl::OkStatus();
  }

  void Estimate(const Plan& plan, CostCurve* curve) const {
    const int64_t most = LargestBatch(plan);
    for (int64_t rows = 1; rows < most; rows *= kEstimateEvery)
      curve->Add(rows, RunMicros(plan, rows, Threads()));
    curve->Add(most, RunMicros(plan, most, Threads()));
  }

  int Threads() const { return executor_->context(0).pool().threads(); }

  // In rows; where they are chosen, a power of two whose arena is allowed, or the most allowed.
  int64_t LargestBatch(const Plan& plan) const {
    if (!plan.has_rows()) return 1;
    if (!options_.choose_rows) return options_.max_rows;
    int64_t rows = 1;
    for (int64_t next = 1; next < options_.max_rows;) {
      next = std::min(2 * next, options_.max_rows);
      if (plan.ArenaBytes(next) > options_.max_arena_bytes) break;
      rows = next;
    }
    return rows;
  }

  const CompiledSignature& variant_;
  const std::string& name_;
  PlanExecutor* executor_;
  const WarmUpOptions& options_;
};

}  // namespace

namespace {

// Graphs of devices for the shapes of a request that was recorded, in any number of rows. Where
// there is no room, its run makes what it needs.
void PrepareShapes(const Binding& binding, PlanExecutor* executor) {
  int64_t most = 1;
  if (binding.plan->has_rows())
    most = std::max<int64_t>(1, binding.max_rows > 0 ? binding.max_rows : binding.rows);
  const std::vector<int64_t> sizes = SizesOfRuns(executor->options().allowed_rows, most);
  for (int slot = 0; slot < executor->slots(); ++slot) {
    if (!executor->context(slot).PrepareIslands(binding.plan, sizes).ok()) return;
  }
}

}  // namespace

RunLimits LimitsNow(const WarmUpLimits& limits) {
  return {.deadline = Clock::Steady().Now() + limits.longest, .cancel = limits.cancel};
}

absl::StatusOr<WarmUpReport> WarmUp(const Model& model, PlanExecutor* executor,
                                    const WarmUpOptions& options) {
  WarmUpReport report;
  for (const auto& [name, signature] : model.signatures()) {
    FLOE_RETURN_IF_ERROR(StillWanted(options.limits));
    FLOE_RETURN_IF_ERROR(
        VariantWarmer(signature.default_variant(), name, executor, options).Warm(&report));
    // The other serves requests that feed an optional input; a failure there leaves the usual one
    // usable.
    for (const Signature::Variant& variant : signature.variants().subspan(1)) {
      const absl::Status live =
          VariantWarmer(*variant.compiled, name, executor, options).Warm(&report);
      if (!live.ok()) report.notes.push_back(std::string(live.message()));
    }
  }
  FLOE_RETURN_IF_ERROR(StillWanted(options.limits));
  return report;
}

void WarmUpSlots(const WarmUpReport& report, PlanExecutor* executor, int first_slot,
                 const WarmUpOptions& options) {
  for (const RunCost& cost : report.costs) {
    if (FindShared(report.costs, *cost.variant) != &cost) continue;
    if (const auto plan = PlanOfOneRow(*cost.variant); plan != nullptr)
      WarmFrom(first_slot, cost, plan, options, executor);
  }
}

std::function<void(int slot)> FirstRuns(const WarmUpReport& report, PlanExecutor* executor,
                                        const WarmUpLimits& limits) {
  std::vector<std::pair<const CompiledSignature*, std::shared_ptr<const Plan>>> quick;
  for (const RunCost& cost : report.costs) {
    if (cost.curve.Micros(1) > kFirstRunMicros) continue;
    if (auto plan = PlanOfOneRow(*cost.variant); plan != nullptr)
      quick.emplace_back(cost.variant, std::move(plan));
  }
  return [quick = std::move(quick), executor, limits](int slot) {
    for (const auto& [variant, plan] : quick)
      (void)CatchOutOfMemory([&, &variant = variant, &plan = plan] {
        return RunZeros(*variant, plan, 1, limits, executor->context(slot)).status();
      });
  };
}

absl::Status WarmUpWith(const Inference& asked, int64_t times, const WarmUpLimits& limits,
                        PlanExecutor* executor, WarmUpReport* report) {
  Bound whole{&asked, {}};
  FLOE_ASSIGN_OR_RETURN(whole.binding, executor->Bind(asked));
  const Binding& binding = whole.binding;
  const int64_t part_rows =
      binding.splittable ? std::max<int64_t>(1, binding.max_rows) : binding.rows;
  PrepareShapes(binding, executor);
  for (int slot = 0; slot < executor->slots(); ++slot) {
    for (int64_t run = 0; run < times; ++run) {
      int64_t row = 0;
      do {  // once for a request of no rows
        const int64_t rows = std::min(part_rows, binding.rows - row);
        Inference of_part;
        Bound part{&of_part, {}};
        if (rows < binding.rows) TakePart(whole, row, rows, &of_part, &part.binding);
        const Bound* const batch[] = {rows < binding.rows ? &part : &whole};
        const TimePoint start = Clock::Steady().Now();
        FLOE_RETURN_IF_ERROR(SayHowLong(executor->Run(slot, batch, LimitsNow(limits)), limits));
        report->slowest = std::max(report->slowest, Clock::Steady().Now() - start);
        row += rows;
      } while (row < binding.rows);
    }
  }
  return absl::OkStatus();
}

}  // namespace floe::server
