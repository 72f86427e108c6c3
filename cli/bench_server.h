// The part of `bench` that measures a server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/command.h"
#include "cli/served_call.h"

namespace floe::cli {

struct ServerBenchOptions {
  Target target;
  ServedCall call;
  std::vector<std::string> inputs;  // of InputArgument's forms; empty: made up
  std::vector<int64_t> batches;     // empty: the rows of the inputs, or 1
  int64_t unknown_dim = 0;          // of made-up inputs; 0: 1
  double seconds = 0;
  double warmup_seconds = -1;  // negative: a tenth of `seconds`
  int connections = 1;
  int concurrency = 0;  // 0: kClosedConcurrency, or kOpenConcurrency with a rate
  double rate = 0;      // 0: closed loop
  bool constant_arrivals = false;
  bool json = false, no_fail = false;
};

inline constexpr int kClosedConcurrency = 16, kOpenConcurrency = 10'000;

// Those that only the measurement of a server has: INPUT, the version, and how to call.
std::vector<CLI::Option*> AddServerBenchOptions(CLI::App& command, ServerBenchOptions& options);

// Measures each batch, and prints the table or JSON. Errors of the first call, before anything is
// measured; afterwards those of LoadOutcome.
absl::Status BenchServer(const ServerBenchOptions& options, Context& context);

}  // namespace floe::cli
