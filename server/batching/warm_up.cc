#include "server/batching/warm_up.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::server {
namespace {

constexpr int kMeasuredRuns = 5;

// The shapes to bind at `rows`: unknown inner dims become 1 and clear `*known`. Empty: not even the
// rank is known.
std::optional<std::vector<Shape>> ShapesAt(const CompiledSignature& form, int64_t rows,
                                           bool* known) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < form.signature().inputs.size(); ++i) {
    const SymShape& sym = form.signature().inputs[i].type.shape;
    if (!sym.rank_known()) return std::nullopt;
    Shape shape;
    for (int axis = 0; axis < sym.rank(); ++axis) {
      const bool is_rows = axis == 0 && form.InputHasRows(static_cast<int>(i));
      if (!is_rows && !sym.dim(axis).concrete()) *known = false;
      shape.push_back(is_rows ? rows : sym.dim(axis).concrete() ? sym.dim(axis).size() : 1);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

absl::StatusOr<Duration> RunZeros(const CompiledSignature& form, std::shared_ptr<const Plan> plan,
                                  int64_t rows, ExecContext& context) {
  FLOE_RETURN_IF_ERROR(context.Prepare(std::move(plan), rows));
  for (size_t i = 0; i < form.signature().inputs.size(); ++i) {
    const TensorView& input = context.Input(static_cast<int>(i));
    if (input.dtype != DType::kString && input.bytes() > 0)
      std::memset(input.data, 0, input.bytes());
  }
  const TimePoint start = Clock::Steady().Now();
  FLOE_RETURN_IF_ERROR(context.Run());
  return Clock::Steady().Now() - start;
}

double Micros(Duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// Warms one form; `report` null: no measuring.
class FormWarmer {
 public:
  FormWarmer(const CompiledSignature& form, const std::string& name, PlanRunner* runner,
             int64_t max_rows)
      : form_(form), name_(name), runner_(runner), max_rows_(max_rows) {}

  absl::Status Measure(Duration patience, WarmUpReport* report) {
    bool known = true;
    const auto shapes = ShapesAt(form_, 1, &known);
    if (!shapes) return Skip(report, "the rank of an input is not known");
    auto plan = form_.Bind(*shapes);
    if (!plan.ok() && known)
      return Annotate(plan.status(), absl::StrCat("warm-up of signature '", name_, "'"));
    if (!plan.ok()) return Skip(report, std::string(plan.status().message()));

    Duration one = Duration::max();
    for (int i = 0; i < kMeasuredRuns && (i == 0 || one < std::chrono::milliseconds(5)); ++i) {
      auto took = RunZeros(form_, *plan, 1, runner_->context(0));
      // Zeros may be values the model refuses; requests will bring others.
      if (!took.ok()) return Skip(report, std::string(took.status().message()));
      one = std::min(one, *took);
      report->slowest = std::max(report->slowest, *took);
    }
    RunCost cost{&form_, Micros(one), 0};
    if ((*plan)->has_rows() && max_rows_ > 1) {
      if (one * max_rows_ > patience) {
        max_is_slow_ = true;
        cost = {&form_, 0, Micros(one)};
      } else if (auto took = RunZeros(form_, *plan, max_rows_, runner_->context(0)); took.ok()) {
        report->slowest = std::max(report->slowest, *took);
        cost.per_row_us =
            std::max(0.0, (Micros(*took) - Micros(one)) / static_cast<double>(max_rows_ - 1));
        cost.fixed_us = std::max(0.0, cost.fixed_us - cost.per_row_us);
      }
    }
    if (known) report->costs.push_back(cost);
    WarmFrom(max_is_slow_ ? 0 : 1, *plan);
    return absl::OkStatus();
  }

  // Failures do not matter here: what the first slot could do, the others can.
  void WarmFrom(int first_slot, const std::shared_ptr<const Plan>& plan) {
    for (int slot = first_slot; slot < runner_->slots(); ++slot) {
      ExecContext& context = runner_->context(slot);
      if (slot > 0) (void)RunZeros(form_, plan, 1, context);
      if (!plan->has_rows() || max_rows_ == 1) continue;
      if (max_is_slow_) {
        (void)context.Prepare(plan, max_rows_);
      } else {
        (void)RunZeros(form_, plan, max_rows_, context);
      }
    }
  }

 private:
  absl::Status Skip(WarmUpReport* report, const std::string& why) {
    report->notes.push_back(absl::StrCat("warm-up of signature '", name_, "' skipped: ", why));
    return absl::OkStatus();
  }

  const CompiledSignature& form_;
  const std::string& name_;
  PlanRunner* runner_;
  const int64_t max_rows_;
  bool max_is_slow_ = false;
};

}  // namespace

absl::StatusOr<WarmUpReport> WarmUp(const Model& model, PlanRunner* runner, int64_t max_batch_rows,
                                    Duration patience) {
  WarmUpReport report;
  for (const auto& [name, signature] : model.signatures()) {
    FLOE_RETURN_IF_ERROR(FormWarmer(signature.defaults_form(), name, runner, max_batch_rows)
                             .Measure(patience, &report));
    // The live form serves requests that feed an optional input; a failure there leaves the usual
    // form usable.
    if (signature.live_form() == nullptr) continue;
    const absl::Status live =
        FormWarmer(*signature.live_form(), name, runner, max_batch_rows).Measure(patience, &report);
    if (!live.ok()) report.notes.push_back(std::string(live.message()));
  }
  return report;
}

void WarmUpSlots(const Model& model, PlanRunner* runner, int first_slot, int64_t max_batch_rows) {
  for (const auto& [name, signature] : model.signatures()) {
    for (const CompiledSignature* form : {&signature.defaults_form(), signature.live_form()}) {
      bool known = true;
      const auto shapes = form == nullptr ? std::nullopt : ShapesAt(*form, 1, &known);
      if (!shapes) continue;
      if (auto plan = form->Bind(*shapes); plan.ok())
        FormWarmer(*form, name, runner, max_batch_rows).WarmFrom(first_slot, *plan);
    }
  }
}

}  // namespace floe::server
