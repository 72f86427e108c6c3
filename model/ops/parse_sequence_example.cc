// ParseSequenceExampleV2: features of tf.train.SequenceExamples, and lists of features of their
// steps.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/parse_example.h"

namespace floe {
namespace ops {

absl::StatusOr<SequenceSpec> SequenceSpecOf(const Node& node, int inputs) {
  const Attrs& a = node.attrs;
  const auto types = [&a](const char* attr) { return a.Get<std::vector<DType>>(attr, {}); };
  const auto shapes = [&a](const char* attr) { return a.Get<std::vector<SymShape>>(attr, {}); };
  SequenceSpec spec;
  spec.context = {types("context_sparse_types"), types("Tcontext_dense"),
                  types("context_ragged_value_types"), types("context_ragged_split_types"),
                  shapes("context_dense_shapes")};
  spec.context.first_default = SequenceSpec::kFirstDefault;
  for (int kind = 0; kind < 3; ++kind) spec.context.keys[kind] = 2 + kind;
  spec.context.key_vectors = true;
  spec.lists = {types("feature_list_sparse_types"), types("feature_list_dense_types"),
                types("feature_list_ragged_value_types"), types("feature_list_ragged_split_types"),
                shapes("feature_list_dense_shapes")};
  FLOE_RETURN_IF_ERROR(CheckExampleSpec(spec.context));
  FLOE_RETURN_IF_ERROR(CheckExampleSpec(spec.lists));
  for (size_t d = 0; d < spec.lists.dense.size(); ++d) {
    if (spec.lists.VariableLength(static_cast<int>(d)))
      return Bad(absl::StrCat("feature_list_dense_shapes holds ",
                              spec.lists.dense_shapes[d].ToString(), ", which is not known"));
  }
  const auto count = [&a](const char* attr, size_t types) {
    return a.Int(attr) == static_cast<int64_t>(types);
  };
  if (!count("Ncontext_sparse", spec.context.sparse.size()) ||
      !count("Nfeature_list_sparse", spec.lists.sparse.size()) ||
      !count("Nfeature_list_dense", spec.lists.dense.size()))
    return Bad("its attributes ask for different numbers of features");
  const auto wanted = SequenceSpec::kFirstDefault + static_cast<int>(spec.context.dense.size());
  if (inputs != wanted)
    return Bad(absl::StrCat("has ", inputs, " inputs, its attributes ask for ", wanted));
  return spec;
}

}  // namespace ops

namespace {

absl::Status CheckInputs(const InferContext& c, const ops::SequenceSpec& spec) {
  if (ops::RankOf(c, 0) > 1)
    return Bad(absl::StrCat("serialized has shape ", c.shape(0).ToString(),
                            ", expected a scalar or a vector"));
  for (size_t d = 0; d < spec.context.dense.size(); ++d)
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, ops::SequenceSpec::kFirstDefault + static_cast<int>(d),
                                         spec.context.dense[d]));
  return absl::OkStatus();
}

// The context; then of the lists sparse indices, values and shapes; dense values and numbers of
// steps; ragged values, outer and inner splits.
absl::StatusOr<Types> InferSequence(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const ops::SequenceSpec spec, ops::SequenceSpecOf(c.node, c.num_inputs()));
  FLOE_RETURN_IF_ERROR(CheckInputs(c, spec));
  Types types = ops::FeatureTypes(spec.context, c.shape(0));
  const int rank = ops::RankOf(c, 0);
  const Dim width = rank < 0 ? Dim::Unknown() : Dim(rank + 2);
  const TensorType vector{DType::kInt64, {Dim::Unknown()}};
  const ops::ExampleSpec& lists = spec.lists;
  types.insert(types.end(), lists.sparse.size(),
               TensorType{DType::kInt64, {Dim::Unknown(), width}});
  for (const DType dtype : lists.sparse) types.push_back({dtype, vector.shape});
  types.insert(types.end(), lists.sparse.size(), TensorType{DType::kInt64, {width}});
  for (size_t d = 0; d < lists.dense.size(); ++d) {
    SymShape shape =
        rank == 1 ? SymShape({c.shape(0).dim(0), Dim::Unknown()}) : SymShape({Dim::Unknown()});
    for (int i = 0; i < lists.dense_shapes[d].rank(); ++i)
      shape.push_back(lists.dense_shapes[d].dim(i));
    types.push_back({lists.dense[d], rank < 0 ? SymShape::UnknownRank() : shape});
  }
  types.insert(types.end(), lists.dense.size(), TensorType{DType::kInt64, c.shape(0)});
  for (const DType dtype : lists.ragged) types.push_back({dtype, vector.shape});
  SymShape outer = vector.shape;  // without examples a number that means nothing
  if (rank != 1) outer = rank == 0 ? SymShape() : SymShape::UnknownRank();
  for (const DType dtype : lists.ragged_splits) types.push_back({dtype, outer});
  for (const DType dtype : lists.ragged_splits) types.push_back({dtype, vector.shape});
  return types;
}

OpDef Sequence() {
  OpDef def = ops::Allocating(
      "ParseSequenceExampleV2",
      {"context_sparse_indices:Ncontext_sparse", "context_sparse_values:context_sparse_types",
       "context_sparse_shapes:Ncontext_sparse", "context_dense_values:Tcontext_dense",
       "context_ragged_values:context_ragged_value_types",
       "context_ragged_row_splits:context_ragged_split_types",
       "feature_list_sparse_indices:Nfeature_list_sparse",
       "feature_list_sparse_values:feature_list_sparse_types",
       "feature_list_sparse_shapes:Nfeature_list_sparse",
       "feature_list_dense_values:feature_list_dense_types",
       "feature_list_dense_lengths:Nfeature_list_dense",
       "feature_list_ragged_values:feature_list_ragged_value_types",
       "feature_list_ragged_outer_splits:feature_list_ragged_split_types",
       "feature_list_ragged_inner_splits:feature_list_ragged_split_types"},
      InferSequence);
  def.input_types =
      "string string string[_] string[_] string[_] string[_] string[_] string[_] "
      "bool[_] ?";
  return def;
}
const OpRegistrar kSequence(Sequence());

}  // namespace
}  // namespace floe
