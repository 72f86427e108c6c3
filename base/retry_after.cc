#include "base/retry_after.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace floe {
namespace {

constexpr char kUrl[] = "floe/retry-after-ms";
constexpr char kTooLargeUrl[] = "floe/too-large";

}  // namespace

absl::Status WithRetryAfter(absl::Status status, Duration wait) {
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  status.SetPayload(kUrl, absl::Cord(absl::StrCat(std::max<int64_t>(1, millis))));
  return status;
}

std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& status) {
  const auto text = status.GetPayload(kUrl);
  int64_t millis = 0;
  if (!text || !absl::SimpleAtoi(std::string(*text), &millis)) return std::nullopt;
  return std::chrono::milliseconds(millis);
}

absl::Status AsTooLarge(absl::Status status) {
  status.SetPayload(kTooLargeUrl, absl::Cord());
  return status;
}

bool IsTooLarge(const absl::Status& status) { return status.GetPayload(kTooLargeUrl).has_value(); }

}  // namespace floe
