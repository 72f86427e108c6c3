// Outputs -> ClassificationResponse, RegressionResponse, or a result of a MultiInferenceResponse.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/request/examples.h"
#include "server/request/inference.h"

namespace floe::server {

// The reply, in place of what `*reply` holds. `as_task`: an InferenceResult instead of a response
// of its own. Errors of ReadClassifyOutputs and ReadRegressOutputs; OUT_OF_RANGE beyond 2 GiB.
absl::Status EncodeExamples(const Inference& asked, Outputs outputs, ExampleMethod method,
                            bool as_task, std::string* reply);

}  // namespace floe::server
