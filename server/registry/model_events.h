// What changes a model's servables, attempts and findings: what happened to it, and what is decided
// for it. Unknown tickets and ids are ignored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/registry/diff.h"
#include "server/registry/model_state.h"

namespace floe::server {

// Scan base_path and report with NoteScanned. Before that, watch base_path and the loaded files if
// `watch` is set.
struct ScanAction {
  std::string model;
  int64_t ticket = 0;
  std::string base_path;
  VersionsToScan versions;
  std::shared_ptr<FileWatch> watch;
};

// Load and warm up, and report with NoteLoaded.
struct LoadAction {
  std::string model;
  ServableId id = 0;
  std::shared_ptr<const ModelConfig> config;
  int64_t version = 0;
  std::string file;
  CpuShares cpu_shares;  // of the configuration that it is loaded for
  // Raised when nobody wants the version any more: the load ends with CANCELLED as soon as it can.
  std::shared_ptr<const CancelToken> unwanted;
  bool staged = false;  // for a configuration that is being tried
};

// Let requests in progress end, free it all, and report with NoteUnloaded. New requests have not
// found it since before.
struct UnloadAction {
  std::string model;
  ServableId id = 0;
};

// What threads are to do.
struct Work {
  std::vector<ScanAction> scans;
  std::vector<LoadAction> loads;
  std::vector<UnloadAction> unloads;
  TimePoint next = TimePoint::max();  // when to ask again though nothing was reported
};

// Compares what is desired with what there is, and begins what the difference asks for.
void Reconcile(ModelState* model, TimePoint now, Work* work);

// A scan begins.
ScanAction BeginScan(const ModelState& model, TimePoint now, Target* target);
// How a scan ended. `watches`: its action's watch is set.
struct ScanResult {
  absl::StatusOr<std::vector<FoundVersion>> found;
  bool watches = false;
};
// True: something is different.
bool NoteScanned(ModelState* model, int64_t ticket, const ScanResult& result, TimePoint now,
                 const LifecycleTimes& times);
// A watch tells that something may be different: it is scanned, or scanned once more.
void NoteFilesChanged(ModelState* model, TimePoint now);
// A load ended. `identity`: of the file, where it is known.
void NoteLoaded(ModelState* model, ServableId id, const absl::Status& status, TimePoint now,
                const LifecycleTimes& times, const std::optional<FileIdentity>& identity);
// `status`: why not all of it ended.
void NoteUnloaded(ModelState* model, ServableId id, const absl::Status& status);
// Memory came back: what was refused for lack of it is tried at once, also what was given up.
// True: there is something to try.
bool RetryRefused(ModelState* model);

}  // namespace floe::server
