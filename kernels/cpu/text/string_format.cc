// StringFormat: tensors written into a template, with their first and last elements along each dim.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

// The fewest digits of `usual` and `exact` that give the number back.
template <class F>
std::string Shortest(F value, int usual, int exact) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", usual, static_cast<double>(value));
  if (static_cast<F>(std::strtod(text, nullptr)) != value && value == value)
    std::snprintf(text, sizeof(text), "%.*g", exact, static_cast<double>(value));
  return value == value ? text : "nan";
}

template <class T>
std::string Print(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return absl::StrCat("\"", absl::Utf8SafeCEscape(value), "\"");
  } else if constexpr (std::is_same_v<T, double>) {
    return Shortest(value, 15, 17);
  } else if constexpr (kIsFloating<T>) {
    return Shortest(static_cast<float>(value), 6, 9);
  } else {
    return absl::StrCat(static_cast<std::conditional_t<(sizeof(T) < 4), int, T>>(value));
  }
}

class FormatWriter {
 public:
  // `ends`: how many elements are written at each end of a dim.
  FormatWriter(const TensorView& view, int64_t ends, std::string* text)
      : view_(view), ends_(ends), text_(text) {}

  // Elements from `first` on, of the dims from `axis` on.
  absl::Status Write(int axis, int64_t first) {
    const Shape& shape = view_.shape;
    if (axis == shape.rank()) return WriteElement(first);
    const int64_t count = shape.dim(axis);
    int64_t step = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) step *= shape.dim(i);
    text_->push_back('[');
    for (int64_t i = 0; i < count; ++i) {
      if (i == ends_ && count > 2 * ends_) {
        Space(axis);
        text_->append("...");
        i = count - ends_;
        if (i >= count) break;
      }
      if (i > 0) Space(axis);
      FLOE_RETURN_IF_ERROR(Write(axis + 1, first + step * i));
    }
    text_->push_back(']');
    return absl::OkStatus();
  }

 private:
  void Space(int axis) {
    const int below = view_.shape.rank() - 1 - axis;
    text_->append(static_cast<size_t>(below), '\n');
    text_->append(below == 0 ? 1 : static_cast<size_t>(axis) + 1, ' ');
  }
  absl::Status WriteElement(int64_t at) {
    using Printable = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t,
                               uint8_t, uint16_t, uint32_t, uint64_t, bool, std::string>;
    const bool known = ForDType(view_.dtype, Printable{},
                                [&](auto t) { text_->append(Print(view_.as<decltype(t)>()[at])); });
    if (!known)
      return absl::UnimplementedError(absl::StrCat("StringFormat of ", DTypeName(view_.dtype)));
    return CheckBlockBytes(static_cast<int64_t>(text_->size()));
  }

  const TensorView& view_;
  const int64_t ends_;
  std::string* const text_;
};

absl::Status Append(const TensorView& view, int64_t summarize, std::string* text) {
  const int64_t count = view.elements();
  const int64_t ends = summarize < 0 ? count : std::min(summarize, count);
  if (view.shape.rank() > 0 || ends > 0) return FormatWriter(view, ends, text).Write(0, 0);
  text->append("...");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFormat(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  const std::vector<std::string> parts =
      absl::StrSplit(a.String("template"), a.String("placeholder", "%s"));
  if (parts.size() != args.inputs.size() + 1)
    return absl::InvalidArgumentError(absl::StrCat("the template has ", parts.size() - 1,
                                                   " placeholders for ", args.inputs.size(),
                                                   " inputs"));
  return FromFunction(
      [parts, summarize = a.Int("summarize", 3)](const KernelContext& ctx) -> absl::Status {
        std::string text = parts[0];
        for (size_t i = 0; i < ctx.inputs.size(); ++i) {
          FLOE_RETURN_IF_ERROR(Append(ctx.inputs[i], summarize, &text));
          text += parts[i + 1];
        }
        *ctx.out(0).as<std::string>() = std::move(text);
        return absl::OkStatus();
      });
}
FLOE_REGISTER_KERNEL(StringFormat, kCpu, MakeFormat);

}  // namespace
}  // namespace floe::kernels
