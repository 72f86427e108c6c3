// Fibers as machines other than x86-64 have them. Those of this machine run all other tests.
#define FLOE_FIBER_BY_UCONTEXT
#define Fiber UcontextFiber
#include "kernels/cuda/fiber.cc"

#include <gtest/gtest.h>

#include <vector>

namespace floe::cuda {
namespace {

// Two fibers that take turns.
struct Turns {
  UcontextFiber host;
  UcontextFiber* fibers[2] = {};
  int running = 0;
  std::vector<int> seen;
};

void TakeTurns(void* arg) {
  auto* const turns = static_cast<Turns*>(arg);
  const int self = turns->running;
  for (int round = 0; round < 3; ++round) {
    turns->seen.push_back(10 * self + round);
    if (round == 2 && self == 1) break;
    turns->running = 1 - self;
    UcontextFiber::Switch(turns->fibers[self], turns->fibers[1 - self]);
  }
  UcontextFiber::Leave(turns->fibers[self], &turns->host);
}

TEST(UcontextFiberTest, GoesOnWhereItWasLeft) {
  Turns turns;
  UcontextFiber first(&TakeTurns, &turns), second(&TakeTurns, &turns);
  turns.fibers[0] = &first, turns.fibers[1] = &second;
  UcontextFiber::Switch(&turns.host, &first);
  EXPECT_EQ(turns.seen, (std::vector<int>{0, 10, 1, 11, 2, 12}));
  first.Restart();
  second.Restart();
  turns.running = 1;
  turns.seen.clear();
  UcontextFiber::Switch(&turns.host, &second);
  EXPECT_EQ(turns.seen, (std::vector<int>{10, 0, 11, 1, 12}));
}

}  // namespace
}  // namespace floe::cuda
