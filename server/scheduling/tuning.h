// The constants by which requests are admitted and batches formed.
#pragma once

#include "base/clock.h"

namespace floe::server::tuning {

// A request is refused when the time that is left is less than expected and one part in so many
// more. Under lasting overload a queue stays as long as it is allowed to be: at the very edge, all
// answers come a little too late for callers that count their way through the network.
inline constexpr int kLatenessMargin = 4;

// A request waits for others until one part in so many of what it may wait is left: its run, the
// thread that runs it and its answer's way may take longer than expected.
inline constexpr int kFlushMargin = 4;

// Of one request: sums of estimates stay far from overflow.
inline constexpr Duration kMostWork = std::chrono::minutes(15);

// While something runs, a quick request joins the queue where batches gain more than this.
inline constexpr double kInlineGain = 1.2;

// Of a new observation of a run's time. One run in ten thousand may be ten times slower (the
// machine was busy), and must not make the next hundred look hopeless.
inline constexpr double kLearningRate = 0.1;

// A kind of request that is always refused runs once in so long, so that its cost is learnt again.
inline constexpr Duration kProbeEvery = std::chrono::seconds(1);

// How long a caller's requests are batched apart after one of them failed.
inline constexpr Duration kQuarantine = std::chrono::seconds(1);

// Of the time after which a refused caller may try again: estimates for longer are worth little.
inline constexpr Duration kLongestRetry = std::chrono::seconds(10);

// The slowest run counts half as much after so long without one as slow.
inline constexpr Duration kForgetHalf = std::chrono::minutes(10);

// Fewer answers are sent by the time that another thread wakes.
inline constexpr size_t kHandOverFrom = 4;

// Of runs that are told to end, until they are left alone.
inline constexpr Duration kLastStep = std::chrono::seconds(1);

}  // namespace floe::server::tuning
