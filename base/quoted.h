// Names that somebody else chose, fit for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace floe {

inline constexpr size_t kMostQuotedBytes = 100;

// "'name'", escaped where it is not printable ASCII, cut where it is longer than kMostQuotedBytes.
std::string Quoted(std::string_view name);

}  // namespace floe
