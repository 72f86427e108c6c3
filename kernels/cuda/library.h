// The seam between floed, which links no CUDA, and libfloe_cuda.so, which has the kernels and the
// CUDA runtime: one function, floe_cuda_library, returns a table of calls. Plain C types only,
// since each side may come from another build.
//
// Every call but the last two returns 0 or the number of a CUDA error (cudaError_t), of which
// kernels/cuda/device/errors.h makes a status; outputs are written only when it is 0. `device` is
// the number of a device as CUDA counts them. Any thread may call; one stream, graph or executable
// graph is used by one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Both sides compare it. It changes with every change of the table or of what a call means.
#define FLOE_CUDA_VERSION 2u

typedef struct FloeCudaDevice {
  char name[256];
  char pci_bus[32];      // "0000:3B:00.0"
  int32_t major, minor;  // compute capability
  int32_t multiprocessors;
  int32_t reserved;
  uint64_t total_bytes;
} FloeCudaDevice;

// A kernel as the library has it, in the order of KernelId.
typedef struct FloeCudaKernel {
  const char* name;
  int32_t threads;     // of a block
  int32_t args_bytes;  // of the one struct that it takes by value
} FloeCudaKernel;

// What the compiler made of a kernel for a device.
typedef struct FloeCudaKernelCode {
  int32_t architecture;  // 90: the code is for sm_90
  int32_t registers;     // of a thread
  int32_t local_bytes;   // of a thread: spilled
  int32_t shared_bytes;  // of a block
  int32_t most_threads;  // of a block
} FloeCudaKernelCode;

typedef struct FloeCudaGrid {
  uint32_t x, y, z;
} FloeCudaGrid;

typedef void* FloeCudaStream;
typedef void* FloeCudaGraph;
typedef void* FloeCudaNode;  // of a graph, which owns it
typedef void* FloeCudaExec;

typedef struct FloeCudaLibrary {
  uint32_t version;  // FLOE_CUDA_VERSION
  uint32_t bytes;    // sizeof(FloeCudaLibrary)
  uint32_t kernel_count;
  uint32_t reserved;
  const FloeCudaKernel* kernels;

  // Of the driver 0 without one. As CUDA writes versions: 13000 is 13.0.
  int (*versions)(int* driver, int* runtime);
  int (*device_count)(int* count);
  int (*device_properties)(int device, FloeCudaDevice* properties);
  int (*use_device)(int device);  // by what this thread calls of other libraries
  int (*memory)(int device, uint64_t* free_bytes, uint64_t* total_bytes);
  // Loads the kernel's code on the device, which is otherwise done when it first runs.
  int (*load_kernel)(int device, uint32_t kernel, FloeCudaKernelCode* code);

  int (*allocate)(int device, uint64_t bytes, void** memory);
  int (*release)(void* memory);
  // Memory of the host that devices copy from and to by themselves.
  int (*allocate_pinned)(int device, uint64_t bytes, void** memory);
  int (*release_pinned)(void* memory);
  // Return when the copy is done, and order nothing with streams.
  int (*copy_to_device)(int device, void* to, const void* from, uint64_t bytes);
  int (*copy_to_host)(int device, void* to, const void* from, uint64_t bytes);

  int (*create_stream)(int device, FloeCudaStream* stream);
  int (*destroy_stream)(FloeCudaStream stream);
  int (*wait)(FloeCudaStream stream);  // until all work in it is done, and reports its errors

  int (*create_graph)(int device, FloeCudaGraph* graph);
  int (*destroy_graph)(FloeCudaGraph graph);
  // Nodes run after the `after_count` nodes of `after`. The args of a kernel are copied.
  int (*add_kernel)(int device, FloeCudaGraph graph, const FloeCudaNode* after,
                    uint64_t after_count, uint32_t kernel, FloeCudaGrid grid, const void* args,
                    FloeCudaNode* node);
  // Of pinned memory of the host and memory of the device.
  int (*add_copy_to_device)(int device, FloeCudaGraph graph, const FloeCudaNode* after,
                            uint64_t after_count, void* to, const void* from, uint64_t bytes,
                            FloeCudaNode* node);
  int (*add_copy_to_host)(int device, FloeCudaGraph graph, const FloeCudaNode* after,
                          uint64_t after_count, void* to, const void* from, uint64_t bytes,
                          FloeCudaNode* node);
  // Of all nodes of another graph, which are copied, in its order.
  int (*add_graph)(int device, FloeCudaGraph graph, const FloeCudaNode* after, uint64_t after_count,
                   FloeCudaGraph inner, FloeCudaNode* node);
  // What this thread puts into the stream between them is not done, but becomes a graph. After a
  // begin there is always an end, which gives none if it fails.
  int (*begin_capture)(int device, FloeCudaStream stream);
  int (*end_capture)(int device, FloeCudaStream stream, FloeCudaGraph* graph);
  // An executable graph needs its graph no more.
  int (*instantiate)(int device, FloeCudaGraph graph, FloeCudaExec* exec);
  int (*destroy_exec)(FloeCudaExec exec);
  int (*upload)(int device, FloeCudaExec exec,
                FloeCudaStream stream);  // what the first launch would do
  int (*launch)(int device, FloeCudaExec exec, FloeCudaStream stream);

  // "cudaErrorMemoryAllocation" and "out of memory"; of any number, never null.
  const char* (*error_name)(int error);
  const char* (*error_text)(int error);
} FloeCudaLibrary;

// The library's one exported function. The table lives as long as the process.
const FloeCudaLibrary* floe_cuda_library(void);
typedef const FloeCudaLibrary* (*FloeCudaLibraryFunction)(void);
#define FLOE_CUDA_FUNCTION_NAME "floe_cuda_library"

#ifdef __cplusplus
}
#endif
