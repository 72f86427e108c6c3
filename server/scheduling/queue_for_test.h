// Requests of no model, for tests of the queue alone.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "server/scheduling/queue.h"

namespace floe::server {

inline const TimePoint kStart{std::chrono::hours(1)};
inline const int kKeys[4] = {};  // addresses to tell buckets apart

inline std::unique_ptr<Queued> MakeRequest(
    int key, int64_t rows = 1, TimePoint deadline = TimePoint::max(),
    int priority = kDefaultPriority,
    std::shared_ptr<const Inference> asked = std::make_shared<Inference>()) {
  auto request = std::make_unique<Queued>(
      Request{.asked = std::move(asked), .deadline = deadline, .priority = priority});
  request->binding.key = &kKeys[key];
  request->binding.rows = rows;
  request->binding.bytes = 10;
  return request;
}

// Whatever is left, before the requests go.
inline void Clear(RequestQueue& queue) {
  while (Queued* const request = queue.Oldest()) queue.Remove(request);
}

inline Batch TakeBatch(RequestQueue& queue, TimePoint now) {
  Batch batch;
  queue.TakeBatch(now, &batch);
  int64_t rows = 0;
  for (const Queued* request : batch.requests) rows += request->binding.rows;
  EXPECT_EQ(rows, batch.rows);
  return batch;
}

}  // namespace floe::server
