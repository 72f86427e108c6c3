// BatchQueue: the bounded queue of one model and the rule by which batches are formed. No threads,
// no clock.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "server/batching/task.h"

namespace floe::server {

// A doubly linked list through members of the tasks: nothing is allocated.
template <TaskLinks Task::*kLinks>
class TaskList {
 public:
  Task* front() const { return front_; }
  bool empty() const { return front_ == nullptr; }
  static Task* Next(const Task* task) { return (task->*kLinks).next; }

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

// Tasks that may run together, in order of arrival. A task that runs alone has a bucket of its own.
struct Bucket {
  TaskList<&Task::peers> tasks;
  int64_t rows = 0;
  bool shared = false;      // found by later tasks
  bool ready = false;       // in the list of buckets that need not wait for more
  Bucket* chain = nullptr;  // next of the same hash, or next free
  Bucket* ready_previous = nullptr;
  Bucket* ready_next = nullptr;
};

// Order: the oldest task's bucket goes first, and within a bucket tasks go in order of arrival. A
// batch is the bucket's first task and those behind it while they fit into max_rows; a task that
// does not fit ends the batch, so that order holds. With a timeout a bucket waits for more until
// its rows reach max_rows or its first task is that old; tasks that run alone never wait.
// Threading: none of its own; the caller locks. Tasks are the caller's, and stay in place while
// queued.
class BatchQueue {
 public:
  struct Limits {
    int64_t max_rows = 64;  // of one batch; a larger task runs alone
    Duration timeout = Duration::zero();
    size_t max_tasks = 4096;             // queued
    size_t max_bytes = size_t{1} << 30;  // of queued inputs; a lone task may exceed it
  };
  explicit BatchQueue(const Limits& limits);
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // False (nothing changed) when the bounds are reached.
  bool Push(Task* task, TimePoint now);
  // Appends the next batch, if one is due; the tasks leave the queue.
  void TakeBatch(TimePoint now, std::vector<Task*>* batch);
  // When TakeBatch gives something: in the past for "now", TimePoint::max() when empty.
  TimePoint NextBatchTime() const;
  // Appends the tasks whose deadline is not after `now`; they leave the queue.
  void Expire(TimePoint now, std::vector<Task*>* expired);
  TimePoint NextDeadline() const;  // TimePoint::max(): none
  // False when the task is not queued (any more).
  bool Remove(Task* task);
  // From now on nothing waits for a fuller batch.
  void StopWaiting() { limits_.timeout = Duration::zero(); }

  bool empty() const { return tasks_ == 0; }
  size_t size() const { return tasks_; }
  size_t bytes() const { return bytes_; }
  const Task* oldest() const { return arrivals_.front(); }
  const Limits& limits() const { return limits_; }

 private:
  static constexpr size_t kTableSize = 256;  // chains; a queue rarely holds that many buckets

  Bucket* FindBucket(Task* task);
  Bucket* NewBucket();
  void Free(Bucket* bucket, uint64_t hash);
  void SetReady(Bucket* bucket, bool ready);
  void Unlink(Task* task);
  void HeapSwap(size_t a, size_t b);
  void HeapUp(size_t index);
  void HeapDown(size_t index);
  void HeapRemove(size_t index);

  Limits limits_;
  size_t tasks_ = 0, bytes_ = 0;
  TaskList<&Task::arrival> arrivals_;
  Bucket* ready_front_ = nullptr;
  Bucket* ready_back_ = nullptr;
  std::array<Bucket*, kTableSize> table_{};
  std::vector<Task*> deadlines_;  // heap, earliest first; tasks without a deadline are not in it
  std::vector<std::unique_ptr<Bucket>> buckets_;
  Bucket* free_ = nullptr;
};

}  // namespace floe::server
