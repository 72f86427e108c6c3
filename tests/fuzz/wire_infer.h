// KServe v2's ModelInferRequest, the other message that the wire fuzzer takes its bytes for.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "kserve/grpc_service.pb.h"
#include "tests/fuzz/random.h"

namespace floe::fuzz {

// What is read of the bytes against what is read of protobuf's own text of the same message, and
// against what protobuf's classes hold; and the inputs, written as a reply.
absl::Status RunInfer(const std::string& bytes);

// Whether the bytes are a ModelInferRequest with inputs, put into `*request`.
bool IsInfer(const std::string& bytes, inference::ModelInferRequest* request);

// A few changes; inputs often have values that fit their datatype and shape.
void MutateInfer(inference::ModelInferRequest* request, Random& random);

}  // namespace floe::fuzz
