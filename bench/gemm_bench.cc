// The packed multiplication alone: MatMul and convolution shapes on one thread. The counter "flops"
// is its rate, and BM_Peak the rate of multiply-adds that never leave the registers, to compare it
// with.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/kernel.h"

namespace floe::kernels {
namespace {

struct Packed {
  Packed(const GemmKernels& kernels, int64_t k, int64_t n)
      : weights(kernels.PackedFloats(k, n) * sizeof(float)) {
    const std::vector<float> b(k * n, 0.01f);
    PackGemm(kernels, b.data(), n, 1, k, n, reinterpret_cast<float*>(weights.data()));
  }
  const float* data() const { return reinterpret_cast<const float*>(weights.data()); }
  AlignedBuffer weights;
};

void Measure(benchmark::State& state, const GemmTask& task, int64_t rows,
             const GemmKernels& kernels) {
  ThreadPool pool(1);
  for (auto _ : state) {
    if (!RunGemm(kernels, task, rows, pool).ok()) state.SkipWithError("stopped");
    benchmark::ClobberMemory();
  }
  state.counters["flops"] = benchmark::Counter(2.0 * rows * task.n * task.runs.k(),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

// One panel that stays in L1 with one row tile: what the inner loop reaches at best.
void BM_Peak(benchmark::State& state) {
  const GemmKernels kernels = PickGemm();
  const int64_t k = 128, n = kernels.panel(), m = kernels.tile_rows;
  const Packed b(kernels, k, n);
  const std::vector<float> a(m * k, 0.5f);
  std::vector<float> c(m * n);
  GemmTask task;
  task.a = {a.data(), INT64_MAX, k, 0};
  task.runs = {k, 1, 1, 0, 0};
  task.b = b.data();
  task.n = n;
  task.c = c.data();
  task.ldc = n;
  Measure(state, task, m, kernels);
}
BENCHMARK(BM_Peak);

void BM_Dense(benchmark::State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const GemmKernels kernels = PickGemm();
  const Packed b(kernels, k, n);
  const std::vector<float> a(m * k, 0.5f);
  std::vector<float> c(m * n);
  GemmTask task;
  task.a = {a.data(), INT64_MAX, k, 0};
  task.runs = {k, 1, 1, 0, 0};
  task.b = b.data();
  task.n = n;
  task.c = c.data();
  task.ldc = n;
  Measure(state, task, m, kernels);
}
BENCHMARK(BM_Dense)
    ->ArgNames({"m", "k", "n"})
    ->Args({1, 4, 2})
    ->Args({1, 784, 10})
    ->Args({32, 784, 10})
    ->Args({1, 256, 256})
    ->Args({1, 3136, 1024})
    ->Args({8, 3136, 1024})
    ->Args({64, 3136, 1024})
    ->Args({256, 512, 512})
    ->Args({1024, 1024, 1024})
    ->Args({3136, 64, 256})
    ->Args({196, 1024, 256})
    ->Args({49, 512, 2048});

// VALID convolution with stride 1 over height x width x channels.
void BM_Conv(benchmark::State& state) {
  const int64_t height = state.range(0), width = state.range(1), in = state.range(2);
  const int64_t kh = state.range(3), kw = state.range(4), out = state.range(5);
  const int64_t out_height = height - kh + 1, out_width = width - kw + 1;
  const GemmKernels kernels = PickGemm();
  const Packed b(kernels, kh * kw * in, out);
  const std::vector<float> a(height * width * in, 0.5f);
  std::vector<float> c(out_height * out_width * out);
  GemmTask task;
  task.a = {a.data(), out_width, in, width * in};
  task.runs = {kw * in, kh, 1, 0, width * in};
  task.b = b.data();
  task.n = out;
  task.c = c.data();
  task.ldc = out;
  Measure(state, task, out_height * out_width, kernels);
}
BENCHMARK(BM_Conv)
    ->ArgNames({"h", "w", "in", "kh", "kw", "out"})
    ->Args({1, 1419, 256, 1, 20, 256})
    ->Args({1, 1419, 64, 1, 20, 64})
    ->Args({32, 32, 1, 5, 5, 32})
    ->Args({18, 18, 32, 5, 5, 64})
    ->Args({58, 58, 64, 3, 3, 64})
    ->Args({16, 16, 256, 3, 3, 256})
    ->Args({9, 9, 512, 3, 3, 512});

// The whole MatMul kernel with constant weights and bias, as a plan calls it.
void BM_MatMulKernel(benchmark::State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const auto filled = [](const Shape& shape) {
    Tensor t = Tensor::Allocate(DType::kFloat32, shape);
    std::fill_n(static_cast<float*>(t.mutable_data()), t.elements(), 0.01f);
    return t;
  };
  const std::vector<Tensor> inputs = {filled({m, k}), filled({k, n}), filled({n})};
  Node node;
  SetEpilogue({.activation = Activation::kRelu, .bias = 2}, &node.attrs);
  std::vector<ValueInfo> infos;
  std::vector<TensorView> in;
  for (const Tensor& t : inputs) {
    infos.push_back({{DType::kFloat32, SymShape(t.shape())}, t, {}});
    in.push_back(t.view());
  }
  const auto backend = static_cast<GemmBackend>(state.range(3));
  const KernelOptions options{backend};
  const auto kernel =
      FindKernel("MatMul", DeviceKind::kCpu, DType::kFloat32)(KernelArgs{node, infos, options});
  if (!kernel.ok()) return state.SkipWithError(std::string(kernel.status().message()).c_str());
  Tensor c = filled({m, n});
  const std::vector<TensorView> out = {c.view()};
  AlignedBuffer scratch(4096);
  ThreadPool pool(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize((*kernel)->Run({in, out, scratch.data(), &pool}));
  }
  state.SetLabel(GemmBackendName(backend));
  state.counters["flops"] =
      benchmark::Counter(2.0 * m * k * n, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_MatMulKernel)
    ->ArgNames({"m", "k", "n", "backend"})
    ->ArgsProduct({{1}, {4}, {2}, {1, 2}})
    ->ArgsProduct({{1, 64}, {784}, {10}, {1, 2}})
    ->ArgsProduct({{1, 8, 256}, {3136}, {1024}, {1, 2}});

}  // namespace
}  // namespace floe::kernels

BENCHMARK_MAIN();
