// Discrete Fourier transforms.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::Status ExpectDims(const InferContext& c, int dims) {
  if (!c.shape(0).rank_known() || c.shape(0).rank() >= dims) return absl::OkStatus();
  return Bad(absl::StrCat("input has shape ", c.shape(0).ToString(), ", expected rank ", dims,
                          " or more"));
}

template <int kDims>
absl::StatusOr<Types> InferComplex(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectDims(c, kDims));
  return InferSame(c);
}

// fft_length gives the transformed dims; of a spectrum the last one keeps length / 2 + 1 elements.
absl::StatusOr<SymShape> Transformed(const InferContext& c, int dims, bool spectrum) {
  SymShape out = c.shape(0);
  std::vector<int64_t> length;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &length));
  if (!out.rank_known()) return out;
  FLOE_RETURN_IF_ERROR(ExpectDims(c, dims));
  if (known && length.size() != static_cast<size_t>(dims))
    return Bad(absl::StrCat("fft_length has ", length.size(), " elements, expected ", dims));
  for (int i = 0; i < dims; ++i) {
    if (known && length[i] < 0) return Bad(absl::StrCat("fft_length ", length[i], " is negative"));
    const bool halved = spectrum && known && i + 1 == dims && length[i] > 0;
    out.set_dim(out.rank() - dims + i,
                !known ? Dim::Unknown() : Dim(halved ? length[i] / 2 + 1 : length[i]));
  }
  return out;
}

template <int kDims>
absl::StatusOr<Types> InferReal(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape out, Transformed(c, kDims, true));
  const DType dtype = c.dtype(0) == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
  return ops::One(dtype, std::move(out));
}
template <int kDims>
absl::StatusOr<Types> InferInverseReal(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape out, Transformed(c, kDims, false));
  const DType dtype = c.dtype(0) == DType::kComplex128 ? DType::kFloat64 : DType::kFloat32;
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
          .infer = InferComplex<kDims>,
          .rows = FourierRows<kDims>,
          .tensorflow = {name}};
}
template <int kDims>
OpDef Real(const std::string& name, absl::StatusOr<Types> (*infer)(const InferContext&)) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer,
          .rows = FourierRows<kDims>,
          .shape_inputs = 2,
          .tensorflow = {name}};
}
template <int kDims>
bool Register(const std::string& dims) {
  OpRegistrar(Complex<kDims>("FFT" + dims));
  OpRegistrar(Complex<kDims>("IFFT" + dims));
  OpRegistrar(Real<kDims>("RFFT" + dims, InferReal<kDims>), "T int32");
  OpRegistrar(Real<kDims>("IRFFT" + dims, InferInverseReal<kDims>), "T int32");
  return true;
}
const bool kRegistered[] = {Register<1>(""), Register<2>("2D"), Register<3>("3D")};

}  // namespace
}  // namespace floe
