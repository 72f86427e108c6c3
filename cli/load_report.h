// What `bench --target` found, as text and as JSON.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/load_generator.h"
#include "nlohmann/json.hpp"

namespace floe::cli {

// What was called.
struct LoadSubject {
  std::string target, model, signature;
  int64_t version = 0;
};

// One row of the table.
struct LoadRow {
  LoadOptions options;
  int64_t batch = 0;  // rows of a call
  double warmup_seconds = 0, seconds = 0;
  int64_t warmup_calls = 0;  // and the first one, which is not measured either
  LoadResult result;

  int64_t calls() const { return result.succeeded + result.failed; }
  double CallsPerSecond() const;  // that succeeded
};

void PrintLoad(const LoadSubject& subject, const std::vector<LoadRow>& rows, std::ostream& out);
nlohmann::ordered_json LoadJson(const LoadSubject& subject, const LoadRow& row);

// OK where all calls of all rows were sent and succeeded; with `no_fail`, where some of each did.
// Otherwise the code that most have, and the first message of it.
absl::Status LoadOutcome(const std::vector<LoadRow>& rows, bool no_fail);

}  // namespace floe::cli
