#include "server/request/names.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/nearest.h"

namespace floe::server {
namespace {

constexpr size_t kMaxNames = 20;

}  // namespace

std::string QuotedNames(const std::vector<std::string>& names) {
  if (names.empty()) return "(none)";
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Quoted(names[i]));
  }
  if (names.size() > kMaxNames) absl::StrAppend(&text, " and ", names.size() - kMaxNames, " more");
  return text;
}

std::string NearestHint(std::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  const std::string compared(name.substr(0, kMostQuotedBytes));
  return absl::StrCat("; nearest: ", QuotedNames(NearestNames(compared, candidates)));
}

}  // namespace floe::server
