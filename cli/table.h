// Text tables: columns as wide as their widest cell.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace floe::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  // A cell is one line: line ends and what may steer a terminal are escaped.
  void Add(std::vector<std::string> row);
  // Two spaces between columns, no trailing blanks; `indent` spaces before each line.
  void Print(std::ostream& out, int indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "12.3 M", "640": powers of 1000, three digits.
std::string HumanCount(double count);

}  // namespace floe::cli
