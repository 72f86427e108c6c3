// Pads the columns.
#include "cli/table.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/quoted.h"

namespace floe::cli {

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row)
    cell =
        absl::StrReplaceAll(Printable(cell, std::numeric_limits<size_t>::max()), {{"\n", "\\n"}});
  rows_.push_back(std::move(row));
}

void Table::Print(std::ostream& out, int indent) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      if (c + 1 < row.size()) line.append(widths[c] - row[c].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

std::string HumanCount(double count) {
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P"};
  size_t prefix = 0;
  while (count >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    count /= 1000;
    ++prefix;
  }
  const bool whole = prefix == 0 && count == static_cast<double>(static_cast<int64_t>(count));
  const int decimals = whole || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f%s", decimals, count, kPrefixes[prefix]);
}

}  // namespace floe::cli
