// What floed leaves on stderr when it crashes: the signal, what the thread computed, a backtrace.
#pragma once

namespace floe::server {

// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGABRT write a report to stderr and
// then end the process as ever. `program`: argv[0]. Once, before other threads.
void ReportCrashes(const char* program);

}  // namespace floe::server
