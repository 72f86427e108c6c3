// Look-ups in the data of a model.
#include "server/registry/model_state.h"

#include <atomic>

#include "server/registry/version_policy.h"

namespace floe::server {

const Found::Version* Found::Find(int64_t version) const {
  for (const Version& one : versions)
    if (one.files.version == version) return &one;
  return nullptr;
}

bool MayRetryLoad(const AttemptKey& key, const Attempt& attempt) {
  return !key.file.empty() && MayRetry(attempt.error);
}

const Servable* FindServable(const Servables& servables, int64_t revision, int64_t version) {
  for (const Servable& one : servables)
    if (one.key.revision == revision && one.version() == version &&
        one.state != VersionState::kUnloading)
      return &one;
  return nullptr;
}

int64_t NextId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace floe::server
