// Calls a server as fast as it answers, or at a given rate, and measures its answers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/latency_histogram.h"
#include "cli/rpc.h"

namespace floe::cli {

struct LoadOptions {
  Target target;  // whose timeout is the deadline of each call
  std::string method;
  std::string request;  // the message, sent in every call
  int connections = 1;  // at most `concurrency`
  int concurrency = 1;  // calls that wait for an answer at the same time, at most
  double rate = 0;      // calls a second (open loop); 0: each answer is followed by a call (closed)
  bool constant_arrivals = false;  // as of Arrivals
};

struct LoadErrors {
  int64_t count = 0;
  std::string first_message;
};

struct LoadResult {
  int64_t succeeded = 0, failed = 0;
  int64_t unsent = 0;  // due in an open loop, but `concurrency` calls were waiting until the end
  // Of the calls that succeeded: in a closed loop from sending, in an open loop from when the call
  // was due.
  LatencyHistogram latency;
  LatencyHistogram lag;  // of an open loop: from when a call was due to its sending
  std::map<absl::StatusCode, LoadErrors> errors;
  double seconds = 0;       // to the last answer, and to the end of the arrivals
  double cpu_seconds = 0;   // of this process, in that time
  int64_t reply_bytes = 0;  // of one answer

  void Add(const LoadResult& other);  // that of another part of the same load
};

// Has a thread for each connection, but not more than there are CPUs, which sends the calls of a
// closed loop and takes all answers. In an open loop each has a second one, which sends.
// Threading: one thread at a time.
class LoadGenerator {
 public:
  // The calls that have ended so far, and those of them that failed.
  using Progress = std::function<void(double seconds, int64_t ended, int64_t failed)>;

  explicit LoadGenerator(LoadOptions options);
  ~LoadGenerator();

  // Calls for so long, and then waits for all answers. `progress`, which may be empty, is told a
  // few times a second. Connections are kept from run to run.
  LoadResult Run(double seconds, const Progress& progress);

 private:
  class Worker;

  const LoadOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace floe::cli
