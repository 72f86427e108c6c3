// What is to be done for a model to become what is desired of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/registry/desired.h"
#include "server/registry/model_state.h"

namespace floe::server {

// Look under base_path and report with Scanned.
struct ScanAction {
  std::string model;
  int64_t ticket = 0;
  std::string base_path;
  VersionsToScan versions;
  TimePoint due;
};

// Load and warm up, and report with Loaded.
struct LoadAction {
  std::string model;
  ServableId id = 0;
  std::shared_ptr<const ModelConfig> config;
  int64_t version = 0;
  std::string file;
  CpuShares weights;  // of the configuration that it is loaded for
  // Raised when nobody wants the version any more: the load ends with CANCELLED as soon as it can.
  std::shared_ptr<const CancelToken> unwanted;
  bool staged = false;  // for a configuration that is being tried
};

// Let requests in progress end, free it all, and report with Unloaded. New requests have not found
// it since before.
struct UnloadAction {
  std::string model;
  ServableId id = 0;
};

struct Actions {
  std::vector<ScanAction> scans;
  std::vector<LoadAction> loads;
  std::vector<UnloadAction> unloads;
  TimePoint next = TimePoint::max();  // when to ask again though nothing was reported
};

// What differs between the servables that there are and those desired. Pure.
struct Diff {
  std::vector<ServableId> drop;      // never came to be, and are wanted no more
  std::vector<ServableId> cancel;    // their loads are wanted no more
  std::vector<ServableId> publish;   // requests may find them from now on
  std::vector<ServableId> withdraw;  // requests find them no more, and they are unloaded
  std::vector<ServableId> load;
  TimePoint next = TimePoint::max();  // the first retry
};
Diff DiffOf(const ModelState& model, const Desired& desired, TimePoint now);

// Makes servables of what is desired, applies the difference, and says what is to be done for it,
// each action once.
void Reconcile(ModelState* model, TimePoint now, Actions* actions);

}  // namespace floe::server
