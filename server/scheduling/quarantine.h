// Quarantine: callers whose requests made others' batches fail.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"
#include "server/scheduling/tuning.h"

namespace floe::server {

// Each for tuning::kQuarantine; of more than fit the oldest are forgotten.
// Threading: the caller locks.
class Quarantine {
 public:
  void Add(uint64_t principal, TimePoint now) {
    Entry* place = &entries_[0];
    for (Entry& entry : entries_) {
      if (entry.principal == principal) {
        place = &entry;
        break;
      }
      if (entry.until < place->until) place = &entry;
    }
    last_until_ = now + tuning::kQuarantine;
    *place = {principal, last_until_};
  }
  bool Has(uint64_t principal, TimePoint now) const {
    if (principal == 0 || now >= last_until_) return false;
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.principal == principal && now < entry.until;
    });
  }

 private:
  struct Entry {
    uint64_t principal = 0;
    TimePoint until = TimePoint::min();
  };
  std::array<Entry, 64> entries_;
  TimePoint last_until_ = TimePoint::min();
};

}  // namespace floe::server
