// ModelRegistry: which models and versions there are, their states, and how an RPC gets hold of
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "runtime/model.h"
#include "server/batching/infer_request.h"

namespace floe::server {

// Numbers as in GetModelStatusResponse.
enum class VersionState : int {
  kUnknown = 0,
  kStart = 10,
  kLoading = 20,
  kAvailable = 30,
  kUnloading = 40,
  kEnd = 50
};
const char* VersionStateName(VersionState state);

struct VersionStatus {
  int64_t version = 0;
  VersionState state = VersionState::kUnknown;
  absl::Status error;  // why a version ended; OK otherwise
};

enum class ReplyEncoding : uint8_t { kTyped, kContent };

// A version that answers: the compiled model and the queue in front of its workers.
// Threading: any thread. Held by shared_ptr for as long as a request needs it.
class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual const ModelHandle& model() const = 0;
  virtual ReplyEncoding reply_encoding() const = 0;
  // Takes the request in every case; request->done reports refusals too (RESOURCE_EXHAUSTED when
  // full, DEADLINE_EXCEEDED when late, UNAVAILABLE while stopping).
  virtual void Submit(std::unique_ptr<InferRequest> request) = 0;
};
using ServedHandle = std::shared_ptr<ServedModel>;

// Threading: any thread; readers never wait for a load.
class ModelRegistry {
 public:
  virtual ~ModelRegistry() = default;

  // The newest available version, or the given one. NOT_FOUND: unknown model or version (names the
  // nearest model names); UNAVAILABLE: known but not available yet, with the load error if there is
  // one.
  virtual absl::StatusOr<ServedHandle> Acquire(const std::string& name,
                                               std::optional<int64_t> version) const = 0;

  // Newest version first; NOT_FOUND as above.
  virtual absl::StatusOr<std::vector<VersionStatus>> Status(
      const std::string& name, std::optional<int64_t> version) const = 0;
  virtual std::vector<std::string> ModelNames() const = 0;
};

}  // namespace floe::server
