#include "server/api/access_log.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quoted.h"
#include "server/api/rest/json_text.h"

namespace floe::server {
namespace {

constexpr size_t kMostTextBytes = 512;

double NowSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int64_t Micros(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// "2026-11-29T16:50:04.123456Z".
std::string LogTime(double since_1970) {
  const auto seconds = static_cast<time_t>(since_1970);
  std::tm date = {};
  gmtime_r(&seconds, &date);
  return absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", date.tm_year + 1900,
                         date.tm_mon + 1, date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec,
                         static_cast<int>((since_1970 - std::floor(since_1970)) * 1e6));
}

// Appends ,"name":"text", unless there is none. Callers choose some of the texts.
void AppendText(const char* name, std::string_view text, std::string* line) {
  if (text.empty()) return;
  absl::StrAppend(line, ",\"", name, "\":");
  AppendJsonString(Printable(text, kMostTextBytes), line);
}

}  // namespace

AccessLog::AccessLog(int64_t one_in, Write write, WallClock wall_clock)
    : one_in_(static_cast<uint64_t>(one_in)),
      write_(std::move(write)),
      wall_clock_(wall_clock == nullptr ? NowSince1970 : wall_clock) {}

void AccessLog::Add(const AccessRecord& record) const {
  std::string line = absl::StrCat(R"({"time":")", LogTime(wall_clock_()), "\"");
  AppendText("peer", record.peer, &line);
  AppendText("caller", record.caller, &line);
  AppendText("method", record.method, &line);
  AppendText("model", record.model, &line);
  if (record.version != 0) absl::StrAppend(&line, ",\"version\":", record.version);
  AppendText("signature", record.signature, &line);
  AppendText("code", absl::StatusCodeToString(record.status.code()), &line);
  absl::StrAppend(
      &line, ",\"request_bytes\":", record.request_bytes, ",\"reply_bytes\":", record.reply_bytes,
      ",\"total_us\":", Micros(record.took), ",\"queue_us\":", Micros(record.timings.queue),
      ",\"run_us\":", Micros(record.timings.run), ",\"batch_rows\":", record.timings.batch_rows);
  AppendText("request_id", record.request_id, &line);
  AppendText("trace_id", record.trace_id, &line);
  AppendText("refused", record.refused, &line);
  AppendText("error", {record.status.message().data(), record.status.message().size()}, &line);
  line += "}\n";
  write_(std::move(line));
}

}  // namespace floe::server
