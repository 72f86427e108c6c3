// Recorded requests: a version's assets.extra/tf_serving_warmup_requests, as TensorFlow Serving
// reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/model.h"
#include "server/request/inference.h"

namespace floe::server {

// Runs a recorded request to its end; its error otherwise.
using RunRecorded = std::function<absl::Status(const Inference& asked)>;

// Reads a TFRecord file of PredictionLog and has `run` run its requests one after the other,
// whatever model and version they name. Those of streams are skipped, which `notes` says. An error
// names the record, counted from 1: DATA_LOSS for a damaged file. INVALID_ARGUMENT for a record
// that is no PredictionLog or an empty one, a request the model does not take, or more than 1,000
// records. Otherwise what `run` said.
absl::Status ReplayWarmUpRequests(const std::string& file, const Model& model,
                                  const RunRecorded& run, std::vector<std::string>* notes);

}  // namespace floe::server
