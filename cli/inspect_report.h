// What `inspect` finds out about a model file, apart from how it is shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/local_model.h"
#include "cli/plan_report.h"

namespace floe::cli {

struct InspectedNode {
  std::string name, op;
  std::string
      type;  // "float32[rows,10]", outputs joined by ", "; "?" if not known before a request
};

struct InspectReport {
  std::string file, format;
  int64_t file_bytes = 0;
  std::vector<std::pair<std::string, std::string>> facts;  // that the file says about itself
  std::vector<SignatureDef> signatures;
  std::map<std::string, absl::Status> left_out;  // signatures that are not served, with the reason

  // Of the chosen signature.
  std::string signature;
  std::map<std::string, int> ops;  // nodes needed for its outputs, constants left out
  int64_t parameters = 0;          // elements of its floating-point constants
  int64_t weight_bytes = 0;        // constants and packed weights in memory
  double flops_per_row = 0;
  std::vector<std::pair<std::string, TensorType>>
      planned;       // the inputs' shapes that all this is for
  int64_t rows = 0;  // the larger number of rows asked about
  // Memory of the plan; none where it cannot be planned for so many rows.
  std::optional<int64_t> arena_bytes_1, arena_bytes_rows;
  std::string why_not_batchable;     // empty: batchable
  std::vector<InspectedNode> nodes;  // of the file, in order; only those needed
  PlanReport plan;
};

struct InspectOptions {
  LocalOptions local;
  int64_t rows = 64;
  int64_t plan_rows = 0;    // of the plan's listing; 0 leaves them open
  int64_t unknown_dim = 0;  // for unknown dims other than dim 0; 0: sizes that fit
};

// What was found before an error is in `report` even then.
absl::Status Inspect(const std::string& path, const InspectOptions& options, InspectReport* report);

}  // namespace floe::cli
