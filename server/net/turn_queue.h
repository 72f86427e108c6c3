// TurnQueue: what waits, by who it belongs to; each of them in turn.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace floe::server {

// However much one owner adds, the first of another's waits for one of its own at most.
// Threading: one thread at a time.
template <typename T>
class TurnQueue {
 public:
  void Push(const std::string& owner, T one) { waiting_[owner].push_back(std::move(one)); }
  // Nothing: it is empty.
  std::optional<T> Pop() {
    auto next = waiting_.upper_bound(last_);
    if (next == waiting_.end()) next = waiting_.begin();
    if (next == waiting_.end()) return std::nullopt;
    last_ = next->first;
    std::optional<T> one = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) waiting_.erase(next);
    return one;
  }

 private:
  std::map<std::string, std::deque<T>> waiting_;  // none is empty
  std::string last_;                              // who had a turn
};

}  // namespace floe::server
