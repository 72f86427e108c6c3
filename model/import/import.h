// File -> graph with signatures. The one entry point for every format.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/budget.h"
#include "base/file_identity.h"
#include "model/graph.h"

namespace floe {

// Renames and choices from the configuration; empty means "as the file says".
struct ImportOptions {
  std::map<std::string, Tensor> placeholder_defaults;  // by placeholder name
  // key -> tensor name; non-empty: exactly these inputs. They need not be placeholders: what lies
  // above a tensor that is fed is not run. A placeholder whose default is computed is an input only
  // where it is named here, or in `feeds`.
  std::map<std::string, std::string> input_aliases;
  std::map<std::string, std::string>
      output_aliases;  // key -> tensor name; non-empty: exactly these outputs
  // For tools that run a bare graph: these tensors are fetched instead of a signature's outputs.
  std::vector<std::string> fetches;
  // And these may be fed, wherever in the graph they are, as FindTensorName finds them; names that
  // mean no tensor are left to whoever matches arrays with inputs.
  struct Feed {
    std::string name;
    DType dtype = DType::kInvalid;  // where nothing in the graph tells it
  };
  std::vector<Feed> feeds;
  // Of a SavedModel: the tags of the graph that is meant; empty: "serve", or the only one there is.
  std::vector<std::string> tags;
  int64_t max_file_bytes = int64_t{4} << 30;
  std::optional<FileIdentity> identity;  // of the file that is meant; none: whatever is there
  // A few bytes of a file may stand for many: values that repeat, functions called in several
  // places.
  ResourceLimits limits{
      .max_value_bytes = int64_t{4} << 30, .max_bytes = int64_t{16} << 30, .max_visits = 4'000'000};
};

struct ImportedModel {
  Graph graph;  // inputs/outputs empty: signatures name tensors
  std::vector<SignatureDef> signatures;
  std::string format;  // "GraphDef (binary)", "SavedModel (text)"
  // Signatures of the file that cannot be served, with the reason.
  std::map<std::string, absl::Status> left_out;
  // Beneath which the graph's files are looked for; empty: the directory of the file.
  std::string asset_directory;
  std::vector<std::pair<std::string, std::string>> facts;  // about the file, to be shown
};

// Errors: NOT_FOUND no such file. UNAVAILABLE a file that was cut short while it was read. ABORTED
// another file than the one that is meant. INVALID_ARGUMENT malformed (names node and reason), or
// of another format (says which, and what to do). Never crashes on hostile bytes.
absl::StatusOr<ImportedModel> ImportFile(const std::string& path, const ImportOptions& options);
absl::StatusOr<ImportedModel> ImportBytes(const std::string& bytes, const ImportOptions& options);

// "name" or "name:k" -> node name and output number.
struct TensorName {
  std::string node;
  int output = 0;
};
absl::StatusOr<TensorName> ParseTensorName(const std::string& name);
// The same for names that people write: also "name__k", as keys of .npz files have it, where no
// node is called so. nullopt when there is no such node.
using HasNode = std::function<bool(const std::string& node)>;
std::optional<TensorName> FindTensorName(const std::string& name, const HasNode& has_node);

}  // namespace floe
