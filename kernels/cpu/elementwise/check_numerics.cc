// CheckNumerics: values that are not finite end the run.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "kernels/cpu/dtypes.h"

namespace floe::kernels {
namespace {

template <typename T>
class CheckNumericsKernel final : public Kernel {
 public:
  explicit CheckNumericsKernel(std::string message) : message_(std::move(message)) {}

  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView& in = ctx.in(0);
    const T* const values = in.as<T>();
    bool infinite = false, none = false;
    for (int64_t i = 0; i < in.elements(); ++i) {
      const auto value = static_cast<double>(values[i]);
      infinite = infinite || std::isinf(value);
      none = none || std::isnan(value);
    }
    if (infinite || none) {
      return absl::InvalidArgumentError(
          absl::StrCat(Escaped(message_), ": a tensor has ",
                       infinite && none ? "Inf and NaN" : (infinite ? "Inf" : "NaN"), " values"));
    }
    const TensorView& out = ctx.outputs[0];
    if (out.data != nullptr && out.data != in.data) CopyElements(in, out.data);
    return absl::OkStatus();
  }

 private:
  const std::string message_;  // the model's author's
};

template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCheck(const KernelArgs& args) {
  return std::make_unique<CheckNumericsKernel<T>>(args.node.attrs.String("message"));
}
FLOE_REGISTER_KERNELS(CheckNumerics, kCpu, MakeCheck<T>, Floats);

}  // namespace
}  // namespace floe::kernels
