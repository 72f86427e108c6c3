#include "server/batching/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

namespace floe::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model that doubles int64 rows. inputs[0]: the rows; inputs[1], when there is one, names the
// bucket. A negative value makes its whole run fail.
class Doubler : public BatchRunner {
 public:
  explicit Doubler(int slots = 1) : outputs_(slots), busy_(slots) {}

  int slots() const override { return static_cast<int>(outputs_.size()); }
  absl::Status Admit(Task* task) override {
    const auto& inputs = task->request->inputs;
    if (inputs[0].shape.rank() != 1) return absl::InvalidArgumentError("rank 1 expected");
    task->key = this;
    task->rows = inputs[0].shape.dim(0);
    task->bytes = inputs[0].bytes();
    if (inputs.size() > 1) task->fixed = {inputs[1]};
    task->alone = task->rows == 0;
    task->splittable = splittable;
    task->cheap = cheap;
    return absl::OkStatus();
  }
  Duration Expect(const Task&, int64_t rows) const override { return rows * row_takes; }
  std::string Describe(const Task&) const override { return "twice"; }
  absl::Status Run(int slot, absl::Span<const Slice> batch, const RunLimits& limits) override {
    EXPECT_FALSE(busy_[slot].exchange(true)) << "two runs on one slot";
    if (on_run) on_run(batch);
    if (on_limits) on_limits(limits);
    std::vector<int64_t>& out = outputs_[slot];
    out.clear();
    bool bad = false;
    for (const Slice& slice : batch) {
      const TensorView& in = slice.task->request->inputs[0];
      for (int64_t i = slice.first; i < slice.first + slice.rows; ++i) {
        bad |= in.as<int64_t>()[i] < 0;
        out.push_back(2 * in.as<int64_t>()[i]);
      }
    }
    busy_[slot] = false;
    if (limits.cancel != nullptr && limits.cancel->cancelled()) return absl::CancelledError("left");
    if (bad) return absl::OutOfRangeError("negative");
    return absl::OkStatus();
  }
  void Outputs(int slot, const Slice& slice, int64_t first_row, OutputViews* views) override {
    views->push_back({DType::kInt64, Shape({slice.rows}), outputs_[slot].data() + first_row});
  }

  void Trim(int slot) override {
    EXPECT_FALSE(busy_[slot]) << "trimmed during a run";
    trimmed.push_back(slot);
  }

  bool cheap = false;
  bool splittable = true;
  Duration row_takes = Duration::zero();
  std::function<void(const RunLimits&)> on_limits;
  std::function<void(absl::Span<const Slice>)> on_run;
  std::vector<int> trimmed;  // slots, in order

 private:
  std::vector<std::vector<int64_t>> outputs_;
  std::vector<std::atomic<bool>> busy_;
};

// One caller's view of its request.
struct Call {
  std::vector<int64_t> values;
  int64_t bucket = 0;
  std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
  std::atomic<int> answers{0};
  absl::Status status;
  std::vector<int64_t> result;
  std::thread::id answered_by;
  std::function<void()> on_answer;

  explicit Call(std::vector<int64_t> v, int64_t b = 0) : values(std::move(v)), bucket(b) {}

  std::unique_ptr<InferRequest> Request(TimePoint deadline = TimePoint::max()) {
    auto request = std::make_unique<InferRequest>();
    request->inputs = {{DType::kInt64, Shape({static_cast<int64_t>(values.size())}), values.data()},
                       {DType::kInt64, Shape(), &bucket}};
    request->deadline = deadline;
    request->cancel = cancel;
    request->done = [this](const absl::Status& s, absl::Span<const TensorView> outputs) {
      status = s;
      answered_by = std::this_thread::get_id();
      EXPECT_EQ(outputs.size(), s.ok() ? 1u : 0u);
      if (s.ok())
        result.assign(outputs[0].as<int64_t>(), outputs[0].as<int64_t>() + outputs[0].elements());
      if (on_answer) on_answer();
      answers.fetch_add(1, std::memory_order_release);
    };
    return request;
  }
  // Answered once, with its own rows doubled.
  void ExpectDoubled() const {
    ASSERT_EQ(answers.load(), 1);
    ASSERT_TRUE(status.ok()) << status;
    std::vector<int64_t> expected;
    for (const int64_t v : values) expected.push_back(2 * v);
    EXPECT_EQ(result, expected);
  }
  void ExpectCode(absl::StatusCode code) const {
    ASSERT_EQ(answers.load(), 1);
    EXPECT_EQ(status.code(), code) << status;
  }
};

// A batcher without threads and with a clock that stands still.
struct Stepped {
  explicit Stepped(BatchQueue::Limits limits = {}, int slots = 1) {
    auto owned = std::make_unique<Doubler>(slots);
    runner = owned.get();
    runner->on_run = [this](absl::Span<const Slice> batch) {
      batches.emplace_back();
      for (const Slice& slice : batch)
        batches.back().push_back(slice.task->request->inputs[0].as<int64_t>()[slice.first]);
    };
    batcher = std::make_unique<Batcher>(
        std::move(owned),
        Batcher::Options{.limits = limits, .threads = 0, .clock = &clock, .name = "m"});
  }
  void Drain() {
    while (batcher->Step()) {
    }
  }
  FakeClock clock;
  Doubler* runner;
  std::vector<std::vector<int64_t>> batches;  // first values of the members
  std::unique_ptr<Batcher> batcher;
};

TEST(Batcher, RowsGoBackToTheirOwners) {
  Stepped s;
  Call a({1, 2}), b({3}), c({4, 5, 6}), other({7}, 1);
  for (Call* call : {&a, &b, &other, &c}) s.batcher->Submit(call->Request());
  EXPECT_EQ(a.answers, 0);
  s.Drain();
  for (Call* call : {&a, &b, &c, &other}) call->ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 3, 4), ElementsAre(7)));
}

TEST(Batcher, SlotsThatStayIdleAreTrimmedOnce) {
  Stepped s({}, 2);
  s.batcher->TrimIdle(s.clock.Now() + std::chrono::hours(1));
  EXPECT_THAT(s.runner->trimmed, ElementsAre());  // none was used
  Call a({1}), b({2});
  s.batcher->Submit(a.Request());
  s.Drain();
  s.batcher->TrimIdle(s.clock.Now() + seconds(59));
  EXPECT_THAT(s.runner->trimmed, ElementsAre());
  s.batcher->TrimIdle(s.clock.Now() + seconds(60));
  s.batcher->TrimIdle(s.clock.Now() + seconds(120));
  EXPECT_THAT(s.runner->trimmed, ElementsAre(0));
  s.batcher->Submit(b.Request());
  s.Drain();
  b.ExpectDoubled();
  s.batcher->TrimIdle(s.clock.Now() + seconds(60));
  EXPECT_THAT(s.runner->trimmed, ElementsAre(0, 1));  // the slot with memory goes first
}

TEST(Batcher, WhatAdmitRefusesNeverQueues) {
  Stepped s;
  Call call({1});
  auto request = call.Request();
  request->inputs[0].shape = Shape({1, 1});
  s.batcher->Submit(std::move(request));
  call.ExpectCode(absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(s.batcher->Step());
}

TEST(Batcher, AFailedBatchRunsOneByOne) {
  Stepped s;
  Call good({1, 2}), bad({-1}), also_good({3});
  for (Call* call : {&good, &bad, &also_good}) s.batcher->Submit(call->Request());
  s.Drain();
  good.ExpectDoubled();
  also_good.ExpectDoubled();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_THAT(s.batches,
              ElementsAre(ElementsAre(1, -1, 3), ElementsAre(1), ElementsAre(-1), ElementsAre(3)));
}

TEST(Batcher, DeadlinesInTheQueue) {
  Stepped s;
  Call late({1}), fine({2}), hopeless({3});
  s.batcher->Submit(hopeless.Request(s.clock.Now()));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  s.batcher->Submit(late.Request(s.clock.Now() + milliseconds(5)));
  s.batcher->Submit(fine.Request(s.clock.Now() + milliseconds(50)));
  s.clock.Advance(milliseconds(5));
  s.Drain();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  fine.ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(2)));
}

TEST(Batcher, CancellationTakesARequestOut) {
  Stepped s;
  Call before({1}), queued({2}), stays({3}), after({4});
  before.cancel->Cancel();
  s.batcher->Submit(before.Request());
  before.ExpectCode(absl::StatusCode::kCancelled);
  s.batcher->Submit(queued.Request());
  s.batcher->Submit(stays.Request());
  s.batcher->Submit(after.Request());
  // The answer must not come on the cancelling thread, where the token's lock is held.
  queued.on_answer = [&queued] { queued.cancel->ClearListener(); };
  queued.cancel->Cancel();
  EXPECT_EQ(queued.answers, 0);
  EXPECT_EQ(s.batcher->Progress().queued, 2u);
  s.Drain();
  queued.ExpectCode(absl::StatusCode::kCancelled);
  stays.ExpectDoubled();
  after.ExpectDoubled();
  after.cancel->Cancel();  // too late to matter
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(3, 4)));
}

TEST(Batcher, FullQueueRefuses) {
  Stepped s({.max_rows = 1, .max_tasks = 2});
  Call a({1}), b({2}), c({3});
  for (Call* call : {&a, &b, &c}) s.batcher->Submit(call->Request());
  c.ExpectCode(absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(c.status.message()), HasSubstr("'m' is full (2 requests"));
  s.Drain();
  a.ExpectDoubled();
  b.ExpectDoubled();
}

TEST(Batcher, StopAnswersEverythingOnce) {
  Stepped s;
  Call queued({1}), refused({2});
  s.batcher->Submit(queued.Request());
  s.batcher->Stop();
  queued.ExpectCode(absl::StatusCode::kUnavailable);
  s.batcher->Submit(refused.Request());
  refused.ExpectCode(absl::StatusCode::kUnavailable);
  s.batcher->Stop();
}

TEST(Batcher, CheapRequestsRunOnTheCallersThreadWhenNobodyWaits) {
  Stepped s;
  s.runner->cheap = true;
  Call inline_call({1});
  s.batcher->Submit(inline_call.Request());
  inline_call.ExpectDoubled();
  EXPECT_EQ(inline_call.answered_by, std::this_thread::get_id());

  s.runner->cheap = false;
  Call queued({2}), behind({3});
  s.batcher->Submit(queued.Request());
  s.runner->cheap = true;
  s.batcher->Submit(behind.Request());  // must not overtake
  EXPECT_EQ(behind.answers, 0);
  s.Drain();
  queued.ExpectDoubled();
  behind.ExpectDoubled();

  // While the only slot is taken (here: from within its run's answer) a cheap request queues.
  Call outer({4}), nested({5});
  outer.on_answer = [&] { s.batcher->Submit(nested.Request()); };
  s.batcher->Submit(outer.Request());
  EXPECT_EQ(nested.answers, 0);
  s.Drain();
  nested.ExpectDoubled();
}

TEST(Batcher, ProgressShowsWorkThatDoesNotMove) {
  Stepped s;
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  Call a({1});
  s.batcher->Submit(a.Request());
  s.clock.Advance(seconds(10));
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.runner->on_run = [&s](absl::Span<const Slice>) {
    EXPECT_EQ(s.batcher->Progress().running, 1);
    s.clock.Advance(seconds(3));
  };
  s.Drain();
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now())) << "nothing waits";
  EXPECT_EQ(s.batcher->Progress().slowest, Duration(seconds(3)));
  Call b({1});
  s.batcher->Submit(b.Request());
  s.clock.Advance(seconds(60));
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now())) << "20 x the slowest run, 3 s";
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.Drain();
}

TEST(Batcher, ALargeRequestMayTakeAsManyTimesLonger) {
  Stepped s({.max_rows = 2});
  s.runner->splittable = false;
  bool stuck_at_60 = true, stuck_at_601 = false;
  s.runner->on_run = [&](absl::Span<const Slice> batch) {
    if (batch[0].rows <= 2) return s.clock.Advance(seconds(3));
    s.clock.Advance(seconds(60));
    stuck_at_60 = IsStuck(s.batcher->Progress(), s.clock.Now());
    s.clock.Advance(seconds(541));
    stuck_at_601 = IsStuck(s.batcher->Progress(), s.clock.Now());
  };
  Call small({1, 2}), large(std::vector<int64_t>(20, 1));
  s.batcher->Submit(small.Request());
  s.Drain();
  s.batcher->Submit(large.Request());
  s.Drain();
  EXPECT_FALSE(stuck_at_60);
  EXPECT_TRUE(stuck_at_601) << "20 x 3 s x 10 batches";
  EXPECT_EQ(s.batcher->Progress().slowest, Duration(std::chrono::milliseconds(60100)))
      << "of as many rows as a batch has";
}

TEST(Batcher, ALargeRequestRunsInPartsAndComesBackWhole) {
  Stepped s({.max_rows = 4});
  Call before({1, 2, 3}), large({10, 11, 12, 13, 14, 15, 16}), after({20, 21});
  for (Call* call : {&before, &large, &after}) s.batcher->Submit(call->Request());
  s.Drain();
  for (Call* call : {&before, &large, &after}) call->ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 10), ElementsAre(11), ElementsAre(15, 20)));
  EXPECT_EQ(s.batcher->Stats().batches.rows, 12u);
}

TEST(Batcher, APartThatFailsEndsItsRequestAndNoOther) {
  Stepped s({.max_rows = 4});
  Call good({1, 2, 3}), bad({10, 11, 12, -1, 14, 15, 16, 17, 18}), after({20});
  for (Call* call : {&good, &bad, &after}) s.batcher->Submit(call->Request());
  s.Drain();
  good.ExpectDoubled();
  after.ExpectDoubled();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 10), ElementsAre(11), ElementsAre(20)))
      << "what is left of it is not computed";
}

TEST(Batcher, ALargeRequestLeavesBetweenItsParts) {
  Stepped s({.max_rows = 2});
  Call left({1, 2, 3, 4, 5, 6}), late({7, 8, 9, 10, 11});
  s.batcher->Submit(left.Request());
  s.batcher->Submit(late.Request(s.clock.Now() + milliseconds(5)));
  EXPECT_TRUE(s.batcher->Step());
  left.cancel->Cancel();
  EXPECT_TRUE(s.batcher->Step());
  left.ExpectCode(absl::StatusCode::kCancelled);
  s.clock.Advance(milliseconds(5));
  s.Drain();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1), ElementsAre(7)));

  // The same while a part runs: the run's end answers.
  Call during({1, 2, 3, 4});
  s.runner->on_run = [&during](absl::Span<const Slice>) { during.cancel->Cancel(); };
  s.batcher->Submit(during.Request());
  EXPECT_TRUE(s.batcher->Step());
  during.ExpectCode(absl::StatusCode::kCancelled);
  EXPECT_FALSE(s.batcher->Step());
}

TEST(Batcher, ARunIsGivenUpWhenNobodyWaitsForIt) {
  Stepped s;
  Call a({1}), b({2}), alone({3});
  const TimePoint soon = s.clock.Now() + milliseconds(5), later = s.clock.Now() + milliseconds(9);
  bool after_one = true, after_all = false;
  s.runner->on_limits = [&](const RunLimits& limits) {
    EXPECT_EQ(limits.deadline, later) << "until then somebody waits";
    EXPECT_EQ(limits.clock, &s.clock);
    a.cancel->Cancel();
    after_one = limits.cancel->cancelled();
    b.cancel->Cancel();
    after_all = limits.cancel->cancelled();
  };
  s.batcher->Submit(a.Request(soon));
  s.batcher->Submit(b.Request(later));
  s.Drain();
  EXPECT_FALSE(after_one);
  EXPECT_TRUE(after_all);
  a.ExpectCode(absl::StatusCode::kCancelled);
  b.ExpectCode(absl::StatusCode::kCancelled);
  EXPECT_EQ(s.batches.size(), 1u) << "it does not run again";
  s.runner->on_limits = [&](const RunLimits& limits) {
    EXPECT_EQ(limits.cancel, alone.cancel.get());
    EXPECT_EQ(limits.deadline, TimePoint::max());
  };
  s.batcher->Submit(alone.Request());
  s.Drain();
  alone.ExpectDoubled();
}

TEST(Batcher, ACallerWhoFailsABatchIsBatchedApartForASecond) {
  Stepped s;
  Call bad({-1}), good({1});
  const auto submit = [&s](Call& call, uint64_t caller) {
    auto request = call.Request();
    request->caller = caller;
    s.batcher->Submit(std::move(request));
  };
  submit(bad, 7);
  submit(good, 8);
  s.Drain();
  EXPECT_EQ(s.batcher->Stats().reruns, 1u);
  good.ExpectDoubled();
  s.batches.clear();
  Call again({-2}), more({2}), other({3}), unknown({4});
  submit(again, 7);
  submit(other, 8);
  submit(more, 7);
  submit(unknown, 0);
  s.Drain();
  again.ExpectCode(absl::StatusCode::kOutOfRange);
  for (Call* call : {&more, &other, &unknown}) call->ExpectDoubled();
  EXPECT_THAT(s.batches,
              ElementsAre(ElementsAre(-2, 2), ElementsAre(-2), ElementsAre(2), ElementsAre(3, 4)));
  s.clock.Advance(seconds(1));
  s.batches.clear();
  Call forgiven({5}), with({6});
  submit(forgiven, 7);
  submit(with, 8);
  s.Drain();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(5, 6)));
}

TEST(Batcher, RefusesWhatIsExpectedToBeLate) {
  Stepped s({.max_rows = 2});
  s.runner->row_takes = milliseconds(10);
  s.runner->on_run = [&s](absl::Span<const Slice> batch) {
    for (const Slice& slice : batch) s.clock.Advance(milliseconds(10) * slice.rows);
  };
  const auto due = [&s](int ms) { return s.clock.Now() + milliseconds(ms); };
  Call first({1}), second({2}), third({3}), fits({4}), hopeless({5}), patient({6});
  s.batcher->Submit(first.Request(due(1)));  // nothing waits, so it is tried
  s.batcher->Submit(second.Request());
  s.batcher->Submit(third.Request());
  s.batcher->Submit(hopeless.Request(due(39)));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(hopeless.status.message()), HasSubstr("expected to take 40 ms"));
  s.batcher->Submit(fits.Request(due(40)));
  s.batcher->Submit(patient.Request());
  EXPECT_EQ(s.batcher->Stats().refused_late, 1u);
  s.Drain();
  for (Call* call : {&second, &third, &fits, &patient}) call->ExpectDoubled();

  // Urgent requests do not count what they will overtake.
  Call slow({1, 2}), urgent({3});
  s.batcher->Submit(slow.Request());
  auto request = urgent.Request(due(11));
  request->priority = 1;
  s.batcher->Submit(std::move(request));
  s.Drain();
  urgent.ExpectDoubled();
}

TEST(Batcher, ExpectationsFollowWhatRunsTake) {
  Stepped s({.max_rows = 1});
  s.runner->row_takes = milliseconds(10);
  s.runner->on_run = [&s](absl::Span<const Slice>) { s.clock.Advance(milliseconds(20)); };
  for (int i = 0; i < 100; ++i) {
    Call call({1});
    s.batcher->Submit(call.Request());
    s.Drain();
  }
  Call ahead({1}), hopeless({2}), fits({3});
  s.batcher->Submit(ahead.Request());
  s.batcher->Submit(hopeless.Request(s.clock.Now() + milliseconds(38)));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  s.batcher->Submit(fits.Request(s.clock.Now() + milliseconds(41)));
  s.Drain();
  fits.ExpectDoubled();
}

TEST(Batcher, CountsWhatHappened) {
  Stepped s({.max_rows = 2, .max_tasks = 3});
  Call a({1}), b({2}), c({3}), full({4}), left({5}), late({6}), bad({-1});
  for (Call* call : {&a, &b, &c, &full}) s.batcher->Submit(call->Request());
  s.Drain();
  s.batcher->Submit(left.Request());
  s.batcher->Submit(late.Request(s.clock.Now() + milliseconds(1)));
  s.batcher->Submit(bad.Request());
  left.cancel->Cancel();
  s.clock.Advance(milliseconds(1));
  s.Drain();
  const BatcherStats stats = s.batcher->Stats();
  EXPECT_EQ(stats.answered, 3u);
  EXPECT_EQ(stats.refused_full, 1u);
  EXPECT_EQ(stats.cancelled, 1u);
  EXPECT_EQ(stats.expired, 1u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.batches.batches, 3u);
  EXPECT_EQ(stats.batches.requests, 4u);
  EXPECT_EQ(stats.batches.closed[static_cast<int>(BatchClose::kFull)], 1u);
  EXPECT_EQ(stats.batches.closed[static_cast<int>(BatchClose::kIdle)], 2u);
  ASSERT_EQ(stats.kinds.size(), 1u);
  EXPECT_EQ(stats.kinds[0].first, "twice");
  EXPECT_EQ(stats.kinds[0].second.rows, 4u);
}

// Random schedules of arrivals, departures, deadlines, failures and runs: every request is answered
// exactly once and with its own rows, batches keep their bounds and never mix buckets, and requests
// of a bucket and a priority start in order of arrival.
class RandomSchedule {
 public:
  explicit RandomSchedule(uint32_t seed)
      : rng_(seed),
        max_rows_(1 + Pick(8)),
        stepped_({.max_rows = max_rows_, .timeout = microseconds(Pick(2) * 30), .max_tasks = 10},
                 1 + Pick(2)) {
    stepped_.runner->on_run = [this](absl::Span<const Slice> batch) { CheckRun(batch); };
    stepped_.runner->row_takes = microseconds(Pick(3));
  }

  void Run() {
    for (int step = 0; step < 100; ++step) {
      stepped_.clock.Advance(microseconds(Pick(10)));
      const int action = Pick(10);
      if (action < 5) {
        Submit(step);
      } else if (action < 9) {
        stepped_.batcher->Step();
      } else if (!calls_.empty()) {
        calls_[Pick(static_cast<int>(calls_.size()))]->cancel->Cancel();
      }
    }
    stepped_.Drain();
    stepped_.batcher->Stop();  // what still waits for fuller batches
    uint64_t answered = 0;
    for (const auto& call : calls_) {
      ASSERT_EQ(call->answers, 1);
      answered += call->status.ok();
      if (call->status.ok()) call->ExpectDoubled();
      const bool bad = std::any_of(call->values.begin(), call->values.end(),
                                   [](int64_t value) { return value < 0; });
      ASSERT_FALSE(bad && call->status.ok());
      ASSERT_TRUE(bad || !absl::IsOutOfRange(call->status)) << "failed for another's rows";
    }
    const BatcherStats stats = stepped_.batcher->Stats();
    EXPECT_EQ(stats.answered, answered);
    EXPECT_EQ(stats.answered + stats.failed + stats.refused_full + stats.refused_late +
                  stats.refused_stopped + stats.expired + stats.cancelled,
              calls_.size());
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % n); }

  void Submit(int step) {
    const int64_t first = 1000 * (step + 1);
    std::vector<int64_t> values(1 + Pick(10));
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<int64_t>(i);
    if (Pick(12) == 0) values[Pick(static_cast<int>(values.size()))] = -1;
    calls_.push_back(std::make_unique<Call>(values, Pick(3)));
    stepped_.runner->cheap = Pick(3) == 0;
    stepped_.runner->splittable = Pick(2) == 0;
    auto request = calls_.back()->Request(
        Pick(3) == 0 ? stepped_.clock.Now() + microseconds(Pick(40)) : TimePoint::max());
    request->priority = Pick(2) == 0 ? kDefaultPriority : 1 + Pick(kPriorities);
    request->caller = Pick(4);
    stepped_.batcher->Submit(std::move(request));
  }

  void CheckRun(absl::Span<const Slice> batch) {
    int64_t rows = 0;
    for (const Slice& slice : batch) {
      rows += slice.rows;
      const Task& task = *slice.task;
      EXPECT_EQ(*task.request->inputs[1].as<int64_t>(),
                *batch[0].task->request->inputs[1].as<int64_t>());
      EXPECT_EQ(task.apart, batch[0].task->apart);
      if (task.alone) continue;  // in no bucket
      const int64_t arrival = task.request->inputs[0].as<int64_t>()[0];
      if (arrival < 0 ||
          !started_.insert(task.request->inputs[0].as<int64_t>() + slice.first).second)
        continue;  // once more, one by one
      int64_t& last =
          last_started_[{*task.request->inputs[1].as<int64_t>(), task.level, task.apart}];
      EXPECT_GE(arrival, last);
      last = arrival;
    }
    EXPECT_TRUE(rows <= max_rows_ || (batch.size() == 1 && !batch[0].task->splittable));
  }

  std::mt19937 rng_;
  const int64_t max_rows_;
  std::vector<std::unique_ptr<Call>> calls_;
  Stepped stepped_;
  std::set<const int64_t*> started_;  // first values of what ran
  std::map<std::tuple<int64_t, int, uint64_t>, int64_t> last_started_;
};

TEST(Batcher, RandomSchedules) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomSchedule(seed).Run();
    if (HasFailure()) return;
  }
}

// Real threads: callers, cancellers, deadlines, inline runs, several workers and a Stop in the
// middle of it.
TEST(Batcher, ManyThreads) {
  for (const int workers : {1, 2, 4}) {
    SCOPED_TRACE(workers);
    auto runner = std::make_unique<Doubler>(workers + 1);
    runner->cheap = workers == 2;
    auto batcher = std::make_unique<Batcher>(
        std::move(runner),
        Batcher::Options{.limits = {.max_rows = 8,
                                    .timeout = microseconds(workers == 4 ? 200 : 0),
                                    .max_tasks = 64},
                         .threads = workers,
                         .name = "stress"});
    constexpr int kCallers = 4, kCalls = 400;
    std::vector<std::vector<std::unique_ptr<Call>>> calls(kCallers);
    std::vector<std::thread> threads;
    for (int t = 0; t < kCallers; ++t) {
      for (int i = 0; i < kCalls; ++i)
        calls[t].push_back(std::make_unique<Call>(
            std::vector<int64_t>(1 + i % 3, i % 50 == 7 ? -1 : 100 * t + i), i % 2));
      threads.emplace_back([&, t] {
        for (int i = 0; i < kCalls; ++i) {
          Call& call = *calls[t][i];
          const Duration patience = i % 7 == 0 ? Duration(microseconds(50)) : Duration(seconds(60));
          batcher->Submit(call.Request(Clock::Steady().Now() + patience));
          if (i % 11 == 0) call.cancel->Cancel();
          if (i % 16 == 0)
            while (call.answers.load(std::memory_order_acquire) == 0) std::this_thread::yield();
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(IsStuck(batcher->Progress(), Clock::Steady().Now()));
        calls[i % kCallers][(i * 37) % kCalls]->cancel->Cancel();
      }
      while (calls[0][kCalls / 2]->answers.load() == 0) std::this_thread::yield();
      if (workers == 4) batcher->Stop();
    });
    for (std::thread& thread : threads) thread.join();
    batcher->Stop();
    int served = 0;
    for (const auto& caller : calls)
      for (const auto& call : caller) {
        ASSERT_EQ(call->answers.load(std::memory_order_acquire), 1);
        if (call->status.ok()) call->ExpectDoubled();
        served += call->status.ok();
        if (call->status.code() == absl::StatusCode::kOutOfRange) {
          EXPECT_EQ(call->values[0], -1);
        }
      }
    EXPECT_GT(served, 0);
  }
}

// A worker that is busy must not keep late or abandoned requests waiting for their answer.
TEST(Batcher, TimerAnswersWhileTheWorkerIsBusy) {
  std::atomic<bool> go{false};
  auto runner = std::make_unique<Doubler>();
  runner->on_run = [&go](absl::Span<const Slice>) {
    while (!go) std::this_thread::yield();
  };
  Batcher batcher(std::move(runner), {.threads = 1, .name = "busy"});
  Call busy({1}), late({2}), left({3}), waits({4});
  batcher.Submit(busy.Request());
  while (batcher.Progress().running == 0) std::this_thread::yield();
  batcher.Submit(waits.Request(Clock::Steady().Now() + seconds(600)));
  batcher.Submit(left.Request());
  left.cancel->Cancel();
  while (left.answers.load() == 0) std::this_thread::yield();
  // The timer sleeps now, for ten minutes: an earlier deadline must wake it.
  const TimePoint start = Clock::Steady().Now();
  batcher.Submit(late.Request(start + milliseconds(20)));
  while (late.answers.load() == 0) std::this_thread::yield();
  EXPECT_GE(Clock::Steady().Now(), start + milliseconds(20));
  EXPECT_EQ(busy.answers, 0);
  EXPECT_EQ(waits.answers, 0);
  go = true;
  batcher.Stop();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  left.ExpectCode(absl::StatusCode::kCancelled);
  busy.ExpectDoubled();
  waits.ExpectDoubled();
}

}  // namespace
}  // namespace floe::server
