// Messages to systemd; does nothing outside a service.
#pragma once

#include <chrono>
#include <string>

namespace floe::server {

// Threading: any thread.
class ServiceManager {
 public:
  void Ready(const std::string& status);
  void Status(const std::string& status);
  void Stopping();
  void FeedWatchdog();
  // WatchdogSec, or zero when there is no watchdog.
  std::chrono::microseconds WatchdogInterval() const;
};

}  // namespace floe::server
