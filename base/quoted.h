// Names that somebody else chose, in a file or a request, fit for a message, a log or a status.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace floe {

inline constexpr size_t kMostQuotedBytes = 256;

// The name, escaped where it is not printable ASCII, cut where it is longer than kMostQuotedBytes.
std::string Escaped(std::string_view name);
// "'name'", the same in quotes, which are escaped inside it.
std::string Quoted(std::string_view name);

// A whole message, in which a name may have slipped through. Control codes but for line ends, marks
// that change the direction of text, and bytes that are no UTF-8, are escaped. Beyond `most` bytes
// it is cut. JSON stays JSON with the same values.
std::string Printable(std::string_view text, size_t most);

}  // namespace floe
