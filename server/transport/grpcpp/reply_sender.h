// ReplySender: a thread that sends replies for threads that have more to do.
#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "base/task_thread_pool.h"

namespace floe::server {

class DeferredReply {
 public:
  virtual void Send() = 0;

 protected:
  ~DeferredReply() = default;
};

// grpc++ sends a reply on the thread that finishes the call. A worker with a full queue is what
// throughput depends on, and sending was a tenth of its time for a network of 0.3 ms a row.
// Threading: any thread.
class ReplySender {
 public:
  // Replies that wait for the thread, at most: beyond them it is slower than those who ask for it.
  static constexpr int kMostWaiting = 256;

  // RESOURCE_EXHAUSTED when the system gives no thread. Once, before Post.
  absl::Status Start() { return thread_.Start(); }
  // Has the thread send the reply, which lives until then. False: too many wait.
  bool Post(DeferredReply* reply);

 private:
  std::atomic<int> waiting_{0};
  TaskThreadPool thread_{1, {"send", 0, {}}};
};

}  // namespace floe::server
