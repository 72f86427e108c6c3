// Regular expressions, by RE2: linear in time whatever the pattern, and TensorFlow's own engine, so
// that patterns mean the same.
#include <re2/re2.h>

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

using SharedPattern = std::shared_ptr<const RE2>;

absl::StatusOr<SharedPattern> Compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_shared<const RE2>(pattern, options);
  if (compiled->ok()) return compiled;
  return absl::InvalidArgumentError(absl::StrCat("pattern '", pattern, "': ", compiled->error()));
}

absl::StatusOr<const std::string*> ScalarOf(const TensorView& view, const char* what) {
  if (view.dtype == DType::kString && view.elements() == 1 && view.shape.rank() == 0)
    return view.as<std::string>();
  return absl::InvalidArgumentError(absl::StrCat("its ", what, " is ", DTypeName(view.dtype),
                                                 view.shape.ToString(),
                                                 ", expected a single string"));
}

// The pattern of an attribute or a constant, compiled once; null for one that comes with a request.
absl::StatusOr<SharedPattern> KnownPattern(const KernelArgs& args) {
  if (args.inputs.size() < 2) return Compile(args.node.attrs.String("pattern"));
  if (!args.inputs[1].has_constant()) return SharedPattern();
  FLOE_ASSIGN_OR_RETURN(const std::string* const pattern,
                        ScalarOf(args.inputs[1].constant.view(), "pattern"));
  return Compile(*pattern);
}

absl::StatusOr<SharedPattern> PatternOf(const KernelContext& ctx, const SharedPattern& known) {
  if (known != nullptr) return known;
  FLOE_ASSIGN_OR_RETURN(const std::string* const pattern, ScalarOf(ctx.in(1), "pattern"));
  return Compile(*pattern);
}

// What a pattern of one bracket of ASCII characters matches, by byte: one character wherever it
// stands. nullopt: the pattern is another one, or written in a way that is not read here.
using ByteSet = std::array<bool, 256>;
std::optional<ByteSet> BracketOf(const RE2& compiled) {
  const std::string& pattern = compiled.pattern();
  if (pattern.size() < 3 || pattern[0] != '[' || pattern[1] == '^') return std::nullopt;
  size_t at = 1;
  for (; at == 1 || (at < pattern.size() && pattern[at] != ']'); ++at) {
    if (pattern[at] == '\\' && (++at == pattern.size() || !absl::ascii_ispunct(pattern[at])))
      return std::nullopt;
    if (!absl::ascii_isascii(pattern[at]) || pattern.compare(at, 2, "[:") == 0) return std::nullopt;
  }
  if (at + 1 != pattern.size()) return std::nullopt;
  ByteSet set{};
  for (int c = 0; c < 128; ++c)
    set[c] = RE2::FullMatch(std::string(1, static_cast<char>(c)), compiled);
  return set;
}

void ReplaceBytes(const ByteSet& set, const std::string& rewrite, const std::string& text,
                  std::string* out) {
  if (!rewrite.empty()) {
    for (const char c : text)
      set[static_cast<uint8_t>(c)] ? out->append(rewrite) : out->append(1, c);
    return;
  }
  out->resize(text.size());
  size_t kept = 0;
  for (const char c : text) {
    (*out)[kept] = c;
    kept += set[static_cast<uint8_t>(c)] ? 0 : 1;
  }
  out->resize(kept);
}

// RE2 makes the whole text before anybody could say that it is too long. There may be a match at
// each place, with the rewrite in its stead. Of the rewrite every second byte may name a group, and
// all matches together are no longer than the text.
absl::Status CheckGrowth(double bytes, const std::string& text, const std::string& rewrite) {
  const auto n = static_cast<double>(text.size()), m = static_cast<double>(rewrite.size());
  const double most = bytes + n + (n + 1) * m + n * m / 2;
  if (most < 0x1p62 && CheckValueBytes(static_cast<int64_t>(most)).ok()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a text of ", text.size(),
                                                   " bytes with a rewrite of ", rewrite.size(),
                                                   " may become longer than the memory limit"));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReplace(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const SharedPattern known, KnownPattern(args));
  const bool global = args.node.attrs.Bool("replace_global", true);
  const std::string fixed = args.node.attrs.String("rewrite");
  std::optional<ByteSet> bracket;
  if (known != nullptr && global) bracket = BracketOf(*known);
  return FromFunction([known, global, fixed, bracket](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const SharedPattern pattern, PatternOf(ctx, known));
    const std::string* rewrite = &fixed;
    if (ctx.inputs.size() > 2) {
      FLOE_ASSIGN_OR_RETURN(rewrite, ScalarOf(ctx.in(2), "rewrite"));
    }
    const bool by_byte = bracket.has_value() && rewrite->find('\\') == std::string::npos;
    double bytes = 0;
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      const std::string& from = ctx.in(0).as<std::string>()[i];
      std::string& text = ctx.out(0).as<std::string>()[i];
      FLOE_RETURN_IF_ERROR(CheckGrowth(bytes, from, *rewrite));
      if (!by_byte) text = from;
      // A rewrite that asks for groups the pattern does not have changes nothing.
      if (by_byte) {
        ReplaceBytes(*bracket, *rewrite, from, &text);
      } else if (global) {
        RE2::GlobalReplace(&text, *pattern, *rewrite);
      } else {
        RE2::Replace(&text, *pattern, *rewrite);
      }
      bytes += static_cast<double>(text.size());
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFullMatch(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const SharedPattern known, KnownPattern(args));
  return FromFunction([known](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const SharedPattern pattern, PatternOf(ctx, known));
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i)
      ctx.out(0).as<bool>()[i] = RE2::FullMatch(ctx.in(0).as<std::string>()[i], *pattern);
    return absl::OkStatus();
  });
}

FLOE_REGISTER_KERNEL(StaticRegexReplace, kCpu, MakeReplace, DType::kString);
FLOE_REGISTER_KERNEL(RegexReplace, kCpu, MakeReplace, DType::kString);
FLOE_REGISTER_KERNEL(StaticRegexFullMatch, kCpu, MakeFullMatch, DType::kString);
FLOE_REGISTER_KERNEL(RegexFullMatch, kCpu, MakeFullMatch, DType::kString);

}  // namespace
}  // namespace floe::kernels
