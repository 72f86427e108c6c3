// What `predict` sends and shows: command-line inputs to tensors, tensors to and from the wire.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/npz.h"
#include "model/graph.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace floe::cli {

// One input of the command line: NAME=@FILE.npy, @FILE.npz (every array in it) or NAME=JSON.
struct InputArgument {
  std::string name;  // empty for an archive
  std::string path;  // of a file; empty for JSON
  std::string json;
};
// INVALID_ARGUMENT says which forms there are.
absl::StatusOr<InputArgument> ParseInputArgument(const std::string& text);

// Reads files and JSON (whose dtypes come from the signature) and matches them to the inputs; one
// tensor for each input, invalid where none was given. Errors name the input.
absl::StatusOr<std::vector<Tensor>> TensorsFromArguments(
    const SignatureDef& def, const std::vector<InputArgument>& arguments);

// Numbers as tensor_content, strings as string_val.
void TensorToProto(const Tensor& tensor, tensorflow::TensorProto* proto);

// Name, dtype and shape, then the values: at most `max_rows` rows of `max_columns` values, saying
// how many more there are.
void PrintTensor(const std::string& name, const TensorView& view, int64_t max_rows,
                 int64_t max_columns, std::ostream& out);

}  // namespace floe::cli
