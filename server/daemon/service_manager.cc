// The messages of sd_notify(3).
#include "server/daemon/service_manager.h"

#include <systemd/sd-daemon.h>

namespace floe::server {

void ServiceManager::Ready(const std::string& status) {
  sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}

void ServiceManager::Status(const std::string& status) {
  sd_notify(0, ("STATUS=" + status).c_str());
}

void ServiceManager::Stopping() {
  sd_notify(0, "STOPPING=1\nSTATUS=Finishing the calls in progress");
}

void ServiceManager::FeedWatchdog() { sd_notify(0, "WATCHDOG=1"); }

std::chrono::microseconds ServiceManager::WatchdogInterval() const {
  uint64_t micros = 0;
  if (sd_watchdog_enabled(0, &micros) <= 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(micros);
}

}  // namespace floe::server
