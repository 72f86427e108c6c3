#include "server/registry/model_state.h"

#include <utility>

#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

constexpr size_t kEndedKept = 3;

}  // namespace

bool Servable::MayRetryLoad() const { return !key.file.empty() && MayRetry(attempt->error); }

const Target::Seen* Target::Find(int64_t version) const {
  for (const Seen& seen : found)
    if (seen.files.version == version) return &seen;
  return nullptr;
}

const Servable* ModelState::Find(int64_t revision, int64_t version) const {
  for (const Servable& one : servables)
    if (one.key.revision == revision && one.version() == version &&
        one.state != VersionState::kUnloading)
      return &one;
  return nullptr;
}

Servable* ModelState::Find(int64_t revision, int64_t version) {
  return const_cast<Servable*>(std::as_const(*this).Find(revision, version));
}

std::shared_ptr<Attempt> ModelState::BeginAttempt(const AttemptKey& key) {
  std::erase_if(attempts, [&key](const auto& one) {
    return one.first.revision == key.revision && one.first.version == key.version;
  });
  return attempts[key] = std::make_shared<Attempt>();
}

std::list<Servable>::iterator ModelState::Erase(std::list<Servable>::iterator servable) {
  const auto attempt = attempts.find(servable->key);
  const bool own = attempt != attempts.end() && attempt->second == servable->attempt;
  const bool remembered = servable->Failing() && servable->key.revision == current_revision();
  if (own && !remembered) attempts.erase(attempt);
  return servables.erase(servable);
}

void ModelState::NoteEnd(int64_t version, const absl::Status& error) {
  if (!current) return;
  ended.push_front({version, VersionState::kEnd, error});
  if (ended.size() > kEndedKept) ended.pop_back();
}

}  // namespace floe::server
