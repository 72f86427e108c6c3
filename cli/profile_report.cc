// The three forms of a profile.
#include "cli/profile_report.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "cli/measured_call.h"
#include "cli/table.h"

namespace floe::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Fixed(double value, int decimals) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// No figure for what does nothing of the kind.
std::string Rate(double per_second) { return per_second > 0 ? Fixed(per_second, 1) : ""; }
std::string Percent(double share) { return absl::StrCat(Fixed(100 * share, 1), " %"); }
std::string Estimate(const ProfileRow& row) {
  return row.estimated_us > 0 ? Fixed(row.estimated_us, 2) : "";
}
double Thousandths(double value) { return std::round(value * 1e3) / 1e3; }

ProfileRow Total(const ProfileReport& report) {
  ProfileRow total{.name = "total", .steps = 0, .us = report.run_us, .share = 1};
  for (const ProfileRow& row : report.steps) {
    total.steps += row.steps;
    total.calls += row.calls;
    total.flops += row.flops;
    total.bytes += row.bytes;
    total.estimated_us += row.estimated_us;
  }
  return total;
}

void AddRow(const ProfileRow& row, Table* table) {
  table->Add({Fixed(row.us, 2), Estimate(row), Percent(row.share),
              row.calls > 0 ? HumanCount(row.calls) : "", Rate(row.GflopsPerSecond()),
              Rate(row.GigabytesPerSecond()), row.op,
              row.within.empty() ? row.name : absl::StrCat(row.within, " > ", row.name),
              row.route});
}

Json RowJson(const ProfileRow& row, double run_us) {
  return {{"calls", Thousandths(row.calls)},
          {"time_us", Rounded(row.us)},
          {"estimated_us", Rounded(row.estimated_us)},
          {"share", run_us > 0 ? std::round(row.share * 1e5) / 1e5 : 0},
          {"flops", std::round(row.flops)},
          {"bytes", std::round(row.bytes)},
          {"gflops_per_second", Thousandths(row.GflopsPerSecond())},
          {"gigabytes_per_second", Thousandths(row.GigabytesPerSecond())}};
}

Json EventJson(const std::string& name, const std::string& category, const TimedCall& call) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", Rounded(Microseconds(call.start))},
          {"dur", Rounded(Microseconds(call.length))},
          {"pid", 1},
          {"tid", 1}};
}

}  // namespace

void PrintProfile(const ProfileReport& report, std::ostream& out) {
  out << "steps of one run, the mean of " << report.runs << "\n";
  Table table(
      {"TIME us", "ESTIMATE us", "SHARE", "CALLS", "GFLOP/s", "GB/s", "OP", "NAME", "ROUTE"});
  for (const ProfileRow& row : report.steps) AddRow(row, &table);
  AddRow({.name = "between steps",
          .us = report.between_us,
          .share = report.run_us > 0 ? report.between_us / report.run_us : 0},
         &table);
  AddRow(Total(report), &table);
  table.Print(out, 2);
  out << "ops\n";
  Table ops({"TIME us", "ESTIMATE us", "SHARE", "CALLS", "GFLOP/s", "GB/s", "OP", "STEPS"});
  for (const ProfileRow& row : report.ops)
    ops.Add({Fixed(row.us, 2), Estimate(row), Percent(row.share), HumanCount(row.calls),
             Rate(row.GflopsPerSecond()), Rate(row.GigabytesPerSecond()), row.op,
             std::to_string(row.steps)});
  ops.Print(out, 2);
}

Json ProfileJson(const ProfileReport& report) {
  Json steps = Json::array(), ops = Json::array();
  for (const ProfileRow& row : report.steps) {
    Json shown = {{"name", row.name}};
    if (!row.within.empty()) shown["within"] = row.within;
    shown["op"] = row.op;
    shown["route"] = row.route;
    shown.update(RowJson(row, report.run_us));
    shown["total_us"] = Rounded(row.total_us);
    steps.push_back(std::move(shown));
  }
  for (const ProfileRow& row : report.ops) {
    Json shown = {{"op", row.op}, {"steps", row.steps}};
    shown.update(RowJson(row, report.run_us));
    ops.push_back(std::move(shown));
  }
  Json total = RowJson(Total(report), report.run_us);
  total.erase("share");
  return {{"runs", report.runs},
          {"unobserved_us", Rounded(report.unobserved_us)},
          {"between_steps_us", Rounded(report.between_us)},
          {"total", std::move(total)},
          {"steps", std::move(steps)},
          {"ops", std::move(ops)}};
}

absl::Status WriteTrace(const StepProfile& profile, const std::string& title,
                        const std::string& path) {
  const auto text = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::ofstream out(path, std::ios::trunc);
  out << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
      << text({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", title}}}});
  // Line by line: a long loop has more calls than should be held as JSON.
  for (const TimedCall& call : profile.calls()) {
    if (call.step < 0) {
      out << ",\n" << text(EventJson("run", "run", call));
      continue;
    }
    const TimedStep& step = profile.steps()[call.step];
    Json event = EventJson(step.node->name, step.node->op->name, call);
    event["args"] = {{"op", step.node->op->name},
                     {"route", step.kernel == nullptr ? "" : step.kernel->Route()},
                     {"flops", std::round(step.flops / static_cast<double>(step.calls))},
                     {"bytes", std::round(step.bytes / static_cast<double>(step.calls))}};
    out << ",\n" << text(event);
  }
  out << "\n]}\n";
  out.close();
  if (!out) return absl::InternalError(absl::StrCat("cannot write the trace ", Quoted(path)));
  return absl::OkStatus();
}

}  // namespace floe::cli
