// AsString: elements as text, by printf's rules as in TensorFlow.
#include <algorithm>
#include <complex>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

struct Format {
  std::string flags;      // "%08.3": all but the conversion
  char conversion = 'f';  // of floats: f, e or g
  int64_t width = 0;
  bool left = false;  // strings
};

template <class T>
std::string Printed(const std::string& format, T value) {
  const int size = std::snprintf(nullptr, 0, format.c_str(), value);
  std::string text(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), value);
  text.pop_back();
  return text;
}

template <class T>
std::string Print(const Format& f, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, std::string>) {
    const std::string blanks(std::max<int64_t>(f.width - static_cast<int64_t>(value.size()), 0),
                             ' ');
    return f.left ? value + blanks : blanks + value;
  } else if constexpr (kIsComplex<T>) {
    return absl::StrCat("(", Print(f, value.real()), ",", Print(f, value.imag()), ")");
  } else if constexpr (kIsFloating<T>) {
    return Printed(f.flags + f.conversion, static_cast<double>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    return Printed(f.flags + "llu", static_cast<unsigned long long>(value));
  } else {
    return Printed(f.flags + "lld", static_cast<long long>(value));
  }
}

absl::StatusOr<Format> ReadFormat(const Attrs& attrs, DType dtype) {
  const std::string fill = attrs.String("fill");
  const int64_t width = attrs.Int("width", -1), precision = attrs.Int("precision", -1);
  const bool scientific = attrs.Bool("scientific"), shortest = attrs.Bool("shortest");
  if (fill.size() > 1 || (!fill.empty() && std::string(" +-0#").find(fill) == std::string::npos))
    return absl::InvalidArgumentError("fill '" + fill + "' is none of space, +, -, 0, #");
  if (scientific && shortest)
    return absl::InvalidArgumentError("both scientific and shortest are set");
  if ((IsInteger(dtype) || dtype == DType::kBool) && (scientific || shortest || precision > -1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("precision, scientific and shortest are for floats, not ", DTypeName(dtype)));
  }
  constexpr int64_t kMax = 1 << 16;
  if (width > kMax || precision > kMax) {
    return absl::UnimplementedError(
        absl::StrCat("AsString with width ", width, " and precision ", precision));
  }
  Format format;
  format.flags = "%" + fill;
  format.width = width;
  format.left = fill == "-";
  if (width > -1) absl::StrAppend(&format.flags, width);
  if (precision > -1) absl::StrAppend(&format.flags, ".", precision);
  if (scientific) format.conversion = 'e';
  if (shortest) format.conversion = 'g';
  return format;
}

using Types =
    TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             uint32_t, uint64_t, std::complex<float>, std::complex<double>, bool, std::string>;

absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const Format format,
                        ReadFormat(args.node.attrs, args.inputs[0].type.dtype));
  return FromFunction([format](const KernelContext& ctx) {
    const TensorView& in = ctx.in(0);
    auto* to = ctx.out(0).as<std::string>();
    absl::Status status;
    int64_t bytes = 0;  // a wide format makes much of little
    const bool known = ForDType(in.dtype, Types{}, [&](auto t) {
      using T = decltype(t);
      for (int64_t i = 0; status.ok() && i < in.elements(); ++i) {
        to[i] = Print(format, in.as<T>()[i]);
        bytes += static_cast<int64_t>(to[i].size());
        status = CheckValueBytes(bytes);
      }
    });
    return known ? status
                 : absl::UnimplementedError(absl::StrCat("AsString of ", DTypeName(in.dtype)));
  });
}

FLOE_REGISTER_KERNEL(AsString, kCpu, Make);

}  // namespace
}  // namespace floe::kernels
