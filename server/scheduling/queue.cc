// Queues requests in buckets, within bounds, and picks the next batch by rank and timeout.
#include "server/scheduling/queue.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/hash/hash.h"
#include "base/budget.h"

namespace floe::server {
namespace {

// Of one request: sums of estimates stay far from overflow.
constexpr Duration kMostWork = std::chrono::minutes(15);

// A request waits for others until one part in so many of what it may wait is left. Its run and the
// way of its answer may take longer than expected.
constexpr int kFlushMargin = 4;

// Large requests are computed beside each other while their inputs and outputs take no more.
constexpr int64_t kMostJoinedBytes = int64_t{256} << 20;

std::string_view Bytes(const TensorView& view) {
  return {static_cast<const char*>(view.data), view.bytes()};
}

bool SameValue(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.dtype != DType::kString) return Bytes(a) == Bytes(b);
  return std::equal(a.as<std::string>(), a.as<std::string>() + a.elements(), b.as<std::string>());
}

uint64_t HashOf(const Queued& request) {
  uint64_t h = absl::HashOf(request.quarantine, request.binding.key);
  for (const int input : request.binding.fixed) {
    const TensorView& view = request.asked->Input(input);
    if (view.dtype == DType::kString) {
      h = absl::HashOf(
          h, absl::MakeConstSpan(view.as<std::string>(), static_cast<size_t>(view.elements())));
    } else {
      h = absl::HashOf(h, Bytes(view));
    }
  }
  return h;
}

bool SameBucket(const Queued& a, const Queued& b) {
  if (a.hash != b.hash || a.binding.key != b.binding.key || a.quarantine != b.quarantine ||
      a.binding.fixed != b.binding.fixed)
    return false;
  return std::all_of(a.binding.fixed.begin(), a.binding.fixed.end(), [&](int input) {
    return SameValue(a.asked->Input(input), b.asked->Input(input));
  });
}

// Whether a request may be queued beside what is there, and how many rows it counts as then.
bool HasRoom(const QueueLoad& load, const RequestQueue::Limits& limits, Queued* request) {
  const Binding& binding = request->binding;
  const bool counts_once = binding.unbatchable || limits.requests_are_rows;
  request->queued_rows = counts_once ? 1 : std::max<int64_t>(binding.rows, 1);
  return load.done() || (load.rows + request->queued_rows <= limits.max_queued_rows &&
                         load.bytes + binding.bytes <= limits.max_bytes);
}

// What a large request takes while it is computed.
int64_t JoinedBytes(const Queued& whole) {
  int64_t bytes = whole.binding.output_bytes;
  for (const TensorView& input : whole.asked->inputs) bytes += static_cast<int64_t>(input.bytes());
  return bytes;
}

// For one request more. Where there is no memory the batch ends, and the next one goes on.
bool HasRoom(Batch* batch) {
  auto& requests = batch->requests;
  if (requests.size() < requests.capacity()) return true;
  return CatchOutOfMemory([&] {
           requests.reserve(2 * requests.size());
           return absl::OkStatus();
         })
      .ok();
}

void CountWhole(const Queued& whole, int sign, QueueLoad* load) {
  load->wholes += static_cast<size_t>(sign);
  load->bytes += static_cast<size_t>(sign) * whole.binding.bytes;
  load->rows += sign * whole.queued_rows;
  load->later_work += sign * whole.work;
}

// A request without a deadline is not in it.
template <typename Deadlines>
void Unlink(Queued* request, Deadlines* deadlines) {
  if (request->deadline_hook.is_linked()) deadlines->erase(deadlines->iterator_to(*request));
}

template <typename Deadlines>
TimePoint Earliest(const Deadlines& deadlines) {
  return deadlines.empty() ? TimePoint::max() : deadlines.begin()->deadline;
}

}  // namespace

const char* BatchCloseName(BatchClose close) {
  constexpr const char* kNames[kBatchCloses] = {"full",        "no_fit",      "idle", "timeout",
                                                "unbatchable", "quarantined", "drain"};
  return kNames[static_cast<int>(close)];
}

void BucketTable::Reserve(size_t buckets) {
  if (all_.size() >= buckets) return;
  free_.reserve(2 * buckets);
  while (all_.size() < buckets) free_.push_back(&all_.emplace_back());
}

Bucket* BucketTable::Find(Queued* request, int64_t max_rows) {
  const bool shared = !request->binding.unbatchable && request->binding.rows <= max_rows;
  Table::insert_commit_data place;
  if (shared) {
    request->hash = HashOf(*request);
    const auto hash = [](const Queued& one) { return static_cast<size_t>(one.hash); };
    const auto equal = [](const Queued& one, const Bucket& bucket) {
      return SameBucket(*bucket.requests.First(), one);
    };
    const auto [found, is_new] = shared_.insert_check(*request, hash, equal, place);
    if (!is_new) return &*found;
  }
  Bucket* const bucket = free_.back();
  free_.pop_back();
  bucket->rows = 0;
  bucket->max_rows = max_rows;
  bucket->shared = shared;
  bucket->ready = false;
  if (shared) shared_.insert_commit(*bucket, place);
  return bucket;
}

void BucketTable::Free(Bucket* bucket) {
  if (bucket->shared) shared_.erase(shared_.iterator_to(*bucket));
  free_.push_back(bucket);
}

void BucketTable::SetReady(Bucket* bucket, bool ready) {
  if (bucket->ready == ready) return;
  bucket->ready = ready;
  ready_ += ready ? 1 : -1;
}

Duration QueueLoad::WorkAhead(int level) const {
  Duration sum = Duration::zero();
  for (int i = 0; i <= level; ++i) sum += work[i];
  return sum;
}

bool RequestQueue::Push(Queued* request, TimePoint now) {
  Binding& binding = request->binding;
  const int64_t max_rows = limits_.MaxRows(binding);
  if (request->whole == nullptr && !HasRoom(load_, limits_, request)) return false;
  buckets_.Reserve(load_.requests + 1);
  request->enqueued = now;
  request->work = std::min(request->work, kMostWork);
  ++load_.requests;
  if (request->whole == nullptr) {
    load_.bytes += binding.bytes;
    load_.rows += request->queued_rows;
  } else {
    request->whole->work -= request->work;
    load_.later_work -= request->work;
  }
  load_.work[request->level()] += request->work;
  if (request->deadline != TimePoint::max()) {
    const Duration spare = request->deadline - now - std::min(request->run, kMostWork);
    request->flush_at = now + spare - spare / kFlushMargin;
    deadlines_.insert(*request);
  }
  arrivals_.Push(request);
  Bucket* const bucket = buckets_.Find(request, max_rows);
  bucket->max_rows = std::min(bucket->max_rows, max_rows);
  bucket->requests.Push(request);
  bucket->rows += binding.rows;
  request->bucket = bucket;
  buckets_.SetReady(bucket, !bucket->shared || bucket->rows >= bucket->max_rows);
  return true;
}

bool RequestQueue::Remove(Queued* request) {
  if (std::exchange(request->awaits_turn, false)) {
    waiting_.erase(waiting_.iterator_to(*request));
    Unlink(request, &waiting_deadlines_);
    CountWhole(*request, -1, &load_);
    return true;
  }
  Bucket* const bucket = std::exchange(request->bucket, nullptr);
  if (bucket == nullptr) return false;
  --load_.requests;
  if (request->whole == nullptr) {
    load_.bytes -= request->binding.bytes;
    load_.rows -= request->queued_rows;
  }
  load_.work[request->level()] -= request->work;
  Unlink(request, &deadlines_);
  arrivals_.Remove(request);
  bucket->requests.Remove(request);
  bucket->rows -= request->binding.rows;
  if (bucket->requests.empty()) {
    buckets_.SetReady(bucket, false);
    buckets_.Free(bucket);
  } else if (bucket->rows < bucket->max_rows) {
    buckets_.SetReady(bucket, false);
  }
  return true;
}

bool RequestQueue::AddWhole(Queued* whole) {
  if (!HasRoom(load_, limits_, whole)) return false;
  whole->work = std::min(whole->work, kMostWork);
  CountWhole(*whole, 1, &load_);
  waiting_.push_back(*whole);
  if (whole->deadline != TimePoint::max()) waiting_deadlines_.insert(*whole);
  whole->awaits_turn = true;
  return true;
}

Queued* RequestQueue::StartWhole() {
  if (waiting_.empty()) return nullptr;
  Queued* const whole = &waiting_.front();
  const int64_t bytes = JoinedBytes(*whole);
  if (joined_bytes_ > 0 && joined_bytes_ + bytes > kMostJoinedBytes) return nullptr;
  joined_bytes_ += bytes;
  waiting_.pop_front();
  Unlink(whole, &waiting_deadlines_);
  whole->awaits_turn = false;
  return whole;
}

void RequestQueue::EndWhole(const Queued& whole) {
  joined_bytes_ -= JoinedBytes(whole);
  CountWhole(whole, -1, &load_);
}

TimePoint RequestQueue::NextBatchTime() const {
  if (load_.empty()) return TimePoint::max();
  if (buckets_.any_ready()) return TimePoint::min();
  const TimePoint old = Oldest()->enqueued + limits_.timeout;
  return deadlines_.empty() ? old : std::min(old, deadlines_.begin()->flush_at);
}

bool RequestQueue::MayGo(const Bucket& bucket, TimePoint now) const {
  if (bucket.ready || bucket.requests.Oldest()->enqueued + limits_.timeout <= now) return true;
  if (deadlines_.empty()) return false;
  const Queued& first = *deadlines_.begin();
  return first.bucket == &bucket && first.flush_at <= now;
}

void RequestQueue::TakeBatch(TimePoint now, Batch* batch) {
  const bool waits = limits_.timeout > Duration::zero();
  // What is skipped is young, and of buckets that are not full.
  const Queued* const request =
      waits ? arrivals_.First([&](const Queued& one) { return MayGo(*one.bucket, now); })
            : arrivals_.First();
  if (request == nullptr) return;
  Bucket* const bucket = request->bucket;
  const Queued& first = *bucket->requests.First();
  if (!bucket->shared) {
    batch->close = BatchClose::kUnbatchable;
  } else if (first.quarantine != 0) {
    batch->close = BatchClose::kQuarantined;
  } else if (draining_) {
    batch->close = BatchClose::kDrain;
  } else {
    batch->close = waits && !bucket->ready ? BatchClose::kTimeout : BatchClose::kIdle;
  }
  Fill(bucket, batch);
}

void RequestQueue::Fill(Bucket* bucket, Batch* batch) {
  const int64_t max_rows = bucket->max_rows;
  for (Queued* request; batch->rows < max_rows && (request = bucket->requests.First());) {
    if (!batch->requests.empty() &&
        (batch->rows + request->binding.rows > max_rows || !HasRoom(batch))) {
      batch->close = BatchClose::kNoFit;
      return;
    }
    batch->requests.push_back(request);
    batch->rows += request->binding.rows;
    Remove(request);  // a bucket that was freed is still there, and empty
    if (!bucket->shared) return;
  }
  batch->close = batch->rows >= max_rows ? BatchClose::kFull : batch->close;
}

TimePoint RequestQueue::NextDeadline() const {
  return std::min(Earliest(deadlines_), Earliest(waiting_deadlines_));
}

Queued* RequestQueue::TakeExpired(TimePoint now) {
  for (Deadlines* const deadlines : {&deadlines_, &waiting_deadlines_}) {
    if (deadlines->empty() || Earliest(*deadlines) > now) continue;
    Queued* const request = &*deadlines->begin();
    Remove(request);
    return request;
  }
  return nullptr;
}

}  // namespace floe::server
