// What /proc and getrusage say.
#include "server/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>

namespace floe::server {
namespace {

double ResidentBytes() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/self/statm", "re"), &fclose);
  long total = 0, resident = 0;
  if (file == nullptr || fscanf(file.get(), "%ld %ld", &total, &resident) != 2) return 0;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double OpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (folder == nullptr) return 0;
  int64_t files = 0;
  while (readdir(folder.get()) != nullptr) ++files;
  constexpr int64_t kOthers = 3;  // ".", ".." and the folder itself
  return static_cast<double>(files - kOthers);
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

void WriteProcessMetrics(Exposition* text) {
  const auto gauge = [text](std::string_view name, std::string_view help, double value) {
    text->Family(name, MetricType::kGauge, help);
    text->Sample({}, value);
  };
  text->Family("process_cpu_seconds_total", MetricType::kCounter,
               "CPU time of the process, user and system.");
  text->Sample({}, CpuSeconds());
  gauge("process_resident_memory_bytes", "Resident memory of the process.", ResidentBytes());
  gauge("process_open_fds", "Open file descriptors.", OpenFiles());
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  gauge("process_max_fds", "Limit of open file descriptors.", static_cast<double>(files.rlim_cur));
}

}  // namespace floe::server
