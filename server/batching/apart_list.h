// ApartList: whose requests are batched apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"

namespace floe::server {

// Callers whose requests failed, each for a second; of more than fit the oldest are forgotten.
// Threading: the caller locks.
class ApartList {
 public:
  void Add(uint64_t caller, TimePoint now) {
    Entry* place = &entries_[0];
    for (Entry& entry : entries_) {
      if (entry.caller == caller) {
        place = &entry;
        break;
      }
      if (entry.until < place->until) place = &entry;
    }
    last_until_ = now + kHowLong;
    *place = {caller, last_until_};
  }
  bool Has(uint64_t caller, TimePoint now) const {
    if (caller == 0 || now >= last_until_) return false;
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.caller == caller && now < entry.until;
    });
  }

 private:
  static constexpr Duration kHowLong = std::chrono::seconds(1);
  struct Entry {
    uint64_t caller = 0;
    TimePoint until = TimePoint::min();
  };
  std::array<Entry, 64> entries_;
  TimePoint last_until_ = TimePoint::min();
};

}  // namespace floe::server
