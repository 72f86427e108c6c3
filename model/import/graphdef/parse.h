// Bytes, or a file, of a GraphDef in binary or text form -> the message.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "base/read_file.h"
#include "model/import/message_ptr.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {

struct ParsedGraphDef {
  MessagePtr<tensorflow::GraphDef> def = NewMessage<tensorflow::GraphDef>();
  bool text = false;
  MemoryShare memory;  // what `def` takes beyond the size of the file
};

// Errors: INVALID_ARGUMENT malformed, empty, past protobuf's 2 GiB, or of another format (says
// which, and what to do); RESOURCE_EXHAUSTED past the thread's memory budget, before it is used.
absl::StatusOr<ParsedGraphDef> ParseGraphDef(std::string_view bytes);

// The same of a file that was just opened, read piece by piece: beside the message no more is in
// memory than pieces of it. Errors also as InputFile's, and ABORTED where another file has come to
// its place when it turns out to be no GraphDef.
absl::StatusOr<ParsedGraphDef> ParseGraphDefFile(InputFile* file);

}  // namespace floe
