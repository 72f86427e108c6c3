// What the pages show: of the server and all models, and of one model.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/api.h"
#include "server/api/page/event_hub.h"
#include "server/api/page/html.h"
#include "server/api/page/samples.h"

namespace floe::server {

// Of a moment. Takes each scheduler's lock for a moment. Threading: immutable.
struct PageState {
  const ApiContext& context;
  const Samples& samples;
  std::vector<ModelStats> models;
  TimePoint now;
};

// The server, the models that the caller may see, their recent errors, the configuration, devices.
PageSections OverviewSections(const PageState& state, const Caller& caller);

// Versions, activity, the time of each layer and recent errors of a model. Has the model time its
// next run. NOT_FOUND: there is no such model.
absl::StatusOr<PageSections> ModelSections(const PageState& state, const std::string& model);

// Where the reader's browser found the server: "http", "127.0.0.1:8500".
struct PageAddress {
  std::string scheme, host;
};
// What of a model's page does not change: its signatures, how to call it, and a form that does.
Html ModelUse(const PageState& state, const std::string& model, const PageAddress& address);

// The attempts to change the configuration. `details`: who made them, and what they changed or why
// they failed, which only operators may know.
Html ConfigChanges(const ConfigState& config, bool details, TimePoint now);

// The rows of <table>: a version each, the newest first.
Html VersionsTable(const PageState& state, const std::vector<const ModelStats*>& models,
                   bool links);
// The causes for which requests were refused of late; of one model, or with "", of all that the
// caller may see.
Html RecentErrors(const PageState& state, const std::string& model, const Caller& caller);

// "12 s", "3 min", "2.5 h", "4 days".
std::string TimeText(Duration time);

}  // namespace floe::server
