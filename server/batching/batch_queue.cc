#include "server/batching/batch_queue.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/budget.h"

namespace floe::server {
namespace {

std::string_view Bytes(const TensorView& view) {
  return {static_cast<const char*>(view.data), view.bytes()};
}

bool SameValue(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.dtype != DType::kString) return Bytes(a) == Bytes(b);
  for (int64_t i = 0; i < a.elements(); ++i)
    if (a.as<std::string>()[i] != b.as<std::string>()[i]) return false;
  return true;
}

uint64_t Mix(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 32);
}

uint64_t HashOf(const Task& task) {
  uint64_t h = Mix(task.apart, reinterpret_cast<uintptr_t>(task.key));
  for (const TensorView& view : task.fixed) {
    if (view.dtype == DType::kString) {
      for (int64_t i = 0; i < view.elements(); ++i)
        h = Mix(h, std::hash<std::string>()(view.as<std::string>()[i]));
    } else {
      h = Mix(h, std::hash<std::string_view>()(Bytes(view)));
    }
  }
  return h;
}

bool SameBucket(const Task& a, const Task& b) {
  if (a.hash != b.hash || a.key != b.key || a.apart != b.apart || a.fixed.size() != b.fixed.size())
    return false;
  for (size_t i = 0; i < a.fixed.size(); ++i)
    if (!SameValue(a.fixed[i], b.fixed[i])) return false;
  return true;
}

// Sums of estimates stay far from overflow.
constexpr Duration kMostWork = std::chrono::minutes(15);

// A task waits for others as long as one part in so many of what it may wait is left: its run, the
// thread that runs it and its answer's way may take longer than expected.
constexpr int kWaitMargin = 4;

// What so many of a task's `left` rows take of its work.
Duration Part(Duration work, int64_t rows, int64_t left) {
  return std::chrono::duration_cast<Duration>(work * static_cast<double>(rows) /
                                              static_cast<double>(left));
}

// For one slice more. Where there is no memory the batch ends, and the next one goes on.
bool HasRoom(Batch* batch) {
  auto& slices = batch->slices;
  if (slices.size() < slices.capacity()) return true;
  return CatchOutOfMemory([&] {
           slices.reserve(2 * slices.size());
           return absl::OkStatus();
         })
      .ok();
}

}  // namespace

const char* BatchCloseName(BatchClose close) {
  constexpr const char* kNames[kBatchCloses] = {"full",    "preferred", "no_fit", "idle",
                                                "timeout", "alone",     "apart",  "drain"};
  return kNames[static_cast<int>(close)];
}

BatchQueue::BatchQueue(const Limits& limits) : limits_(limits) {}

int64_t BatchQueue::MaxRows(const Task& task) const {
  return task.max_rows == 0 ? limits_.max_rows : std::min(task.max_rows, limits_.max_rows);
}

bool BatchQueue::Waits(const Bucket& bucket) const {
  if (split_ != nullptr && split_->bucket == &bucket) return false;  // others wait for its end
  const int64_t enough = limits_.preferred.empty()
                             ? bucket.max_rows
                             : std::min(bucket.max_rows, limits_.preferred.front());
  return bucket.rows < enough;
}

// The most rows of the bucket's next batch.
int64_t BatchQueue::PreferredRows(const Bucket& bucket) const {
  const auto above =
      std::upper_bound(limits_.preferred.begin(), limits_.preferred.end(), bucket.rows);
  if (above == limits_.preferred.begin()) return bucket.max_rows;
  return std::min(bucket.max_rows, above[-1]);
}

// For one more task, whatever becomes of it: a bucket, and a place among the deadlines.
void BatchQueue::MakeRoom() {
  while (buckets_.size() <= tasks_) {
    buckets_.push_back(std::make_unique<Bucket>());
    buckets_.back()->chain = std::exchange(free_, buckets_.back().get());
  }
  if (deadlines_.size() == deadlines_.capacity()) deadlines_.reserve(2 * deadlines_.size() + 16);
}

Bucket* BatchQueue::NewBucket(const Task& task) {
  Bucket* const bucket = free_;
  free_ = bucket->chain;
  *bucket = Bucket();
  bucket->max_rows = MaxRows(task);
  return bucket;
}

// Finds the shared bucket of the task or makes one.
Bucket* BatchQueue::FindBucket(Task* task) {
  if (task->alone) return NewBucket(*task);
  task->hash = HashOf(*task);
  Bucket*& head = table_[task->hash % kTableSize];
  for (Bucket* bucket = head; bucket != nullptr; bucket = bucket->chain)
    if (SameBucket(*bucket->tasks.First(), *task)) return bucket;
  Bucket* bucket = NewBucket(*task);
  bucket->shared = true;
  bucket->chain = std::exchange(head, bucket);
  return bucket;
}

void BatchQueue::Free(Bucket* bucket, uint64_t hash) {
  SetReady(bucket, false);
  if (bucket->shared) {
    Bucket** link = &table_[hash % kTableSize];
    while (*link != bucket) link = &(*link)->chain;
    *link = bucket->chain;
  }
  bucket->chain = std::exchange(free_, bucket);
}

void BatchQueue::SetReady(Bucket* bucket, bool ready) {
  if (bucket->ready == ready) return;
  bucket->ready = ready;
  ready_ += ready ? 1 : -1;
}

bool BatchQueue::Push(Task* task, TimePoint now) {
  task->queued_rows = task->alone || limits_.tasks_are_rows ? 1 : std::max<int64_t>(task->rows, 1);
  if (tasks_ > 0 && (rows_ + task->queued_rows > limits_.max_queued_rows ||
                     bytes_ + task->bytes > limits_.max_bytes))
    return false;
  MakeRoom();
  if (task->rows > MaxRows(*task) && !task->splittable) task->alone = true;
  task->enqueued = latest_ = now;
  task->level = std::clamp(task->request->priority, 1, kPriorities) - 1;
  task->work = std::min(task->work, kMostWork);
  ++tasks_;
  bytes_ += task->bytes;
  rows_ += task->queued_rows;
  if (task->request->deadline != TimePoint::max()) {
    const Duration spare = task->request->deadline - now - std::min(task->run, kMostWork);
    task->hurried = now + spare - spare / kWaitMargin;
    task->heap_index = deadlines_.size();
    deadlines_.push_back(task);
    HeapUp(task->heap_index);
  }
  if (split_ == nullptr || !Splits(*task)) {
    Enter(task);
  } else {
    task->bucket = &parked_;
    parked_.tasks.Push(task);
    parked_work_[task->level] += task->work;
  }
  return true;
}

// The task takes its place among those that have their turns.
void BatchQueue::Enter(Task* task) {
  Bucket* bucket = FindBucket(task);
  bucket->max_rows = std::min(bucket->max_rows, MaxRows(*task));
  task->bucket = bucket;
  if (Splits(*task)) split_ = task;
  bucket->tasks.Push(task);
  bucket->rows += task->rows;
  arrivals_.Push(task);
  work_[task->level] += task->work;
  SetReady(bucket, task->alone || !Waits(*bucket));
}

// What is left of the task leaves the queue; the last task of a bucket frees it.
void BatchQueue::Unlink(Task* task) {
  --tasks_;
  bytes_ -= task->bytes;
  rows_ -= task->queued_rows;
  if (task->request->deadline != TimePoint::max()) HeapRemove(task->heap_index);
  Bucket* bucket = std::exchange(task->bucket, nullptr);
  bucket->tasks.Remove(task);
  if (bucket == &parked_) {
    parked_work_[task->level] -= task->work;
    return;
  }
  if (task == split_) split_ = nullptr;
  bucket->rows -= task->rows - task->next_row;
  arrivals_.Remove(task);
  work_[task->level] -= task->work;
  if (bucket->tasks.empty()) {
    Free(bucket, task->hash);
  } else if (Waits(*bucket)) {
    SetReady(bucket, false);
  }
}

// Not in the midst of a batch: it may take over the bucket that was freed.
void BatchQueue::LetParkedIn() {
  if (split_ != nullptr || parked_.tasks.empty()) return;
  Task* const task = parked_.tasks.First();
  parked_.tasks.Remove(task);
  parked_work_[task->level] -= task->work;
  task->enqueued = latest_;  // lists are in order of arrival
  Enter(task);
}

// Puts what is left of the task behind those that came by now.
void BatchQueue::MoveBack(Task* task) {
  task->bucket->tasks.Remove(task);
  arrivals_.Remove(task);
  work_[task->level] -= task->work;
  task->enqueued = latest_;
  if (!parked_.tasks.empty()) task->level = std::min(task->level, parked_.tasks.First()->level);
  task->bucket->tasks.Push(task);
  arrivals_.Push(task);
  work_[task->level] += task->work;
}

bool BatchQueue::Remove(Task* task) {
  if (task->bucket == nullptr) return false;
  Unlink(task);
  LetParkedIn();
  return true;
}

TimePoint BatchQueue::NextBatchTime() const {
  if (arrivals_.empty()) return TimePoint::max();
  if (ready_ > 0) return TimePoint::min();
  const TimePoint old = oldest()->enqueued + limits_.timeout;
  return deadlines_.empty() ? old : std::min(old, deadlines_[0]->hurried);
}

bool BatchQueue::MayGo(const Bucket& bucket, TimePoint now) const {
  if (bucket.ready || bucket.tasks.Oldest()->enqueued + limits_.timeout <= now) return true;
  return !deadlines_.empty() && deadlines_[0]->bucket == &bucket && deadlines_[0]->hurried <= now;
}

Bucket* BatchQueue::ChooseBucket(TimePoint now, BatchClose* close) const {
  const bool waits = limits_.timeout > Duration::zero();
  // What is passed over is young, and of buckets that are not full.
  const Task* const task =
      waits ? arrivals_.First([&](const Task& one) { return MayGo(*one.bucket, now); })
            : arrivals_.First();
  if (task == nullptr) return nullptr;
  Bucket* const bucket = task->bucket;
  const Task& first = *bucket->tasks.First();
  if (first.alone) {
    *close = BatchClose::kAlone;
  } else if (first.apart != 0) {
    *close = BatchClose::kApart;
  } else if (draining_) {
    *close = BatchClose::kDrain;
  } else {
    *close = waits && !bucket->ready ? BatchClose::kTimeout : BatchClose::kIdle;
  }
  return bucket;
}

void BatchQueue::TakeBatch(TimePoint now, Batch* batch) {
  latest_ = now;
  Bucket* const bucket = ChooseBucket(now, &batch->close);
  if (bucket == nullptr) return;
  Fill(bucket, batch);
  LetParkedIn();
}

void BatchQueue::Fill(Bucket* bucket, Batch* batch) {
  const int64_t max_rows = PreferredRows(*bucket);
  const bool preferred = max_rows < bucket->max_rows;
  do {
    Task* const task = bucket->tasks.First();
    const int64_t room = max_rows - batch->rows, left = task->rows - task->next_row;
    const bool large = task->rows > MaxRows(*task);  // the bucket may by now have less room
    if (!batch->slices.empty() && ((left > room && !large) || !HasRoom(batch))) {
      batch->close = BatchClose::kNoFit;
      return;
    }
    const int64_t rows = large && task->splittable ? std::min(left, room) : left;
    batch->slices.push_back({task, task->next_row, rows});
    batch->rows += rows;
    if (rows == left) {
      Unlink(task);
    } else {
      TakeRows(task, rows);
    }
  } while (!bucket->tasks.empty() && batch->rows < max_rows);  // freed, it is still readable here
  if (batch->rows >= max_rows && batch->close != BatchClose::kAlone)
    batch->close = preferred ? BatchClose::kPreferred : BatchClose::kFull;
}

// Takes fewer rows than are left of the task.
void BatchQueue::TakeRows(Task* task, int64_t rows) {
  const Duration work = Part(task->work, rows, task->rows - task->next_row);
  work_[task->level] -= work;
  task->work -= work;
  task->next_row += rows;
  task->bucket->rows -= rows;
  MoveBack(task);
}

TimePoint BatchQueue::NextDeadline() const {
  return deadlines_.empty() ? TimePoint::max() : deadlines_[0]->request->deadline;
}

Task* BatchQueue::TakeExpired(TimePoint now) {
  if (deadlines_.empty() || NextDeadline() > now) return nullptr;
  Task* const task = deadlines_[0];
  Unlink(task);
  LetParkedIn();
  return task;
}

Duration BatchQueue::WorkAhead(const Task& task) const {
  const int levels = std::clamp(task.request->priority, 1, kPriorities);
  const bool splits = Splits(task);
  Duration work = Duration::zero();
  for (int level = 0; level < levels; ++level)
    work += work_[level] + (splits ? parked_work_[level] : Duration::zero());
  if (split_ == nullptr) return work;
  if (splits) return split_->level < levels ? work : work + split_->work;
  if (split_->level >= levels) return work;
  const int64_t left = split_->rows - split_->next_row;
  return work - split_->work + Part(split_->work, std::min(left, MaxRows(*split_)), left);
}

Duration BatchQueue::Work() const {
  Duration work = Duration::zero();
  for (int level = 0; level < kPriorities; ++level) work += work_[level] + parked_work_[level];
  return work;
}

void BatchQueue::HeapSwap(size_t a, size_t b) {
  std::swap(deadlines_[a], deadlines_[b]);
  deadlines_[a]->heap_index = a;
  deadlines_[b]->heap_index = b;
}

void BatchQueue::HeapUp(size_t index) {
  while (index > 0) {
    const size_t parent = (index - 1) / 2;
    if (deadlines_[parent]->request->deadline <= deadlines_[index]->request->deadline) return;
    HeapSwap(parent, index);
    index = parent;
  }
}

void BatchQueue::HeapDown(size_t index) {
  for (;;) {
    size_t least = index;
    for (size_t child = 2 * index + 1; child <= 2 * index + 2 && child < deadlines_.size(); ++child)
      if (deadlines_[child]->request->deadline < deadlines_[least]->request->deadline)
        least = child;
    if (least == index) return;
    HeapSwap(least, index);
    index = least;
  }
}

void BatchQueue::HeapRemove(size_t index) {
  const size_t last = deadlines_.size() - 1;
  if (index != last) HeapSwap(index, last);
  deadlines_.pop_back();
  if (index == last) return;
  HeapUp(index);
  HeapDown(index);
}

}  // namespace floe::server
