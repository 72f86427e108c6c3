// BatchQueue: the bounded queue of one model and the rule by which batches are formed. No threads,
// no clock.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "server/batching/task.h"

namespace floe::server {

// A doubly linked list through members of the tasks: nothing is allocated.
template <TaskLinks Task::*kLinks>
class TaskList {
 public:
  Task* front() const { return front_; }
  bool empty() const { return front_ == nullptr; }

  void PushBack(Task* task) {
    (task->*kLinks) = {back_, nullptr};
    (back_ == nullptr ? front_ : (back_->*kLinks).next) = task;
    back_ = task;
  }
  void Remove(Task* task) {
    TaskLinks& links = task->*kLinks;
    (links.previous == nullptr ? front_ : (links.previous->*kLinks).next) = links.next;
    (links.next == nullptr ? back_ : (links.next->*kLinks).previous) = links.previous;
    links = {};
  }

 private:
  Task* front_ = nullptr;
  Task* back_ = nullptr;
};

// Tasks by rank: the time of arrival plus kPriorityAgeing for each step of priority. One list per
// priority, each in order of arrival, so that nothing is ever sorted.
template <TaskLinks Task::*kLinks>
class RankedTasks {
 public:
  static TimePoint Rank(const Task& task) { return task.enqueued + task.level * kPriorityAgeing; }

  bool empty() const { return used_ == 0; }
  void Push(Task* task) {
    levels_[task->level].PushBack(task);
    used_ |= 1u << task->level;
  }
  void Remove(Task* task) {
    levels_[task->level].Remove(task);
    if (levels_[task->level].empty()) used_ &= ~(1u << task->level);
  }
  // The task of the least rank; null: there is none.
  Task* First() const {
    return First([](const Task&) { return true; });
  }
  // That of those it holds for.
  template <typename Filter>
  Task* First(const Filter& may) const {
    Task* first = nullptr;
    for (unsigned left = used_; left != 0; left &= left - 1) {
      Task* task = levels_[__builtin_ctz(left)].front();
      for (; task != nullptr && (first == nullptr || Rank(*task) < Rank(*first));
           task = (task->*kLinks).next) {
        if (!may(*task)) continue;
        first = task;
        break;
      }
    }
    return first;
  }
  // The task that arrived first.
  Task* Oldest() const {
    Task* oldest = nullptr;
    for (unsigned left = used_; left != 0; left &= left - 1) {
      Task* const task = levels_[__builtin_ctz(left)].front();
      if (oldest == nullptr || task->enqueued < oldest->enqueued) oldest = task;
    }
    return oldest;
  }

 private:
  std::array<TaskList<kLinks>, kPriorities> levels_;
  unsigned used_ = 0;  // a bit for each list that is not empty
};

// Tasks that may run together. A task that runs alone has a bucket of its own.
struct Bucket {
  RankedTasks<&Task::peers> tasks;
  int64_t rows = 0;  // not taken yet
  int64_t max_rows = 0;
  bool shared = false;      // found by later tasks
  bool ready = false;       // need not wait for more
  Bucket* chain = nullptr;  // next of the same hash, or next free
};

// Why a batch was not made larger.
enum class BatchClose : uint8_t {
  kFull,       // it has as many rows as a run may have
  kPreferred,  // it has the largest preferred number of rows that were there
  kNoFit,      // the next request would not fit
  kIdle,       // a worker was idle and nothing else of its kind waited
  kTimeout,    // its first request had waited for batch_timeout_micros, or nears its deadline
  kAlone,      // its request may not share a run
  kApart,      // its caller's requests made others' batches fail
  kDrain,      // the queue is being emptied
};
inline constexpr int kBatchCloses = 8;
const char* BatchCloseName(BatchClose close);  // "full", "preferred" ...

struct Batch {
  absl::InlinedVector<Slice, 8> slices;
  int64_t rows = 0;
  BatchClose close = BatchClose::kIdle;

  void clear() {
    slices.clear();
    rows = 0;
  }
};

// Order: of the buckets that may go, that of the task of the least rank goes first, and within a
// bucket tasks go by rank, which is the order of arrival where priorities are equal. A batch is the
// bucket's first task and those behind it while they fit; a task that does not fit ends the batch,
// so that order holds. A splittable task of more rows than a run may have is taken slice by slice,
// in order, each as large as there is room, and what is left of it queues anew each time, so that
// it keeps nobody from his turn. Of such tasks one is taken at a time, so that only its outputs are
// held half done: others are parked, and by rank queue anew when its last slice is taken; meanwhile
// it is as urgent as the next of them. Tasks of too many rows that cannot be split run alone. With
// a timeout a bucket waits for more until its rows fill a run or are as many as the least preferred
// size, or its first arrival is that old, or it has the earliest deadline of all and three quarters
// of what that leaves before the run are over; tasks that run alone and those that are split never
// wait. Where sizes are preferred a batch has the largest that its bucket's rows reach, if requests
// fit it, and all rows that a run may have where they reach none. Threading: none of its own; the
// caller locks. Tasks are the caller's, and stay in place while queued.
class BatchQueue {
 public:
  struct Limits {
    int64_t max_rows = 64;  // of one run; tasks may name less
    Duration timeout = Duration::zero();
    std::vector<int64_t> preferred;  // rows, ascending; see above
    // What may be queued; a lone task may exceed it. A task that runs alone counts as one row, and
    // so does each where `tasks_are_rows`.
    int64_t max_queued_rows = 4096;
    bool tasks_are_rows = false;
    size_t max_bytes = size_t{1} << 30;  // of inputs
  };
  explicit BatchQueue(const Limits& limits);
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // False (nothing changed) when the bounds are reached. Nothing else allocates memory that it
  // cannot do without; where there is none, this throws std::bad_alloc and nothing has changed.
  bool Push(Task* task, TimePoint now);
  // Fills an empty batch with the next one, if one is due. Tasks leave the queue (their bucket is
  // null) with their last slice.
  void TakeBatch(TimePoint now, Batch* batch);
  // When TakeBatch gives something: in the past for "now", TimePoint::max() when empty.
  TimePoint NextBatchTime() const;
  // A task whose deadline is not after `now`, which leaves the queue; null: there is none.
  Task* TakeExpired(TimePoint now);
  TimePoint NextDeadline() const;  // TimePoint::max(): none
  // False when the task is not queued (any more).
  bool Remove(Task* task);
  // From now on nothing waits for a fuller batch.
  void StopWaiting() {
    limits_.timeout = Duration::zero();
    draining_ = true;
  }

  bool empty() const { return tasks_ == 0; }
  size_t size() const { return tasks_; }
  size_t bytes() const { return bytes_; }
  const Task* oldest() const { return arrivals_.Oldest(); }
  Task* any() const { return arrivals_.First(); }
  // The work of queued tasks that go before this one, were it queued now: those as urgent or more;
  // of one that is split a slice, or all of it when this one is to be split too.
  Duration WorkAhead(const Task& task) const;
  Duration Work() const;  // of all that is queued
  const Limits& limits() const { return limits_; }

 private:
  static constexpr size_t kTableSize = 256;  // chains; a queue rarely holds that many buckets

  Bucket* FindBucket(Task* task);
  int64_t MaxRows(const Task& task) const;
  bool Splits(const Task& task) const { return task.splittable && task.rows > MaxRows(task); }
  bool Waits(const Bucket& bucket) const;  // for more rows, where there is a timeout
  int64_t PreferredRows(const Bucket& bucket) const;
  void MakeRoom();
  Bucket* NewBucket(const Task& task);
  bool MayGo(const Bucket& bucket, TimePoint now) const;
  Bucket* ChooseBucket(TimePoint now, BatchClose* close) const;
  void Free(Bucket* bucket, uint64_t hash);
  void SetReady(Bucket* bucket, bool ready);
  void Enter(Task* task);
  void Fill(Bucket* bucket, Batch* batch);
  void TakeRows(Task* task, int64_t rows);
  void MoveBack(Task* task);
  void Unlink(Task* task);
  void LetParkedIn();
  void HeapSwap(size_t a, size_t b);
  void HeapUp(size_t index);
  void HeapDown(size_t index);
  void HeapRemove(size_t index);

  Limits limits_;
  bool draining_ = false;
  size_t tasks_ = 0, bytes_ = 0;
  int64_t rows_ = 0;  // as max_queued_rows counts them
  RankedTasks<&Task::arrival> arrivals_;
  std::array<Duration, kPriorities> work_{};  // of those in `arrivals_`
  Task* split_ = nullptr;                     // of those, the one that is taken in slices
  Bucket parked_;                             // tasks to be split when that one is done
  std::array<Duration, kPriorities> parked_work_{};
  TimePoint latest_ = TimePoint::min();  // time of the last Push or TakeBatch
  size_t ready_ = 0;                     // buckets
  std::array<Bucket*, kTableSize> table_{};
  std::vector<Task*> deadlines_;  // heap, earliest first; tasks without a deadline are not in it
  std::vector<std::unique_ptr<Bucket>> buckets_;
  Bucket* free_ = nullptr;
};

}  // namespace floe::server
