// Sums over the steps of a profile.
#include "runtime/profile_report.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

std::string CallersOf(const StepProfile& profile, const TimedStep& step) {
  if (step.caller < 0) return "";
  const TimedStep& caller = profile.steps()[step.caller];
  const std::string outer = CallersOf(profile, caller);
  return outer.empty() ? caller.node->name : absl::StrCat(outer, " > ", caller.node->name);
}

std::string RouteOf(const TimedStep& step) {
  return step.kernel == nullptr ? "" : step.kernel->Route();
}

void SortByTime(std::vector<ProfileRow>* rows) {
  std::stable_sort(rows->begin(), rows->end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.us > b.us; });
}

double MicrosecondsOf(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

ProfileReport Summarise(const StepProfile& profile) {
  ProfileReport report;
  const auto runs = static_cast<double>(profile.runs());
  report.runs = profile.runs();
  report.run_us = report.between_us = MicrosecondsOf(profile.run_time()) / runs;
  std::map<std::string, ProfileRow> ops;
  for (const TimedStep& step : profile.steps()) {
    ProfileRow row{.name = step.node->name,
                   .within = CallersOf(profile, step),
                   .op = step.node->op->name,
                   .route = RouteOf(step),
                   .calls = static_cast<double>(step.calls) / runs,
                   .us = MicrosecondsOf(step.self) / runs,
                   .total_us = MicrosecondsOf(step.total) / runs,
                   .estimated_us = step.estimated_us / runs,
                   .flops = step.flops / runs,
                   .bytes = step.bytes / runs};
    row.share = report.run_us > 0 ? row.us / report.run_us : 0;
    report.between_us -= row.us;
    const auto [op, first] = ops.try_emplace(row.op, ProfileRow{.op = row.op, .steps = 0});
    op->second.steps += 1;
    op->second.calls += row.calls;
    op->second.us += row.us;
    op->second.share += row.share;
    op->second.flops += row.flops;
    op->second.bytes += row.bytes;
    op->second.estimated_us += row.estimated_us;
    report.steps.push_back(std::move(row));
  }
  for (auto& [name, row] : ops) report.ops.push_back(std::move(row));
  SortByTime(&report.steps);
  SortByTime(&report.ops);
  return report;
}

}  // namespace floe
