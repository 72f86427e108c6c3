#include "server/daemon/secret_watch.h"

#include "base/clock.h"
#include "base/status.h"

namespace floe::server {

SecretWatch::SecretWatch(const ListenConfig& config)
    : tls_config_(config.tls), auth_config_(config.auth), thread_(1, {"secrets", 0, {}}, [this] {
        if (context_ != nullptr) context_->Poll();
        access_->Poll();
        return Clock::Steady().Now() + kPoll;
      }) {}

absl::Status SecretWatch::Start() {
  FLOE_ASSIGN_OR_RETURN(access_, Access::Make(auth_config_));
  if (!has_files()) return absl::OkStatus();
  if (tls_config_.is_on()) {
    FLOE_ASSIGN_OR_RETURN(context_, TlsContext::Make(tls_config_));
  }
  return thread_.Start();
}

// Probes come from everywhere: that something is wrong is theirs to know, paths are not.
std::string SecretWatch::Detail() const {
  std::string lines;
  if (context_ != nullptr && !context_->state().status.ok())
    lines += "TLS: the certificate was not renewed; the log and floectl status say why\n";
  if (access_ != nullptr && !access_->state().status.ok())
    lines += "auth: the tokens were not read again; the log and floectl status say why\n";
  return lines;
}

void SecretWatch::ReloadNow() {
  if (!has_files()) return;
  thread_.Post([this] {  // which logs errors
    if (context_ != nullptr) context_->Reload().IgnoreError();
    access_->Reload().IgnoreError();
  });
}

}  // namespace floe::server
