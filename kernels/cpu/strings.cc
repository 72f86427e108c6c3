// Strings: case, numbers, joining and splitting.
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/give.h"

namespace floe::kernels {
namespace {

char32_t Decode(const std::string& s, size_t at, size_t* bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[at + i]); };
  const unsigned char lead = byte(0);
  *bytes = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 1;
  if (at + *bytes > s.size()) *bytes = 1;
  if (*bytes != 2) return lead < 0x80 ? lead : 0;
  return static_cast<char32_t>((lead & 0x1f) << 6 | (byte(1) & 0x3f));
}

// Latin-1 and the Greek and Cyrillic letters whose cases are a fixed step apart; others stay.
char32_t ChangeCase(char32_t c, bool upper) {
  const auto in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (upper) {
    if (in(0xe0, 0xfe) && c != 0xf7) return c - 0x20;
    if (c == 0xff) return 0x178;
    if (in(0x3b1, 0x3cb) && c != 0x3c2) return c - 0x20;
    if (in(0x430, 0x44f)) return c - 0x20;
    if (in(0x450, 0x45f)) return c - 0x50;
  } else {
    if (in(0xc0, 0xde) && c != 0xd7) return c + 0x20;
    if (c == 0x178) return 0xff;
    if (in(0x391, 0x3ab) && c != 0x3a2) return c + 0x20;
    if (in(0x410, 0x42f)) return c + 0x20;
    if (in(0x400, 0x40f)) return c + 0x50;
  }
  return c;
}

std::string Utf8Case(const std::string& s, bool upper) {
  std::string out;
  for (size_t at = 0, bytes = 1; at < s.size(); at += bytes) {
    const char32_t c = Decode(s, at, &bytes);
    if (bytes == 1) {
      out += upper ? absl::ascii_toupper(s[at]) : absl::ascii_tolower(s[at]);
    } else if (bytes == 2) {
      const char32_t changed = ChangeCase(c, upper);
      out += static_cast<char>(0xc0 | changed >> 6);
      out += static_cast<char>(0x80 | (changed & 0x3f));
    } else {
      out.append(s, at, bytes);
    }
  }
  return out;
}

template <bool kUpper>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCase(const KernelArgs& args) {
  const bool utf8 = args.node.attrs.String("encoding") == "utf-8";
  return FromFunction([utf8](const KernelContext& ctx) {
    const auto* from = ctx.in(0).as<std::string>();
    auto* to = ctx.out(0).as<std::string>();
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      to[i] = utf8     ? Utf8Case(from[i], kUpper)
              : kUpper ? absl::AsciiStrToUpper(from[i])
                       : absl::AsciiStrToLower(from[i]);
    }
    return absl::OkStatus();
  });
}

struct NumberFormat {
  std::string flags;  // "%08.3": all but the conversion
  char conversion;    // f, e or g
};

template <class T>
std::string Print(const NumberFormat& f, T value) {
  char buffer[512];
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  if constexpr (kIsFloating<T>) {
    const std::string format = f.flags + f.conversion;
    std::snprintf(buffer, sizeof(buffer), format.c_str(), static_cast<double>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    const std::string format = f.flags + "llu";
    std::snprintf(buffer, sizeof(buffer), format.c_str(), static_cast<unsigned long long>(value));
  } else {
    const std::string format = f.flags + "lld";
    std::snprintf(buffer, sizeof(buffer), format.c_str(), static_cast<long long>(value));
  }
  return buffer;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAsString(const KernelArgs& args) {
  const Attrs& attrs = args.node.attrs;
  const std::string fill = attrs.String("fill");
  const int64_t width = attrs.Int("width", -1), precision = attrs.Int("precision", -1);
  if (fill.size() > 1 || (!fill.empty() && std::string(" +-0#").find(fill) == std::string::npos))
    return absl::InvalidArgumentError("fill '" + fill + "' is none of space, +, -, 0, #");
  if (width > 256 || precision > 64)
    return absl::UnimplementedError(absl::StrCat("width ", width, " with precision ", precision));
  NumberFormat format{"%" + fill, 'f'};
  if (width > -1) absl::StrAppend(&format.flags, width);
  if (precision > -1) absl::StrAppend(&format.flags, ".", precision);
  if (attrs.Bool("scientific")) format.conversion = 'e';
  if (attrs.Bool("shortest")) format.conversion = 'g';
  return FromFunction([format](const KernelContext& ctx) {
    const TensorView& in = ctx.in(0);
    auto* to = ctx.out(0).as<std::string>();
    const auto print = [&](auto t) {
      using T = decltype(t);
      for (int64_t i = 0; i < in.elements(); ++i) to[i] = Print(format, in.as<T>()[i]);
    };
    return ForDType(in.dtype, Reals{}, print) || ForDType(in.dtype, Booleans{}, print)
               ? absl::OkStatus()
               : absl::UnimplementedError(absl::StrCat("AsString of ", DTypeName(in.dtype)));
  });
}

template <class T>
bool Parse(const std::string& text, T* value) {
  const std::string s(absl::StripAsciiWhitespace(text));
  if (s.empty()) return false;
  char* end = nullptr;
  errno = 0;
  if constexpr (std::is_same_v<T, float>) {
    *value = std::strtof(s.c_str(), &end);
  } else if constexpr (std::is_same_v<T, double>) {
    *value = std::strtod(s.c_str(), &end);
  } else {
    const long long wide = std::strtoll(s.c_str(), &end, 10);
    *value = static_cast<T>(wide);
    if (errno == ERANGE || *value != wide) return false;
  }
  return end == s.c_str() + s.size();
}

absl::Status StringToNumber(const KernelContext& ctx) {
  const TensorView& out = ctx.out(0);
  absl::Status status;
  ForDType(out.dtype, TypeList<float, double, int32_t, int64_t>{}, [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < out.elements() && status.ok(); ++i) {
      const std::string& text = ctx.in(0).as<std::string>()[i];
      if (!Parse(text, &out.as<T>()[i]))
        status = absl::InvalidArgumentError("'" + text + "' is no " + DTypeName(out.dtype));
    }
  });
  return status;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeJoin(const KernelArgs& args) {
  const std::string separator = args.node.attrs.String("separator");
  return FromFunction([separator](const KernelContext& ctx) {
    const TensorView& out = ctx.out(0);
    for (const TensorView& in : ctx.inputs) {
      if (in.shape.rank() != 0 && in.shape != out.shape)
        return absl::InvalidArgumentError(
            absl::StrCat("strings of shapes ", in.shape.ToString(), " and ", out.shape.ToString()));
    }
    for (int64_t i = 0; i < out.elements(); ++i) {
      std::string text;
      for (size_t k = 0; k < ctx.inputs.size(); ++k) {
        const TensorView& in = ctx.inputs[k];
        absl::StrAppend(&text, k == 0 ? "" : separator,
                        in.as<std::string>()[in.shape.rank() == 0 ? 0 : i]);
      }
      out.as<std::string>()[i] = std::move(text);
    }
    return absl::OkStatus();
  });
}

// Without a separator, at runs of white space, which give no empty parts.
std::vector<std::string> Parts(const std::string& text, const std::string& separator,
                               int64_t most) {
  const std::string blanks = " \t\n\v\f\r";
  std::vector<std::string> parts;
  size_t at = separator.empty() ? text.find_first_not_of(blanks) : 0;
  while (at != std::string::npos && (!separator.empty() || at < text.size())) {
    const bool last = most > 0 && static_cast<int64_t>(parts.size()) == most;
    const size_t end = last                ? std::string::npos
                       : separator.empty() ? text.find_first_of(blanks, at)
                                           : text.find(separator, at);
    parts.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) break;
    at = separator.empty() ? text.find_first_not_of(blanks, end) : end + separator.size();
  }
  return parts;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSplit(const KernelArgs& args) {
  const int64_t most = args.node.attrs.Int("maxsplit", -1);
  return FromFunction([most](const KernelContext& ctx) -> absl::Status {
    const TensorView& in = ctx.in(0);
    if (ctx.in(1).elements() != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("a separator of shape ", ctx.in(1).shape.ToString()));
    std::vector<int64_t> indices;
    std::vector<std::string> values;
    int64_t longest = 0;
    for (int64_t i = 0; i < in.elements(); ++i) {
      const auto parts = Parts(in.as<std::string>()[i], *ctx.in(1).as<std::string>(), most);
      for (size_t k = 0; k < parts.size(); ++k) {
        indices.insert(indices.end(), {i, static_cast<int64_t>(k)});
        values.push_back(parts[k]);
      }
      longest = std::max<int64_t>(longest, static_cast<int64_t>(parts.size()));
    }
    FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({static_cast<int64_t>(values.size()), 2})));
    FLOE_RETURN_IF_ERROR(Give(ctx, 1, values));
    return Give(ctx, 2, std::vector<int64_t>{in.elements(), longest});
  });
}

FLOE_REGISTER_KERNEL(StringLower, kCpu, MakeCase<false>, DType::kString);
FLOE_REGISTER_KERNEL(StringUpper, kCpu, MakeCase<true>, DType::kString);
FLOE_REGISTER_KERNEL(AsString, kCpu, MakeAsString);
FLOE_REGISTER_KERNEL(StringToNumber, kCpu, MakeFunction<&StringToNumber>, DType::kString);
FLOE_REGISTER_KERNEL(StringJoin, kCpu, MakeJoin, DType::kString);
FLOE_REGISTER_KERNEL(StringSplitV2, kCpu, MakeSplit, DType::kString);

}  // namespace
}  // namespace floe::kernels
