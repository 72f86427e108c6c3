#include "server/listener/call_gate.h"

#include <gtest/gtest.h>

#include <thread>

namespace floe::server {
namespace {

TEST(CallGate, AdmitsUntilItIsClosedAndWaitsForThoseInside) {
  CallGate gate;
  ASSERT_TRUE(gate.Enter());
  ASSERT_TRUE(gate.Enter());
  gate.Leave();
  gate.CloseAndWait(Clock::Steady().Now());  // one is inside: it returns by the deadline
  EXPECT_FALSE(gate.Enter());
  EXPECT_EQ(gate.entered(), 3);
  std::thread waiting([&] { gate.CloseAndWait(TimePoint::max()); });
  gate.Leave();
  waiting.join();
}

}  // namespace
}  // namespace floe::server
