// From the numbers of the registry to readiness, status and log lines.
#include "server/daemon/start_up.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "base/nearest.h"

namespace floe::server {

bool StartUp::Step(const ServedTable::Tally& models, TimePoint now) {
  complete_ |= models.available == models.models;
  if (options_.exit_on_error && !complete_ && !models.failed.empty()) {
    spdlog::error("exit_on_error is set, and of {} models these cannot be served: {}; ending",
                  models.models, QuotedList(models.failed));
    return false;
  }
  const std::string status =
      absl::StrCat("Serving ", models.available, " of ", models.models, " models");
  const bool changed = status != status_;
  status_ = status;
  const bool starts = !started_ && (models.settled || now >= until_);
  if (starts) {
    started_ = true;
    options_.ready(status);
  } else if (changed) {
    options_.status(status);
  }
  if (starts || (started_ && changed && !logged_ready_)) LogReadiness(models);

  ReportFailed(models.failed);
  return true;
}

void StartUp::LogReadiness(const ServedTable::Tally& models) {
  const bool all = models.available == models.models;
  logged_ready_ = all || (!options_.strict && models.available > 0);
  spdlog::info("{}ready: {}{}", logged_ready_ ? "" : "not ", status_,
               models.settled ? "" : "; others are still being loaded");
}

void StartUp::ReportFailed(const std::vector<std::string>& failed) {
  if (failed == failed_) return;
  failed_ = failed;
  if (failed.empty()) return;
  spdlog::error("models that cannot be served as they are: {}; {}", QuotedList(failed),
                options_.polls
                    ? "they are retried when their files change, or at a reload"
                    : "file_system_poll_wait_seconds is 0, so they are retried only at a "
                      "reload (SIGHUP or HandleReloadConfigRequest)");
}

}  // namespace floe::server
