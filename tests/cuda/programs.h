// Small programs of launches, one for each kernel and more, that are run on a device and on the
// emulator: the bits of the whole memory are to be equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/launch.h"

namespace floe::cuda {

struct CheckedProgram {
  std::string name;
  int64_t floats;  // of its memory, which begins with the numbers of InitialNumbers
  double flops;    // of a run; 0: it is bound by memory
  void (*emit)(float* memory, std::vector<Launch>* launches);
};

// `large`: sizes whose times mean something on a device, too large for the emulator.
std::vector<CheckedProgram> CheckedPrograms(bool large);

// The same on every machine: of both signs, some zero, none special.
std::vector<float> InitialNumbers(int64_t count);

absl::StatusOr<std::vector<float>> RunOnEmulator(const CheckedProgram& program);

struct DeviceResult {
  std::vector<float> memory;
  double microseconds = 0;  // of the fastest of `runs` more, without copies
};
absl::StatusOr<DeviceResult> RunOnDevice(const CheckedProgram& program,
                                         const std::shared_ptr<Device>& device, int runs);

// How many numbers differ in their bits.
int64_t DifferingBits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace floe::cuda
