#include "server/request/names.h"

#include "absl/strings/str_cat.h"
#include "base/nearest.h"

namespace floe::server {
std::string NearestHint(std::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  const std::string compared(name.substr(0, kMostQuotedBytes));
  return absl::StrCat("; nearest: ", QuotedList(NearestNames(compared, candidates)));
}

}  // namespace floe::server
