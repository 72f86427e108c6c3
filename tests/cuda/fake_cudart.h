// What tests tell and ask the fake CUDA runtime (fake_cudart.cc). Threading: any thread.
#pragma once

#include <cstdint>
#include <functional>

extern "C" {

struct FakeCudaOptions {
  uint64_t total_bytes;  // of a device's memory
  int devices;
  int major, minor;  // compute capability
};

// A new start: options as given, no fault, no complaint. What is allocated stays.
void fake_cuda_reset(const FakeCudaOptions* options);
// The call after `calls` more fails with the error. An error that CUDA does not recover from, and
// the unknown one, fails all later calls too.
void fake_cuda_fail_after(int64_t calls, int error);
int64_t fake_cuda_calls(void);        // since the reset
int64_t fake_cuda_alive(void);        // allocations, streams and graphs that nobody has freed
uint64_t fake_cuda_used(void);        // bytes of devices
uint64_t fake_cuda_peak(void);        // the most since the reset
int64_t fake_cuda_kernels_run(void);  // since the reset
int64_t fake_cuda_made(void);         // allocations, streams and executable graphs since the reset
uint64_t fake_cuda_copied(void);      // bytes that graphs have copied to devices since the reset
int fake_cuda_is_pinned(const void* memory);
// While held, nobody's wait for a stream returns, nor does its work begin: so tests see what is
// under way together.
void fake_cuda_hold(int held);
// Returns when so many streams have work at the same time.
void fake_cuda_await_busy(int streams);
int fake_cuda_busy(void);  // streams with work now
// For fakes of other libraries: puts work, which returns a CUDA error, into a stream of this
// thread's device, as a launched kernel; and whether memory is that device's.
void fake_cuda_enqueue(void* stream, const std::function<int()>* work);
int fake_cuda_on_device(const void* memory, uint64_t bytes);
// Wrong use since the reset that a device might let pass: the first. Empty: none.
const char* fake_cuda_complaint(void);
}
