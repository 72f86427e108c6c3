// Kernel: how one op is computed on one device; KernelRegistry: where factories are found.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/precision.h"
#include "base/thread_pool.h"
#include "model/graph.h"
#include "model/op_def.h"
#include "model/tensor.h"

namespace floe {

// Which matrix multiplication serves MatMul and convolutions.
enum class GemmBackend : uint8_t {
  kAuto,       // the best native variant (never OpenBLAS: its bits change with the batch size)
  kNative,     // packed weights, Highway
  kOpenBlas,   // opened at run time
  kReference,  // plain loops, the oracle
};
absl::StatusOr<GemmBackend> GemmBackendFromName(const std::string& name);
const char* GemmBackendName(GemmBackend backend);

// Where kernels run. There are none for kCuda yet.
enum class DeviceKind : uint8_t { kCpu, kCuda };
// That of the server itself: it computes constants, shapes, and what no other device is asked for.
inline constexpr DeviceKind kHostDevice = DeviceKind::kCpu;

// Of convolutions, which alone read them.
struct ConvOptions {
  bool fft = true;  // whether they may be computed by Fourier transforms
  // How many times the memory of its weights the transformed ones of a convolution may take; for a
  // model by its size.
  double fft_growth = std::numeric_limits<double>::infinity();
  // Between runs, where a layer's are few; for a model by its size.
  bool weights_stay_cached = true;
};

struct KernelOptions {
  GemmBackend gemm = GemmBackend::kAuto;
  // By node, after the passes: the route that computes it, whatever the others cost.
  std::map<std::string, std::string> routes = {};
  Precision precision = Precision::kFloat32;
  DeviceKind device = kHostDevice;
  ConvOptions conv = {};
};

// The routes that were open to a node, with the estimated time of one row, and the one taken.
struct RouteChoice {
  struct Offer {
    std::string name;
    std::optional<double> cost_us;
  };
  std::string chosen;  // empty: there was nothing to choose
  std::vector<Offer> offers;
};

// Where kernels of ops with OpDef::allocates get memory for outputs. Valid during one Run.
class OutputAllocator {
 public:
  virtual ~OutputAllocator() = default;
  // Uninitialised numbers, empty strings or null handles; once per output. RESOURCE_EXHAUSTED past
  // the memory limit.
  virtual absl::StatusOr<TensorView> Allocate(int output, DType dtype, const Shape& shape) = 0;
};

// What one Run gets. Views hold concrete shapes; outputs are sized as the op's inference said.
struct KernelContext {
  absl::Span<const TensorView> inputs;
  absl::Span<const TensorView> outputs;
  std::byte* scratch = nullptr;  // ScratchBytes() bytes, aligned to kAlignment, uninitialised
  ThreadPool* pool = nullptr;    // never null; may have one thread
  OutputAllocator* allocator =
      nullptr;             // set for ops with OpDef::allocates, whose `outputs` is empty
  uint64_t donatable = 0;  // bit i: nobody reads input i after this kernel
  // Elements from the start of a line (a run along the last dimension) to the start of the next, by
  // input, then by output. Empty or 0: lines follow each other. They lie further apart only where
  // the kernel said that they may: Kernel::ReadsSpacedLines, WritesSpacedLines.
  absl::Span<const int64_t> line_strides = {};

  const TensorView& in(int i) const { return inputs[i]; }
  const TensorView& out(int i) const { return outputs[i]; }
  // Of tensors of rank 1 or more.
  int64_t InLineStride(int i) const { return LineStride(static_cast<size_t>(i), in(i)); }
  int64_t OutLineStride(int i) const {
    return LineStride(inputs.size() + static_cast<size_t>(i), out(i));
  }
  bool Donatable(int i) const { return i < 64 && (donatable >> i & 1) != 0; }

 private:
  int64_t LineStride(size_t arg, const TensorView& view) const {
    const int64_t stride = line_strides.empty() ? 0 : line_strides[arg];
    return stride == 0 ? view.shape.dim(view.shape.rank() - 1) : stride;
  }
};

// One step of a plan. Holds attributes, routes and packed weights, no run state.
// Threading: const after construction, shared by all workers.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Fails only for what depends on client data (an index out of range). Types and shapes were
  // settled when planning. Rows of the output must not depend, to the bit, on how many rows there
  // are or on ctx.pool's size.
  virtual absl::Status Run(const KernelContext& ctx) const = 0;

  // Working memory for these shapes. Must not shrink when dim 0 grows, and must be affine in dim 0
  // or independent of it.
  virtual int64_t ScratchBytes(absl::Span<const Shape> inputs,
                               absl::Span<const Shape> outputs) const {
    (void)inputs;
    (void)outputs;
    return 0;
  }

  // False for a constant input that the kernel has packed: its view may be without data, and the
  // tensor may be freed.
  virtual bool NeedsInput(int i) const {
    (void)i;
    return true;
  }

  // Whether the lines of input i, or of output 0, may lie apart (KernelContext::line_strides) where
  // the shapes are these, whatever the rows: a value may then lie in a concatenation from the
  // start.
  virtual bool ReadsSpacedLines(int i, absl::Span<const Shape> inputs,
                                absl::Span<const Shape> outputs) const {
    (void)i;
    (void)inputs;
    (void)outputs;
    return false;
  }
  virtual bool WritesSpacedLines() const { return false; }

  // Bytes of packed weights held.
  virtual size_t PackedBytes() const { return 0; }

  // "native 8x32 avx512", shown by `inspect --plan`; empty for plain kernels.
  virtual std::string Route() const { return ""; }

  const RouteChoice& choice() const { return choice_; }
  // By who makes the kernel, before it is shared.
  void SetChoice(RouteChoice choice) { choice_ = std::move(choice); }

 private:
  RouteChoice choice_;
};

// What a factory knows: the node and its inputs' types; `constant` is set for weights, which may be
// packed now (the kernel keeps its packed copy; it need not keep the tensor).
struct KernelArgs {
  const Node& node;
  absl::Span<const ValueInfo> inputs;
  const KernelOptions& options;
};
using KernelFactory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelArgs&);

// What an op's kernels of some device and dtypes need beyond their factory.
struct KernelTraits {
  // The options of its family that a kernel is made from, as text: kernels of equal nodes are
  // shared only where it is equal. Device, gemm, precision and the node's route always count. Null:
  // nothing else does.
  std::string (*options_key)(const KernelOptions& options) = nullptr;
  // Whether a kernel can be made for the node, of whose constants it may be told only the types.
  // For passes, which ask it of many: packs nothing. Null: for all.
  bool (*computes)(const KernelArgs& args) = nullptr;
};

// Registers at start-up. `dtypes` empty: any dtype (kernels that only move bytes, or that switch
// dtype themselves). Ends the process when the op has a kernel for the device and dtype already.
class KernelRegistrar {
 public:
  KernelRegistrar(const std::string& op, DeviceKind device, std::vector<DType> dtypes,
                  KernelFactory make, KernelTraits traits = {});
};
#define FLOE_REGISTER_KERNEL(op, device, make, ...)                             \
  static const ::floe::KernelRegistrar FLOE_CONCAT_(floe_kernel_, __COUNTER__)( \
      #op, ::floe::DeviceKind::device, std::vector<::floe::DType>{__VA_ARGS__}, make)

// The dtype by which a node's kernel is found: of input 0, or of output 0 for ops without inputs.
DType KernelDType(const Node& node, absl::Span<const ValueInfo> inputs);
// Null when the op has no kernel there for this dtype.
KernelFactory FindKernel(const std::string& op, DeviceKind device, DType dtype);
// What KernelTraits::options_key says for that kernel; empty without one.
std::string FamilyOptionsKey(const std::string& op, DType dtype, const KernelOptions& options);
// Whether the device of the options has a kernel for such a node: passes ask it before they make
// one. The node's name counts for nothing.
bool CanCompute(const KernelArgs& args);
// Every dtype registered for an op on a device; {kInvalid} stands for "any".
std::vector<DType> KernelDTypes(const std::string& op, DeviceKind device);

}  // namespace floe
