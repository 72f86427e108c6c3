// Bytes, or a file, of a GraphDef in binary or text form -> the message.
#pragma once

#include <exception>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "base/read_file.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {

// Maps of protobuf are broken where memory for an entry could not be had, and end the process when
// they are destroyed. A message that std::bad_alloc leaves is kept instead.
struct DestroyUnlessThrown {
  void operator()(tensorflow::GraphDef* def) const {
    if (std::uncaught_exceptions() == 0) delete def;
  }
};

struct ParsedGraphDef {
  std::unique_ptr<tensorflow::GraphDef, DestroyUnlessThrown> def{new tensorflow::GraphDef};
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
