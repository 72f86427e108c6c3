// Strings and code points, by ICU's converters.
#include <unicode/ucnv.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

enum class OnError : uint8_t { kReplace, kIgnore, kFail };

struct UnicodeOptions {
  OnError on_error = OnError::kReplace;
  UChar32 replacement = 0xFFFD;
  bool replace_controls = false;
  std::string input, output;
};
UnicodeOptions UnicodeOptionsOf(const Attrs& a) {
  const std::string errors = a.String("errors", "replace");
  return {errors == "strict"   ? OnError::kFail
          : errors == "ignore" ? OnError::kIgnore
                               : OnError::kReplace,
          static_cast<UChar32>(a.Int("replacement_char", 0xFFFD)),
          a.Bool("replace_control_characters"), a.String("input_encoding"),
          a.String("output_encoding")};
}

struct CloseConverter {
  void operator()(UConverter* converter) const { ucnv_close(converter); }
};
using Converter = std::unique_ptr<UConverter, CloseConverter>;

// Converters hold state, so that each run opens its own.
absl::StatusOr<Converter> Open(const std::string& encoding) {
  UErrorCode error = U_ZERO_ERROR;
  Converter converter(ucnv_open(encoding.c_str(), &error));
  if (U_FAILURE(error) || converter == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("input_encoding '", encoding, "' is unknown"));
  return converter;
}

// Notes in `context`, a bool, that bytes stand for no letter, and puts in U+FFFD.
void NoteError(const void* context, UConverterToUnicodeArgs* args, const char* bytes,
               int32_t length, UConverterCallbackReason reason, UErrorCode* error) {
  if (reason == UCNV_UNASSIGNED || reason == UCNV_ILLEGAL || reason == UCNV_IRREGULAR)
    *static_cast<bool*>(const_cast<void*>(context)) = true;
  UCNV_TO_U_CALLBACK_SUBSTITUTE(nullptr, args, bytes, length, reason, error);
}

// Calls each(code point, first byte) for what is kept of a string.
template <class F>
absl::Status Decode(UConverter* converter, const UnicodeOptions& options, const std::string& text,
                    bool controls_may_fail, const F& each) {
  UErrorCode error = U_ZERO_ERROR;
  bool malformed = false;
  ucnv_reset(converter);
  ucnv_setToUCallBack(converter, &NoteError, &malformed, nullptr, nullptr, &error);
  const char *at = text.data(), *const end = at + text.size();
  while (at < end && U_SUCCESS(error)) {
    const char* const first = at;
    malformed = false;
    UChar32 letter = ucnv_getNextUChar(converter, &at, end, &error);
    if (U_FAILURE(error)) break;
    const bool control = options.replace_controls && letter <= 0x1F;
    if ((malformed || (control && controls_may_fail)) && options.on_error == OnError::kFail)
      return absl::InvalidArgumentError(
          absl::StrCat("invalid formatting: byte ", first - text.data(), " is no ", options.input));
    if ((malformed || control) && options.on_error == OnError::kIgnore) continue;
    if (malformed || control) letter = options.replacement;
    each(letter, first - text.data());
  }
  return absl::OkStatus();
}

absl::Status UnicodeDecode(const KernelContext& ctx, const UnicodeOptions& options,
                           DType splits_type, bool offsets) {
  FLOE_ASSIGN_OR_RETURN(const Converter converter, Open(options.input));
  std::vector<int64_t> splits = {0}, starts;
  std::vector<int32_t> letters;
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    FLOE_RETURN_IF_ERROR(Decode(converter.get(), options, ctx.in(0).as<std::string>()[i],
                                /*controls_may_fail=*/false, [&](UChar32 letter, int64_t first) {
                                  letters.push_back(letter);
                                  starts.push_back(first);
                                }));
    splits.push_back(static_cast<int64_t>(letters.size()));
  }
  FLOE_RETURN_IF_ERROR(GiveInts(ctx, 0, splits_type, splits));
  FLOE_RETURN_IF_ERROR(Give(ctx, 1, letters));
  return offsets ? Give(ctx, 2, starts) : absl::OkStatus();
}

absl::StatusOr<std::string> Encode(const UnicodeOptions& options, const icu::UnicodeString& text) {
  std::string out;
  if (options.output == "UTF-8") {
    text.toUTF8String(out);
    return out;
  }
  const bool wide = options.output == "UTF-32-BE";
  const auto put = [&out](uint32_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      out += static_cast<char>(value >> shift & 0xFF);
  };
  for (int32_t i = 0; i < text.length(); i = wide ? text.moveIndex32(i, 1) : i + 1) {
    if (wide) {
      put(static_cast<uint32_t>(text.char32At(i)), 4);
    } else {
      put(text.charAt(i), 2);
    }
  }
  return out;
}

absl::Status Transcode(const KernelContext& ctx, const UnicodeOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const Converter converter, Open(options.input));
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    icu::UnicodeString text;
    FLOE_RETURN_IF_ERROR(Decode(converter.get(), options, ctx.in(0).as<std::string>()[i],
                                /*controls_may_fail=*/true,
                                [&](UChar32 letter, int64_t) { text.append(letter); }));
    FLOE_ASSIGN_OR_RETURN(ctx.out(0).as<std::string>()[i], Encode(options, text));
  }
  return absl::OkStatus();
}

absl::Status UnicodeEncode(const KernelContext& ctx, const UnicodeOptions& options) {
  IntList splits;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &splits));
  const int64_t count = ctx.in(0).elements();
  if (splits.empty() || splits.front() != 0 || splits.back() != count ||
      !std::is_sorted(splits.begin(), splits.end()))
    return absl::InvalidArgumentError(
        absl::StrCat("input_splits do not rise from 0 to ", count, ", the number of code points"));
  std::vector<std::string> texts;
  for (size_t k = 0; k + 1 < splits.size(); ++k) {
    icu::UnicodeString text;
    for (int64_t i = splits[k]; i < splits[k + 1]; ++i) {
      UChar32 letter = ctx.in(0).as<int32_t>()[i];
      if (letter < 0 || letter > 0x10FFFF || U_IS_SURROGATE(letter)) {
        if (options.on_error == OnError::kFail)
          return absl::InvalidArgumentError(
              absl::StrCat("code point ", letter, " is out of range for Unicode"));
        if (options.on_error == OnError::kIgnore) continue;
        letter = options.replacement;
      }
      text.append(letter);
    }
    FLOE_ASSIGN_OR_RETURN(std::string encoded, Encode(options, text));
    texts.push_back(std::move(encoded));
  }
  return Give(ctx, 0, texts);
}

// The number of each code point's script; -1 for what is none.
absl::Status UnicodeScript(const KernelContext& ctx) {
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    UErrorCode error = U_ZERO_ERROR;
    const UScriptCode script = uscript_getScript(ctx.in(0).as<int32_t>()[i], &error);
    ctx.out(0).as<int32_t>()[i] = U_SUCCESS(error) ? script : USCRIPT_INVALID_CODE;
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(UnicodeScript, kCpu, MakeFunction<&UnicodeScript>, DType::kInt32);

template <bool kOffsets>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDecode(const KernelArgs& args) {
  const UnicodeOptions options = UnicodeOptionsOf(args.node.attrs);
  FLOE_RETURN_IF_ERROR(Open(options.input).status());
  const DType splits = args.node.attrs.Type("Tsplits", DType::kInt64);
  return FromFunction([options, splits](const KernelContext& ctx) {
    return UnicodeDecode(ctx, options, splits, kOffsets);
  });
}
template <absl::Status (*kRun)(const KernelContext&, const UnicodeOptions&)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUnicode(const KernelArgs& args) {
  const UnicodeOptions options = UnicodeOptionsOf(args.node.attrs);
  if (!options.input.empty()) FLOE_RETURN_IF_ERROR(Open(options.input).status());
  return FromFunction([options](const KernelContext& ctx) { return kRun(ctx, options); });
}
FLOE_REGISTER_KERNEL(UnicodeDecode, kCpu, MakeDecode<false>, DType::kString);
FLOE_REGISTER_KERNEL(UnicodeDecodeWithOffsets, kCpu, MakeDecode<true>, DType::kString);
FLOE_REGISTER_KERNEL(UnicodeTranscode, kCpu, MakeUnicode<Transcode>, DType::kString);
FLOE_REGISTER_KERNEL(UnicodeEncode, kCpu, MakeUnicode<UnicodeEncode>, DType::kInt32);

}  // namespace
}  // namespace floe::kernels
