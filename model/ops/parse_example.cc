// ParseExample and its relatives: features of tf.train.Examples as sparse, dense and ragged
// tensors.
#include "model/ops/parse_example.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace ops {
namespace {

absl::Status CheckTypes(const std::vector<DType>& types, const char* attr) {
  for (const DType dtype : types) {
    if (dtype != DType::kFloat32 && dtype != DType::kInt64 && dtype != DType::kString)
      return Bad(
          absl::StrCat(attr, " holds ", DTypeName(dtype), ", expected float32, int64 or string"));
  }
  return absl::OkStatus();
}

// Every dim but the first must be known, and that too unless examples vary in length.
absl::Status CheckDenseShape(const SymShape& shape) {
  if (!shape.rank_known()) return Bad("dense_shapes holds a shape of unknown rank");
  for (int i = 0; i < shape.rank(); ++i) {
    if (!shape.dim(i).known() && i > 0)
      return Bad(absl::StrCat("dense_shapes holds ", shape.ToString(),
                              "; only the first dim may be unknown"));
    if (shape.dim(i).known() && (!shape.dim(i).concrete() || shape.dim(i).size() < 0))
      return Bad(absl::StrCat("dense_shapes holds ", shape.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const char* attr, int64_t stated, size_t types) {
  if (stated == static_cast<int64_t>(types)) return absl::OkStatus();
  return Bad(absl::StrCat(attr, " is ", stated, ", but there are ", types, " types"));
}

}  // namespace

bool ExampleSpec::VariableLength(int dense_feature) const {
  const SymShape& shape = dense_shapes[static_cast<size_t>(dense_feature)];
  return shape.rank() > 0 && !shape.dim(0).known();
}

absl::Status CheckExampleSpec(const ExampleSpec& spec) {
  FLOE_RETURN_IF_ERROR(CheckTypes(spec.sparse, "the types of sparse features"));
  FLOE_RETURN_IF_ERROR(CheckTypes(spec.dense, "the types of dense features"));
  FLOE_RETURN_IF_ERROR(CheckTypes(spec.ragged, "the types of ragged features"));
  if (spec.ragged_splits.size() != spec.ragged.size() ||
      std::any_of(spec.ragged_splits.begin(), spec.ragged_splits.end(),
                  [](DType dtype) { return dtype != DType::kInt32 && dtype != DType::kInt64; }))
    return Bad("ragged_split_types must have int32 or int64 for each of ragged_value_types");
  if (spec.dense_shapes.size() != spec.dense.size())
    return Bad(absl::StrCat(spec.dense_shapes.size(), " dense_shapes for ", spec.dense.size(),
                            " dense types"));
  for (const SymShape& shape : spec.dense_shapes) FLOE_RETURN_IF_ERROR(CheckDenseShape(shape));
  return absl::OkStatus();
}

absl::StatusOr<ExampleSpec> ExampleSpecOf(const Node& node, int inputs) {
  const Attrs& a = node.attrs;
  const auto types = [&a](const char* attr) { return a.Get<std::vector<DType>>(attr, {}); };
  ExampleSpec spec{types("sparse_types"), types("Tdense"), types("ragged_value_types"),
                   types("ragged_split_types"), a.Get<std::vector<SymShape>>("dense_shapes", {})};
  const bool single = node.op->name == "ParseSingleExample", v2 = node.op->name == "ParseExampleV2";
  const auto sparse = static_cast<int>(spec.sparse.size()),
             dense = static_cast<int>(spec.dense.size());
  FLOE_RETURN_IF_ERROR(CheckExampleSpec(spec));
  FLOE_RETURN_IF_ERROR(CheckCount(single || v2 ? "num_sparse" : "Nsparse",
                                  a.Int(single || v2 ? "num_sparse" : "Nsparse"),
                                  spec.sparse.size()));
  if (!single && !v2)
    FLOE_RETURN_IF_ERROR(CheckCount("Ndense", a.Int("Ndense"), spec.dense.size()));
  if (single) {
    const auto keys = [&a](const char* attr) {
      return a.Get<std::vector<std::string>>(attr, {}).size();
    };
    if (keys("sparse_keys") != spec.sparse.size() || keys("dense_keys") != spec.dense.size())
      return Bad("sparse_keys and dense_keys must have a key for each type");
    spec.first_default = 1;
  } else {
    spec.key_vectors = v2;
    spec.keys[0] = 2;
    spec.keys[1] = v2 ? 3 : 2 + sparse;
    if (v2) spec.keys[2] = 4;
    spec.first_default = v2 ? 5 : 2 + sparse + dense;
  }
  if (inputs != spec.first_default + dense)
    return Bad(absl::StrCat("has ", inputs, " inputs, its attributes ask for ",
                            spec.first_default + dense));
  return spec;
}

// Of a single example there is no dim of examples.
Types FeatureTypes(const ExampleSpec& spec, const SymShape& serialized) {
  const int rank = serialized.rank_known() ? serialized.rank() : -1;
  const Dim examples = rank == 1 ? serialized.dim(0) : Dim::Unknown();
  const Dim width = rank < 0 ? Dim::Unknown() : Dim(rank + 1);
  const auto vector = [](DType dtype) { return TensorType{dtype, {Dim::Unknown()}}; };
  Types types(spec.sparse.size(), TensorType{DType::kInt64, {Dim::Unknown(), width}});
  for (const DType dtype : spec.sparse) types.push_back(vector(dtype));
  types.insert(types.end(), spec.sparse.size(), TensorType{DType::kInt64, {width}});
  for (size_t d = 0; d < spec.dense.size(); ++d) {
    SymShape shape;
    if (rank == 1) shape.push_back(examples);
    for (int i = 0; i < spec.dense_shapes[d].rank(); ++i)
      shape.push_back(spec.dense_shapes[d].dim(i));
    types.push_back({spec.dense[d], rank < 0 ? SymShape::UnknownRank() : shape});
  }
  for (const DType dtype : spec.ragged) types.push_back(vector(dtype));
  for (const DType dtype : spec.ragged_splits) {
    const Dim splits = rank == 1 && examples.known() ? examples + Dim(1) : Dim::Unknown();
    types.push_back({dtype, {rank == 0 ? Dim(0) : splits}});
  }
  return types;
}

}  // namespace ops

namespace {

absl::Status CheckInputs(const InferContext& c, const ops::ExampleSpec& spec) {
  const bool v2 = spec.key_vectors, single = spec.keys[0] < 0;
  if (single) FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 0));
  if (!single && !v2) FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 1));
  if (v2 && ops::RankOf(c, 0) > 1)
    return Bad(absl::StrCat("serialized has shape ", c.shape(0).ToString(),
                            ", expected a scalar or a vector"));
  for (int i = 1; i < spec.first_default; ++i) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, DType::kString));
    if (i > 1) FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, v2 ? 1 : 0));
  }
  for (size_t d = 0; d < spec.dense.size(); ++d)
    FLOE_RETURN_IF_ERROR(
        ops::ExpectType(c, spec.first_default + static_cast<int>(d), spec.dense[d]));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferParse(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const ops::ExampleSpec spec, ops::ExampleSpecOf(c.node, c.num_inputs()));
  FLOE_RETURN_IF_ERROR(CheckInputs(c, spec));
  return ops::FeatureTypes(spec, c.shape(0));
}

// Rows are kept where every feature is dense and of a fixed size: others are as long as the longest
// example, or lists of the entries of all.
RowMark ParseRows(const RowContext& c) {
  const absl::StatusOr<ops::ExampleSpec> spec =
      ops::ExampleSpecOf(c.node, static_cast<int>(c.inputs.size()));
  bool dense = spec.ok() && spec->sparse.empty() && spec->ragged.empty();
  for (size_t d = 0; dense && d < spec->dense.size(); ++d)
    dense = !spec->VariableLength(static_cast<int>(d));
  const SymShape& examples = c.inputs[0].type.shape;
  dense = dense && examples.rank_known() && examples.rank() == 1;
  if (!dense || !c.OthersConstant(1)) return RowsNever(c);
  return ops::Checked(c.marks[0], c);
}

OpDef Parse(const std::string& name, std::vector<std::string> outputs) {
  OpDef def = ops::Allocating(name, std::move(outputs), InferParse);
  def.rows = ParseRows;
  def.input_types = "string ?";
  return def;
}

const OpRegistrar kParse[] = {
    OpRegistrar(Parse("ParseExample", {"sparse_indices:Nsparse", "sparse_values:sparse_types",
                                       "sparse_shapes:Nsparse", "dense_values:Tdense"})),
    OpRegistrar(Parse("ParseExampleV2", {"sparse_indices:num_sparse", "sparse_values:sparse_types",
                                         "sparse_shapes:num_sparse", "dense_values:Tdense",
                                         "ragged_values:ragged_value_types",
                                         "ragged_row_splits:ragged_split_types"})),
    OpRegistrar(
        Parse("ParseSingleExample", {"sparse_indices:num_sparse", "sparse_values:sparse_types",
                                     "sparse_shapes:num_sparse", "dense_values:Tdense"})),
};

}  // namespace
}  // namespace floe
