#include "server/batching/batch_queue.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

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
  uint64_t h = Mix(0, reinterpret_cast<uintptr_t>(task.key));
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
  if (a.hash != b.hash || a.key != b.key || a.fixed.size() != b.fixed.size()) return false;
  for (size_t i = 0; i < a.fixed.size(); ++i)
    if (!SameValue(a.fixed[i], b.fixed[i])) return false;
  return true;
}

}  // namespace

BatchQueue::BatchQueue(const Limits& limits) : limits_(limits) {}

Bucket* BatchQueue::NewBucket() {
  if (free_ == nullptr) {
    buckets_.push_back(std::make_unique<Bucket>());
    return buckets_.back().get();
  }
  Bucket* bucket = std::exchange(free_, free_->chain);
  *bucket = Bucket();
  return bucket;
}

// Finds the shared bucket of the task or makes one.
Bucket* BatchQueue::FindBucket(Task* task) {
  if (task->alone) return NewBucket();
  task->hash = HashOf(*task);
  Bucket*& head = table_[task->hash % kTableSize];
  for (Bucket* bucket = head; bucket != nullptr; bucket = bucket->chain)
    if (SameBucket(*bucket->tasks.front(), *task)) return bucket;
  Bucket* bucket = NewBucket();
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
  if (ready) {
    bucket->ready_previous = ready_back_;
    bucket->ready_next = nullptr;
    (ready_back_ == nullptr ? ready_front_ : ready_back_->ready_next) = bucket;
    ready_back_ = bucket;
    return;
  }
  (bucket->ready_previous == nullptr ? ready_front_ : bucket->ready_previous->ready_next) =
      bucket->ready_next;
  (bucket->ready_next == nullptr ? ready_back_ : bucket->ready_next->ready_previous) =
      bucket->ready_previous;
}

bool BatchQueue::Push(Task* task, TimePoint now) {
  if (tasks_ >= limits_.max_tasks) return false;
  if (tasks_ > 0 && bytes_ + task->bytes > limits_.max_bytes) return false;
  if (task->rows > limits_.max_rows) task->alone = true;
  Bucket* bucket = FindBucket(task);
  task->bucket = bucket;
  task->enqueued = now;
  bucket->tasks.PushBack(task);
  bucket->rows += task->rows;
  arrivals_.PushBack(task);
  ++tasks_;
  bytes_ += task->bytes;
  SetReady(bucket, task->alone || bucket->rows >= limits_.max_rows);
  if (task->request->deadline != TimePoint::max()) {
    task->heap_index = deadlines_.size();
    deadlines_.push_back(task);
    HeapUp(task->heap_index);
  }
  return true;
}

void BatchQueue::Unlink(Task* task) {
  Bucket* bucket = std::exchange(task->bucket, nullptr);
  bucket->tasks.Remove(task);
  bucket->rows -= task->rows;
  arrivals_.Remove(task);
  --tasks_;
  bytes_ -= task->bytes;
  if (task->request->deadline != TimePoint::max()) HeapRemove(task->heap_index);
  if (bucket->tasks.empty()) {
    Free(bucket, task->hash);
  } else if (bucket->rows < limits_.max_rows) {
    SetReady(bucket, false);
  }
}

bool BatchQueue::Remove(Task* task) {
  if (task->bucket == nullptr) return false;
  Unlink(task);
  return true;
}

TimePoint BatchQueue::NextBatchTime() const {
  if (arrivals_.empty()) return TimePoint::max();
  if (ready_front_ != nullptr) return TimePoint::min();
  return arrivals_.front()->enqueued + limits_.timeout;
}

void BatchQueue::TakeBatch(TimePoint now, std::vector<Task*>* batch) {
  if (arrivals_.empty()) return;
  Bucket* bucket = ready_front_;
  if (now - arrivals_.front()->enqueued >= limits_.timeout) bucket = arrivals_.front()->bucket;
  if (bucket == nullptr) return;
  Task* task = bucket->tasks.front();
  int64_t rows = 0;
  do {
    Task* next = TaskList<&Task::peers>::Next(task);
    rows += task->rows;
    batch->push_back(task);
    Unlink(task);  // the last one frees the bucket
    task = next;
  } while (task != nullptr && rows + task->rows <= limits_.max_rows);
}

TimePoint BatchQueue::NextDeadline() const {
  return deadlines_.empty() ? TimePoint::max() : deadlines_[0]->request->deadline;
}

void BatchQueue::Expire(TimePoint now, std::vector<Task*>* expired) {
  while (!deadlines_.empty() && deadlines_[0]->request->deadline <= now) {
    Task* task = deadlines_[0];
    Unlink(task);
    expired->push_back(task);
  }
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
