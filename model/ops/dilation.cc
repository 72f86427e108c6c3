#include "model/ops/dilation.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/window.h"

namespace floe {
namespace ops {

absl::StatusOr<Dilation> DilationOf(const Attrs& attrs) {
  Dilation dilation;
  const auto read = [&attrs](const char* name, int64_t* to) -> absl::Status {
    const std::vector<int64_t> values = attrs.Ints(name);
    FLOE_RETURN_IF_ERROR(CheckWindowNumbers(name, values, 1));
    if (values.size() != 4 || values[0] != 1 || values[3] != 1)
      return Bad(absl::StrCat(name, " must be four numbers, the first and the last of them 1"));
    to[0] = values[1], to[1] = values[2];
    return absl::OkStatus();
  };
  FLOE_RETURN_IF_ERROR(read("strides", dilation.strides));
  FLOE_RETURN_IF_ERROR(read("rates", dilation.rates));
  const std::string padding = attrs.String("padding");
  if (padding != "SAME" && padding != "VALID")
    return Bad("padding '" + padding + "' is neither SAME nor VALID");
  dilation.same = padding == "SAME";
  return dilation;
}

}  // namespace ops

namespace {

// input [batch, height, width, depth], filter [rows, columns, depth]
absl::StatusOr<Types> InferDilation(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const ops::Dilation window, ops::DilationOf(c.attrs()));
  if (ops::RankOf(c, 0) < 0 || ops::RankOf(c, 1) < 0)
    return ops::One(c.dtype(0), ops::UnknownDims(4));
  SymShape out = c.shape(0);
  for (int i = 0; i < 2; ++i) {
    const Dim taps = c.shape(1).dim(i);
    if (!taps.concrete()) {
      out.set_dim(1 + i, Dim::Unknown());
      continue;
    }
    FLOE_ASSIGN_OR_RETURN(
        const Dim size,
        ops::WindowOutput(out.dim(1 + i), ops::WindowSpan(taps.size(), window.rates[i]),
                          window.strides[i], {.same = window.same}));
    out.set_dim(1 + i, size);
  }
  return ops::One(c.dtype(0), std::move(out));
}

const OpRegistrar kDilation({.name = "Dilation2D",
                             .infer = InferDilation,
                             .rows = RowsOfInput0,
                             .input_types = "T[_,_,_,d] T[_,_,d]"});

}  // namespace
}  // namespace floe
