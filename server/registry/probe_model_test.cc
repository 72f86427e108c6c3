#include "server/registry/probe_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/executor/test_models_for_test.h"
#include "server/registry/lifecycle.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;

// It is loaded as any other model is, and a worker computes its answer, not the one who asks.
TEST(ProbeModel, AnswersOnAWorker) {
  const auto probe = LoadModel(ProbeConfig(), ProbeSource(), {}, MemoryBudget());
  ASSERT_TRUE(probe.ok()) << probe.status();
  FloatCall call({{Shape({1, 1}), {21}}}), below({{Shape({1, 1}), {-1}}});
  auto request = call.MakeRequest((*probe)->model());
  std::thread::id answered_by;
  request.complete = [&, inner = request.complete](const absl::StatusOr<Outputs>& outputs,
                                                   const Timings& timings) {
    answered_by = std::this_thread::get_id();
    inner(outputs, timings);
  };
  (*probe)->Submit(std::move(request));
  (*probe)->Submit(below.MakeRequest((*probe)->model()));
  (*probe)->Stop();
  ASSERT_TRUE(call.status.ok()) << call.status;
  EXPECT_THAT(call.result, ElementsAre(42));
  EXPECT_THAT(below.result, ElementsAre(0));
  EXPECT_NE(answered_by, std::this_thread::get_id());
}

TEST(ProbeModel, NobodyElseMayHaveItsName) {
  ModelConfig config = ProbeConfig();
  config.base_path = "/m";
  EXPECT_EQ(CheckModels({config}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace floe::server
