// Formats floe.Admin/GetStats as tables.
#include "cli/stats_report.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_size.h"
#include "base/quoted.h"
#include "cli/table.h"

namespace floe::cli {
namespace {

using ModelVersion = tensorflow::serving::ModelVersionStatus;

uint64_t Answered(const VersionStats& version) {
  uint64_t count = 0;
  for (const CodeCount& code : version.requests())
    if (code.code() == "OK") count += code.count();
  return count;
}

uint64_t Asked(const VersionStats& version) {
  uint64_t count = 0;
  for (const CodeCount& code : version.requests()) count += code.count();
  return count;
}

// The version in another answer; null: it was not there.
const VersionStats* Find(const GetStatsResponse& stats, const std::string& model, int64_t version) {
  for (const ModelStats& one : stats.models())
    for (const VersionStats& other : one.versions())
      if (one.name() == model && other.version() == version) return &other;
  return nullptr;
}

// "1.2/3.4 ms"
std::string TimesText(const Times& times) {
  if (times.count() == 0) return "-";
  return absl::StrFormat("%.3g/%.3g ms", times.p50_ms(), times.p99_ms());
}

std::string RequestsText(const VersionStats& version, const VersionStats* before, double seconds) {
  if (before == nullptr || seconds <= 0) return absl::StrCat(Asked(version));
  const double more = static_cast<double>(Asked(version)) - static_cast<double>(Asked(*before));
  return absl::StrFormat("%.4g/s", std::max(0.0, more) / seconds);
}

// What an operator should know first.
std::string NoteOf(const VersionStats& version) {
  if (!version.place().error().empty()) return version.place().error();
  if (version.stuck_runs_size() > 0) return absl::StrCat(version.stuck_runs_size(), " stuck runs");
  if (!version.load_stage().empty())
    return absl::StrFormat("%s, for %.0f s", version.load_stage(), version.loading_seconds());
  return version.error().error_message();
}

std::string UptimeText(double seconds) {
  if (seconds < 120) return absl::StrFormat("%.0f s", seconds);
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

std::string Human(int64_t bytes) { return HumanBytes(static_cast<double>(bytes)); }

void PrintDevices(const BackendStats& backend, std::ostream& out) {
  if (!backend.why_cpu().empty())
    out << "models are computed by the CPU: " << Escaped(backend.why_cpu()) << "\n";
  for (const DeviceStats& device : backend.devices()) {
    out << device.device();
    if (!device.name().empty()) {
      out << " (" << Escaped(device.name()) << ", compute capability "
          << device.compute_capability() << ", " << Escaped(backend.versions()) << "): memory "
          << Human(device.memory_bytes());
      if (device.memory_limit_bytes() > 0) out << " of " << Human(device.memory_limit_bytes());
      out << "; " << device.runs() << " runs";
      if (device.failed_runs() > 0)
        out << ", " << device.failed_runs() << " failed, " << device.answered_by_cpu()
            << " of them computed by the CPU";
    }
    if (!device.error().empty()) out << ": " << Escaped(device.error());
    out << "\n";
  }
}

void PrintPlace(const PlaceStats& place, std::ostream& out) {
  if (place.islands().empty()) {
    if (!place.why_cpu().empty()) out << "  on the CPU: " << Escaped(place.why_cpu()) << "\n";
    return;
  }
  out << "  on " << place.device() << ": " << Human(place.device_bytes()) << " of weights";
  constexpr int kShown = 8;
  for (int i = 0; i < std::min(kShown, place.islands_size()); ++i)
    out << (i == 0 ? "; " : ", ") << Escaped(place.islands(i).name()) << " ("
        << place.islands(i).nodes() << " nodes)";
  if (place.islands_size() > kShown) out << " and " << place.islands_size() - kShown << " more";
  out << "\n";
  if (place.answered_by_cpu() > 0)
    out << "  " << place.answered_by_cpu() << " runs failed there and were computed by the CPU\n";
  if (!place.error().empty()) out << "  " << Escaped(place.error()) << "\n";
}

void PrintLabels(const ModelStats& model, std::ostream& out) {
  const std::map<std::string, int64_t> labels(model.labels().begin(), model.labels().end());
  for (const auto& [label, version] : labels)
    out << "label " << Escaped(label) << ": version " << version << "\n";
}

// Whether runs differ from the estimate by more than a factor of two, after some batches.
bool EstimateIsOff(const SignatureStats& signature) {
  constexpr uint64_t kEnoughBatches = 20;
  constexpr double kMost = 2;
  const double factor = signature.run_by_estimate();
  return factor > 0 && signature.batches() >= kEnoughBatches &&
         (factor > kMost || factor < 1 / kMost);
}

void PrintSignatures(const VersionStats& version, std::ostream& out) {
  const auto& signatures = version.signatures();
  Table table(
      {"SIGNATURE", "BATCHES", "ROWS", "BATCH SIZE", "ONE ROW", "RUN/ESTIMATE", "BATCHABLE"});
  for (const SignatureStats& one : signatures) {
    std::vector<std::string> line = {
        one.name(),
        absl::StrCat(one.batches()),
        absl::StrCat(one.rows()),
        one.max_batch_rows() == 0 ? "-" : absl::StrCat(one.max_batch_rows()),
        one.row_ms() == 0 ? "-" : absl::StrFormat("%.3g ms", one.row_ms()),
        one.run_by_estimate() == 0 ? "-" : absl::StrFormat("%.2g", one.run_by_estimate())};
    line.push_back(one.why_not_batchable().empty() ? "yes" : "no: " + one.why_not_batchable());
    table.Add(std::move(line));
  }
  if (version.signatures_size() > 0) table.Print(out, 2);
  for (const SignatureStats& one : signatures) {
    if (!EstimateIsOff(one)) continue;
    out << absl::StrFormat(
        "  warning: runs of %s take %.2g times what was estimated at load, which fixed the batch "
        "size; see docs/batching.md\n",
        Escaped(one.name()), one.run_by_estimate());
  }
}

}  // namespace

std::string StateName(ModelVersion::State state, bool failed) {
  if (state == ModelVersion::END && failed) return "FAILED";
  const std::string name = ModelVersion::State_Name(state);
  return name.empty() ? absl::StrCat("state ", static_cast<int>(state)) : name;
}

void PrintServer(const ServerStats& server, std::ostream& out) {
  out << "floed " << server.version() << ", up " << UptimeText(server.uptime_seconds()) << "; "
      << server.cpus() << " CPUs, " << server.workers() << " workers; memory "
      << HumanBytes(static_cast<double>(server.memory_bytes()));
  if (server.memory_limit_bytes() > 0)
    out << " of " << HumanBytes(static_cast<double>(server.memory_limit_bytes()));
  out << "; " << server.connections() << " of " << server.connection_limit() << " connections";
  if (server.connections_refused() > 0) out << ", " << server.connections_refused() << " refused";
  out << "; " << server.open_file_limit() << " open files; log level " << server.log_level()
      << "; configuration " << server.config_generation();
  if (server.has_tls()) {
    const std::time_t now = std::time(nullptr);
    out << "; certificate of " << Escaped(server.tls().subject()) << ", "
        << (server.tls().not_after_seconds() - now) / 86400 << " days left";
    if (!server.tls().error().empty()) out << ", TLS: " << Escaped(server.tls().error());
  }
  if (server.auth().tokens() > 0) out << "; " << server.auth().tokens() << " tokens";
  if (server.auth().refused() > 0) out << "; " << server.auth().refused() << " calls not allowed";
  if (!server.auth().error().empty()) out << "; auth: " << Escaped(server.auth().error());
  if (server.abandoned_versions() > 0)
    out << "; " << server.abandoned_versions() << " abandoned versions hold "
        << server.abandoned_threads() << " threads";
  out << "\n";
  PrintDevices(server.backend(), out);
}

void PrintModels(const GetStatsResponse& stats, const GetStatsResponse* before, double seconds,
                 std::ostream& out) {
  Table table({"MODEL", "VERSION", "STATE", "REQUESTS", "ERRORS", "QUEUE", "WAIT p50/p99",
               "BATCH ROWS", "RUN p50/p99", "MEMORY", "DEVICE", "NOTE"});
  for (const ModelStats& model : stats.models()) {
    if (model.versions().empty()) table.Add({model.name(), "-", "no version found"});
    for (const VersionStats& one : model.versions()) {
      const VersionStats* const then =
          before == nullptr ? nullptr : Find(*before, model.name(), one.version());
      table.Add({model.name(), absl::StrCat(one.version()),
                 StateName(one.state(), one.error().error_code() != 0),
                 RequestsText(one, then, seconds), absl::StrCat(Asked(one) - Answered(one)),
                 absl::StrCat(one.queued_requests()), TimesText(one.queue_wait()),
                 absl::StrFormat("%.3g", one.mean_batch_rows()), TimesText(one.run()),
                 Human(one.memory_bytes()),
                 one.place().device().empty() ? "-" : one.place().device(), NoteOf(one)});
    }
  }
  table.Print(out);
}

void PrintDetails(const GetStatsResponse& stats, std::ostream& out) {
  for (const ModelStats& model : stats.models()) {
    PrintLabels(model, out);
    for (const VersionStats& one : model.versions()) {
      if (one.state() != ModelVersion::AVAILABLE) continue;
      out << "\n"
          << model.name() << " version " << one.version() << ", " << one.workers() << " workers:";
      for (const CodeCount& code : one.requests()) out << " " << code.code() << " " << code.count();
      out << "\n";
      if (one.refused_full() + one.refused_late() + one.expired() + one.reruns() > 0)
        out << "  refused: queue full " << one.refused_full() << ", deadline too near "
            << one.refused_late() << "; expired " << one.expired() << "; batches run again "
            << one.reruns() << "\n";
      PrintPlace(one.place(), out);
      if (!one.last_internal_error().empty())
        out << "  last internal error: " << one.last_internal_error() << "\n";
      for (const StuckRun& run : one.stuck_runs())
        out << absl::StrFormat("  stuck for %.0f s: %s\n", run.seconds(), run.what());
      PrintSignatures(one, out);
    }
  }
}

}  // namespace floe::cli
