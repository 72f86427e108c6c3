// The arena of a whole model against what must be alive at once.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/local_model.h"
#include "runtime/test_memory.h"

namespace floe::cli {
namespace {

namespace fs = std::filesystem;

TEST(Arena, MobilenetTakesLittleMoreThanItsLargestPair) {
  const fs::path path =
      fs::path(FLOE_SOURCE_DIR) / ".." / "shared" / "models" / "mobilenet_v2" / "graph.pb";
  if (!fs::exists(path)) GTEST_SKIP() << "needs ../shared";
  const auto model = LoadLocal(path.string(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto made = MakeUpCall(*model->signature, {{1}, /*unknown_dim=*/224});
  ASSERT_TRUE(made.ok()) << made.status();
  const BoundCall* const call = &made->call;
  ASSERT_FALSE(call->plan->has_dynamic_steps());
  const auto pair = static_cast<double>(LargestLivePair(*call->plan, 1));
  const auto arena = static_cast<double>(call->plan->ArenaBytes(1));
  RecordProperty("arena_over_pair", std::to_string(arena / pair));
  EXPECT_GT(pair, 1e6);
  EXPECT_LE(arena, 1.3 * pair);
  EXPECT_GE(arena, pair);  // or the pair is not one
}

}  // namespace
}  // namespace floe::cli
