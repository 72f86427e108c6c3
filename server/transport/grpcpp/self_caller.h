// SelfCaller: calls a method of this process's own transport, to learn whether it still answers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace floe::server {

// One call at a time, each over a new connection; it blocks no thread. Threading: any thread.
class SelfCaller {
 public:
  // `connect` gives a connected socket, which the call closes.
  SelfCaller(std::string method, std::function<absl::StatusOr<int>()> connect);
  // Stops, and waits until the call in progress has ended.
  ~SelfCaller();
  SelfCaller(const SelfCaller&) = delete;
  SelfCaller& operator=(const SelfCaller&) = delete;

  // Whether the last call was answered; an error is an answer. Then it starts the next call. The
  // first result is true.
  bool Answered();
  // Cancels the call in progress and starts no more.
  void Stop();

 private:
  struct Call;

  const std::string method_;
  const std::function<absl::StatusOr<int>()> connect_;
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Call> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe::server
