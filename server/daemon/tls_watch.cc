#include "server/daemon/tls_watch.h"

#include "base/clock.h"
#include "base/status.h"

namespace floe::server {

TlsWatch::TlsWatch(const TlsConfig& config)
    : config_(config), thread_(1, {"tls", 0, {}}, [this] {
        context_->Poll();
        return Clock::Steady().Now() + kPoll;
      }) {}

absl::Status TlsWatch::Start() {
  if (!config_.is_on()) return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(context_, TlsContext::Make(config_));
  return thread_.Start();
}

// Probes come from everywhere: that something is wrong is theirs to know, paths are not.
std::string TlsWatch::Detail() const {
  if (context_ == nullptr || context_->state().status.ok()) return "";
  return "TLS: the certificate was not renewed; the log and floectl status say why\n";
}

void TlsWatch::ReloadNow() {
  if (!config_.is_on()) return;
  thread_.Post([this] { context_->Reload().IgnoreError(); });  // it has been logged
}

}  // namespace floe::server
