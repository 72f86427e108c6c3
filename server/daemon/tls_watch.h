// TlsWatch: the server's TLS context, and the thread that reads its files again.
#pragma once

#include <memory>
#include <string>

#include "base/task_thread_pool.h"
#include "config/config.h"
#include "server/net/tls_context.h"
#include "server/transport/transport.h"

namespace floe::server {

// Threading: any thread, after Start.
class TlsWatch {
 public:
  // Between two looks at the files.
  static constexpr Duration kPoll = std::chrono::seconds(2);

  explicit TlsWatch(const TlsConfig& config);
  ~TlsWatch() { thread_.Stop(); }
  TlsWatch(const TlsWatch&) = delete;
  TlsWatch& operator=(const TlsWatch&) = delete;

  // Reads the files; errors as TlsContext::Make. Nothing to do without TLS. Once.
  absl::Status Start();
  // For listeners: the context's snapshots; empty without TLS, and before Start.
  TlsSpec spec() const {
    if (context_ == nullptr) return {};
    return {[context = context_] { return context->Snapshot(); }};
  }
  // What a probe of health should say beside its answer: a line, or "".
  std::string Detail() const;
  // Null without TLS, and before Start.
  const std::shared_ptr<TlsContext>& context() const { return context_; }
  void ReloadNow();  // returns at once; also before Start

 private:
  const TlsConfig config_;
  std::shared_ptr<TlsContext> context_;
  TaskThreadPool thread_;
};

}  // namespace floe::server
