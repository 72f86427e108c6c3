// The part of the CUDA runtime that libfloe_cuda.so uses, on memory of the host: libcudart.so.13
// for the library that nvcc built, whose kernels are mapped by their names to the emulated ones.
//
// As strict as the documentation allows: work in a stream begins as late as it may, when somebody
// waits; nodes of a graph run in another order than they were added in, where it lets them; what
// graphs copy must be pinned memory, and addresses of a device must be one's own; memory has a
// limit; and any call can be made to fail.
#include "tests/cuda/fake_cudart.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/fake_kernels.h"

namespace {

using Work = std::function<cudaError_t()>;
struct FakeNode {
  Work work;
  std::set<const void*> after;
};
struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
};
struct FakeStream {
  int device;
  std::deque<Work> queue;
  std::unique_ptr<FakeGraph> captured;  // null: it is not captured
};
struct FakeExec {
  std::vector<Work> work;
  bool uploaded = false;
};
struct Block {
  size_t bytes;
  int device;
};

// One lock for everything: streams of several threads take turns.
struct State {
  std::recursive_mutex mutex;
  FakeCudaOptions options = {uint64_t{1} << 33, 1, 9, 0};
  std::map<char*, Block> device_memory, pinned;
  std::map<void*, std::unique_ptr<FakeStream>> streams;
  std::map<void*, std::unique_ptr<FakeGraph>> graphs;
  std::map<void*, std::unique_ptr<FakeExec>> execs;
  std::map<const void*, std::string> names;  // of kernels that nvcc's code has registered
  uint64_t used = 0, peak = 0, copied = 0;
  int64_t calls = 0, kernels_run = 0, made = 0;
  bool held = false;
  std::condition_variable_any changed;  // `held`, or what streams have to do
  int64_t fail_at = 0;                  // 0: none
  cudaError_t fail_with = cudaSuccess, lost = cudaSuccess;
  std::string complaint;
};
State& S() {
  static State* const state = new State;
  return *state;
}
thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

void Complain(const std::string& text) {
  if (S().complaint.empty()) S().complaint = text;
}

bool StaysBroken(cudaError_t error) {
  return error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure ||
         error == cudaErrorUnknown;
}

// What each call begins with: the lock, and the error that is due.
class Call {
 public:
  Call() : lock_(S().mutex) {
    State& s = S();
    if (s.lost == cudaSuccess && ++s.calls == s.fail_at) {
      error_ = s.fail_with;
      if (StaysBroken(error_)) s.lost = error_;
    }
    if (s.lost != cudaSuccess) error_ = s.lost;
    if (error_ != cudaSuccess) last_error = error_;
  }
  cudaError_t error() const { return error_; }

 private:
  const std::lock_guard<std::recursive_mutex> lock_;
  cudaError_t error_ = cudaSuccess;
};
#define CALL()     \
  const Call call; \
  if (call.error() != cudaSuccess) return call.error()

cudaError_t Fail(cudaError_t error) { return last_error = error; }
cudaError_t Wrong(const std::string& text) {
  Complain(text);
  return Fail(cudaErrorInvalidValue);
}

bool Within(const std::map<char*, Block>& blocks, const void* memory, size_t bytes, int device) {
  const char* const from = static_cast<const char*>(memory);
  auto it = blocks.upper_bound(const_cast<char*>(from));
  if (it == blocks.begin()) return false;
  --it;
  return from + bytes <= it->first + it->second.bytes &&
         (device < 0 || it->second.device == device);
}

// What should not happen while a server serves. Tests of whole programs name a file that gets a
// line for each by FAKE_CUDA_MADE.
void CountMade() {
  ++S().made;
  if (const char* const path = std::getenv("FAKE_CUDA_MADE"); path != nullptr)
    std::ofstream(path, std::ios::app) << "1\n";
}

int Busy() {
  int busy = 0;
  for (const auto& [handle, stream] : S().streams) busy += stream->queue.empty() ? 0 : 1;
  return busy;
}

cudaError_t Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, int device,
                 bool pinned) {
  const State& s = S();
  const bool down = kind == cudaMemcpyDeviceToHost;
  if (!Within(s.device_memory, down ? from : to, bytes, device))
    return Wrong("a copy of memory that the device does not have");
  if (pinned && !Within(s.pinned, down ? to : from, bytes, -1))
    return Wrong("a graph copies memory that is not pinned");
  std::memcpy(to, from, bytes);
  if (pinned && !down) S().copied += bytes;
  return cudaSuccess;
}

cudaError_t Drain(FakeStream* stream) {
  while (!stream->queue.empty()) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (const cudaError_t error = work(); error != cudaSuccess) {
      stream->queue.clear();
      S().lost = StaysBroken(error) ? error : cudaErrorLaunchFailure;
      return Fail(S().lost);
    }
  }
  return cudaSuccess;
}

const floe::cuda::KernelEntry* Emulated(const void* function) {
  const auto name = S().names.find(function);
  return name == S().names.end() ? nullptr : floe::cuda::EmulatedKernel(name->second);
}

cudaError_t RunKernel(const floe::cuda::KernelEntry& kernel, dim3 grid, const void* args) {
  ++S().kernels_run;
  const std::string error = floe::cuda::RunEmulated(kernel, {grid.x, grid.y, grid.z}, args);
  if (error.empty()) return cudaSuccess;
  Complain(error);
  return cudaErrorLaunchFailure;
}

// Nothing where a device would refuse the launch.
Work KernelWork(const cudaKernelNodeParams& launch) {
  const floe::cuda::KernelEntry* const kernel = Emulated(launch.func);
  const dim3 grid = launch.gridDim, block = launch.blockDim;
  if (kernel == nullptr || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
      grid.z > 65535 || launch.sharedMemBytes != 0)
    return nullptr;
  if (block.x != static_cast<unsigned>(kernel->threads) || block.y != 1 || block.z != 1)
    return nullptr;
  const char* const args = static_cast<const char*>(launch.kernelParams[0]);
  const std::vector<char> bytes(args, args + kernel->args_bytes);
  return [kernel, grid, bytes] { return RunKernel(*kernel, grid, bytes.data()); };
}

void* NewBlock(size_t bytes) {
  char* const memory = static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  if (memory != nullptr) std::memset(memory, 0xFF, bytes);  // NaN, or addresses of nothing
  return memory;
}

// Work that nobody waited for would go on in memory that is freed here.
void CheckIdle(const char* what) {
  for (const auto& [handle, stream] : S().streams)
    if (!stream->queue.empty() && S().lost == cudaSuccess)
      Complain(std::string(what) + " while a stream has work");
}

template <typename Map, typename Handle>
cudaError_t Destroy(const Call& call, Map* map, Handle handle, const char* what) {
  if (map->erase(handle) == 0) return Wrong(std::string(what) + " of what there is none");
  return call.error();
}

FakeStream* Find(cudaStream_t stream) {
  const auto it = S().streams.find(stream);
  return it == S().streams.end() || it->second->device != current_device ? nullptr
                                                                         : it->second.get();
}

cudaError_t AddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                    size_t after_count, Work work) {
  const auto it = S().graphs.find(graph);
  if (it == S().graphs.end()) return Wrong("a node of a graph that there is not");
  auto& nodes = it->second->nodes;
  for (size_t i = 0; i < after_count; ++i) {
    bool found = false;
    for (const auto& other : nodes) found |= static_cast<void*>(other.get()) == after[i];
    if (!found) return Wrong("a node after one that the graph does not have");
  }
  auto made = std::make_unique<FakeNode>();
  made->work = std::move(work);
  made->after.insert(after, after + after_count);
  nodes.push_back(std::move(made));
  *node = reinterpret_cast<cudaGraphNode_t>(nodes.back().get());
  return cudaSuccess;
}

// Tests of whole programs have no calls: they name a file by FAKE_CUDA_FAIL_RUNS. While it has the
// number of an error, every launch of a graph fails with that.
cudaError_t ErrorOfRuns() {
  const char* const path = std::getenv("FAKE_CUDA_FAIL_RUNS");
  int error = 0;
  if (path == nullptr || !(std::ifstream(path) >> error)) return cudaSuccess;
  if (StaysBroken(static_cast<cudaError_t>(error))) S().lost = static_cast<cudaError_t>(error);
  return Fail(static_cast<cudaError_t>(error));
}

// Each after the one before.
void AddInOrder(Work work, FakeGraph* graph) {
  auto node = std::make_unique<FakeNode>();
  node->work = std::move(work);
  if (!graph->nodes.empty()) node->after.insert(graph->nodes.back().get());
  graph->nodes.push_back(std::move(node));
}

// What was added last comes first, unless it waits for others: who forgot to say so sees it.
std::vector<Work> InOrder(const FakeGraph& graph) {
  std::vector<Work> order;
  std::set<const void*> done;
  while (order.size() < graph.nodes.size()) {
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const FakeNode& node = *graph.nodes[i];
      if (done.count(&node) != 0 ||
          !std::includes(done.begin(), done.end(), node.after.begin(), node.after.end()))
        continue;
      done.insert(&node);
      order.push_back(node.work);
      break;
    }
  }
  return order;
}

}  // namespace

extern "C" {

// ---- for tests ----

void fake_cuda_reset(const FakeCudaOptions* options) {
  State& s = S();
  const std::lock_guard lock(s.mutex);
  s.options = *options;
  s.calls = s.kernels_run = s.made = s.fail_at = 0;
  s.copied = 0;
  s.fail_with = s.lost = cudaSuccess;
  s.complaint.clear();
  s.peak = s.used;
  last_error = cudaSuccess;
}
void fake_cuda_fail_after(int64_t calls, int error) {
  State& s = S();
  const std::lock_guard lock(s.mutex);
  s.fail_at = s.calls + calls + 1;
  s.fail_with = static_cast<cudaError_t>(error);
}
int64_t fake_cuda_calls() { return S().calls; }
int64_t fake_cuda_alive() {
  const State& s = S();
  return static_cast<int64_t>(s.device_memory.size() + s.pinned.size() + s.streams.size() +
                              s.graphs.size() + s.execs.size());
}
uint64_t fake_cuda_used() { return S().used; }
uint64_t fake_cuda_peak() { return S().peak; }
int64_t fake_cuda_kernels_run() { return S().kernels_run; }
int64_t fake_cuda_made() { return S().made; }
uint64_t fake_cuda_copied() { return S().copied; }
int fake_cuda_is_pinned(const void* memory) {
  const std::lock_guard lock(S().mutex);
  return Within(S().pinned, memory, 1, -1) ? 1 : 0;
}
void fake_cuda_hold(int held) {
  const std::lock_guard lock(S().mutex);
  S().held = held != 0;
  S().changed.notify_all();
}
void fake_cuda_await_busy(int streams) {
  std::unique_lock lock(S().mutex);
  S().changed.wait(lock, [streams] { return Busy() >= streams; });
}
int fake_cuda_busy() {
  const std::lock_guard lock(S().mutex);
  return Busy();
}
void fake_cuda_enqueue(void* stream, const std::function<int()>* work) {
  const std::lock_guard lock(S().mutex);
  FakeStream* const found = Find(static_cast<cudaStream_t>(stream));
  if (found == nullptr) return Complain("a library's call in a stream of no or another device");
  Work made = [work = *work] {
    ++S().kernels_run;
    return static_cast<cudaError_t>(work());
  };
  if (found->captured != nullptr) return AddInOrder(std::move(made), found->captured.get());
  found->queue.push_back(std::move(made));
  S().changed.notify_all();
}
int fake_cuda_on_device(const void* memory, uint64_t bytes) {
  const std::lock_guard lock(S().mutex);
  return Within(S().device_memory, memory, bytes, current_device) ? 1 : 0;
}
const char* fake_cuda_complaint() { return S().complaint.c_str(); }

// ---- versions, devices, errors ----

cudaError_t cudaDriverGetVersion(int* version) {
  CALL();
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  CALL();
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  CALL();
  // Which processes use devices.
  if (const char* const path = std::getenv("FAKE_CUDA_PROCESSES"); path != nullptr)
    std::ofstream(path, std::ios::app) << getpid() << "\n";
  *count = S().options.devices;
  return *count == 0 ? Fail(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  CALL();
  if (device < 0 || device >= S().options.devices) return Fail(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  CALL();
  if (device < 0 || device >= S().options.devices) return Fail(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "Fake H100");
  properties->major = S().options.major;
  properties->minor = S().options.minor;
  properties->multiProcessorCount = 132;
  properties->totalGlobalMem = S().options.total_bytes;
  properties->pciBusID = 0x3b + device;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  CALL();
  *total = S().options.total_bytes;
  *free = S().options.total_bytes - S().used;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  CALL();
  const floe::cuda::KernelEntry* const kernel = Emulated(function);
  if (kernel == nullptr) return Fail(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->binaryVersion = S().options.major * 10 + S().options.minor;
  attributes->numRegs = 32;
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    default:
      return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the fake runtime";
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = S().lost;
  return error;
}

// ---- memory ----

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  CALL();
  State& s = S();
  if (bytes > s.options.total_bytes - s.used) return Fail(cudaErrorMemoryAllocation);
  *memory = NewBlock(bytes);
  if (*memory == nullptr) return Fail(cudaErrorMemoryAllocation);
  s.device_memory[static_cast<char*>(*memory)] = {bytes, current_device};
  s.used += bytes;
  s.peak = std::max(s.peak, s.used);
  CountMade();
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const Call call;
  State& s = S();
  const auto it = s.device_memory.find(static_cast<char*>(memory));
  if (it == s.device_memory.end()) return Wrong("cudaFree of what is no device memory");
  CheckIdle("cudaFree");
  s.used -= it->second.bytes;
  std::free(it->first);
  s.device_memory.erase(it);
  return call.error();
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  CALL();
  *memory = NewBlock(bytes);
  if (*memory == nullptr) return Fail(cudaErrorMemoryAllocation);
  S().pinned[static_cast<char*>(*memory)] = {bytes, current_device};
  CountMade();
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Call call;
  CheckIdle("cudaFreeHost");
  const cudaError_t error = Destroy(call, &S().pinned, static_cast<char*>(memory), "cudaFreeHost");
  if (error != cudaErrorInvalidValue) std::free(memory);
  return error;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  CALL();
  return Copy(to, from, bytes, kind, current_device, false);
}

// ---- streams ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  CALL();
  if (flags != cudaStreamNonBlocking) Complain("a stream that waits for the legacy stream");
  auto made = std::make_unique<FakeStream>();
  made->device = current_device;
  *stream = reinterpret_cast<cudaStream_t>(made.get());
  S().streams[*stream] = std::move(made);
  CountMade();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call;
  CheckIdle("cudaStreamDestroy");
  return Destroy(call, &S().streams, stream, "cudaStreamDestroy");
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  {
    std::unique_lock lock(S().mutex);
    S().changed.wait(lock, [] { return !S().held; });
  }
  const Call call;
  const auto it = S().streams.find(stream);
  if (it == S().streams.end()) return Wrong("a stream that there is not");
  if (call.error() == cudaSuccess) return Drain(it->second.get());
  it->second->queue.clear();  // the error is that of the work
  return call.error();
}

// ---- graphs ----

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  CALL();
  auto made = std::make_unique<FakeGraph>();
  *graph = reinterpret_cast<cudaGraph_t>(made.get());
  S().graphs[*graph] = std::move(made);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call;
  return Destroy(call, &S().graphs, graph, "cudaGraphDestroy");
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, size_t after_count,
                                   const cudaKernelNodeParams* launch) {
  CALL();
  Work work = KernelWork(*launch);
  if (!work) return Wrong("a launch that no device makes");
  return AddNode(node, graph, after, after_count, std::move(work));
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, size_t after_count, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind) {
  CALL();
  const int device = current_device;
  return AddNode(node, graph, after, after_count,
                 [=] { return Copy(to, from, bytes, kind, device, true); });
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t after_count,
                                       cudaGraph_t inner) {
  CALL();
  const auto it = S().graphs.find(inner);
  if (it == S().graphs.end()) return Wrong("a graph inside that there is not");
  return AddNode(node, graph, after, after_count, [order = InOrder(*it->second)] {
    for (const Work& work : order)
      if (const cudaError_t error = work(); error != cudaSuccess) return error;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  CALL();
  FakeStream* const found = Find(stream);
  if (found == nullptr || found->captured != nullptr || !found->queue.empty())
    return Wrong("a capture of a stream that is not there, or not free");
  if (mode != cudaStreamCaptureModeThreadLocal) Complain("other threads can spoil a capture");
  found->captured = std::make_unique<FakeGraph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Call call;
  const auto it = S().streams.find(stream);
  if (it == S().streams.end() || it->second->captured == nullptr)
    return Wrong("the end of a capture that there is not");
  std::unique_ptr<FakeGraph> captured = std::move(it->second->captured);
  if (call.error() != cudaSuccess) return call.error();
  *graph = reinterpret_cast<cudaGraph_t>(captured.get());
  S().graphs[*graph] = std::move(captured);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  CALL();
  const auto it = S().graphs.find(graph);
  if (it == S().graphs.end()) return Wrong("a graph that there is not");
  auto made = std::make_unique<FakeExec>();
  made->work = InOrder(*it->second);
  *exec = reinterpret_cast<cudaGraphExec_t>(made.get());
  S().execs[*exec] = std::move(made);
  CountMade();
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Call call;
  CheckIdle("cudaGraphExecDestroy");
  return Destroy(call, &S().execs, exec, "cudaGraphExecDestroy");
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  CALL();
  FakeStream* const found = Find(stream);
  if (found == nullptr) return Wrong("a stream of no or another device");
  S().execs.at(exec)->uploaded = true;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  CALL();
  if (const cudaError_t error = ErrorOfRuns(); error != cudaSuccess) return error;
  FakeStream* const found = Find(stream);
  if (found == nullptr) return Wrong("a stream of no or another device");
  const FakeExec& graph = *S().execs.at(exec);
  if (!graph.uploaded) Complain("the first launch uploads its graph");
  found->queue.insert(found->queue.end(), graph.work.begin(), graph.work.end());
  S().changed.notify_all();
  return cudaSuccess;
}

// ---- what the code calls that nvcc writes ----
// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's

void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(S().mutex);
  S().names[function] = name;
}
// NOLINTEND(bugprone-reserved-identifier)
}
