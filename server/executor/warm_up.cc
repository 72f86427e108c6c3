// Runs every signature with zeros at a few batch sizes, and chooses the best one by what they took.
#include "server/executor/warm_up.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads.h"
#include "server/request/tuning.h"

namespace floe::server {
namespace {

Duration ThreadTime() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

bool HasLoops(const Plan& plan) {
  return std::any_of(plan.steps().begin(), plan.steps().end(),
                     [](const Step& step) { return step.programs != nullptr; });
}

// Whether runs of the same shapes take the same time, whatever the values are: no strings of any
// length, no loops, no shapes that depend on data.
bool ShapesTellWork(const Plan& plan) {
  const auto& inputs = plan.input_types();
  return !plan.has_dynamic_steps() && !HasLoops(plan) &&
         std::none_of(inputs.begin(), inputs.end(),
                      [](const TensorType& type) { return type.dtype == DType::kString; });
}

struct Took {
  Duration wall;
  // Of the calling thread's CPU where it runs alone: what else the machine does would make some
  // sizes look worse than others.
  Duration cost;
};

absl::Status StillWanted(const WarmUpLimits& limits) {
  if (limits.cancel == nullptr || !limits.cancel->cancelled()) return absl::OkStatus();
  return absl::CancelledError("the load was given up");
}

absl::Status SayHowLong(const absl::Status& status, const WarmUpLimits& limits) {
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(absl::StrCat(
      "a run took longer than ", std::chrono::duration<double>(limits.longest).count(), " s"));
}

absl::StatusOr<Took> RunZeros(const CompiledSignature& variant, std::shared_ptr<const Plan> plan,
                              int64_t rows, const WarmUpLimits& limits, ExecContext& context) {
  FLOE_RETURN_IF_ERROR(context.Prepare(std::move(plan), rows));
  std::vector<Tensor> texts;
  for (size_t i = 0; i < variant.signature().inputs.size(); ++i) {
    const TensorView& input = context.Input(static_cast<int>(i));
    if (input.dtype == DType::kString) {
      texts.push_back(
          Tensor::Allocate(input.dtype, input.shape));  // they have no place of their own
      context.BindInput(static_cast<int>(i), texts.back().data());
    } else if (input.bytes() > 0) {
      std::memset(input.data, 0, input.bytes());
    }
  }
  const TimePoint start = Clock::Steady().Now();
  const Duration cpu = ThreadTime();
  FLOE_RETURN_IF_ERROR(SayHowLong(RunWithin(LimitsNow(limits), &context), limits));
  const Duration cost = ThreadTime() - cpu, wall = Clock::Steady().Now() - start;
  return Took{wall, context.pool().threads() > 1 ? wall : std::min(wall, cost)};
}

double Micros(Duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

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
  const bool quick = cost.curve.Micros(1) <= tuning::kShortRunMicros;
  const bool all_quick = cost.curve.Micros(most) <= tuning::kFirstBatchMicros;
  for (int slot = first_slot; slot < executor->slots(); ++slot) {
    ExecContext& context = executor->context(slot);
    if (plan->has_rows() && most > 1) warm(most, all_quick, context);
    // Last, because it is what the first request is most likely to be.
    warm(1, quick || !cost.exact, context);
  }
}

// The plan of what was measured. Null only when memory or time ran out since.
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

// Until when there is measuring.
struct MeasuringTime {
  explicit MeasuringTime(const WarmUpOptions& options)
      : usual(Clock::Steady().Now() + std::min(options.usual, options.timeout)),
        end(Clock::Steady().Now() + options.timeout) {}
  TimePoint usual, end;
};

// Warms one variant.
class VariantWarmer {
 public:
  VariantWarmer(const CompiledSignature& variant, const std::string& name, PlanExecutor* executor,
                const WarmUpOptions& options, const MeasuringTime& time)
      : variant_(variant), name_(name), executor_(executor), options_(options), time_(time) {}

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
    if (absl::Status s = Measure(*plan, &cost.curve, report); !s.ok())
      return Skip(report, std::string(s.message()));
    cost.why_not_batchable = (*plan)->why_not_batchable();
    if (options_.measure) {
      Choose(**plan, known, &cost);
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

  void Choose(const Plan& plan, bool known, RunCost* cost) const {
    if (options_.choose_rows)
      cost->max_rows = known ? cost->curve.BestRows(tuning::kBatchOverheadMicros, most_rows_)
                             : std::min({tuning::kRowsOfGuesses, options_.max_rows,
                                         RowsWithin(plan, options_.max_arena_bytes)});
    cost->batch_gain = cost->curve.BatchGain(tuning::kBatchOverheadMicros);
  }

  // On a context of its own: slots need no memory for sizes that are tried and not chosen.
  absl::Status Measure(const std::shared_ptr<const Plan>& plan, CostCurve* curve,
                       WarmUpReport* report) {
    // Its threads are as nice as the load, where those of slots will serve.
    ThreadTraits traits = ScopedThreadTraits::Current();
    traits.nice = std::max(traits.nice, NicenessBeyondProcess());
    const ScopedThreadTraits scope(&traits);
    ExecContext context(executor_->context(0).pool().threads());
    context.budget().SetLimits(executor_->context(0).budget().limits());
    return options_.measure ? MeasureCurve(plan, context, curve, report)
                            : Try(plan, context, curve, report);
  }

  absl::Status Try(const std::shared_ptr<const Plan>& plan, ExecContext& context, CostCurve* curve,
                   WarmUpReport* report) {
    FLOE_ASSIGN_OR_RETURN(const Took took, RunZeros(variant_, plan, 1, options_.limits, context));
    report->slowest = std::max(report->slowest, took.wall);
    curve->Add(1, Micros(took.cost));
    const int64_t rows = std::min(tuning::kTrialRows, options_.max_rows);
    if (plan->has_rows() && rows > 1 && curve->Micros(rows) <= tuning::kTrialMicros)
      (void)RunZeros(variant_, plan, rows, options_.limits, context);
    return absl::OkStatus();
  }

  // One row and a few, which tell what each row adds. Then what these promise to be the best batch,
  // or else the largest, where that is quick or far more than a few.
  absl::Status MeasureCurve(const std::shared_ptr<const Plan>& plan, ExecContext& context,
                            CostCurve* curve, WarmUpReport* report) {
    FLOE_ASSIGN_OR_RETURN(const double one, BestOfSeveral(plan, 1, context, report));
    curve->Add(1, one);
    most_rows_ = LargestBatch(*plan);
    const bool promising = MayGainMuch(*plan, one);
    const auto measure = [&](int64_t rows) {
      if (!MayMeasure(rows, *curve, promising)) return false;
      const auto best = BestOfSeveral(plan, rows, context, report);
      if (best.ok()) {
        curve->Add(rows, *best);
      } else {
        most_rows_ = curve->points().back().rows;
      }
      return best.ok();
    };
    int64_t few = std::min(tuning::kFewMeasuredRows, most_rows_);
    while (few > 1 && !MayMeasure(few, *curve, promising)) few /= 2;
    if (few < 2 || !measure(few)) return absl::OkStatus();
    const int64_t last = options_.choose_rows
                             ? curve->BestRows(tuning::kBatchOverheadMicros, most_rows_)
                             : most_rows_;
    const bool quick = curve->Micros(last) <= tuning::kMeasuredMicros;
    if (last > few && (quick || last > tuning::kFewRows)) measure(last);
    return absl::OkStatus();
  }

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

  // Long runs are measured only where larger batches may gain much.
  bool MayMeasure(int64_t rows, const CostCurve& curve, bool promising) const {
    const double expected = curve.Micros(rows);
    if (promising) return Micros(time_.end - Clock::Steady().Now()) >= 2 * expected;
    return expected <= tuning::kShortRunMicros &&
           Micros(time_.usual - Clock::Steady().Now()) >= 2 * expected;
  }

  // Whether two rows may take little more than the one row that took `us`.
  bool MayGainMuch(const Plan& plan, double us) const {
    const double reading =
        static_cast<double>(variant_.weight_bytes()) / tuning::kWeightBytesPerMicro;
    return HasLoops(plan) || us < tuning::kWeightBound * reading;
  }

  // Several short runs, or one long one: what disturbs a measurement makes it longer.
  absl::StatusOr<double> BestOfSeveral(const std::shared_ptr<const Plan>& plan, int64_t rows,
                                       ExecContext& context, WarmUpReport* report) {
    double best = 0, total = 0;
    for (int run = 0; run < tuning::kMostMeasuredRuns &&
                      (run < tuning::kLeastMeasuredRuns || total < tuning::kMeasuredMicros);
         ++run) {
      FLOE_ASSIGN_OR_RETURN(const Took took,
                            RunZeros(variant_, plan, rows, options_.limits, context));
      report->slowest = std::max(report->slowest, took.wall);
      total += Micros(took.wall);
      best = run == 0 ? Micros(took.cost) : std::min(best, Micros(took.cost));
      if (total > tuning::kLongMeasuredMicros) break;
    }
    return best;
  }

  const CompiledSignature& variant_;
  const std::string& name_;
  PlanExecutor* executor_;
  const WarmUpOptions& options_;
  const MeasuringTime& time_;
  int64_t most_rows_ = 1;  // that a batch may have
};

// What computes defaults has no cost of its own in the report: it is part of other runs.
void WarmDefaults(const Signature& signature, const std::string& name, PlanExecutor* executor,
                  const WarmUpOptions& options, const MeasuringTime& time, WarmUpReport* report) {
  for (const DefaultProgram& program : signature.default_programs()) {
    if (program.compiled == nullptr) continue;
    WarmUpReport of_program;
    const absl::Status warmed =
        VariantWarmer(*program.compiled, name, executor, options, time).Warm(&of_program);
    if (!warmed.ok()) of_program.notes.push_back(std::string(warmed.message()));
    report->slowest = std::max(report->slowest, of_program.slowest);
    for (std::string& note : of_program.notes) report->notes.push_back(std::move(note));
  }
}

}  // namespace

RunLimits LimitsNow(const WarmUpLimits& limits) {
  return {.deadline = Clock::Steady().Now() + limits.longest, .cancel = limits.cancel};
}

std::optional<std::vector<Shape>> GuessShapes(const CompiledSignature& variant, int64_t rows,
                                              bool* known) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < variant.signature().inputs.size(); ++i) {
    const SymShape& sym = variant.signature().inputs[i].type.shape;
    if (!sym.rank_known()) return std::nullopt;
    Shape shape;
    for (int axis = 0; axis < sym.rank(); ++axis) {
      const bool is_rows = axis == 0 && variant.InputHasRows(static_cast<int>(i));
      if (!is_rows && !sym.dim(axis).concrete()) *known = false;
      shape.push_back(is_rows ? rows : sym.dim(axis).concrete() ? sym.dim(axis).size() : 1);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

absl::StatusOr<WarmUpReport> WarmUp(const Model& model, PlanExecutor* executor,
                                    const WarmUpOptions& options) {
  WarmUpReport report;
  const MeasuringTime time(options);
  for (const auto& [name, signature] : model.signatures()) {
    FLOE_RETURN_IF_ERROR(StillWanted(options.limits));
    FLOE_RETURN_IF_ERROR(
        VariantWarmer(signature.default_variant(), name, executor, options, time).Warm(&report));
    // The others serve requests that feed an optional input; a failure there leaves the usual
    // variant usable.
    for (const Signature::Variant& variant : signature.variants().subspan(1)) {
      const absl::Status live =
          VariantWarmer(*variant.compiled, name, executor, options, time).Warm(&report);
      if (!live.ok()) report.notes.push_back(std::string(live.message()));
    }
    WarmDefaults(signature, name, executor, options, time, &report);
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
    if (cost.curve.Micros(1) > tuning::kFirstRunMicros) continue;
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

absl::Status WarmUpWith(std::unique_ptr<Request> request, int64_t times, const WarmUpLimits& limits,
                        PlanExecutor* executor, WarmUpReport* report) {
  FLOE_RETURN_IF_ERROR(executor->Bind(request.get()));
  const Binding& binding = request->binding;
  const int64_t part_rows =
      binding.splittable ? std::max<int64_t>(1, binding.max_rows) : binding.rows;
  for (int slot = 0; slot < executor->slots(); ++slot) {
    for (int64_t run = 0; run < times; ++run) {
      int64_t row = 0;
      do {  // once for a request of no rows
        const int64_t rows = std::min(part_rows, binding.rows - row);
        std::unique_ptr<Request> part;
        if (rows < binding.rows) part = PartOf(request.get(), row, rows);
        Request* const batch[] = {part != nullptr ? part.get() : request.get()};
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
