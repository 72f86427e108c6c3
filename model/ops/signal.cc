// Discrete Fourier transforms.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferComplex(const InferContext& c) {
  if (ops::RankOf(c, 0) == 0) return Bad("input is a scalar");
  return InferSame(c);
}

// fft_length gives the transformed dims; the last one keeps length / 2 + 1 elements.
template <int kDims>
absl::StatusOr<Types> InferReal(const InferContext& c) {
  SymShape out = c.shape(0);
  const DType dtype = c.dtype(0) == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
  std::vector<int64_t> length;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &length));
  if (!out.rank_known()) return ops::One(dtype, out);
  if (out.rank() < kDims)
    return Bad(
        absl::StrCat("input has shape ", out.ToString(), ", expected rank ", kDims, " or more"));
  if (known && length.size() != kDims)
    return Bad(absl::StrCat("fft_length has ", length.size(), " elements, expected ", kDims));
  for (int i = 0; i < kDims; ++i) {
    if (known && length[i] < 0) return Bad(absl::StrCat("fft_length ", length[i], " is negative"));
    const bool halved = known && i + 1 == kDims && length[i] > 0;
    out.set_dim(out.rank() - kDims + i,
                !known ? Dim::Unknown() : Dim(halved ? length[i] / 2 + 1 : length[i]));
  }
  return ops::One(dtype, std::move(out));
}

template <int kDims>
RowMark FourierRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  return ops::MarkOfData(c, 0, in.rank_known() && in.rank() > kDims);
}

template <int kDims>
OpDef Complex(const std::string& name) {
  return {.name = name,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferComplex,
          .rows = FourierRows<kDims>,
          .tensorflow = {name}};
}
template <int kDims>
OpDef Real(const std::string& name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferReal<kDims>,
          .rows = FourierRows<kDims>,
          .shape_inputs = 2,
          .tensorflow = {name}};
}
const OpRegistrar kFourier[] = {
    OpRegistrar(Complex<1>("FFT")),   OpRegistrar(Complex<1>("IFFT")),
    OpRegistrar(Complex<2>("FFT2D")), OpRegistrar(Complex<2>("IFFT2D")),
    OpRegistrar(Real<1>("RFFT")),     OpRegistrar(Real<2>("RFFT2D")),
};

}  // namespace
}  // namespace floe
