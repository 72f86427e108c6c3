// Nested arguments and results of functions, as a SavedModel has them -> the tensors in them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/graph.h"

namespace tensorflow {
class StructuredValue;
class TypeSpecProto;
}  // namespace tensorflow

namespace floe {

struct StructureTensor {
  std::string name;  // the file's own name of it, if any
  std::string path;  // "a", "a.b", "a.0"; parts of a ragged tensor as RaggedParts
  TensorType type;
};

// In the order in which functions take and return them: values of dicts by their sorted keys.
// Python's own values and None hold none. A single tensor has the path `name`_0, those of a tuple
// `name`_0, `name`_1 and so on, those of a dict their keys. UNIMPLEMENTED for composite tensors
// that are not ragged, by their path.
absl::StatusOr<std::vector<StructureTensor>> FlattenStructure(
    const tensorflow::StructuredValue& value, const std::string& name);

// What the tensors of a ragged tensor are called: KEY.values, KEY.row_splits, KEY.row_splits_1 and
// so on from the outermost in; `count` 1: KEY. UNIMPLEMENTED for other composite tensors.
absl::StatusOr<std::vector<std::string>> RaggedParts(const tensorflow::TypeSpecProto& spec,
                                                     const std::string& key, int count);

// Whether Python's True is among the arguments, as training=True is.
bool HasTrue(const tensorflow::StructuredValue& value);

}  // namespace floe
