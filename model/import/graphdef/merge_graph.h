// Reads a binary GraphDef from a stream so that no large part of it is in memory twice.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include "absl/status/status.h"
#include "base/memory_budget.h"

namespace tensorflow {
class GraphDef;
}

namespace floe {

// Merges the message that the stream holds up to its current limit into `graph`, as protobuf would.
// Contents of tensors go from the stream straight to their place; other fields pass through a
// buffer. What the message takes is added to `paid`, taken before it is allocated. INVALID_ARGUMENT
// for bytes that are no GraphDef; RESOURCE_EXHAUSTED past the budget.
absl::Status MergeGraph(google::protobuf::io::CodedInputStream* in, tensorflow::GraphDef* graph,
                        MemoryShare* paid);

}  // namespace floe
