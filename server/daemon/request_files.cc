#include "server/daemon/request_files.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quoted.h"

namespace floe::server {
namespace {

constexpr size_t kMostWaitingBytes = size_t{32} << 20;  // of a file

// Records have no place for it; floed's own log has.
std::string NothingIsMissing(int64_t lines) {
  spdlog::warn("{} records of a request log are missing: its file was not written in time", lines);
  return "";
}

}  // namespace

absl::Status RequestFiles::Check() const {
  if (access(directory_.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("log.requests_directory: nothing can be written to ", Quoted(directory_), ": ",
                   std::string(absl::ErrnoToStatus(errno, "").message())));
}

std::string RequestFiles::FileOf(const std::string& model) {
  std::string name;
  for (const char c : model) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                       (c == '.' && !name.empty());
    if (plain)
      name.push_back(c);
    else
      absl::StrAppendFormat(&name, "%%%02X", static_cast<unsigned char>(c));
  }
  return name + ".tfrecord";
}

void RequestFiles::Add(const std::string& model, std::string record) {
  MutexLock lock(mutex_);
  auto [found, is_new] = files_.try_emplace(model, nullptr);
  if (is_new) {
    auto* const made = new LogBuffer({.path = absl::StrCat(directory_, "/", FileOf(model)),
                                      .most_file_bytes = file_bytes_,
                                      .most_bytes = kMostWaitingBytes,
                                      .missing = NothingIsMissing});
    const absl::Status started = made->Start();
    if (started.ok())
      found->second = made;  // which is never freed
    else
      spdlog::error("no request log of model {}: {}", Quoted(model),
                    std::string(started.message()));
  }
  if (found->second != nullptr) found->second->Add(std::move(record));
}

void RequestFiles::Flush(TimePoint until) {
  std::vector<LogBuffer*> files;
  {
    MutexLock lock(mutex_);
    for (const auto& [model, file] : files_)
      if (file != nullptr) files.push_back(file);
  }
  for (LogBuffer* const file : files) file->Flush(until);
}

int64_t RequestFiles::dropped() const {
  MutexLock lock(mutex_);
  int64_t dropped = 0;
  for (const auto& [model, file] : files_)
    if (file != nullptr) dropped += file->dropped();
  return dropped;
}

}  // namespace floe::server
