// The first page: what an operator asks first, from what the server knows at the moment.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_size.h"
#include "base/cpus.h"
#include "server/api/page/views.h"
#include "server/api/refusal_log.h"

namespace floe::server {
namespace {

constexpr size_t kMostErrors = 20;

std::string BytesText(int64_t bytes) { return HumanBytes(static_cast<double>(bytes)); }

std::string MillisText(Duration time) {
  return absl::StrFormat("%.3g", std::chrono::duration<double, std::milli>(time).count());
}

// "1.2 / 3.4 ms"
std::string TimesText(const TimeStats& times) {
  if (times.count == 0) return "-";
  return absl::StrCat(MillisText(times.p50), " / ", MillisText(times.p99), " ms");
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

struct RequestSums {
  uint64_t all = 0, failed = 0;
};
RequestSums SumsOf(const SchedulerStats& stats) {
  RequestSums sums;
  for (size_t code = 0; code < kStatusCodes; ++code) {
    sums.all += stats.by_code[code];
    if (code != 0) sums.failed += stats.by_code[code];
  }
  return sums;
}

// "AVAILABLE", "LOADING: compile, for 3 s", "FAILED: why".
std::string StateText(const VersionStats& version) {
  const VersionStatus& status = version.status;
  const bool failed = status.state == VersionState::kEnd && !status.error.ok();
  std::string text = failed ? "FAILED" : VersionStateName(status.state);
  if (!version.load_stage.empty())
    absl::StrAppend(&text, ": ", version.load_stage, ", for ", TimeText(version.loading));
  if (!status.error.ok()) absl::StrAppend(&text, ": ", MessageOf(status.error));
  if (!version.place.error.ok()) absl::StrAppend(&text, ": ", MessageOf(version.place.error));
  return text;
}

Markup KindOf(const VersionStats& version) {
  const bool ails = !version.status.error.ok() || !version.place.error.ok();
  if (ails) return "bad";
  if (version.status.state == VersionState::kAvailable) return "good";
  return "busy";
}

void AddCharts(const PageState& state, const std::string& model, Html* row) {
  std::vector<float> rate, mean;
  for (const Samples::Point& point : state.samples.Of(model)) {
    rate.push_back(point.per_second);
    mean.push_back(point.mean_ms);
  }
  const auto add = [&](Markup label, const std::vector<float>& values, const char* what) {
    const float last = values.empty() ? 0 : values.back();
    const float most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
    row->Add("<td class=\"number\" data-label=\"").Add(label).Add("\">");
    row->Part(Sparkline(
        values,
        absl::StrFormat("%s of the last ten minutes: %.3g now, at most %.3g", what, last, most)));
    row->Add("<span>").Text(absl::StrFormat("%.3g", last)).Add("</span></td>");
  };
  add("Requests/s", rate, "requests a second");
  add("Mean ms", mean, "milliseconds to the answer, on average,");
}

void AddVersion(const PageState& state, const ModelStats& model, const VersionStats& version,
                Html* row) {
  row->Number("Version", absl::StrCat(version.status.version));
  row->Add("<td data-label=\"State\"><span class=\"state ").Add(KindOf(version)).Add("\">");
  row->Text(StateText(version)).Add("</span></td>");
  if (&version == model.versions.data())
    AddCharts(state, model.name, row);
  else
    row->Add("<td class=\"none\"></td><td class=\"none\"></td>");
  const SchedulerStats none, &stats = version.scheduler ? *version.scheduler : none;
  const RequestSums sums = SumsOf(stats);
  row->Number("Requests", absl::StrCat(sums.all));
  row->Number("Errors", absl::StrCat(sums.failed));
  row->Number("Queue", absl::StrCat(stats.progress.queued));
  row->Number("Wait p50 / p99", TimesText(stats.queue_wait));
  const BatchCounts& batches = stats.batches;
  row->Number("Rows a batch",
              batches.batches == 0
                  ? "-"
                  : absl::StrFormat("%.3g", static_cast<double>(batches.rows) /
                                                static_cast<double>(batches.batches)));
  row->Number("Run p50 / p99", TimesText(stats.run));
  row->Number("Memory", version.memory_bytes == 0 ? "-" : BytesText(version.memory_bytes));
  row->Cell("Device", version.place.device.empty() ? "-" : version.place.device);
}

PageSection Summary(const PageState& state) {
  const ServerInfo& server = state.context.server;
  const bool ready = state.context.health.Get("") == std::optional(ServingStatus::kServing);
  Html html;
  html.Add("<dl class=\"facts\">");
  html.Add("<div><dt>State</dt><dd><span class=\"state ")
      .Add(ready ? Markup("good") : Markup("bad"));
  html.Add("\">").Text(ready ? "ready" : "not ready").Add("</span></dd></div>");
  html.Fact("Version", server.version);
  if (server.started != TimePoint::min()) html.Fact("Up for", TimeText(state.now - server.started));
  html.Fact("CPUs", absl::StrCat(FindUsableCpus().count(), server.instructions.empty() ? "" : ", ",
                                 server.instructions));
  if (state.context.memory != nullptr) {
    const int64_t limit = state.context.memory->limit();
    html.Fact("Memory of models and requests",
              absl::StrCat(BytesText(state.context.memory->in_use()), limit > 0 ? " of " : "",
                           limit > 0 ? BytesText(limit) : ""));
  }
  if (server.connections) {
    const ConnectionCounts counts = server.connections();
    html.Fact("Connections", absl::StrCat(counts.open, " of ", counts.limit));
  }
  if (server.calls) html.Fact("Calls in progress", absl::StrCat(server.calls().calls));
  if (server.tls) {
    const TlsInfo tls = server.tls();
    html.Fact("Certificate", absl::StrCat(tls.subject, tls.error.empty() ? "" : ": ", tls.error));
  }
  const AbandonedWork abandoned = state.context.registry.Abandoned();
  if (abandoned.versions > 0)
    html.Fact("Abandoned", absl::StrCat(abandoned.versions, " versions with ", abandoned.threads,
                                        " threads that do not end"));
  html.Add("</dl>");
  return {"summary", html};
}

PageSection Devices(const PageState& state) {
  const BackendStatus backend = state.context.registry.Backend();
  Html html;
  if (!backend.why_cpu.empty())
    html.Add("<p>Models are computed by the CPU; <code>floectl status</code> says why.</p>");
  if (!backend.devices.empty()) {
    html.Add(
        "<table><thead><tr><th scope=\"col\">Device</th><th scope=\"col\">Name</th>"
        "<th scope=\"col\">Memory</th><th scope=\"col\">Runs</th><th scope=\"col\">Failed</th>"
        "<th scope=\"col\">State</th></tr></thead><tbody>");
    for (const DeviceStatus& device : backend.devices) {
      html.Add("<tr><th scope=\"row\">").Text(device.device).Add("</th>");
      html.Cell("Name", device.name);
      html.Number("Memory", absl::StrCat(BytesText(device.in_use_bytes), " of ",
                                         BytesText(device.limit_bytes > 0 ? device.limit_bytes
                                                                          : device.total_bytes)));
      html.Number("Runs", absl::StrCat(device.runs));
      html.Number("Failed", absl::StrCat(device.failed_runs));
      html.Cell("State", device.error.ok() ? "in use" : MessageOf(device.error)).Add("</tr>");
    }
    html.Add("</tbody></table>");
  }
  if (html.empty()) return {"devices", {}};
  Html whole;
  whole.Add("<h2>GPUs</h2>").Part(html);
  return {"devices", whole};
}

}  // namespace

std::string TimeText(Duration time) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const double seconds = Seconds(time);
  if (seconds < 2 * kMinute) return absl::StrFormat("%.0f s", seconds);
  if (seconds < 2 * kHour) return absl::StrFormat("%.0f min", seconds / kMinute);
  if (seconds < 2 * kDay) return absl::StrFormat("%.1f h", seconds / kHour);
  return absl::StrFormat("%.0f days", seconds / kDay);
}

Html VersionsTable(const PageState& state, const std::vector<const ModelStats*>& models,
                   bool links) {
  Html html;
  html.Add(
      "<table><thead><tr><th scope=\"col\">Model</th><th scope=\"col\">Version</th>"
      "<th scope=\"col\">State</th><th scope=\"col\">Requests/s</th><th scope=\"col\">Mean ms</th>"
      "<th scope=\"col\">Requests</th><th scope=\"col\">Errors</th><th scope=\"col\">Queue</th>"
      "<th scope=\"col\">Wait p50 / p99</th><th scope=\"col\">Rows a batch</th>"
      "<th scope=\"col\">Run p50 / p99</th><th scope=\"col\">Memory</th>"
      "<th scope=\"col\">Device</th></tr></thead><tbody>");
  for (const ModelStats* const model : models) {
    const auto begin_row = [&] {
      html.Add("<tr><th scope=\"row\">");
      if (links) html.Add("<a href=\"/models/").Text(UrlSegment(model->name)).Add("\">");
      html.Text(model->name);
      if (links) html.Add("</a>");
      html.Add("</th>");
    };
    for (const VersionStats& version : model->versions) {
      begin_row();
      AddVersion(state, *model, version, &html);
      html.Add("</tr>");
    }
    if (!model->versions.empty()) continue;
    begin_row();
    html.Add("<td data-label=\"State\" colspan=\"12\">no version was found</td></tr>");
  }
  html.Add("</tbody></table>");
  return html;
}

Html RecentErrors(const PageState& state, const std::string& model, const Caller& caller) {
  Html html;
  html.Add("<h2>Recent errors</h2>");
  std::vector<Refusals> recent;
  if (state.context.refusals != nullptr)
    recent = state.context.refusals->Recent(kMostErrors, model);
  std::erase_if(recent, [&](const Refusals& one) { return !caller.Sees(one.model); });
  if (recent.empty()) return html.Add("<p>No request was refused.</p>");
  html.Add(
      "<table><thead><tr><th scope=\"col\">Last</th><th scope=\"col\">Model</th>"
      "<th scope=\"col\">Code</th><th scope=\"col\">Message</th><th scope=\"col\">Times</th>"
      "<th scope=\"col\">Last request</th></tr></thead><tbody>");
  for (const Refusals& one : recent) {
    html.Add("<tr>").Cell("Last", absl::StrCat(TimeText(state.now - one.when), " ago"));
    html.Cell("Model", one.model);
    html.Cell("Code", absl::StatusCodeToString(one.code));
    html.Cell("Message", one.message);
    html.Number("Times", absl::StrCat(one.count));
    html.Add("<td data-label=\"Last request\"><code>").Text(one.request_id);
    html.Add("</code></td></tr>");
  }
  return html.Add("</tbody></table>");
}

Html ConfigChanges(const ConfigState& config, bool details, TimePoint now) {
  Html html;
  html.Add("<p>Generation ").Text(absl::StrCat(config.generation)).Add(" is active.");
  if (config.changes.empty()) return html.Add(" It is that of the start.</p>");
  html.Add(
      "</p><table><thead><tr><th scope=\"col\">When</th><th scope=\"col\">Generation</th>"
      "<th scope=\"col\">Outcome</th>");
  if (details) html.Add("<th scope=\"col\">By</th><th scope=\"col\">What</th>");
  html.Add("</tr></thead><tbody>");
  for (auto change = config.changes.rbegin(); change != config.changes.rend(); ++change) {
    html.Add("<tr>").Cell("When", absl::StrCat(TimeText(now - change->when), " ago"));
    html.Number("Generation", absl::StrCat(change->generation));
    html.Cell("Outcome", change->error.ok() ? "active" : "refused: nothing changed");
    if (details) {
      html.Cell("By", change->who);
      html.Cell("What", change->error.ok() ? change->what : MessageOf(change->error));
    }
    html.Add("</tr>");
  }
  return html.Add("</tbody></table>");
}

PageSections OverviewSections(const PageState& state, const Caller& caller) {
  std::vector<const ModelStats*> models;
  for (const ModelStats& model : state.models)
    if (caller.Sees(model.name)) models.push_back(&model);
  Html table, config;
  table.Add("<h2>Models</h2>").Part(VersionsTable(state, models, /*links=*/true));
  config.Add("<h2>Configuration</h2>");
  config.Part(ConfigChanges(state.context.registry.CurrentConfig(), false, state.now));
  config.Add("<p><a href=\"/page/config\">The whole configuration</a>, for operators</p>");
  return {Summary(state),
          {"models", table},
          {"errors", RecentErrors(state, "", caller)},
          {"configuration", config},
          Devices(state)};
}

}  // namespace floe::server
