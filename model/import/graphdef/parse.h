// Bytes, or a file, of a GraphDef in binary or text form -> the message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/file_identity.h"
#include "base/memory_budget.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {

struct ParsedGraphDef {
  tensorflow::GraphDef def;
  bool text = false;
  MemoryShare memory;  // what `def` takes beyond the size of the file
};

// Errors: INVALID_ARGUMENT malformed, empty, past protobuf's 2 GiB, or of another format (says
// which, and what to do); RESOURCE_EXHAUSTED past the thread's memory budget, before it is used.
absl::StatusOr<ParsedGraphDef> ParseGraphDef(std::string_view bytes);

// The same of a file, which is read piece by piece: beside the message no more is in memory than
// pieces of it. Errors as InputFile's, and ABORTED for a file with another `identity`.
absl::StatusOr<ParsedGraphDef> ParseGraphDefFile(const std::string& path, int64_t max_bytes,
                                                 const std::optional<FileIdentity>& identity);

}  // namespace floe
