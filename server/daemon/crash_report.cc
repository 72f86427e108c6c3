// The failure handler's output, with the model, op and step that the thread was running.
#include "server/daemon/crash_report.h"

#include <unistd.h>

#include <cstring>

#include "absl/debugging/failure_signal_handler.h"
#include "absl/debugging/symbolize.h"
#include "base/running.h"

namespace floe::server {
namespace {

void Write(const char* text, size_t size) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, size);
}

// Called with each line of the report, and with null at its end. Async-signal-safe.
void WriteLine(const char* line) {
  static bool described = false;  // one crash ends the process
  if (line == nullptr) return;
  Write(line, strlen(line));
  if (described) return;
  described = true;
  const Running* const running = Running::Current();
  if (running == nullptr) return;
  char text[512];
  constexpr char kComputing[] = "    while computing ";
  Write(kComputing, sizeof kComputing - 1);
  Write(text, running->Describe(text, sizeof text));
  Write("\n", 1);
}

}  // namespace

void ReportCrashes(const char* program) {
#ifndef FLOE_SANITIZED  // sanitizers have reports of their own
  absl::InitializeSymbolizer(program);
  absl::FailureSignalHandlerOptions options;
  options.call_previous_handler = false;
  options.writerfn = WriteLine;
  absl::InstallFailureSignalHandler(options);
#else
  (void)program, (void)WriteLine;
#endif
}

}  // namespace floe::server
