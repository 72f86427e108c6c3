#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include "base/quoted.h"

namespace floe {
namespace {

constexpr size_t kMaxLength = 128;

std::string Lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

// Wagner-Fischer with one row. Names are cut at a length that keeps hostile requests cheap.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

// Twice the edit distance, or less where the candidate contains the name. `wanted` is in lower
// case.
size_t DistanceOf(const std::string& wanted, const std::string& candidate_text) {
  const std::string candidate = Lower(candidate_text.substr(0, kMaxLength));
  const size_t distance = 2 * EditDistance(wanted, candidate);
  const bool contained = !wanted.empty() && candidate.find(wanted) != std::string::npos;
  return contained ? std::min<size_t>(distance, 3) : distance;
}

}  // namespace

std::vector<std::string> NearestNames(const std::string& name,
                                      const std::vector<std::string>& candidates, size_t count) {
  const std::string wanted = Lower(name.substr(0, kMaxLength));
  std::vector<std::pair<size_t, size_t>> ranked;  // distance, index
  for (size_t i = 0; i < candidates.size(); ++i)
    ranked.emplace_back(DistanceOf(wanted, candidates[i]), i);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(count, ranked.size()); ++i)
    nearest.push_back(candidates[ranked[i].second]);
  return nearest;
}

std::string NearestHint(const std::string& name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = NearestNames(name, candidates, 1);
  if (near.empty()) return "";
  const size_t distance = DistanceOf(Lower(name.substr(0, kMaxLength)), near[0]);
  return distance > std::max(name.size(), near[0].size()) ? "" : "; nearest: " + Quoted(near[0]);
}

std::string QuotedList(const std::vector<std::string>& names) {
  if (names.empty()) return "(none)";
  std::string out;
  const size_t shown = std::min(names.size(), kMostListedNames);
  for (size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + Quoted(names[i]);
  if (shown < names.size()) out += " and " + std::to_string(names.size() - shown) + " more";
  return out;
}

}  // namespace floe
