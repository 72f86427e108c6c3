// Runs small programs of launches on a device and on the emulator, and compares the bits; then
// times large ones on the device alone.
//
//   cuda_check [DEVICE [check]]     check: nothing is timed, as under compute-sanitizer
//
// The library is the one that floed would open (FLOE_CUDA_LIBRARY). Exit status 1: bits differ, or
// the device does not work.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/status.h"
#include "tests/cuda/programs.h"

namespace floe::cuda {
namespace {

absl::Status PrintKernels(const Device& device) {
  std::printf("%-16s %8s %10s %8s %8s %8s\n", "kernel", "threads", "registers", "spilled", "shared",
              "code");
  for (uint32_t i = 0; i < ListedKernels().size(); ++i) {
    FloeCudaKernelCode code = {};
    if (const int error = device.calls().load_kernel(device.index(), i, &code); error != 0)
      return absl::InternalError("load_kernel: error " + std::to_string(error));
    std::printf("%-16s %8d %10d %8d %8d %5s%d\n", ListedKernels()[i].name,
                ListedKernels()[i].threads, code.registers, code.local_bytes, code.shared_bytes,
                "sm_", code.architecture);
  }
  return absl::OkStatus();
}

// How many programs have other bits than on the emulator.
absl::StatusOr<int> CompareBits(const std::shared_ptr<Device>& device) {
  int wrong = 0;
  for (const CheckedProgram& program : CheckedPrograms(/*large=*/false)) {
    FLOE_ASSIGN_OR_RETURN(const auto emulated, RunOnEmulator(program));
    FLOE_ASSIGN_OR_RETURN(const auto result, RunOnDevice(program, device, 1));
    const int64_t differing = DifferingBits(result.memory, emulated);
    wrong += differing != 0;
    std::printf("%-24s %lld of %lld numbers differ\n", program.name.c_str(),
                static_cast<long long>(differing), static_cast<long long>(program.floats));
  }
  return wrong;
}

absl::Status Time(const std::shared_ptr<Device>& device) {
  for (const CheckedProgram& program : CheckedPrograms(/*large=*/true)) {
    FLOE_ASSIGN_OR_RETURN(const auto result, RunOnDevice(program, device, 20));
    std::printf("%-24s %10.1f us %10.2f TFLOP/s\n", program.name.c_str(), result.microseconds,
                program.flops / result.microseconds / 1e6);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Check(int index, bool timed) {
  FLOE_ASSIGN_OR_RETURN(const auto library, Library::Open());
  std::printf("%s: %s\n", library->path().c_str(), library->Versions().c_str());
  FLOE_ASSIGN_OR_RETURN(const auto device, Device::Open(library, index, 0));
  const FloeCudaDevice& properties = device->properties();
  std::printf("%s: %s, compute capability %d.%d, %d multiprocessors, %.1f GiB, at %s\n",
              device->name().c_str(), properties.name, properties.major, properties.minor,
              properties.multiprocessors, static_cast<double>(properties.total_bytes) / (1 << 30),
              properties.pci_bus);
  FLOE_RETURN_IF_ERROR(PrintKernels(*device));
  FLOE_ASSIGN_OR_RETURN(const int wrong, CompareBits(device));
  if (timed) FLOE_RETURN_IF_ERROR(Time(device));
  return wrong;
}

}  // namespace
}  // namespace floe::cuda

int main(int argc, char** argv) {
  const int index = argc > 1 ? std::atoi(argv[1]) : 0;
  const bool timed = argc <= 2 || std::string(argv[2]) != "check";
  const auto wrong = floe::cuda::Check(index, timed);
  if (!wrong.ok()) {
    std::printf("%s\n", std::string(wrong.status().message()).c_str());
    return 1;
  }
  return *wrong == 0 ? 0 : 1;
}
