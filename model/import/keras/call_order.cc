#include "model/import/keras/call_order.h"

#include <algorithm>
#include <map>
#include <utility>

namespace floe::keras {
namespace {

// Every call after those that it needs. Without recursion: there may be many.
std::vector<int> NeededFirst(const std::vector<OrderedCall>& calls,
                             const std::vector<int>& outputs) {
  std::vector<int> finished;
  std::vector<bool> seen(calls.size(), false);
  for (const int output : outputs) {
    std::vector<std::pair<int, size_t>> open;  // a call, and how many of its needs were looked at
    if (!seen[output]) open.emplace_back(output, 0);
    seen[output] = true;
    while (!open.empty()) {
      auto& [call, looked] = open.back();
      if (looked == calls[call].needs.size()) {
        finished.push_back(call);
        open.pop_back();
        continue;
      }
      const int need = calls[call].needs[looked++];
      if (!seen[need]) open.emplace_back(need, 0);
      seen[need] = true;
    }
  }
  return finished;
}

}  // namespace

std::vector<int> CallOrder(const std::vector<OrderedCall>& calls, const std::vector<int>& outputs) {
  const std::vector<int> finished = NeededFirst(calls, outputs);
  constexpr int kUnknown = -1;
  std::vector<int> depths(calls.size(), kUnknown), order;  // by when their depth was first known
  std::map<int, int> of_layer;
  const auto raise = [&](int call, int depth) {
    if (depths[call] == kUnknown) order.push_back(call);
    depths[call] = std::max(depths[call], depth);
  };
  for (auto call = finished.rbegin(); call != finished.rend(); ++call) {
    int& layer = of_layer[calls[*call].layer];
    raise(*call, layer);
    layer = depths[*call];
    for (const int need : calls[*call].needs) raise(need, layer + 1);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return depths[a] > depths[b]; });
  return order;
}

}  // namespace floe::keras
