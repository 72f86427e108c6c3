// Which objects of a TensorFlow 2 program a SavedModel's functions capture, and where a checkpoint
// has the values of such objects. Loaders in Python go by it; a graph's saver may know less.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "model/import/message_ptr.h"

namespace tensorflow {
class MetaGraphDef;
class TrackableObjectGraph;
}  // namespace tensorflow

namespace floe {

// Objects are numbers, as of MetaGraphDef.object_graph_def. -> the tensor of the graph that calls
// pass to functions in the place of the object.
std::map<int, std::string> CapturedTensors(const tensorflow::MetaGraphDef& meta);

// The names that lead from the root of all objects to one of them.
using ObjectPath = std::vector<std::string>;

// Of the variables that the graph's calls pass to functions, by SharedName.
std::map<std::string, ObjectPath> CapturedVariables(const tensorflow::MetaGraphDef& meta);

// What the checkpoint's tensor kName says.
class CheckpointObjects {
 public:
  static constexpr char kName[] = "_CHECKPOINTABLE_OBJECT_GRAPH";
  static absl::StatusOr<CheckpointObjects> Parse(std::string_view bytes);
  CheckpointObjects(CheckpointObjects&&) noexcept;
  CheckpointObjects& operator=(CheckpointObjects&&) noexcept;
  ~CheckpointObjects();
  // The checkpoint's name of an object's value; empty: it has none.
  std::string KeyOf(const ObjectPath& path) const;

 private:
  CheckpointObjects();

  MessagePtr<tensorflow::TrackableObjectGraph> graph_;
  MemoryShare memory_;
};

}  // namespace floe
