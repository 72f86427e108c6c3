// What the code calls that nvcc writes, and the fake runtime needs not to know.
#include <cuda_runtime_api.h>

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void*) { return 1; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return cudaErrorUnknown; }
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorUnknown; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaErrorUnknown;  // the library launches graphs alone
}
// NOLINTEND(bugprone-reserved-identifier)
}
