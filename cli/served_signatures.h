// The signatures of a model that a server serves.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/rpc.h"
#include "model/graph.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace floe::cli {

struct ServedSignatures {
  int64_t version = 0;
  std::vector<SignatureDef> signatures;  // by name; tensors in the order of their keys
};

// Of the version that `spec` means. Errors of the call; INTERNAL: the answer holds no signatures.
absl::StatusOr<ServedSignatures> FetchSignatures(const RpcClient& client,
                                                 const tensorflow::serving::ModelSpec& spec);

}  // namespace floe::cli
