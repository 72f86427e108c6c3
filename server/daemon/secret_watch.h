// SecretWatch: certificates and tokens, and the thread that reads their files again.
#pragma once

#include <memory>
#include <string>

#include "base/task_thread_pool.h"
#include "config/config.h"
#include "server/api/access.h"
#include "server/net/tls_context.h"
#include "server/transport/transport.h"

namespace floe::server {

// Threading: any thread, after Start.
class SecretWatch {
 public:
  // Between two looks at the files.
  static constexpr Duration kPoll = std::chrono::seconds(2);

  explicit SecretWatch(const ListenConfig& config);
  ~SecretWatch() { thread_.Stop(); }
  SecretWatch(const SecretWatch&) = delete;
  SecretWatch& operator=(const SecretWatch&) = delete;

  // Reads the files; errors as TlsContext::Make and Access::Make. Once.
  absl::Status Start();
  // For listeners: the context's snapshots; empty without TLS, and before Start.
  TlsSpec tls() const {
    if (context_ == nullptr) return {};
    return {[context = context_] { return context->Snapshot(); }};
  }
  // What a probe of health should say beside its answer: lines, or "".
  std::string Detail() const;
  // Null without TLS, and before Start.
  const std::shared_ptr<TlsContext>& context() const { return context_; }
  const std::shared_ptr<Access>& access() const { return access_; }  // null before Start
  void ReloadNow();                                                  // returns at once

 private:
  bool has_files() const { return tls_config_.is_on() || !auth_config_.tokens_file.empty(); }

  const TlsConfig tls_config_;
  const AuthConfig auth_config_;
  std::shared_ptr<TlsContext> context_;
  std::shared_ptr<Access> access_;
  TaskThreadPool thread_;
};

}  // namespace floe::server
