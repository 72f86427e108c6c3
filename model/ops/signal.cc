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
bool Register(const std::string& dims) {
  const RowRule rows = ops::RowsFromRank<kDims + 1>;
  const auto real = [&](const char* name, ops::InferFunction infer) {
    OpDef def = ops::Simple(name + dims, infer, rows);
    def.shape_inputs = 2;
    return def;
  };
  OpRegistrar(ops::Simple("FFT" + dims, InferComplex<kDims>, rows), "T");
  OpRegistrar(ops::Simple("IFFT" + dims, InferComplex<kDims>, rows), "T");
  OpRegistrar(real("RFFT", InferReal<kDims>), "T int32");
  OpRegistrar(real("IRFFT", InferInverseReal<kDims>), "T int32");
  return true;
}
const bool kRegistered[] = {Register<1>(""), Register<2>("2D"), Register<3>("3D")};

}  // namespace
}  // namespace floe
