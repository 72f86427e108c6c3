// ServedModel: a version of a model that answers.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "config/config.h"
#include "runtime/model.h"
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
  // Takes the request in every case; request.complete reports refusals too (RESOURCE_EXHAUSTED when
  // full, DEADLINE_EXCEEDED when late, UNAVAILABLE while stopping).
  virtual void Submit(Request request) = 0;
  // What was asked of it was refused before it could be submitted; for statistics. Its signature
  // may not be known.
  virtual void CountRefused(const Inference& asked, absl::StatusCode code) {
    (void)asked, (void)code;
  }
};
using ServedHandle = std::shared_ptr<ServedModel>;

}  // namespace floe::server
