#include "cli/load_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quoted.h"
#include "cli/measured_call.h"
#include "cli/table.h"

namespace floe::cli {
namespace {

double Us(LatencyHistogram::Nanoseconds time) { return Microseconds(time); }

std::string UsCell(LatencyHistogram::Nanoseconds time) { return absl::StrFormat("%.1f", Us(time)); }

std::string Loop(const LoadRow& row) {
  const LoadOptions& o = row.options;
  const std::string over =
      absl::StrCat(o.connections, o.connections == 1 ? " connection" : " connections");
  const std::string times =
      absl::StrFormat("%g s after %g s of warm-up", row.seconds, row.warmup_seconds);
  if (o.rate == 0) {
    return absl::StrCat("closed loop of ", o.concurrency, o.concurrency == 1 ? " call" : " calls",
                        " over ", over, ", ", times);
  }
  return absl::StrFormat("open loop of %g calls a second, %s, at most %d waiting over %s, %s",
                         o.rate, o.constant_arrivals ? "evenly spaced" : "at random (Poisson)",
                         o.concurrency, over, times);
}

std::vector<std::string> Header(bool open) {
  std::vector<std::string> header = {"batch",  "calls/s", "rows/s",    "p50 us",
                                     "p90 us", "p99 us",  "p99.9 us",  "max us",
                                     "calls",  "failed",  "client CPU"};
  if (open) header.insert(header.end(), {"unsent", "lag p99 us"});
  return header;
}

std::vector<std::string> Cells(const LoadRow& row) {
  const LoadResult& r = row.result;
  std::vector<std::string> cells = {std::to_string(row.batch), HumanCount(row.CallsPerSecond()),
                                    HumanCount(row.CallsPerSecond() * row.batch)};
  for (const int permille : {500, 900, 990, 999, 1000})
    cells.push_back(UsCell(r.latency.Percentile(permille)));
  cells.push_back(std::to_string(row.calls()));
  cells.push_back(std::to_string(r.failed));
  cells.push_back(absl::StrFormat("%.2f", r.cpu_seconds / r.seconds));
  if (row.options.rate > 0) {
    cells.push_back(std::to_string(r.unsent));
    cells.push_back(UsCell(r.lag.Percentile(990)));
  }
  return cells;
}

nlohmann::ordered_json Percentiles(const LatencyHistogram& times) {
  return {{"min", Rounded(Us(times.Min()))},
          {"mean", Rounded(Us(times.Mean()))},
          {"p50", Rounded(Us(times.Percentile(500)))},
          {"p90", Rounded(Us(times.Percentile(900)))},
          {"p99", Rounded(Us(times.Percentile(990)))},
          {"p99.9", Rounded(Us(times.Percentile(999)))},
          {"max", Rounded(Us(times.Max()))}};
}

}  // namespace

double LoadRow::CallsPerSecond() const {
  return static_cast<double>(result.succeeded) / result.seconds;
}

void PrintLoad(const LoadSubject& subject, const std::vector<LoadRow>& rows, std::ostream& out) {
  out << Escaped(subject.model) << ", version " << subject.version << ", signature "
      << Escaped(subject.signature) << ", at " << Escaped(subject.target) << "\n"
      << Loop(rows[0]) << "\n";
  Table table(Header(rows[0].options.rate > 0));
  for (const LoadRow& row : rows) table.Add(Cells(row));
  table.Print(out);
  for (const LoadRow& row : rows) {
    for (const auto& [code, errors] : row.result.errors) {
      out << "batch " << row.batch << ": " << errors.count << " x "
          << absl::StatusCodeToString(code) << ", the first: " << errors.first_message << "\n";
    }
  }
}

nlohmann::ordered_json LoadJson(const LoadSubject& subject, const LoadRow& row) {
  const LoadOptions& o = row.options;
  const LoadResult& r = row.result;
  nlohmann::ordered_json json = {
      {"target", subject.target},
      {"model", subject.model},
      {"version", subject.version},
      {"signature", subject.signature},
      {"batch", row.batch},
      {"request_bytes", o.request.size()},
      {"reply_bytes", r.reply_bytes},
      {"loop", o.rate > 0 ? "open" : "closed"},
      {"connections", o.connections},
      {"concurrency", o.concurrency},
      {"seconds", r.seconds},
      {"warmup_calls", row.warmup_calls},
      {"calls", row.calls()},
      {"succeeded", r.succeeded},
      {"failed", r.failed},
      {"unsent", r.unsent},
      {"calls_per_second", std::round(row.CallsPerSecond() * 10) / 10},
      {"rows_per_second", std::round(row.CallsPerSecond() * row.batch * 10) / 10},
      {"latency_us", Percentiles(r.latency)},
      {"errors", nlohmann::ordered_json::object()},
      {"client_cpus", std::round(r.cpu_seconds / r.seconds * 1000) / 1000},
  };
  if (o.rate > 0) {
    json["rate"] = o.rate;
    json["arrivals"] = o.constant_arrivals ? "constant" : "poisson";
    json["lag_us"] = Percentiles(r.lag);
  }
  for (const auto& [code, errors] : r.errors)
    json["errors"][absl::StatusCodeToString(code)] = {{"count", errors.count},
                                                      {"first_message", errors.first_message}};
  return json;
}

absl::Status LoadOutcome(const std::vector<LoadRow>& rows, bool no_fail) {
  for (const LoadRow& row : rows) {
    const LoadResult& r = row.result;
    if (r.succeeded > 0 && (no_fail || r.failed + r.unsent == 0)) continue;
    const std::string accept = r.succeeded > 0 ? "; --no-fail accepts that" : "";
    if (r.failed > 0) {
      const auto most = std::max_element(
          r.errors.begin(), r.errors.end(),
          [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
      return absl::Status(most->first, absl::StrCat(r.failed, " of ", row.calls(), " calls failed",
                                                    accept, ": ", most->second.first_message));
    }
    if (r.unsent > 0) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "%d of %d calls were not sent, because %d were waiting: the server does not reach %g a "
          "second, or --concurrency is too small%s",
          r.unsent, r.unsent + row.calls(), row.options.concurrency, row.options.rate, accept));
    }
    return absl::DeadlineExceededError(
        "no call was due in this time; --seconds or --rate is too small");
  }
  return absl::OkStatus();
}

}  // namespace floe::cli
