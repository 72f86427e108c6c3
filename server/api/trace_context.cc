#include "server/api/trace_context.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

// "00-" trace id "-" span id "-" flags.
constexpr size_t kTraceAt = 3, kTraceDigits = 32, kSpanAt = 36, kSpanDigits = 16, kFlagsAt = 53;
constexpr size_t kWhole = 55;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsId(std::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

// Later versions may add fields behind those of the first.
std::optional<TraceContext> ParseTraceparent(std::string_view header) {
  if (header.size() < kWhole) return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  const bool first = version == "00";
  if (!IsHex(version) || version == "ff") return std::nullopt;
  if (header.size() > kWhole && (first || header[kWhole] != '-')) return std::nullopt;
  for (const size_t dash : {kTraceAt - 1, kSpanAt - 1, kFlagsAt - 1})
    if (header[dash] != '-') return std::nullopt;
  const std::string_view trace = header.substr(kTraceAt, kTraceDigits);
  const std::string_view flags = header.substr(kFlagsAt, 2);
  if (!IsId(trace) || !IsId(header.substr(kSpanAt, kSpanDigits)) || !IsHex(flags))
    return std::nullopt;
  const char last = flags[1];
  const int digit = last <= '9' ? last - '0' : last - 'a' + 10;
  return TraceContext{std::string(trace), (digit & 1) != 0};
}

std::string NewSpanId() {
  thread_local std::mt19937_64 random{std::random_device()()};
  uint64_t id = 0;
  while (id == 0) id = random();
  return absl::StrCat(absl::Hex(id, absl::kZeroPad16));
}

std::string Traceparent(const TraceContext& context, std::string_view span_id) {
  return absl::StrCat("00-", context.trace_id, "-", std::string(span_id),
                      context.sampled ? "-01" : "-00");
}

}  // namespace floe::server
