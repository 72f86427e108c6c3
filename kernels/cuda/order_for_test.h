// Orders of threads and blocks for tests of kernels.
#pragma once

#include <vector>

#include "kernels/cuda/emulator.h"

namespace floe::cuda {

// How kernels run while in scope.
class ScopedEmulatorOptions {
 public:
  explicit ScopedEmulatorOptions(const EmulatorOptions& options) : saved_(GetEmulatorOptions()) {
    SetEmulatorOptions(options);
  }
  ~ScopedEmulatorOptions() { SetEmulatorOptions(saved_); }
  ScopedEmulatorOptions(const ScopedEmulatorOptions&) = delete;
  ScopedEmulatorOptions& operator=(const ScopedEmulatorOptions&) = delete;

 private:
  EmulatorOptions saved_;
};

inline std::vector<EmulatorOptions> EveryOrder() {
  return {{EmulatorOrder::kForward},
          {EmulatorOrder::kBackward},
          {EmulatorOrder::kShuffled, 1},
          {EmulatorOrder::kShuffled, 2}};
}

}  // namespace floe::cuda
