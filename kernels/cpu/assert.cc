// Assert: a run that fails says what the model's author wrote, and the values.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/kernel.h"

namespace floe::kernels {
namespace {

std::string ElementText(const TensorView& view, int64_t i) {
  switch (view.dtype) {
    case DType::kString:
      return view.as<std::string>()[i];
    case DType::kBool:
      return view.as<bool>()[i] ? "true" : "false";
    case DType::kFloat32:
      return absl::StrCat(view.as<float>()[i]);
    case DType::kFloat64:
      return absl::StrCat(view.as<double>()[i]);
    case DType::kInt32:
      return absl::StrCat(view.as<int32_t>()[i]);
    case DType::kInt64:
      return absl::StrCat(view.as<int64_t>()[i]);
    default:
      return absl::StrCat("<", DTypeName(view.dtype), ">");
  }
}

class AssertKernel final : public Kernel {
 public:
  explicit AssertKernel(int64_t summarize) : summarize_(summarize) {}

  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView& condition = ctx.in(0);
    if (condition.dtype != DType::kBool || condition.elements() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("its condition is ", DTypeName(condition.dtype), condition.shape.ToString(),
                       ", expected a bool scalar"));
    }
    if (*condition.as<bool>()) return absl::OkStatus();
    std::string message = "assertion failed:";
    for (const TensorView& data : ctx.inputs.subspan(1)) {
      const int64_t shown =
          summarize_ < 0 ? data.elements() : std::min(summarize_, data.elements());
      absl::StrAppend(&message, " [");
      for (int64_t i = 0; i < shown; ++i)
        absl::StrAppend(&message, i == 0 ? "" : " ", ElementText(data, i));
      absl::StrAppend(&message, shown < data.elements() ? "...]" : "]");
    }
    return absl::InvalidArgumentError(message);
  }

 private:
  const int64_t summarize_;  // elements of each tensor shown; -1: all
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeAssert(const KernelArgs& args) {
  return std::make_unique<AssertKernel>(args.node.attrs.Int("summarize", 3));
}
FLOE_REGISTER_KERNEL(Assert, kCpu, MakeAssert);

}  // namespace
}  // namespace floe::kernels
