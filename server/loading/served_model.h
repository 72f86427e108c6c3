// ServedModel: a version of a model that answers.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "config/config.h"
#include "runtime/model.h"
#include "runtime/profile_report.h"
#include "server/request/request.h"

namespace floe::server {

// A version that answers: the compiled model and the queue in front of its workers.
// Threading: any thread. Held by shared_ptr for as long as a request needs it.
class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual const ModelHandle& model() const = 0;
  // How replies hold numbers where neither the caller nor the server says.
  virtual ReplyFormat reply_format() const = 0;
  // One of so many requests is written to the request log; 0: none.
  virtual int64_t log_one_in() const { return 0; }
  // Takes the request in every case; request.complete reports refusals too (RESOURCE_EXHAUSTED when
  // full, DEADLINE_EXCEEDED when late, UNAVAILABLE while stopping).
  virtual void Submit(Request request) = 0;
  // What was asked of it was refused before it could be submitted; for statistics. Its signature
  // may not be known.
  virtual void CountRefused(const Inference& asked, absl::StatusCode code) {
    (void)asked, (void)code;
  }
  // Times the next run step by step, and the last one that was; as of Executor.
  virtual void ProfileNextRun() {}
  virtual std::shared_ptr<const RunProfile> LastProfile() const { return nullptr; }
};
using ServedHandle = std::shared_ptr<ServedModel>;

}  // namespace floe::server
