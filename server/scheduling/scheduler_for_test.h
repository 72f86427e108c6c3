// A model of a few lines behind a scheduler without threads, and callers of it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {

// A model that doubles int64 rows. inputs[0]: the rows; inputs[1], when there is one, names the
// bucket. A negative value makes its whole run fail, and kEndless makes it last until the limits
// end it.
class Doubler : public Executor {
 public:
  static constexpr int64_t kEndless = 1'000'000;
  explicit Doubler(int slots = 1) : outputs_(slots), busy_(slots) {}

  int slots() const override { return static_cast<int>(outputs_.size()); }
  absl::StatusOr<Binding> Bind(const Inference& asked) override {
    const auto& inputs = asked.inputs;
    if (inputs[0].shape.rank() != 1) return absl::InvalidArgumentError("rank 1 expected");
    Binding binding;
    binding.key = this;
    binding.rows = inputs[0].shape.dim(0);
    binding.bytes = inputs[0].bytes();
    binding.output_bytes = output_bytes.value_or(inputs[0].bytes());
    if (inputs.size() > 1) binding.fixed = {1};
    binding.unbatchable = binding.rows == 0;
    binding.splittable = splittable;
    binding.quick = quick;
    binding.batch_gain = batch_gain;
    return binding;
  }
  Duration Expect(const Bound&, int64_t rows) const override { return rows * row_takes; }
  std::string Describe(const Bound&) const override { return "twice"; }
  absl::Status Run(int slot, absl::Span<const Bound* const> batch,
                   const RunLimits& limits) override {
    EXPECT_FALSE(busy_[slot].exchange(true)) << "two runs on one slot";
    const auto idle = absl::MakeCleanup([&] { busy_[slot] = false; });
    if (on_run) on_run(batch);
    if (on_limits) on_limits(limits);
    std::vector<int64_t>& out = outputs_[slot];
    out.clear();
    bool bad = false, endless = false;
    for (const Bound* bound : batch) {
      const TensorView& in = bound->asked->inputs[0];
      for (int64_t i = 0; i < in.elements(); ++i) {
        bad |= in.as<int64_t>()[i] < 0;
        endless |= in.as<int64_t>()[i] == kEndless;
        out.push_back(2 * in.as<int64_t>()[i]);
      }
    }
    if (limits.cancel != nullptr && limits.cancel->cancelled()) return absl::CancelledError("left");
    if (bad) return absl::OutOfRangeError("negative");
    if (endless && limits.deadline < TimePoint::max()) return absl::DeadlineExceededError("late");
    return absl::OkStatus();
  }
  void Outputs(int slot, const Bound& bound, int64_t first_row, TensorViews* views) override {
    views->push_back(
        {DType::kInt64, Shape({bound.binding.rows}), outputs_[slot].data() + first_row});
  }

  void Trim(int slot) override {
    EXPECT_FALSE(busy_[slot]) << "trimmed during a run";
    trimmed.push_back(slot);
  }

  bool quick = false;
  double batch_gain = 1;
  bool splittable = true;
  std::optional<int64_t> output_bytes;  // that a request is said to have
  Duration row_takes = Duration::zero();
  std::function<void(const RunLimits&)> on_limits;
  std::function<void(absl::Span<const Bound* const>)> on_run;
  std::vector<int> trimmed;  // slots, in order

 private:
  std::vector<std::vector<int64_t>> outputs_;
  std::vector<std::atomic<bool>> busy_;
};

// One caller's view of its request, which must be answered before this goes.
struct Call {
  bool requested = false;
  std::vector<int64_t> values;
  int64_t bucket = 0;
  std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
  std::atomic<int> answers{0};
  absl::Status status;
  Timings timings;
  std::vector<int64_t> result;
  std::thread::id answered_by;
  std::function<void()> on_answer;

  explicit Call(std::vector<int64_t> v, int64_t b = 0) : values(std::move(v)), bucket(b) {}
  ~Call() { EXPECT_TRUE(!requested || answers > 0) << "its answer would come to nobody"; }

  Request MakeRequest(TimePoint deadline = TimePoint::max()) {
    return MakeRequest(Shape({static_cast<int64_t>(values.size())}), deadline);
  }
  // Of rows that are said to have this shape.
  Request MakeRequest(const Shape& shape, TimePoint deadline = TimePoint::max()) {
    requested = true;
    const auto asked = std::make_shared<Inference>();
    asked->inputs = {{DType::kInt64, shape, values.data()}, {DType::kInt64, Shape(), &bucket}};
    Request request{.asked = asked, .deadline = deadline, .cancel = cancel};
    request.complete = [this](const absl::StatusOr<Outputs>& outputs, const Timings& took) {
      status = outputs.status();
      timings = took;
      answered_by = std::this_thread::get_id();
      if (outputs.ok()) {
        EXPECT_EQ(outputs->size(), 1u);
        const TensorView& output = (*outputs)[0];
        result.assign(output.as<int64_t>(), output.as<int64_t>() + output.elements());
      }
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

// A scheduler without threads and with a clock that stands still.
struct Stepped {
  explicit Stepped(const RequestQueue::Limits& limits = {}, int slots = 1,
                   Duration longest_run = Duration::max(),
                   Duration default_timeout = Duration::max()) {
    auto owned = std::make_unique<Doubler>(slots);
    executor = owned.get();
    executor->on_run = [this](absl::Span<const Bound* const> batch) {
      batches.emplace_back();
      for (const Bound* bound : batch)
        batches.back().push_back(bound->asked->inputs[0].as<int64_t>()[0]);
    };
    scheduler = std::make_unique<Scheduler>(std::move(owned),
                                            Scheduler::Options{.limits = limits,
                                                               .threads = 0,
                                                               .clock = &clock,
                                                               .name = "m",
                                                               .longest_run = longest_run,
                                                               .default_timeout = default_timeout});
  }
  void Drain() {
    while (scheduler->Step()) {
    }
  }
  FakeClock clock;
  Doubler* executor;
  std::vector<std::vector<int64_t>> batches;  // first values of the members
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace floe::server
