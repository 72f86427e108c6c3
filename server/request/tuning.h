// The constants by which requests are read, admitted, batched and run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace floe::server::tuning {

// --- Reading requests.

// Larger messages are decoded on threads beside the transport's, so many of them.
inline constexpr size_t kSmallMessage = size_t{1} << 20;
inline constexpr int kDecodeThreads = 2;

// Larger inputs are decoded by the worker that runs them. So are values that fill up a shape of
// more bytes: a request that waits should hold no more than was sent.
inline constexpr int64_t kDecodedAtOnce = int64_t{1} << 20;
inline constexpr int64_t kFilledAtOnce = int64_t{16} << 10;

// Smaller inputs are decoded without asking the memory limit.
inline constexpr int64_t kUnpaidInputBytes = int64_t{64} << 10;

// What clients of gRPC receive at most unless they ask for more.
inline constexpr size_t kUsualReplyLimit = size_t{4} << 20;

// Lines about slow requests, each second.
inline constexpr int kSlowLinesPerSecond = 10;

// --- Priorities and admission.

// A request goes before those one step more urgent that came that much later.
inline constexpr Duration kPriorityAging = std::chrono::milliseconds(200);

// A request is refused when the time that is left is less than expected and one part in so many
// more. Under lasting overload a queue stays as long as it is allowed to be. At the very edge, all
// answers come a little too late for callers who count their way through the network.
inline constexpr int kLatenessMargin = 4;

// Of one request: sums of estimates stay far from overflow.
inline constexpr Duration kMostWork = std::chrono::minutes(15);

// Of the time after which a refused caller may try again: estimates for longer are worth little.
inline constexpr Duration kLongestRetry = std::chrono::seconds(10);

// --- Batching.

// A request waits for others until one part in so many of what it may wait is left. Its run and the
// way of its answer may take longer than expected.
inline constexpr int kFlushMargin = 4;

// While something runs, a quick request joins the queue where batches gain more than this.
inline constexpr double kInlineGain = 1.2;

// How long a caller is in quarantine after one of its requests failed.
inline constexpr Duration kQuarantine = std::chrono::seconds(1);

// Fewer answers of a batch are sent by the time that another thread wakes.
inline constexpr size_t kHandOverFrom = 4;

// Large requests are computed beside each other while their inputs and outputs take no more.
inline constexpr int64_t kMostJoinedBytes = int64_t{256} << 20;

// --- What runs taught.

// The weight of a new observation of a run's time. One run in ten thousand may be ten times slower
// (the machine was busy), and must not make the next hundred look hopeless.
inline constexpr double kLearningRate = 0.1;

// Requests that are always refused run once in so long, so that their cost is learnt again.
inline constexpr Duration kProbeEvery = std::chrono::seconds(1);

// Cost profiles that a version keeps.
inline constexpr size_t kCostProfiles = 64;

// The slowest run counts half as much after so long without one as slow.
inline constexpr Duration kForgetHalf = std::chrono::minutes(10);

// A run is stuck after so long, or after so many times the slowest run.
inline constexpr Duration kStuckAfter = std::chrono::seconds(10);
inline constexpr int kStuckTimes = 20;

// --- Slots and the end.

// A slot that is idle for so long gives back its memory. One that only the warm-up has used does so
// sooner: of many models that are loaded at once, few are asked at once.
inline constexpr Duration kTrimAfter = std::chrono::minutes(1);
inline constexpr Duration kTrimUnaskedAfter = std::chrono::seconds(1);

// For runs that were cancelled by Stop, until they are left alone.
inline constexpr Duration kLastStep = std::chrono::seconds(1);

// --- Warm-up, and what it chooses.

// The estimates of a run grow by this factor in rows.
inline constexpr int64_t kEstimateEvery = 4;

// Where data decide about the work, a run of so many rows shows what each adds, if it is not
// expected to take longer. A trial load does it too.
inline constexpr int64_t kFewRowsOfFirstRun = 8;
inline constexpr double kFirstRunsMicros = 50'000;

// Of a batch beyond its run: waking a worker, forming the batch, and finding caches full of what
// other threads did. From 1 to 8 rows it was 60 us of CPU for a network of 60 us a row. For one
// with 13 MB of weights it was 100 us.
inline constexpr double kBatchOverheadMicros = 80;

// Batches of almost the best rate are as good. Larger ones than need be take no more than this.
inline constexpr double kNearlyBest = 0.94;
inline constexpr double kShortRunMicros = 20'000;
inline constexpr int64_t kFewRows = 64;

// The most rows of a batch whose non-batch dimensions had to be guessed, or whose work depends on
// data.
inline constexpr int64_t kRowsOfGuesses = 64;

// Threads run models that are as quick as this once before they serve.
inline constexpr double kFirstRunMicros = 2000;

// Slots run a largest batch that is as quick as this once. For others they get the memory alone.
inline constexpr double kFirstBatchMicros = 100;

// Bounds of a batch whose size the estimates choose.
inline constexpr int64_t kMostRows = 1024;
inline constexpr int64_t kMostArenaBytes = int64_t{256} << 20;

// --- Bounds of a queue that the configuration leaves open.

inline constexpr int64_t kLeastQueuedRows = 64;  // times max_enqueued_batches, for small batches
inline constexpr int64_t kQueuedRequests = 4096;
inline constexpr size_t kQueuedBytes = size_t{1} << 30;

}  // namespace floe::server::tuning
