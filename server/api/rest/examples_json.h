// TensorFlow Serving's classify and regress in JSON: a body to an Inference, outputs to a reply.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/api/infer_call.h"
#include "server/request/examples.h"

namespace floe::server {

// Fills `*asked` from a JSON body with kJsonPadding readable bytes behind it, into which no input
// is a view: "examples" become serialized tf.Examples, each with the features of "context", too.
// `spec` names the model. Errors beside those of `find`, ChooseExampleSignature and FeedExamples:
// INVALID_ARGUMENT names the value's path.
absl::Status DecodeExamplesJson(std::string_view body, const ModelSpec& spec,
                                const ExampleCall& call, const MemoryBudget* memory,
                                FindServed find, Inference* asked);

// The reply, in place of what `*reply` holds. Errors of ReadClassifyOutputs and
// ReadRegressOutputs. Its memory beyond the outputs' is taken of `memory` as long as it is made.
absl::Status EncodeExamplesJson(const Inference& asked, Outputs outputs, ExampleMethod method,
                                const MemoryBudget* memory, std::string* reply);

}  // namespace floe::server
