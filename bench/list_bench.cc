// Loops that fill and read TensorLists and TensorArrays: microseconds at 1,000 and 10,000 steps and
// their ratio, which is 10 when a step costs the same however many there are.
//
//     list_bench [WIDTH]     floats an element (16)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/exec_context.h"
#include "runtime/test_loops.h"

namespace floe {
namespace {

using Clock = std::chrono::steady_clock;

// The fastest of several warm runs, in microseconds; -1 when the loop does not run.
double Microseconds(Container container, int steps, int width) {
  const auto compiled = CollectingLoop(container, steps, width).Compile();
  if (compiled == nullptr) return -1;
  const auto plan = compiled->Bind({Shape({width})});
  if (!plan.ok()) return -1;
  const std::vector<float> x(width, 1.0f);
  ExecContext context;
  double best = -1;
  constexpr int kRuns = 7;
  for (int run = 0; run < kRuns; ++run) {
    if (!context.Prepare(*plan, 1).ok()) return -1;
    context.BindInput(0, x.data());
    const Clock::time_point start = Clock::now();
    if (!context.Run().ok()) return -1;
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (run > 0) best = best < 0 ? us : std::min(best, us);  // the first one warms up
  }
  return best;
}

int Main(int width) {
  std::printf("%-20s %12s %12s %8s\n", "container", "1000 steps", "10000 steps", "ratio");
  for (const Container container :
       {Container::kList, Container::kPushedList, Container::kArray, Container::kGrowingArray}) {
    const double few = Microseconds(container, 1000, width);
    const double many = Microseconds(container, 10000, width);
    if (few < 0 || many < 0) {
      std::fprintf(stderr, "%s: the loop does not run\n", ContainerName(container));
      return 1;
    }
    std::printf("%-20s %9.0f us %9.0f us %8.2f\n", ContainerName(container), few, many, many / few);
  }
  return 0;
}

}  // namespace
}  // namespace floe

int main(int argc, char** argv) {
  const int width = argc > 1 ? std::atoi(argv[1]) : 16;
  if (width <= 0) {
    std::fprintf(stderr, "list_bench [WIDTH]: WIDTH is a number above 0\n");
    return 2;
  }
  return floe::Main(width);
}
