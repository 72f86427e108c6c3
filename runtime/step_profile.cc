// Readings of the clock around each step, and the costs of its call.
#include "runtime/step_profile.h"

#include "runtime/estimate.h"
#include "runtime/line_windows.h"

namespace floe {

void StepProfile::StartRun() {
  open_.clear();
  open_.push_back({});
  open_.back().entered = open_.back().started = std::chrono::steady_clock::now();
  if (keep_ && calls_.empty()) kept_from_ = open_.back().started;
}

void StepProfile::EndRun() {
  const TimePoint ended = std::chrono::steady_clock::now();
  const Open run = Close(ended);
  run_time_ += (ended - run.started) - run.excluded + run.nested;
  ++runs_;
}

void StepProfile::StepStarts(const ObservedStep& step) {
  const TimePoint entered = std::chrono::steady_clock::now();
  const int index = Find(step);
  open_.push_back({index, entered, {}, {}, {}});
  open_.back().started = std::chrono::steady_clock::now();
}

void StepProfile::StepEnds(const ObservedStep& step) {
  const TimePoint ended = std::chrono::steady_clock::now();
  const Open done = Close(ended);
  const Duration self = (ended - done.started) - done.excluded;
  TimedStep& timed = steps_[done.step];
  ++timed.calls;
  timed.self += self;
  timed.total += self + done.nested;
  AddCost(step, done.step);
  Open& caller = open_.back();
  caller.nested += self + done.nested;
  caller.excluded += std::chrono::steady_clock::now() - done.entered;
}

StepProfile::Open StepProfile::Close(TimePoint ended) {
  const Open done = open_.back();
  open_.pop_back();
  if (keep_) calls_.push_back({done.step, done.started - kept_from_, ended - done.started});
  return done;
}

int StepProfile::Find(const ObservedStep& step) {
  const Step& of = step.plan->steps()[step.step];
  const Node& node = step.plan->graph().node(of.node);
  const int caller = open_.back().step;
  const auto [found, added] = index_.try_emplace({caller, &node}, static_cast<int>(steps_.size()));
  if (added) {
    steps_.push_back({.node = &node, .kernel = of.kernel, .caller = caller});
    costs_.push_back({});
  }
  return found->second;
}

void StepProfile::AddCost(const ObservedStep& step, int index) {
  const Step& of = step.plan->steps()[step.step];
  if (of.kernel == nullptr) return;
  Cost& cost = costs_[index];
  if (of.dynamic || cost.plan != step.plan || cost.rows != step.rows) {
    Types in, out;
    cost = {step.plan, step.rows, 0, 0, StepMicros(step)};
    for (const int slot : of.inputs) {
      const TensorView& view = step.slots[slot];
      in.push_back({view.dtype, SymShape(view.shape)});
      cost.bytes += static_cast<double>(view.bytes());
    }
    for (const int slot : of.outputs) {
      const TensorView& view = step.slots[slot];
      out.push_back({view.dtype, SymShape(view.shape)});
      cost.bytes += static_cast<double>(view.bytes());
    }
    cost.bytes -= 2 * static_cast<double>(BytesInPlace(step.plan->slots(), of, step.rows));
    cost.flops = of.dynamic ? EstimateFlops(*steps_[index].node, in, out, step.rows)
                            : step.plan->StepFlops(of, step.rows);
  }
  steps_[index].flops += cost.flops;
  steps_[index].bytes += cost.bytes;
  steps_[index].estimated_us += cost.estimated_us;
}

}  // namespace floe
