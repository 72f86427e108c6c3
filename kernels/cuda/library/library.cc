// The calls of libfloe_cuda.so: each makes one call of the CUDA runtime, after it has set the
// thread's device where that counts.
#include "kernels/cuda/library.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

#include "kernels/cuda/kernel_list.h"

namespace {

using floe::cuda::KernelEntry;

const KernelEntry* KernelOf(uint32_t kernel) {
  int count = 0;
  const KernelEntry* entries = floe_cuda_kernels(&count);
  return kernel < static_cast<uint32_t>(count) ? &entries[kernel] : nullptr;
}

// What the runtime keeps as the thread's last error is taken back: the caller has it.
int Report(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return static_cast<int>(error);
}

template <typename Call>
int On(int device, const Call& call) {
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) error = call();
  return Report(error);
}

cudaStream_t Stream(FloeCudaStream stream) { return static_cast<cudaStream_t>(stream); }
cudaGraph_t Graph(FloeCudaGraph graph) { return static_cast<cudaGraph_t>(graph); }
cudaGraphExec_t Exec(FloeCudaExec exec) { return static_cast<cudaGraphExec_t>(exec); }

int Versions(int* driver, int* runtime) {
  const cudaError_t error = cudaDriverGetVersion(driver);
  return Report(error == cudaSuccess ? cudaRuntimeGetVersion(runtime) : error);
}

int DeviceCount(int* count) { return Report(cudaGetDeviceCount(count)); }

int DeviceProperties(int device, FloeCudaDevice* properties) {
  cudaDeviceProp found = {};
  const cudaError_t error = cudaGetDeviceProperties(&found, device);
  if (error != cudaSuccess) return Report(error);
  FloeCudaDevice made = {};
  std::snprintf(made.name, sizeof made.name, "%s", found.name);
  std::snprintf(made.pci_bus, sizeof made.pci_bus, "%04X:%02X:%02X.0",
                static_cast<unsigned>(found.pciDomainID), static_cast<unsigned>(found.pciBusID),
                static_cast<unsigned>(found.pciDeviceID));
  made.major = found.major;
  made.minor = found.minor;
  made.multiprocessors = found.multiProcessorCount;
  made.total_bytes = found.totalGlobalMem;
  *properties = made;
  return 0;
}

int UseDevice(int device) { return Report(cudaSetDevice(device)); }

int Memory(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  return On(device, [&] {
    size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    if (error == cudaSuccess) {
      *free_bytes = free;
      *total_bytes = total;
    }
    return error;
  });
}

int LoadKernel(int device, uint32_t kernel, FloeCudaKernelCode* code) {
  const KernelEntry* entry = KernelOf(kernel);
  if (entry == nullptr) return cudaErrorInvalidDeviceFunction;
  return On(device, [&] {
    cudaFuncAttributes found = {};
    const cudaError_t error = cudaFuncGetAttributes(&found, entry->function);
    if (error == cudaSuccess)
      *code = {found.binaryVersion, found.numRegs, static_cast<int32_t>(found.localSizeBytes),
               static_cast<int32_t>(found.sharedSizeBytes), found.maxThreadsPerBlock};
    return error;
  });
}

int Allocate(int device, uint64_t bytes, void** memory) {
  return On(device, [&] { return cudaMalloc(memory, bytes); });
}
int Release(void* memory) { return Report(cudaFree(memory)); }
int AllocatePinned(int device, uint64_t bytes, void** memory) {
  return On(device, [&] { return cudaHostAlloc(memory, bytes, cudaHostAllocPortable); });
}
int ReleasePinned(void* memory) { return Report(cudaFreeHost(memory)); }
int CopyToDevice(int device, void* to, const void* from, uint64_t bytes) {
  return On(device, [&] { return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice); });
}
int CopyToHost(int device, void* to, const void* from, uint64_t bytes) {
  return On(device, [&] { return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost); });
}

int CreateStream(int device, FloeCudaStream* stream) {
  return On(device, [&] {
    return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream),
                                     cudaStreamNonBlocking);
  });
}
int DestroyStream(FloeCudaStream stream) { return Report(cudaStreamDestroy(Stream(stream))); }
int Wait(FloeCudaStream stream) { return Report(cudaStreamSynchronize(Stream(stream))); }

int CreateGraph(int device, FloeCudaGraph* graph) {
  return On(device, [&] { return cudaGraphCreate(reinterpret_cast<cudaGraph_t*>(graph), 0); });
}
int DestroyGraph(FloeCudaGraph graph) { return Report(cudaGraphDestroy(Graph(graph))); }

const cudaGraphNode_t* Nodes(const FloeCudaNode* nodes) {
  return reinterpret_cast<const cudaGraphNode_t*>(nodes);
}

int AddKernel(int device, FloeCudaGraph graph, const FloeCudaNode* after, uint64_t after_count,
              uint32_t kernel, FloeCudaGrid grid, const void* args, FloeCudaNode* node) {
  const KernelEntry* entry = KernelOf(kernel);
  if (entry == nullptr) return cudaErrorInvalidDeviceFunction;
  void* parameters[] = {const_cast<void*>(args)};
  cudaKernelNodeParams launch = {};
  launch.func = const_cast<void*>(entry->function);
  launch.gridDim = dim3(grid.x, grid.y, grid.z);
  launch.blockDim = dim3(static_cast<unsigned>(entry->threads));
  launch.kernelParams = parameters;
  return On(device, [&] {
    return cudaGraphAddKernelNode(reinterpret_cast<cudaGraphNode_t*>(node), Graph(graph),
                                  Nodes(after), after_count, &launch);
  });
}

int AddCopyToDevice(int device, FloeCudaGraph graph, const FloeCudaNode* after,
                    uint64_t after_count, void* to, const void* from, uint64_t bytes,
                    FloeCudaNode* node) {
  return On(device, [&] {
    return cudaGraphAddMemcpyNode1D(reinterpret_cast<cudaGraphNode_t*>(node), Graph(graph),
                                    Nodes(after), after_count, to, from, bytes,
                                    cudaMemcpyHostToDevice);
  });
}
int AddCopyToHost(int device, FloeCudaGraph graph, const FloeCudaNode* after, uint64_t after_count,
                  void* to, const void* from, uint64_t bytes, FloeCudaNode* node) {
  return On(device, [&] {
    return cudaGraphAddMemcpyNode1D(reinterpret_cast<cudaGraphNode_t*>(node), Graph(graph),
                                    Nodes(after), after_count, to, from, bytes,
                                    cudaMemcpyDeviceToHost);
  });
}

int AddGraph(int device, FloeCudaGraph graph, const FloeCudaNode* after, uint64_t after_count,
             FloeCudaGraph inner, FloeCudaNode* node) {
  return On(device, [&] {
    return cudaGraphAddChildGraphNode(reinterpret_cast<cudaGraphNode_t*>(node), Graph(graph),
                                      Nodes(after), after_count, Graph(inner));
  });
}

// Calls of other threads that are unsafe while a stream is captured do not spoil it.
int BeginCapture(int device, FloeCudaStream stream) {
  return On(device, [&] {
    return cudaStreamBeginCapture(Stream(stream), cudaStreamCaptureModeThreadLocal);
  });
}
int EndCapture(int device, FloeCudaStream stream, FloeCudaGraph* graph) {
  return On(device, [&] {
    return cudaStreamEndCapture(Stream(stream), reinterpret_cast<cudaGraph_t*>(graph));
  });
}

int Instantiate(int device, FloeCudaGraph graph, FloeCudaExec* exec) {
  return On(device, [&] {
    return cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t*>(exec), Graph(graph), 0);
  });
}
int DestroyExec(FloeCudaExec exec) { return Report(cudaGraphExecDestroy(Exec(exec))); }
int Upload(int device, FloeCudaExec exec, FloeCudaStream stream) {
  return On(device, [&] { return cudaGraphUpload(Exec(exec), Stream(stream)); });
}
int Launch(int device, FloeCudaExec exec, FloeCudaStream stream) {
  return On(device, [&] { return cudaGraphLaunch(Exec(exec), Stream(stream)); });
}

const char* ErrorName(int error) { return cudaGetErrorName(static_cast<cudaError_t>(error)); }
const char* ErrorText(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

const std::vector<FloeCudaKernel>& Kernels() {
  static const auto* const kernels = [] {
    auto* made = new std::vector<FloeCudaKernel>;
    int count = 0;
    const KernelEntry* entries = floe_cuda_kernels(&count);
    for (int i = 0; i < count; ++i)
      made->push_back({entries[i].name, entries[i].threads, entries[i].args_bytes});
    return made;
  }();
  return *kernels;
}

FloeCudaLibrary MakeTable() {
  FloeCudaLibrary table = {};
  table.version = FLOE_CUDA_VERSION;
  table.bytes = sizeof table;
  table.kernel_count = static_cast<uint32_t>(Kernels().size());
  table.kernels = Kernels().data();
  table.versions = Versions;
  table.device_count = DeviceCount;
  table.device_properties = DeviceProperties;
  table.use_device = UseDevice;
  table.memory = Memory;
  table.load_kernel = LoadKernel;
  table.allocate = Allocate;
  table.release = Release;
  table.allocate_pinned = AllocatePinned;
  table.release_pinned = ReleasePinned;
  table.copy_to_device = CopyToDevice;
  table.copy_to_host = CopyToHost;
  table.create_stream = CreateStream;
  table.destroy_stream = DestroyStream;
  table.wait = Wait;
  table.create_graph = CreateGraph;
  table.destroy_graph = DestroyGraph;
  table.add_kernel = AddKernel;
  table.add_copy_to_device = AddCopyToDevice;
  table.add_copy_to_host = AddCopyToHost;
  table.add_graph = AddGraph;
  table.begin_capture = BeginCapture;
  table.end_capture = EndCapture;
  table.instantiate = Instantiate;
  table.destroy_exec = DestroyExec;
  table.upload = Upload;
  table.launch = Launch;
  table.error_name = ErrorName;
  table.error_text = ErrorText;
  return table;
}

}  // namespace

const FloeCudaLibrary* floe_cuda_library() {
  static const FloeCudaLibrary table = MakeTable();
  return &table;
}
