#include "base/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace floe {

std::string Quoted(std::string_view name) {
  const std::string shown(name.substr(0, kMostQuotedBytes));
  return absl::StrCat("'", absl::CHexEscape(shown), name.size() > kMostQuotedBytes ? "...'" : "'");
}

}  // namespace floe
