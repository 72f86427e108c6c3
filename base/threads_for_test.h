// For death tests of what happens when the system gives no more threads.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "base/threads.h"

namespace floe {

// This process becomes that of a user who may have no more threads than run now; the thread source
// is one of them. Ends it with 1 or 2 where that is not to be had.
inline void AllowNoMoreThreads() {
  StartThreadSource();
  const rlimit none{1, 1};
  if (setrlimit(RLIMIT_NPROC, &none) != 0) std::_Exit(1);
  if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) std::_Exit(2);
}

}  // namespace floe
