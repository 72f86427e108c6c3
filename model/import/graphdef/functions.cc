#include "model/import/graphdef/functions.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/op_def.h"
#include "tensorflow/core/framework/function.pb.h"

namespace floe {
namespace {

// Names of the output arguments of ops with more than one, each a single tensor (TensorFlow's op
// registry).
const std::map<std::string, std::vector<std::string>>& OutputArguments() {
  static const std::vector<std::string> kBatchNorm = {
      "y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"};
  static const std::map<std::string, std::vector<std::string>> names = {
      {"BlockLSTM", {"i", "cs", "f", "o", "ci", "co", "h"}},
      {"BlockLSTMV2", {"i", "cs", "f", "o", "ci", "co", "h"}},
      {"FusedBatchNorm", kBatchNorm},
      {"FusedBatchNormV2", kBatchNorm},
      {"FusedBatchNormV3", kBatchNorm},
      {"GRUBlockCell", {"r", "u", "c", "h"}},
      {"ListDiff", {"out", "idx"}},
      {"LogMatrixDeterminant", {"sign", "log_abs_determinant"}},
      {"LSTMBlockCell", {"i", "cs", "f", "o", "ci", "co", "h"}},
      {"Merge", {"output", "value_index"}},
      {"NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}},
      {"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs"}},
      {"Qr", {"q", "r"}},
      {"RaggedRange", {"rt_nested_splits", "rt_dense_values"}},
      {"SelfAdjointEigV2", {"e", "v"}},
      {"SparseFillEmptyRows",
       {"output_indices", "output_values", "empty_row_indicator", "reverse_index_map"}},
      {"SparseReshape", {"output_indices", "output_shape"}},
      {"StringSplit", {"indices", "values", "shape"}},
      {"StringSplitV2", {"indices", "values", "shape"}},
      {"Svd", {"s", "u", "v"}},
      {"Switch", {"output_false", "output_true"}},
      {"TensorArrayConcatV3", {"value", "lengths"}},
      {"TensorArrayV3", {"handle", "flow"}},
      {"TensorListConcat", {"tensor", "lengths"}},
      {"TensorListConcatV2", {"tensor", "lengths"}},
      {"TensorListPopBack", {"output_handle", "tensor"}},
      {"TopK", {"values", "indices"}},
      {"TopKV2", {"values", "indices"}},
      {"Unique", {"y", "idx"}},
      {"UniqueV2", {"y", "idx"}},
      {"UniqueWithCounts", {"y", "idx", "count"}},
  };
  return names;
}

}  // namespace

FunctionLibrary::FunctionLibrary(tensorflow::FunctionDefLibrary* library) {
  for (tensorflow::FunctionDef& def : *library->mutable_function())
    functions_[def.signature().name()].def = &def;
}

bool IsCall(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}

bool IsControl(const std::string& op) {
  static const std::set<std::string> names = {"While",       "StatelessWhile", "If",
                                              "StatelessIf", "Case",           "StatelessCase"};
  return names.count(op) != 0;
}

absl::StatusOr<int> OutputArgument(const std::string& op, const std::string& argument) {
  const auto found = OutputArguments().find(op);
  if (found != OutputArguments().end()) {
    const auto at = std::find(found->second.begin(), found->second.end(), argument);
    if (at == found->second.end())
      return absl::InvalidArgumentError(
          absl::StrCat(op, " has no output argument '", argument, "'"));
    return static_cast<int>(at - found->second.begin());
  }
  const OpDef* def = FindTensorFlowOp(op);
  if (def != nullptr && def->outputs > 1)
    return absl::UnimplementedError(absl::StrCat("the output arguments of ", op, " are not known"));
  return 0;
}

}  // namespace floe
