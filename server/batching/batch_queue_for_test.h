// Tasks of no model, for tests of the queue alone.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "server/batching/batch_queue.h"

namespace floe::server {

inline const TimePoint kStart{std::chrono::hours(1)};
inline const int kKeys[4] = {};  // addresses to tell buckets apart

inline std::unique_ptr<Task> MakeTask(int key, int64_t rows = 1,
                                      TimePoint deadline = TimePoint::max()) {
  auto task = std::make_unique<Task>();
  task->request = std::make_unique<InferRequest>();
  task->request->deadline = deadline;
  task->key = &kKeys[key];
  task->rows = rows;
  task->bytes = 10;
  return task;
}

inline Batch TakeBatch(BatchQueue& queue, TimePoint now) {
  Batch batch;
  queue.TakeBatch(now, &batch);
  int64_t rows = 0;
  for (const Slice& slice : batch.slices) rows += slice.rows;
  EXPECT_EQ(rows, batch.rows);
  return batch;
}

}  // namespace floe::server
