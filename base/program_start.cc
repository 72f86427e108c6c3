#include "base/program_start.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/synchronization/mutex.h"

// jemalloc reads this before main. With glibc's allocator, requests wait for a lock that the
// threads which load and unload models hold for milliseconds (its arenas are shared, and trimmed
// under their locks). What is freed goes back to the system after a second, in jemalloc's own
// threads. Without oversize_threshold:0, requests of 8 MiB and more would get new pages from the
// system each time. Without thp:never, where the system makes huge pages for all (Debian does), an
// idle connection takes 34 kB instead of 15; packed weights ask for theirs.
extern "C" const char* malloc_conf;
const char* malloc_conf =
    "background_thread:true,dirty_decay_ms:1000,narenas:2,oversize_threshold:0,thp:never";

// Weak: programs that are linked without jemalloc do not have it.
extern "C" int mallctl(const char* name, void* old, size_t* old_size, void* value, size_t size)
    __attribute__((weak));
// jemalloc 5.3 makes its first arena before it reads the option.
[[gnu::constructor]] static void KeepLargePagesOfFirstArena() {
  size_t never = size_t{1} << 60;
  if (mallctl != nullptr)
    (void)mallctl("arena.0.oversize_threshold", nullptr, nullptr, &never, sizeof never);
}

// Started without one of the standard streams, the next file or connection would get its number,
// and what is logged. Called before the libraries' own initializers, some of which open files.
static void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);  // the lowest that is free
}
[[gnu::section(".preinit_array"),
  gnu::used]] static void (*const open_standard_streams)() = OpenStandardStreams;

namespace floe {

void SkipDeadlockDetection() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace floe
