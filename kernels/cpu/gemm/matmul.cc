#include "kernels/cpu/gemm/matmul.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/openblas.h"
#include "kernels/cpu/gemm/packed_memory.h"

namespace floe::kernels {
namespace {

bool Transposed(const Attrs& attrs, const char* matmul, const char* batch) {
  return attrs.Bool(matmul) || attrs.Bool(batch);
}

int64_t MatrixCount(const Shape& shape) {
  int64_t count = 1;
  for (int i = 0; i + 2 < shape.rank(); ++i) count *= shape.dim(i);
  return count;
}

// Which matrix of `in` meets matrix `index` of the output.
int64_t BroadcastIndex(int64_t index, const Shape& out, const Shape& in) {
  int64_t result = 0, scale = 1;
  for (int i = 3; i <= out.rank(); ++i) {
    const int64_t size = out.dim(out.rank() - i), at = index % size;
    index /= size;
    if (i > in.rank()) continue;
    const int64_t in_size = in.dim(in.rank() - i);
    if (in_size != 1) result += at * scale;
    scale *= in_size;
  }
  return result;
}

// Weights packed when the model is loaded; other right sides packed in each run, to the same bits.
// Narrow where that gains, unless the weights are in bfloat16.
class NativeMatMul final : public MatMulKernel {
 public:
  NativeMatMul(const KernelArgs& args, const Epilogue& epilogue)
      : MatMulKernel(args, epilogue), gemm_(PickGemm()), bias_(args, epilogue, gemm_) {
    if (!args.inputs[1].has_constant()) return;
    constant_b_ = true;
    const Tensor& b = args.inputs[1].constant;
    single_b_ = b.shape().rank() == 2;
    const int rank = b.shape().rank();
    const int64_t k = b.shape().dim(rank - (transpose_b_ ? 1 : 2)),
                  n = b.shape().dim(rank - (transpose_b_ ? 2 : 1));
    // Of matrices without elements there may be any number.
    const int64_t count = b.elements() == 0 ? 0 : MatrixCount(b.shape()),
                  each = gemm_.PackedFloats(k, n);
    AlignedBuffer packed = PackedMemory(count * each * sizeof(float));
    auto* to = reinterpret_cast<float*>(packed.data());
    const bool narrow = args.options.precision != Precision::kBf16 && gemm_.Narrow(k, n);
    for (int64_t i = 0; i < count; ++i)
      Pack(b.as<float>() + i * k * n, k, n, narrow, to + i * each, nullptr);
    weights_ = PackedWeights(std::move(packed), args.options.precision);
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs, absl::Span<const Shape>) const override {
    const MatMulSizes size(inputs[0], inputs[1], transpose_a_, transpose_b_);
    return ScratchPieces::Bytes({bias_.ScratchFloats(size.n),
                                 constant_b_ ? 0 : PackedBound(gemm_, size.k, size.n),
                                 transpose_a_ ? size.m * size.k : 0});
  }
  std::string Route() const override {
    return absl::StrCat(NativeRoute(gemm_), weights_.bf16() ? ", bf16 weights" : "");
  }
  bool NeedsInput(int i) const override { return i != 1 || !constant_b_ || !single_b_; }
  size_t PackedBytes() const override { return weights_.size(); }

 private:
  void Pack(const float* b, int64_t k, int64_t n, bool narrow, float* to, RunWatch* watch) const {
    if (!narrow)
      PackGemm(gemm_, b, transpose_b_ ? 1 : n, transpose_b_ ? k : 1, k, n, to, watch);
    else if (transpose_b_)
      std::copy_n(b, k * n, to);
    else
      TransposeCopy(b, k, n, n, to, k);
  }

  absl::Status Multiply(const MatMulCall& call) const override {
    ScratchPieces pieces(call.ctx.scratch);
    GemmTask task;
    task.bias = bias_.Padded(call.ctx, call.n, pieces);
    task.narrow = !weights_.bf16() && gemm_.Narrow(call.k, call.n);
    if (constant_b_) {
      weights_.PutInto(&task, call.b_index * gemm_.PackedFloats(call.k, call.n));
    } else {
      float* packed = pieces.Floats(PackedBound(gemm_, call.k, call.n));
      if (call.b_is_new) {
        RunWatch watch;
        Pack(static_cast<const float*>(call.b), call.k, call.n, task.narrow, packed, &watch);
        FLOE_RETURN_IF_ERROR(watch.status());
      }
      task.b = packed;
    }
    task.a.base = static_cast<const float*>(call.a);
    if (transpose_a_) {
      float* a = pieces.Floats(call.m * call.k);
      TransposeCopy(task.a.base, call.k, call.m, call.m, a, call.k);
      task.a.base = a;
    }
    task.a.stride = call.k;
    task.runs.length = call.k;
    task.n = task.ldc = call.n;
    task.c = static_cast<float*>(call.c);
    task.activation = epilogue_.activation;
    task.alpha = epilogue_.alpha;
    return RunGemm(gemm_, task, call.m, *call.ctx.pool);
  }

  const GemmKernels gemm_;
  const BiasOperand bias_;
  bool constant_b_ = false;
  bool single_b_ = false;  // one matrix: nothing is addressed inside the original any more
  PackedWeights weights_;
};

class BlasMatMul final : public MatMulKernel {
 public:
  BlasMatMul(const KernelArgs& args, const Epilogue& epilogue, const Blas& blas)
      : MatMulKernel(args, epilogue), gemm_(PickGemm()), blas_(blas) {}
  std::string Route() const override { return "openblas"; }

 private:
  absl::Status Multiply(const MatMulCall& call) const override {
    float* c = static_cast<float*>(call.c);
    blas_.Multiply(
        call.m, call.n, call.k,
        {static_cast<const float*>(call.a), transpose_a_ ? call.m : call.k, transpose_a_},
        {static_cast<const float*>(call.b), transpose_b_ ? call.k : call.n, transpose_b_}, c,
        call.n);
    const float* bias = BiasOf<float>(call.ctx, epilogue_);
    gemm_.finish(epilogue_, bias, nullptr, c, call.m, call.n, call.n);
    return absl::OkStatus();
  }

  const GemmKernels gemm_;  // for the epilogue
  const Blas& blas_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatmul(const KernelArgs& args) {
  const Epilogue epilogue = EpilogueOf(args.node.attrs);
  const bool plain = args.inputs[0].type.dtype != DType::kFloat32 ||
                     args.inputs[1].type.dtype != DType::kFloat32 ||
                     args.node.attrs.Type("Tout", DType::kFloat32) != DType::kFloat32;
  if (plain || args.options.gemm == GemmBackend::kReference) {
    return MakePlainMatMul(args, epilogue);
  }
  if (args.options.gemm == GemmBackend::kOpenBlas) return MakeBlasMatMul(args, epilogue);
  return MakeNativeMatMul(args, epilogue);
}

FLOE_REGISTER_KERNEL(MatMul, kCpu, MakeMatmul, DType::kFloat32, DType::kFloat64, DType::kFloat16,
                     DType::kBFloat16, DType::kInt16, DType::kInt32, DType::kInt64,
                     DType::kComplex64, DType::kComplex128);
FLOE_REGISTER_KERNEL(BatchMatMul, kCpu, MakeMatmul, DType::kFloat32, DType::kFloat64,
                     DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16,
                     DType::kInt32, DType::kInt64, DType::kComplex64, DType::kComplex128);

}  // namespace

MatMulSizes::MatMulSizes(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b)
    : m(a.dim(a.rank() - (transpose_a ? 1 : 2))),
      k(a.dim(a.rank() - (transpose_a ? 2 : 1))),
      n(b.dim(b.rank() - (transpose_b ? 2 : 1))),
      b_k(b.dim(b.rank() - (transpose_b ? 1 : 2))) {}

MatMulKernel::MatMulKernel(const KernelArgs& args, const Epilogue& epilogue)
    : transpose_a_(Transposed(args.node.attrs, "transpose_a", "adj_x")),
      transpose_b_(Transposed(args.node.attrs, "transpose_b", "adj_y")),
      epilogue_(epilogue) {}

absl::Status MatMulKernel::Run(const KernelContext& ctx) const {
  const TensorView &a = ctx.in(0), &b = ctx.in(1), &c = ctx.out(0);
  const MatMulSizes size(a.shape, b.shape, transpose_a_, transpose_b_);
  // Inference lets dims pass that it does not know; reading on would leave B's memory.
  if (size.k != size.b_k || (epilogue_.has_bias() && ctx.in(epilogue_.bias).elements() != size.n)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot multiply ", a.shape.ToString(), " by ",
                                                   b.shape.ToString(), ": inner dims ", size.k,
                                                   " and ", size.b_k, " differ"));
  }
  if (c.elements() == 0) return absl::OkStatus();  // of however many products
  MatMulCall call{ctx, size.m, size.k, size.n, a.data, b.data, 0, true, c.data};
  const int64_t products = MatrixCount(c.shape);
  if (products == 1 || (MatrixCount(b.shape) == 1 && !transpose_a_)) {
    call.m *= products;
    return Multiply(call);
  }
  const auto a_size = static_cast<int64_t>(DTypeSize(a.dtype)),
             b_size = static_cast<int64_t>(DTypeSize(b.dtype)),
             c_size = static_cast<int64_t>(DTypeSize(c.dtype));
  for (int64_t i = 0; i < products; ++i) {
    const int64_t b_index = BroadcastIndex(i, c.shape, b.shape);
    call.b_is_new = i == 0 || b_index != call.b_index;
    call.b_index = b_index;
    call.a = a.as<std::byte>() + BroadcastIndex(i, c.shape, a.shape) * size.m * size.k * a_size;
    call.b = b.as<std::byte>() + b_index * size.k * size.n * b_size;
    call.c = c.as<std::byte>() + i * size.m * size.n * c_size;
    if (i % kUnwatchedProducts == kUnwatchedProducts - 1) FLOE_RETURN_IF_ERROR(CheckRunTime());
    FLOE_RETURN_IF_ERROR(Multiply(call));
  }
  return absl::OkStatus();
}

std::unique_ptr<Kernel> MakeNativeMatMul(const KernelArgs& args, const Epilogue& epilogue) {
  return std::make_unique<NativeMatMul>(args, epilogue);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBlasMatMul(const KernelArgs& args,
                                                       const Epilogue& epilogue) {
  FLOE_ASSIGN_OR_RETURN(const Blas* blas, OpenBlas());
  return std::make_unique<BlasMatMul>(args, epilogue, *blas);
}

}  // namespace floe::kernels
