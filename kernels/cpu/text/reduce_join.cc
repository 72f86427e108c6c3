// ReduceJoin: strings along axes, joined in the order in which the axes are given.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

// Some axes of a tensor, the last running fastest.
struct Axes {
  IntList dims, strides;
  int64_t count = 1;

  void Add(int64_t dim, int64_t stride) {
    dims.push_back(dim);
    strides.push_back(stride);
    count *= dim;
  }
  int64_t Offset(int64_t i) const {
    int64_t at = 0;
    for (size_t k = dims.size(); k-- > 0;) {
      at += i % dims[k] * strides[k];
      i /= dims[k];
    }
    return at;
  }
};

absl::Status Split(const Shape& in, const TensorView& axes, Axes* kept, Axes* joined) {
  IntList given;
  FLOE_RETURN_IF_ERROR(ReadInts(axes, &given));
  const IntList strides = DenseStrides(in);
  std::vector<bool> is_joined(in.rank(), false);
  // The first axis given is joined first: it runs fastest.
  for (size_t k = given.size(); k-- > 0;) {
    FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(given[k], in.rank()));
    if (is_joined[axis])
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is named twice"));
    is_joined[axis] = true;
    joined->Add(in.dim(axis), strides[axis]);
  }
  for (int axis = 0; axis < in.rank(); ++axis) {
    if (!is_joined[axis]) kept->Add(in.dim(axis), strides[axis]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReduceJoin(const KernelArgs& args) {
  const std::string separator = args.node.attrs.String("separator");
  return FromFunction([separator](const KernelContext& ctx) -> absl::Status {
    Axes kept, joined;
    FLOE_RETURN_IF_ERROR(Split(ctx.in(0).shape, ctx.in(1), &kept, &joined));
    if (ctx.out(0).elements() != kept.count)
      return absl::InternalError("the output's shape is not that of the axes kept");
    int64_t bytes = 0;  // separators between empty strings are many bytes of few
    for (int64_t i = 0; i < kept.count; ++i) {
      const std::string* from = ctx.in(0).as<std::string>() + kept.Offset(i);
      std::string text;
      for (int64_t k = 0; k < joined.count; ++k) {
        absl::StrAppend(&text, k == 0 ? "" : separator, from[joined.Offset(k)]);
        FLOE_RETURN_IF_ERROR(CheckValueBytes(bytes + static_cast<int64_t>(text.size())));
      }
      bytes += static_cast<int64_t>(text.size());
      ctx.out(0).as<std::string>()[i] = std::move(text);
    }
    return absl::OkStatus();
  });
}

FLOE_REGISTER_KERNEL(ReduceJoin, kCpu, MakeReduceJoin, DType::kString);

// The strings of each segment in turn.
absl::Status JoinSegments(const KernelContext& ctx, const std::string& separator) {
  const TensorView &in = ctx.in(0), &out = ctx.out(0);
  IntList ids;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &ids));
  const Shape& id_shape = ctx.in(1).shape;
  bool prefix = id_shape.rank() <= in.shape.rank();
  for (int i = 0; prefix && i < id_shape.rank(); ++i) prefix = id_shape.dim(i) == in.shape.dim(i);
  if (!prefix)
    return absl::InvalidArgumentError(absl::StrCat("segment ids ", id_shape.ToString(),
                                                   " are no prefix of ", in.shape.ToString()));
  const int64_t segments = out.shape.dim(0), n = static_cast<int64_t>(ids.size()),
                inner = n == 0 ? 0 : in.elements() / n;
  for (const int64_t id : ids) {
    if (id < 0 || id >= segments)
      return absl::InvalidArgumentError(
          absl::StrCat("segment id ", id, " is not in [0, ", segments, ")"));
  }
  std::vector<bool> begun(static_cast<size_t>(out.elements()));
  int64_t bytes = 0;
  for (int64_t i = 0; i < n * inner; ++i) {
    const int64_t at = ids[i / inner] * inner + i % inner;
    const std::string& part = in.as<std::string>()[i];
    bytes += static_cast<int64_t>(separator.size() + part.size());
    FLOE_RETURN_IF_ERROR(CheckValueBytes(bytes));
    absl::StrAppend(&out.as<std::string>()[at], begun[at] ? separator : "", part);
    begun[at] = true;
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeJoinSegments(const KernelArgs& args) {
  return FromFunction([separator = args.node.attrs.String("separator")](const KernelContext& ctx) {
    return JoinSegments(ctx, separator);
  });
}
FLOE_REGISTER_KERNEL(UnsortedSegmentJoin, kCpu, MakeJoinSegments, DType::kString);

}  // namespace
}  // namespace floe::kernels
