// MatrixDiag, MatrixDiagPart, MatrixSetDiag and MatrixBandPart in their forms.
#include "model/ops/diagonal.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

// The band of this run; input `k` may be absent.
absl::StatusOr<ops::Diagonals> BandOf(const Node& node, const KernelContext& ctx, size_t k_input) {
  IntList k;
  if (ctx.inputs.size() > k_input)
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(static_cast<int>(k_input)), &k));
  return ops::DiagonalsOf(node, k);
}

struct DiagonalMatrices {
  int64_t count = 1, rows, cols;
};
DiagonalMatrices DiagonalMatricesOf(const Shape& shape) {
  DiagonalMatrices m;
  m.rows = shape.dim(shape.rank() - 2);
  m.cols = shape.dim(shape.rank() - 1);
  for (int i = 0; i + 2 < shape.rank(); ++i) m.count *= shape.dim(i);
  return m;
}

// Visits every element of every diagonal: visit(matrix element, element of the band).
template <class Visit>
void ForBand(const ops::Diagonals& band, const DiagonalMatrices& m, int64_t longest,
             const Visit& visit) {
  for (int64_t n = 0; n < m.count; ++n) {
    for (int64_t d = band.lower; d <= band.upper; ++d) {
      const int64_t length = std::max<int64_t>(0, ops::Diagonals::Length(d, m.rows, m.cols)),
                    offset = band.Offset(d, m.rows, m.cols);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t row = i - std::min<int64_t>(d, 0), col = i + std::max<int64_t>(d, 0);
        visit((n * m.rows + row) * m.cols + col,
              (n * band.count() + band.upper - d) * longest + offset + i);
      }
    }
  }
}

// The value that fills what no diagonal covers: input `i` when it exists, else zero.
template <class T>
T Padding(const KernelContext& ctx, size_t i) {
  return ctx.inputs.size() > i ? *ctx.in(static_cast<int>(i)).as<T>() : T{};
}

absl::Status Diag(const Node& node, const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const ops::Diagonals band, BandOf(node, ctx, 1));
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  const DiagonalMatrices m = DiagonalMatricesOf(ctx.out(0).shape);
  const Shape& in = ctx.in(0).shape;
  if (band.Longest(m.rows, m.cols) > in.dim(in.rank() - 1) ||
      (band.count() > 1 && in.dim(in.rank() - 2) != band.count())) {
    return absl::InvalidArgumentError(absl::StrCat("diagonals of shape ", in.ToString(),
                                                   " do not fill those of ",
                                                   ctx.out(0).shape.ToString()));
  }
  ForElement(ctx.in(0).dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = ctx.in(0).as<T>();
    T* y = ctx.out(0).as<T>();
    std::fill_n(y, ctx.out(0).elements(), Padding<T>(ctx, 4));
    ForBand(band, m, in.dim(in.rank() - 1),
            [&](int64_t matrix, int64_t diagonal) { y[matrix] = x[diagonal]; });
  });
  return absl::OkStatus();
}

absl::Status DiagPart(const Node& node, const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const ops::Diagonals band, BandOf(node, ctx, 1));
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  const DiagonalMatrices m = DiagonalMatricesOf(ctx.in(0).shape);
  const Shape& out = ctx.out(0).shape;
  ForElement(ctx.in(0).dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = ctx.in(0).as<T>();
    T* y = ctx.out(0).as<T>();
    std::fill_n(y, ctx.out(0).elements(), Padding<T>(ctx, 2));
    ForBand(band, m, out.dim(out.rank() - 1),
            [&](int64_t matrix, int64_t diagonal) { y[diagonal] = x[matrix]; });
  });
  return absl::OkStatus();
}

absl::Status SetDiag(const Node& node, const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const ops::Diagonals band, BandOf(node, ctx, 2));
  const Shape& in = ctx.in(0).shape;
  const DiagonalMatrices m = DiagonalMatricesOf(in);
  const int64_t longest = band.Longest(m.rows, m.cols);
  Shape wanted(in.dims().first(static_cast<size_t>(in.rank()) - 2));
  if (band.count() > 1) wanted.push_back(band.count());
  wanted.push_back(longest);
  if (ctx.in(1).shape != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("diagonals of shape ", ctx.in(1).shape.ToString(), " do not fit ",
                     in.ToString(), ", expected ", wanted.ToString()));
  }
  CopyElements(ctx.in(0).dtype, ctx.in(0).data, ctx.out(0).data, ctx.in(0).elements());
  if (ctx.in(1).elements() == 0) return absl::OkStatus();  // of however many diagonals
  ForElement(ctx.in(0).dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = ctx.in(1).as<T>();
    T* y = ctx.out(0).as<T>();
    ForBand(band, m, longest, [&](int64_t matrix, int64_t diagonal) { y[matrix] = x[diagonal]; });
  });
  return absl::OkStatus();
}

// Negative bounds keep the whole triangle.
absl::Status BandPart(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const int64_t lower, ReadInt(ctx.in(1)));
  FLOE_ASSIGN_OR_RETURN(const int64_t upper, ReadInt(ctx.in(2)));
  const DiagonalMatrices m = DiagonalMatricesOf(ctx.in(0).shape);
  ForElement(ctx.in(0).dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = ctx.in(0).as<T>();
    T* y = ctx.out(0).as<T>();
    for (int64_t i = 0; i < m.count * m.rows; ++i, x += m.cols, y += m.cols) {
      const int64_t row = i % m.rows;
      const int64_t begin = lower < 0 ? 0 : std::clamp<int64_t>(row - lower, 0, m.cols);
      const int64_t end = upper < 0 ? m.cols : std::clamp<int64_t>(row + upper + 1, begin, m.cols);
      std::fill(y, y + begin, T{});
      std::copy(x + begin, x + end, y + begin);
      std::fill(y + end, y + m.cols, T{});
    }
  });
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(MatrixBandPart, kCpu, MakeFunction<BandPart>);

// The alignment is an attribute of the node; kernels outlive it, so they keep a copy of what they
// need.
template <absl::Status (*kRun)(const Node&, const KernelContext&)>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  Node node;
  node.op = args.node.op;
  node.attrs = args.node.attrs;
  return FromFunction([node](const KernelContext& ctx) { return kRun(node, ctx); });
}
FLOE_REGISTER_KERNEL(MatrixDiag, kCpu, Make<Diag>);
FLOE_REGISTER_KERNEL(MatrixDiagV2, kCpu, Make<Diag>);
FLOE_REGISTER_KERNEL(MatrixDiagV3, kCpu, Make<Diag>);
FLOE_REGISTER_KERNEL(MatrixDiagPart, kCpu, Make<DiagPart>);
FLOE_REGISTER_KERNEL(MatrixDiagPartV2, kCpu, Make<DiagPart>);
FLOE_REGISTER_KERNEL(MatrixDiagPartV3, kCpu, Make<DiagPart>);
FLOE_REGISTER_KERNEL(MatrixSetDiag, kCpu, Make<SetDiag>);
FLOE_REGISTER_KERNEL(MatrixSetDiagV2, kCpu, Make<SetDiag>);
FLOE_REGISTER_KERNEL(MatrixSetDiagV3, kCpu, Make<SetDiag>);

}  // namespace
}  // namespace floe::kernels
