// Strings as bytes and letters: parts and lengths, base64, numbers in bytes, splitting.
#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/elementwise/broadcast.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

// The bytes of UTF-8 that go on with a letter.
bool Continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

int64_t Letters(const std::string& text) {
  return static_cast<int64_t>(text.size()) - std::count_if(text.begin(), text.end(), Continues);
}

bool ByLetters(const Attrs& attrs) { return attrs.String("unit", "BYTE") == "UTF8_CHAR"; }

absl::StatusOr<std::unique_ptr<Kernel>> MakeLength(const KernelArgs& args) {
  return FromFunction([letters = ByLetters(args.node.attrs)](const KernelContext& ctx) {
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      const std::string& text = ctx.in(0).as<std::string>()[i];
      ctx.out(0).as<int32_t>()[i] =
          static_cast<int32_t>(letters ? Letters(text) : static_cast<int64_t>(text.size()));
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(StringLength, kCpu, MakeLength, DType::kString);

// Moves `at` by so many letters, whatever byte it is on. False: the text ends before, or `count` is
// negative.
bool Forward(const std::string& text, size_t* at, int64_t count) {
  for (; *at < text.size() && count > 0; --count) {
    ++*at;
    while (*at < text.size() && Continues(text[*at])) ++*at;
  }
  return count == 0;
}
bool Back(const std::string& text, size_t* at, int64_t count) {
  for (; *at > 0 && count > 0; --count) {
    --*at;
    while (*at > 0 && Continues(text[*at])) --*at;
  }
  return count == 0;
}

// A negative `pos` counts from the end; of what is not UTF-8, bytes that TensorFlow would count.
absl::StatusOr<std::string> PartByLetters(const std::string& text, int64_t pos, int64_t length) {
  size_t begin = 0, end = text.size();
  bool in_range;
  if (pos >= 0) {
    in_range = Forward(text, &begin, pos);
    end = begin;
    (void)Forward(text, &end, length);
  } else {
    const auto size = static_cast<int64_t>(text.size());
    const int64_t letters = -std::max(pos, -size - 1);  // more than there can be
    const int64_t after = length < 0 ? 0 : std::max<int64_t>(0, letters - length);
    in_range = length >= 0 && Back(text, &end, after);
    begin = end;
    in_range = in_range && Back(text, &begin, letters - after);
  }
  if (!in_range)
    return absl::InvalidArgumentError(absl::StrCat("pos ", pos, " and len ", length,
                                                   " are out of range for a string of ",
                                                   Letters(text), " letters"));
  return text.substr(begin, end - begin);
}

// A negative `pos` counts from the end, a negative `length` takes all that follows.
absl::StatusOr<std::string> PartByBytes(const std::string& text, int64_t pos, int64_t length) {
  const auto size = static_cast<int64_t>(text.size());
  const int64_t from = pos < 0 ? pos + size : pos;
  if (from < 0 || from > size)
    return absl::InvalidArgumentError(
        absl::StrCat("pos ", pos, " is out of range for a string of ", size));
  return text.substr(static_cast<size_t>(from),
                     length < 0 ? std::string::npos : static_cast<size_t>(length));
}

template <class T>
absl::Status Substr(const KernelContext& ctx, bool letters) {
  const TensorView &in = ctx.in(0), &out = ctx.out(0);
  if (ctx.in(1).shape != ctx.in(2).shape)
    return absl::InvalidArgumentError(absl::StrCat("pos and len have shapes ",
                                                   ctx.in(1).shape.ToString(), " and ",
                                                   ctx.in(2).shape.ToString()));
  const Broadcast<2> steps = MakeBroadcast<2>(out.shape, {&in.shape, &ctx.in(1).shape});
  absl::Status status;
  int64_t bytes = 0;  // one string may be copied often
  ThreadPool one(1);
  ForEachRun(steps, &one, [&](int64_t to, const std::array<int64_t, 2>& from, int64_t count) {
    for (int64_t i = 0; status.ok() && i < count; ++i) {
      const int64_t at = from[1] + i * steps.strides[1].back();
      const std::string& text = in.as<std::string>()[from[0] + i * steps.strides[0].back()];
      const auto pos = static_cast<int64_t>(ctx.in(1).as<T>()[at]),
                 length = static_cast<int64_t>(ctx.in(2).as<T>()[at]);
      absl::StatusOr<std::string> part =
          letters ? PartByLetters(text, pos, length) : PartByBytes(text, pos, length);
      if (part.ok()) bytes += static_cast<int64_t>(part->size());
      status = part.ok() ? CheckValueBytes(bytes) : part.status();
      if (status.ok()) out.as<std::string>()[to + i] = *std::move(part);
    }
  });
  return status;
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeSubstr(const KernelArgs& args) {
  return FromFunction([letters = ByLetters(args.node.attrs)](const KernelContext& ctx) {
    return ctx.in(1).dtype == DType::kInt32 ? Substr<int32_t>(ctx, letters)
                                            : Substr<int64_t>(ctx, letters);
  });
}
FLOE_REGISTER_KERNEL(Substr, kCpu, MakeSubstr, DType::kString);

// ---- base64 with - and _ ----

absl::StatusOr<std::unique_ptr<Kernel>> MakeEncodeBase64(const KernelArgs& args) {
  return FromFunction([pad = args.node.attrs.Bool("pad")](const KernelContext& ctx) {
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      std::string& code = ctx.out(0).as<std::string>()[i];
      code = absl::WebSafeBase64Escape(ctx.in(0).as<std::string>()[i]);
      while (pad && code.size() % 4 != 0) code += '=';
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(EncodeBase64, kCpu, MakeEncodeBase64, DType::kString);

// Padding may be left out, but is right where it is there.
absl::Status DecodeBase64(const KernelContext& ctx) {
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    const std::string& code = ctx.in(0).as<std::string>()[i];
    const size_t end = std::min(code.find('='), code.size()), pads = code.size() - end;
    const bool letters =
        std::all_of(code.begin(), code.begin() + static_cast<int64_t>(end), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '_';
        });
    const bool padded = code.find_first_not_of('=', end) == std::string::npos && pads <= 2 &&
                        (pads == 0 || code.size() % 4 == 0);
    if (!letters || !padded || end % 4 == 1 ||
        !absl::WebSafeBase64Unescape(code.substr(0, end), &ctx.out(0).as<std::string>()[i]))
      return absl::InvalidArgumentError(
          absl::StrCat("string ", i, " is not base64 of the kind with - and _"));
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(DecodeBase64, kCpu, MakeFunction<DecodeBase64>, DType::kString);

// ---- numbers in bytes ----

// Of complex numbers each part is turned round.
size_t WordBytes(DType dtype) {
  const bool parts = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  return DTypeSize(dtype) / (parts ? 2 : 1);
}

absl::Status DecodeRaw(const KernelContext& ctx, DType dtype, bool little_endian) {
  const TensorView& in = ctx.in(0);
  const auto* texts = in.as<std::string>();
  const size_t width = in.elements() == 0 ? 0 : texts[0].size(), size = DTypeSize(dtype);
  for (int64_t i = 0; i < in.elements(); ++i) {
    if (texts[i].size() != width)
      return absl::InvalidArgumentError(
          absl::StrCat("strings of ", width, " and of ", texts[i].size(), " bytes in one tensor"));
  }
  if (width % size != 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "strings of ", width, " bytes do not hold whole ", DTypeName(dtype), " numbers"));
  Shape shape = in.shape;
  shape.push_back(static_cast<int64_t>(width / size));
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, dtype, shape));
  auto* to = out.as<char>();
  for (int64_t i = 0; width > 0 && i < in.elements(); ++i)
    std::memcpy(to + static_cast<size_t>(i) * width, texts[i].data(), width);
  const size_t bytes = out.bytes(), word = WordBytes(dtype);
  for (size_t at = 0; !little_endian && at < bytes; at += word)
    std::reverse(to + at, to + at + word);
  for (size_t at = 0; dtype == DType::kBool && at < bytes; ++at) to[at] = to[at] != 0 ? 1 : 0;
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeDecodeRaw(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("out_type", DType::kUInt8);
  const bool little = args.node.attrs.Bool("little_endian", true);
  return FromFunction(
      [dtype, little](const KernelContext& ctx) { return DecodeRaw(ctx, dtype, little); });
}
FLOE_REGISTER_KERNEL(DecodeRaw, kCpu, MakeDecodeRaw, DType::kString);

// ---- splitting ----

// At every byte that is among the delimiters; between all bytes where there are none. Adds the
// parts to `parts`.
absl::Status Split(const std::string& text, const std::string& delimiters, bool skip_empty,
                   std::vector<std::string>* parts) {
  const auto add = [&](size_t at, size_t end) -> absl::Status {
    parts->push_back(text.substr(at, end - at));
    // With its two indices; many parts are short, and held in the string itself.
    constexpr int64_t kPartBytes = sizeof(std::string) + 2 * sizeof(int64_t);
    if (parts->size() % 1024 != 0) return absl::OkStatus();
    FLOE_RETURN_IF_ERROR(CheckRunTime());
    return CheckValueBytes(static_cast<int64_t>(parts->size()) * kPartBytes);
  };
  for (size_t at = 0; delimiters.empty() && at < text.size(); ++at)
    FLOE_RETURN_IF_ERROR(add(at, at + 1));
  for (size_t at = 0; !delimiters.empty() && !text.empty() && at <= text.size();) {
    const size_t end = std::min(text.find_first_of(delimiters, at), text.size());
    if (end > at || !skip_empty) FLOE_RETURN_IF_ERROR(add(at, end));
    at = end + 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTextSplit(const KernelArgs& args) {
  return FromFunction([skip = args.node.attrs.Bool("skip_empty", true)](
                          const KernelContext& ctx) -> absl::Status {
    std::vector<int64_t> indices;
    std::vector<std::string> values;
    int64_t longest = 0;
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      const size_t before = values.size();
      FLOE_RETURN_IF_ERROR(
          Split(ctx.in(0).as<std::string>()[i], *ctx.in(1).as<std::string>(), skip, &values));
      const auto count = static_cast<int64_t>(values.size() - before);
      for (int64_t k = 0; k < count; ++k) indices.insert(indices.end(), {i, k});
      longest = std::max(longest, count);
    }
    FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({static_cast<int64_t>(values.size()), 2})));
    FLOE_RETURN_IF_ERROR(Give(ctx, 1, values));
    return Give(ctx, 2, std::vector<int64_t>{ctx.in(0).elements(), longest});
  });
}
FLOE_REGISTER_KERNEL(StringSplit, kCpu, MakeTextSplit, DType::kString);

}  // namespace
}  // namespace floe::kernels
