// RequestQueue: the bounded queue of one served version, and the rule by which batches are formed.
#pragma once

#include <algorithm>
#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/unordered_set.hpp>
#include <cstddef>
#include <deque>
#include <vector>

#include "server/scheduling/queued.h"

namespace floe::server {

// Lists of requests allocate nothing: the links are members of the requests.
template <boost::intrusive::list_member_hook<> Queued::*kHook>
using RequestList = boost::intrusive::list<
    Queued, boost::intrusive::member_hook<Queued, boost::intrusive::list_member_hook<>, kHook>,
    boost::intrusive::constant_time_size<false>>;

// A request goes before those one step more urgent that came that much later.
inline constexpr Duration kPriorityAging = std::chrono::milliseconds(200);

// Requests by rank: the time of arrival plus kPriorityAging for each step of priority. One list per
// priority, each in order of arrival, so that nothing is ever sorted.
template <boost::intrusive::list_member_hook<> Queued::*kHook>
class RankedRequests {
 public:
  static TimePoint Rank(const Queued& request) {
    return request.enqueued + request.level() * kPriorityAging;
  }
  bool empty() const { return Oldest() == nullptr; }
  void Push(Queued* request) { levels_[request->level()].push_back(*request); }
  void Remove(Queued* request) {
    auto& level = levels_[request->level()];
    level.erase(level.iterator_to(*request));
  }
  // That of the least rank of those it holds for; null: there is none.
  template <typename Filter>
  Queued* First(const Filter& may) const {
    const Queued* first = nullptr;
    for (const auto& level : levels_) {
      for (const Queued& request : level) {
        if (first != nullptr && Rank(request) >= Rank(*first)) break;
        if (!may(request)) continue;
        first = &request;
        break;
      }
    }
    return const_cast<Queued*>(first);
  }
  Queued* First() const {
    return First([](const Queued&) { return true; });
  }
  // The request that arrived first; null: there is none.
  Queued* Oldest() const {
    const Queued* oldest = nullptr;
    for (const auto& level : levels_)
      if (!level.empty() && (oldest == nullptr || level.front().enqueued < oldest->enqueued))
        oldest = &level.front();
    return const_cast<Queued*>(oldest);
  }

 private:
  std::array<RequestList<kHook>, kPriorities> levels_;
};

// Requests that may run together. One that is unbatchable has a bucket of its own.
struct Bucket : boost::intrusive::unordered_set_base_hook<boost::intrusive::store_hash<true>> {
  RankedRequests<&Queued::bucket_hook> requests;
  int64_t rows = 0;
  int64_t max_rows = 0;
  bool shared = false;  // found by later requests
  bool ready = false;   // need not wait for more
};

// The buckets in use, found by what their requests have in common, and free ones for the next.
class BucketTable {
 public:
  BucketTable() : shared_(Table::bucket_traits(chains_.data(), chains_.size())) {}
  BucketTable(const BucketTable&) = delete;
  BucketTable& operator=(const BucketTable&) = delete;

  // Later calls allocate nothing until more than so many are in use.
  void Reserve(size_t buckets);
  // The shared bucket of the request, or a new one.
  Bucket* Find(Queued* request, int64_t max_rows);
  void Free(Bucket* bucket);
  void SetReady(Bucket* bucket, bool ready);
  bool any_ready() const { return ready_ > 0; }

 private:
  using Table = boost::intrusive::unordered_set<Bucket, boost::intrusive::power_2_buckets<true>,
                                                boost::intrusive::constant_time_size<false>>;

  std::deque<Bucket> all_;
  std::vector<Bucket*> free_;
  std::array<Table::bucket_type, 256> chains_;  // a queue rarely holds that many buckets
  Table shared_;
  size_t ready_ = 0;
};

// Why a batch was not made larger.
enum class BatchClose : uint8_t {
  kFull,         // it has as many rows as a run may have
  kNoFit,        // the next request would not fit
  kIdle,         // a worker was idle and nothing more waited in the bucket
  kTimeout,      // its first request had waited for batch_timeout_micros, or nears its deadline
  kUnbatchable,  // its request may not share a run
  kQuarantined,  // its caller's requests made others' batches fail
  kDrain,        // the queue is being emptied
};
inline constexpr int kBatchCloses = 7;
const char* BatchCloseName(BatchClose close);  // "full", "no_fit" ...

struct Batch {
  absl::InlinedVector<Queued*, 8> requests;
  int64_t rows = 0;
  BatchClose close = BatchClose::kIdle;

  void clear() {
    requests.clear();
    rows = 0;
  }
};

// What is queued, and what is yet to come of large requests, which are computed in parts.
struct QueueLoad {
  size_t requests = 0;
  size_t wholes = 0;  // large requests that have not ended
  size_t bytes = 0;   // of inputs, of wholes until they end
  int64_t rows = 0;   // as max_queued_rows counts them, of wholes until they end
  std::array<Duration, kPriorities> work{};
  Duration later_work = Duration::zero();  // of parts that are not queued yet

  bool empty() const { return requests == 0; }
  bool done() const { return empty() && wholes == 0; }  // nothing waits or is to come

  // Of those that go before a request of that level, were it queued now: as urgent ones or more.
  Duration WorkAhead(int level) const;
  Duration Work() const { return WorkAhead(kPriorities - 1) + later_work; }
};

// Of the buckets that may go, that with the request of the least rank goes first. Within a bucket
// requests go by rank, which is the order of arrival where priorities are equal. A request that
// does not fit ends the batch, so that order holds. One of more rows than a run may have runs
// alone.
//
// With a timeout a bucket waits for more until its rows fill a run, or its first arrival is that
// old. That with the earliest deadline of all also goes when little is left of what this allows.
// Threading: the caller locks. Requests are the caller's, and stay in place.
class RequestQueue {
 public:
  struct Limits {
    int64_t max_rows = 64;  // of one run; requests may name less
    Duration timeout = Duration::zero();
    // What may be queued; a lone request may exceed it. An unbatchable one counts as one row, and
    // so does each where `requests_are_rows`.
    int64_t max_queued_rows = 4096;
    bool requests_are_rows = false;
    size_t max_bytes = size_t{1} << 30;  // of inputs

    // Of one run with the binding's key, at least 1.
    int64_t MaxRows(const Binding& binding) const {
      return std::max<int64_t>(
          1, binding.max_rows == 0 ? max_rows : std::min(binding.max_rows, max_rows));
    }
  };
  explicit RequestQueue(const Limits& limits) : limits_(limits) {}
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  // False (nothing changed) when the bounds are reached. Where memory cannot be had, this throws
  // std::bad_alloc and nothing has changed; nothing else allocates what it cannot do without.
  bool Push(Queued* request, TimePoint now);
  // Fills an empty batch with the next one, if one is due.
  void TakeBatch(TimePoint now, Batch* batch);
  // When TakeBatch gives something: in the past for "now", TimePoint::max() when empty.
  TimePoint NextBatchTime() const;
  // A request whose deadline is not after `now`, and which leaves the queue; null: there is none.
  Queued* TakeExpired(TimePoint now);
  TimePoint NextDeadline() const;  // TimePoint::max(): none
  // False when the request is not queued (any more).
  bool Remove(Queued* request);
  // Adds a large request, which awaits its turn from then on. It counts until it leaves the queue
  // before its turn, or until EndWhole. False (nothing changed) when the bounds are reached.
  bool AddWhole(Queued* whole);
  // The large request whose turn it is: the next, if its inputs and outputs have room beside those
  // of others that have begun (kMostJoinedBytes). Null: there is none. Its parts are pushed
  // from then on, one after the other, and are not bounded.
  Queued* StartWhole();
  void EndWhole(const Queued& whole);                    // of one that was started
  Queued* Oldest() const { return arrivals_.Oldest(); }  // of those that may run; null: none
  // One that has not begun; null: none.
  Queued* Any() { return waiting_.empty() ? Oldest() : &waiting_.front(); }
  // From now on nothing waits for a fuller batch.
  void StopWaiting() {
    limits_.timeout = Duration::zero();
    draining_ = true;
  }
  const QueueLoad& load() const { return load_; }

 private:
  struct ByDeadline {
    bool operator()(const Queued& a, const Queued& b) const { return a.deadline < b.deadline; }
  };
  using Deadlines = boost::intrusive::multiset<
      Queued,
      boost::intrusive::member_hook<Queued, boost::intrusive::set_member_hook<>,
                                    &Queued::deadline_hook>,
      boost::intrusive::compare<ByDeadline>, boost::intrusive::constant_time_size<false>>;

  bool MayGo(const Bucket& bucket, TimePoint now) const;
  void Fill(Bucket* bucket, Batch* batch);

  Limits limits_;
  bool draining_ = false;
  QueueLoad load_;
  RankedRequests<&Queued::arrival_hook> arrivals_;
  Deadlines deadlines_;  // requests without a deadline are not in it
  BucketTable buckets_;
  RequestList<&Queued::arrival_hook> waiting_;  // large requests that await their turns
  Deadlines waiting_deadlines_;                 // theirs
  int64_t joined_bytes_ = 0;                    // of large requests that have begun
};

}  // namespace floe::server
