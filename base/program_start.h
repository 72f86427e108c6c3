// What floed and floectl do before anything else. Only programs link it: it changes the process.
#pragma once

namespace floe {

// Debian builds Abseil with its search for lock cycles, which every lock of an absl::Mutex goes
// through: a tenth of what a small request costs. Once, before other threads.
void SkipDeadlockDetection();

}  // namespace floe
