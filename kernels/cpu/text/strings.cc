// Strings: case, numbers, joining and splitting.
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/budget.h"
#include "base/parse_number.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/text/string_hash.h"
#include "model/tables.h"

namespace floe::kernels {
namespace {

constexpr size_t kMaxUtf8Bytes = INT32_MAX / 4;  // ICU counts in 32 bits; case may add letters

// By Unicode's rules, those for single letters that become several included. Bytes that are no
// UTF-8 become U+FFFD.
std::string Utf8Case(const std::string& text, bool upper) {
  icu::UnicodeString unicode = icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  if (upper) {
    unicode.toUpper(icu::Locale::getRoot());
  } else {
    unicode.toLower(icu::Locale::getRoot());
  }
  std::string out;
  unicode.toUTF8String(out);
  return out;
}

template <bool kUpper>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCase(const KernelArgs& args) {
  const std::string encoding = args.node.attrs.String("encoding");
  if (!encoding.empty() && encoding != "utf-8") {
    return absl::InvalidArgumentError(
        absl::StrCat("encoding '", encoding, "' is neither empty nor 'utf-8'"));
  }
  const bool utf8 = !encoding.empty();
  return FromFunction([utf8](const KernelContext& ctx) -> absl::Status {
    const auto* from = ctx.in(0).as<std::string>();
    auto* to = ctx.out(0).as<std::string>();
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      if (utf8 && from[i].size() > kMaxUtf8Bytes)
        return absl::InvalidArgumentError(absl::StrCat("a string of ", from[i].size(), " bytes"));
      to[i] = utf8     ? Utf8Case(from[i], kUpper)
              : kUpper ? absl::AsciiStrToUpper(from[i])
                       : absl::AsciiStrToLower(from[i]);
    }
    return absl::OkStatus();
  });
}

absl::Status StringToNumber(const KernelContext& ctx) {
  const TensorView& out = ctx.out(0);
  absl::Status status;
  const bool known = ForDType(
      out.dtype, TypeList<float, double, int32_t, int64_t, uint32_t, uint64_t>{}, [&](auto t) {
        using T = decltype(t);
        for (int64_t i = 0; i < out.elements() && status.ok(); ++i) {
          const std::string& text = ctx.in(0).as<std::string>()[i];
          if (!ParseNumber(text, &out.as<T>()[i]))
            status = absl::InvalidArgumentError(
                absl::StrCat("'", text, "' is no ", DTypeName(out.dtype)));
        }
      });
  return known ? status
               : absl::UnimplementedError(absl::StrCat("StringToNumber to ", DTypeName(out.dtype)));
}

// Words outside a vocabulary go to buckets this way.
absl::StatusOr<std::unique_ptr<Kernel>> MakeHashBucket(const KernelArgs& args) {
  const int64_t buckets = args.node.attrs.Int("num_buckets");
  if (buckets < 1)
    return absl::InvalidArgumentError(absl::StrCat("num_buckets ", buckets, " is not positive"));
  return FromFunction([buckets](const KernelContext& ctx) {
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      ctx.out(0).as<int64_t>()[i] = static_cast<int64_t>(
          Fingerprint64(ctx.in(0).as<std::string>()[i]) % static_cast<uint64_t>(buckets));
    }
    return absl::OkStatus();
  });
}

absl::Status Strip(const KernelContext& ctx) {
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    ctx.out(0).as<std::string>()[i] =
        std::string(absl::StripAsciiWhitespace(ctx.in(0).as<std::string>()[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeJoin(const KernelArgs& args) {
  const std::string separator = args.node.attrs.String("separator");
  return FromFunction([separator](const KernelContext& ctx) -> absl::Status {
    const TensorView& out = ctx.out(0);
    int64_t bytes = 0;  // strings joined with themselves grow fast
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
      bytes += static_cast<int64_t>(text.size());
      FLOE_RETURN_IF_ERROR(CheckValueBytes(bytes));
      out.as<std::string>()[i] = std::move(text);
    }
    return absl::OkStatus();
  });
}

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Appends the parts of a text, as Python's str.split. An empty separator means any run of white
// space, and none at either end; then the part after the last split allowed is given even where
// nothing is left.
void AppendParts(absl::string_view text, absl::string_view separator, int64_t most,
                 std::vector<absl::string_view>* parts) {
  const bool by_blanks = separator.empty();
  if (most == 0) return parts->push_back(text);
  const size_t first = parts->size();
  const auto skip = [&](size_t at) {
    while (by_blanks && at < text.size() && IsBlank(text[at])) ++at;
    return at;
  };
  const auto find = [&](size_t at) {
    if (!by_blanks) return text.find(separator, at);
    while (at < text.size() && !IsBlank(text[at])) ++at;
    return at;
  };
  const auto full = [&] { return most > 0 && static_cast<int64_t>(parts->size() - first) == most; };
  size_t at = skip(0);
  while (!by_blanks || at < text.size()) {
    const size_t end = find(at);
    if (end == absl::string_view::npos) break;
    parts->push_back(text.substr(at, end - at));
    at = std::min(skip(end + separator.size()), text.size());
    if (full()) break;
  }
  if (!by_blanks || full()) parts->push_back(text.substr(at));
}

// The parts of all texts; their places and the shape become outputs 0 and 2.
absl::StatusOr<std::vector<absl::string_view>> SplitTexts(const KernelContext& ctx, int64_t most) {
  const TensorView& in = ctx.in(0);
  if (ctx.in(1).dtype != DType::kString || ctx.in(1).shape.rank() != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("a separator of shape ", ctx.in(1).shape.ToString()));
  std::vector<absl::string_view> parts;
  std::vector<size_t> ends;  // of each text's parts
  size_t longest = 0;
  for (int64_t i = 0; i < in.elements(); ++i) {
    const size_t begin = parts.size();
    AppendParts(in.as<std::string>()[i], *ctx.in(1).as<std::string>(), most, &parts);
    constexpr int64_t kPartBytes = sizeof(std::string) + 2 * sizeof(int64_t);
    FLOE_RETURN_IF_ERROR(CheckValueBytes(static_cast<int64_t>(parts.size()) * kPartBytes));
    ends.push_back(parts.size());
    longest = std::max(longest, parts.size() - begin);
  }
  const auto count = static_cast<int64_t>(parts.size());
  FLOE_ASSIGN_OR_RETURN(const TensorView indices,
                        ctx.allocator->Allocate(0, DType::kInt64, Shape({count, 2})));
  size_t part = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    for (const size_t begin = part; part < ends[i]; ++part) {
      indices.as<int64_t>()[2 * part] = static_cast<int64_t>(i);
      indices.as<int64_t>()[2 * part + 1] = static_cast<int64_t>(part - begin);
    }
  }
  FLOE_RETURN_IF_ERROR(
      Give(ctx, 2, std::vector<int64_t>{in.elements(), static_cast<int64_t>(longest)}));
  return parts;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStringSplit(const KernelArgs& args) {
  const int64_t most = args.node.attrs.Int("maxsplit", -1);
  return FromFunction([most](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const std::vector<absl::string_view> parts, SplitTexts(ctx, most));
    FLOE_ASSIGN_OR_RETURN(
        const TensorView values,
        ctx.allocator->Allocate(1, DType::kString, Shape({static_cast<int64_t>(parts.size())})));
    for (size_t i = 0; i < parts.size(); ++i)
      values.as<std::string>()[i].assign(parts[i].data(), parts[i].size());
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSplitLookup(const KernelArgs& args) {
  const int64_t most = args.node.attrs.Int("maxsplit", -1);
  return FromFunction([most](const KernelContext& ctx) -> absl::Status {
    const TableObject* const table = TableOf(ctx.in(2));
    if (table == nullptr) return absl::InvalidArgumentError("input 2 is no lookup table");
    FLOE_ASSIGN_OR_RETURN(const std::vector<absl::string_view> parts, SplitTexts(ctx, most));
    FLOE_ASSIGN_OR_RETURN(
        const TensorView values,
        ctx.allocator->Allocate(1, ctx.in(3).dtype, Shape({static_cast<int64_t>(parts.size())})));
    return table->Find(parts, ctx.in(3), values);
  });
}

FLOE_REGISTER_KERNEL(StringLower, kCpu, MakeCase<false>, DType::kString);
FLOE_REGISTER_KERNEL(StringUpper, kCpu, MakeCase<true>, DType::kString);
FLOE_REGISTER_KERNEL(StringToNumber, kCpu, MakeFunction<&StringToNumber>, DType::kString);
FLOE_REGISTER_KERNEL(StringToHashBucketFast, kCpu, MakeHashBucket, DType::kString);
FLOE_REGISTER_KERNEL(StringStrip, kCpu, MakeFunction<&Strip>, DType::kString);
FLOE_REGISTER_KERNEL(StringJoin, kCpu, MakeJoin, DType::kString);
FLOE_REGISTER_KERNEL(StringSplitV2, kCpu, MakeStringSplit, DType::kString);
FLOE_REGISTER_KERNEL(StringSplitLookup, kCpu, MakeSplitLookup, DType::kString);

}  // namespace
}  // namespace floe::kernels
