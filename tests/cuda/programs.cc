#include "tests/cuda/programs.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/cuda/device/device_run.h"
#include "kernels/cuda/emulator.h"

namespace floe::cuda {
namespace {

struct Product {
  int m, n, k;
  Activation activation = Activation::kNone;
};

// Memory: a [m, k], b [k, n], bias [n], c [m, n], each from a multiple of 4.
struct ProductLayout {
  int64_t b, bias, c, end;
  explicit ProductLayout(const Product& p) {
    const auto after = [](int64_t at, int64_t floats) { return (at + floats + 3) / 4 * 4; };
    b = after(0, int64_t{p.m} * p.k);
    bias = after(b, int64_t{p.k} * p.n);
    c = after(bias, p.n);
    end = after(c, int64_t{p.m} * p.n);
  }
};

Launch Multiply(KernelId kernel, int rows, int columns, const Product& p, float* memory) {
  const ProductLayout at(p);
  GemmArgs args = {};
  args.a = memory;
  args.a_row = p.k;
  args.a_column = 1;
  args.a_vectors = p.k % 4 == 0;
  args.b = {memory + at.b, p.n, 1, p.n % 4 == 0, p.n};
  args.c = memory + at.c;
  args.c_row = p.n;
  args.m = p.m;
  args.n = p.n;
  args.k = p.k;
  std::fill(std::begin(args.batch), std::end(args.batch), 1);
  args.c_vectors = p.n % 4 == 0;
  args.epilogue = {memory + at.bias, nullptr, p.activation, 0.2f};
  return Launch::Of(kernel, {Blocks(p.m, rows), Blocks(p.n, columns)}, args);
}

constexpr Product kOdd = {37, 45, 70, Activation::kGelu};
constexpr Product kEven = {130, 132, 64, Activation::kRelu};
constexpr Product kLarge = {4096, 4096, 4096};
constexpr Product kFewRows = {8, 4096, 4096};

template <const Product& p>
void Thin(float* memory, std::vector<Launch>* launches) {
  launches->push_back(Multiply(KernelId::gemm_thin, 8, 32, p, memory));
}
template <const Product& p>
void Tile32(float* memory, std::vector<Launch>* launches) {
  launches->push_back(Multiply(KernelId::gemm_32x32, 32, 32, p, memory));
}
template <const Product& p>
void Tile64(float* memory, std::vector<Launch>* launches) {
  launches->push_back(Multiply(KernelId::gemm_64x64, 64, 64, p, memory));
}
template <const Product& p>
void Tile128(float* memory, std::vector<Launch>* launches) {
  launches->push_back(Multiply(KernelId::gemm_128x128, 128, 128, p, memory));
}

template <const Product& p>
void Tf32(float* memory, std::vector<Launch>* launches) {
  launches->push_back(Multiply(KernelId::gemm_tf32, 64, 64, p, memory));
}
template <const Product& p>
void Bf16(float* memory, std::vector<Launch>* launches) {
  launches->push_back(Multiply(KernelId::gemm_bf16, 64, 64, p, memory));
}

void FillAll(float* memory, std::vector<Launch>* launches) {
  launches->push_back(
      Launch::Of(KernelId::fill, {Blocks(513, 256)}, FillArgs{memory + 3, 513, -0.0f}));
}

// Each launch reads what the one before it wrote.
void Chain(float* memory, std::vector<Launch>* launches) {
  Thin<kOdd>(memory, launches);
  const ProductLayout at(kOdd);
  launches->push_back(Launch::Of(KernelId::fill, {1}, FillArgs{memory + at.c, 45, 0.25f}));
  launches->push_back(Launch::Of(KernelId::fill, {1}, FillArgs{memory + at.bias, 7, -1.5f}));
  Tile32<kOdd>(memory, launches);
  launches->push_back(Launch::Of(KernelId::fill, {1}, FillArgs{memory, 70, 0.125f}));
  Tile64<kOdd>(memory, launches);
}

double Flops(const Product& p) { return 2.0 * p.m * p.n * p.k; }
CheckedProgram Of(const char* name, const Product& p,
                  void (*emit)(float* memory, std::vector<Launch>* launches)) {
  return {name, ProductLayout(p).end, Flops(p), emit};
}

}  // namespace

std::vector<CheckedProgram> CheckedPrograms(bool large) {
  if (large)
    return {Of("gemm_128x128 4096", kLarge, Tile128<kLarge>),
            Of("gemm_64x64 4096", kLarge, Tile64<kLarge>),
            Of("gemm_thin 8 rows", kFewRows, Thin<kFewRows>),
            Of("gemm_tf32 4096", kLarge, Tf32<kLarge>), Of("gemm_bf16 4096", kLarge, Bf16<kLarge>)};
  return {{"fill", 600, 0, FillAll},
          Of("gemm_thin odd", kOdd, Thin<kOdd>),
          Of("gemm_32x32 odd", kOdd, Tile32<kOdd>),
          Of("gemm_64x64 odd", kOdd, Tile64<kOdd>),
          Of("gemm_128x128 odd", kOdd, Tile128<kOdd>),
          Of("gemm_thin even", kEven, Thin<kEven>),
          Of("gemm_32x32 even", kEven, Tile32<kEven>),
          Of("gemm_64x64 even", kEven, Tile64<kEven>),
          Of("gemm_128x128 even", kEven, Tile128<kEven>),
          Of("chain", kOdd, Chain)};
}

std::vector<float> InitialNumbers(int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& number : numbers) {
    state = state * 1664525 + 1013904223;
    const int32_t value = static_cast<int32_t>(state >> 16) - 32768;
    number = state % 64 == 0 ? 0.0f : static_cast<float>(value) / 16384;
  }
  return numbers;
}

absl::StatusOr<std::vector<float>> RunOnEmulator(const CheckedProgram& program) {
  const std::vector<float> initial = InitialNumbers(program.floats);
  const AlignedBuffer buffer(initial.size() * sizeof(float));
  auto* const memory = reinterpret_cast<float*>(buffer.data());
  std::copy(initial.begin(), initial.end(), memory);
  std::vector<Launch> launches;
  program.emit(memory, &launches);
  int count = 0;
  const KernelEntry* const kernels = floe_cuda_kernels(&count);
  for (const Launch& launch : launches)
    FLOE_RETURN_IF_ERROR(
        Emulate(kernels[static_cast<int>(launch.kernel)], launch.grid, launch.args));
  return std::vector<float>(memory, memory + program.floats);
}

absl::StatusOr<DeviceResult> RunOnDevice(const CheckedProgram& program,
                                         const std::shared_ptr<Device>& device, int runs) {
  const size_t bytes = static_cast<size_t>(program.floats) * sizeof(float);
  FLOE_ASSIGN_OR_RETURN(const Stream stream, Stream::Make(device));
  FLOE_ASSIGN_OR_RETURN(const DeviceBuffer memory, DeviceBuffer::Make(device, bytes));
  FLOE_ASSIGN_OR_RETURN(const PinnedBuffer host, PinnedBuffer::Make(device, bytes));
  std::vector<Launch> launches;
  program.emit(reinterpret_cast<float*>(memory.data()), &launches);
  const DevicePort port[] = {{host.data(), memory.data(), bytes}};
  FLOE_ASSIGN_OR_RETURN(const auto run,
                        DeviceRun::Make(stream, {program.name, launches, port, port}));
  FLOE_ASSIGN_OR_RETURN(const auto repeat,
                        DeviceRun::Make(stream, {program.name, launches, {}, {}}));
  const std::vector<float> initial = InitialNumbers(program.floats);
  std::memcpy(host.data(), initial.data(), bytes);
  FLOE_RETURN_IF_ERROR(run->Run(stream));
  const auto* const numbers = reinterpret_cast<const float*>(host.data());
  DeviceResult result;
  result.memory.assign(numbers, numbers + program.floats);
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    FLOE_RETURN_IF_ERROR(repeat->Run(stream));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    result.microseconds = i == 0 ? took.count() : std::min(result.microseconds, took.count());
  }
  return result;
}

int64_t DifferingBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return static_cast<int64_t>(std::max(a.size(), b.size()));
  int64_t differing = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differing += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]);
  return differing;
}

}  // namespace floe::cuda
