// Scrape: what the metrics of a moment are written from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/api.h"
#include "server/metrics/exposition.h"
#include "server/registry/registry.h"

namespace floe::server {

// A version that has a queue, with its labels.
struct VersionWork {
  std::string_view model;
  std::string version;
  const SchedulerStats* stats;

  MetricLabels Labels(std::initializer_list<MetricLabel> more = {}) const {
    MetricLabels labels = {{"model", model}, {"version", version}};
    labels.insert(labels.end(), more);
    return labels;
  }
};

// Takes each scheduler's lock for a moment. Threading: immutable.
struct Scrape {
  explicit Scrape(const ApiContext& api) : context(api) {
    if (auto stats = api.registry.Stats(""); stats.ok()) models = *std::move(stats);
    for (const ModelStats& model : models)
      for (const VersionStats& version : model.versions)
        if (version.scheduler.has_value())
          work.push_back({model.name, std::to_string(version.status.version), &*version.scheduler});
  }
  Scrape(const Scrape&) = delete;
  Scrape& operator=(const Scrape&) = delete;

  const ApiContext& context;
  std::vector<ModelStats> models;
  std::vector<VersionWork> work;  // of `models`
};

}  // namespace floe::server
