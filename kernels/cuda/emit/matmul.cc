// MatMul and BatchMatMul.
#include "kernels/cpu/gemm/matmul.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/emit/product.h"

namespace floe::cuda {
namespace {

struct Transposition {
  bool a, b;
};
Transposition TranspositionOf(const Attrs& attrs) {
  return {attrs.Bool("transpose_a") || attrs.Bool("adj_x"),
          attrs.Bool("transpose_b") || attrs.Bool("adj_y")};
}

// Element steps from one product to the next along each batch dim of the output, aligned to its
// last; 0 where the operand has one matrix for all.
void BatchSteps(const Shape& out, const Shape& in, int64_t matrix,
                int64_t (&steps)[kMaxBatchDims]) {
  int64_t step = matrix;
  for (int i = 0; i < kMaxBatchDims; ++i) {
    const int axis = in.rank() - 3 - i;
    int64_t& to = steps[kMaxBatchDims - 1 - i];
    to = 0;
    if (axis < 0 || i >= out.rank() - 2) continue;
    if (in.dim(axis) != 1) to = step;
    step *= in.dim(axis);
  }
}

class MatMul final : public DeviceKernel {
 public:
  explicit MatMul(const KernelArgs& args)
      : transposed_(TranspositionOf(args.node.attrs)),
        epilogue_(EpilogueOf(args.node.attrs)),
        precision_(args.options.precision) {
    if (!args.inputs[1].has_constant() || args.inputs[1].constant.elements() == 0) return;
    const Tensor& b = args.inputs[1].constant;
    const int rank = b.shape().rank();
    const int64_t k = b.shape().dim(rank - (transposed_.b ? 1 : 2)),
                  n = b.shape().dim(rank - (transposed_.b ? 2 : 1));
    if (!transposed_.b && n == FactorColumns(n)) {
      weights_.push_back(b);
    } else {
      weights_.push_back(Packed(b.as<float>(), b.elements() / (k * n), k, n));
    }
    if (b.elements() == k * n && !transposed_.a && precision_ == Precision::kFloat32)
      layer_ = VendorLayer{.k = k, .n = n, .line = FactorColumns(n)};
  }

  absl::Span<const Tensor> Weights() const override { return weights_; }
  std::string Route() const override { return RouteOf(precision_); }
  bool NeedsInput(int i) const override { return i != 1 || weights_.empty(); }
  std::optional<VendorLayer> Layer() const override { return layer_; }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    const Shape &a = addresses.in(0).shape, &b = addresses.in(1).shape, &c = addresses.out(0).shape;
    if (c.elements() == 0) return;
    const kernels::MatMulSizes size(a, b, transposed_.a, transposed_.b);
    GemmArgs args = {};
    int64_t m = size.m, products = c.elements() / (size.m * size.n);
    const bool one = products == 1 || (b.elements() == size.k * size.n && !transposed_.a);
    if (one) {
      m *= products;
      products = 1;
    }
    args.m = static_cast<int32_t>(m);
    args.n = static_cast<int32_t>(size.n);
    args.k = static_cast<int32_t>(size.k);
    args.a = addresses.in(0).as<float>();
    args.a_row = transposed_.a ? 1 : size.k;
    args.a_column = transposed_.a ? size.m : 1;
    args.b = Right(addresses, size.k, size.n);
    args.c = addresses.out(0).as<float>();
    args.c_row = size.n;
    args.c_batch = m * size.n;
    std::fill_n(args.batch, kMaxBatchDims, 1);
    if (!one) {
      for (int i = 0; i < c.rank() - 2; ++i)
        args.batch[kMaxBatchDims - 1 - i] = static_cast<int32_t>(c.dim(c.rank() - 3 - i));
      BatchSteps(c, a, size.m * size.k, args.a_batch);
      BatchSteps(c, b, transposed_.b && weights_.empty() ? size.k * size.n : size.k * args.b.row,
                 args.b_batch);
    }
    args.a_vectors = !transposed_.a && size.k % 4 == 0 && Aligned(args.a);
    args.epilogue = EpilogueArgsOf(addresses, epilogue_);
    args.c_vectors = size.n % 4 == 0 && Aligned(args.c) && Aligned(args.epilogue);
    AppendGemm(args, products, launches, precision_);
  }

 private:
  // [count, k, n] of matrices that may be transposed.
  Tensor Packed(const float* from, int64_t count, int64_t k, int64_t n) const {
    Tensor packed = AllocateFactors(count, k, n);
    auto* to = static_cast<float*>(packed.mutable_data());
    for (int64_t i = 0; i < count; ++i, from += k * n) {
      for (int64_t row = 0; row < k; ++row, to += FactorColumns(n)) {
        for (int64_t column = 0; column < n; ++column)
          to[column] = transposed_.b ? from[column * k + row] : from[row * n + column];
      }
    }
    return packed;
  }

  FactorArgs Right(const DeviceAddresses& addresses, int64_t k, int64_t n) const {
    if (!weights_.empty()) return PackedFactor(addresses.weight<float>(0), n);
    const float* b = addresses.in(1).as<float>();
    return transposed_.b ? PlainFactor(b, 1, k, n, 1) : PlainFactor(b, n, 1, n, k * n);
  }

  const Transposition transposed_;
  const Epilogue epilogue_;
  const Precision precision_;
  std::vector<Tensor> weights_;
  std::optional<VendorLayer> layer_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatMul(const KernelArgs& args) {
  return std::make_unique<MatMul>(args);
}

bool ComputesProduct(const KernelArgs& args) {
  const SymShape &a = args.inputs[0].type.shape, &b = args.inputs[1].type.shape;
  if (!a.rank_known() || !b.rank_known() || a.rank() < 2 || b.rank() < 2) return false;
  if (std::max(a.rank(), b.rank()) > kMaxBatchDims + 2) return false;
  if (args.inputs[1].type.dtype != DType::kFloat32 ||
      args.node.attrs.Type("Tout", DType::kFloat32) != DType::kFloat32) {
    return false;
  }
  const Transposition transposed = TranspositionOf(args.node.attrs);
  const Dim columns = b.dim(b.rank() - (transposed.b ? 2 : 1));
  return Same(a.dim(a.rank() - (transposed.a ? 2 : 1)), b.dim(b.rank() - (transposed.b ? 1 : 2))) &&
         columns.concrete() && columns.size() <= kMostColumns &&
         BiasFits(args, EpilogueOf(args.node.attrs), columns);
}

const KernelRegistrar kMatMul("MatMul", DeviceKind::kCuda, {DType::kFloat32}, MakeMatMul,
                              {.computes = ComputesProduct});
const KernelRegistrar kBatchMatMul("BatchMatMul", DeviceKind::kCuda, {DType::kFloat32}, MakeMatMul,
                                   {.computes = ComputesProduct});

}  // namespace
}  // namespace floe::cuda
