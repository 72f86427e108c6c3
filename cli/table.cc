// Pads the columns.
#include "cli/table.h"

#include <algorithm>
#include <cstdio>

namespace floe::cli {
namespace {

std::string Scaled(double value, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  const bool whole = prefix == 0 && value == static_cast<int64_t>(value);
  const int decimals = whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string result = text;
  const std::string suffix = std::string(kPrefixes[prefix]) + unit;
  if (!suffix.empty()) result += " " + suffix;
  return result;
}

}  // namespace

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

std::string HumanBytes(double bytes) { return Scaled(bytes, "B"); }
std::string HumanCount(double count) { return Scaled(count, ""); }

}  // namespace floe::cli
