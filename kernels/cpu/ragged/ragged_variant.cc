// RaggedTensorToVariant and RaggedTensorFromVariant.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/lists/tensor_list.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/ragged/ragged.h"
#include "model/ragged.h"

namespace floe::kernels {
namespace {

// Splits of rows [first, last), from 0 again.
Tensor RebasedSplits(DType dtype, const Splits& splits, int64_t first, int64_t last) {
  Tensor part = Tensor::Allocate(dtype, Shape({last - first + 1}));
  const TensorView view = part.view();
  for (int64_t r = first; r <= last; ++r) PutInt(view, r - first, splits[r] - splits[first]);
  return part;
}

// One object for every row of the outermost level, with a level less.
absl::Status GiveRows(const KernelContext& ctx, const std::vector<Splits>& nested,
                      const TensorView& values, DType splits_type) {
  const int64_t rows =
      nested.empty() ? values.shape.dim(0) : static_cast<int64_t>(nested[0].size()) - 1;
  FLOE_RETURN_IF_ERROR(CheckListSize(rows));
  std::vector<std::vector<Tensor>> splits(rows);
  IntList lengths(nested.empty() ? 0 : rows);
  for (int64_t r = 0; r < rows && !nested.empty(); ++r) {
    int64_t first = nested[0][r], last = nested[0][r + 1];
    for (size_t level = 1; level < nested.size(); ++level) {
      splits[r].push_back(RebasedSplits(splits_type, nested[level], first, last));
      first = nested[level][first];
      last = nested[level][last];
    }
    lengths[r] = last - first;
  }
  std::vector<Tensor> parts = nested.empty() ? Unstacked(values) : Banded(values, lengths);
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(0, DType::kVariant, Shape({rows})));
  for (int64_t r = 0; r < rows; ++r)
    out.as<Handle>()[r] = std::make_shared<RaggedObject>(std::move(splits[r]), std::move(parts[r]));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeToVariant(const KernelArgs& args) {
  const int levels = static_cast<int>(args.node.attrs.Int("RAGGED_RANK"));
  const bool batched = args.node.attrs.Bool("batched_input");
  const DType dtype = args.node.attrs.Type("Tsplits", DType::kInt64);
  return FromFunction([levels, batched, dtype](const KernelContext& ctx) -> absl::Status {
    const TensorView& values = ctx.in(levels);
    FLOE_ASSIGN_OR_RETURN(const std::vector<Splits> nested,
                          ReadNestedSplits(ctx, 0, levels, values));
    if (batched && values.shape.rank() == 0)
      return absl::InvalidArgumentError("a batch cannot be a scalar");
    if (batched) return GiveRows(ctx, nested, values, dtype);
    std::vector<Tensor> splits;
    splits.reserve(levels);
    for (int i = 0; i < levels; ++i) splits.push_back(Tensor::Copy(ctx.in(i)));
    return GiveHandle(ctx, 0, DType::kVariant,
                      std::make_shared<RaggedObject>(std::move(splits), Tensor::Copy(values)));
  });
}
FLOE_REGISTER_KERNEL(RaggedTensorToVariant, kCpu, MakeToVariant);

// What FromVariant is to give.
struct Wanted {
  int levels;  // of every object; -1: as many as the outputs leave
  int out_levels;
  DType splits, values;
};

// The objects behind the handles, of one kind.
absl::StatusOr<std::vector<const RaggedObject*>> Objects(const TensorView& handles, int levels,
                                                         const Wanted& wanted) {
  std::vector<const RaggedObject*> objects;
  for (int64_t i = 0; i < handles.elements(); ++i) {
    const auto* object = dynamic_cast<const RaggedObject*>(handles.as<Handle>()[i].get());
    if (object == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " is not the handle of a ragged tensor"));
    if (static_cast<int>(object->splits.size()) != levels)
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " has ragged rank ",
                                                     object->splits.size(), ", expected ", levels));
    if (object->values.dtype() != wanted.values)
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " has values of ",
                                                     DTypeName(object->values.dtype()),
                                                     ", expected ", DTypeName(wanted.values)));
    for (const Tensor& splits : object->splits) {
      if (splits.dtype() != wanted.splits)
        return absl::InvalidArgumentError(absl::StrCat("element ", i, " has splits of ",
                                                       DTypeName(splits.dtype()), ", expected ",
                                                       DTypeName(wanted.splits)));
    }
    objects.push_back(object);
  }
  return objects;
}

absl::StatusOr<int64_t> RowsOf(const RaggedObject& object) {
  if (!object.splits.empty()) return object.splits[0].elements() - 1;
  if (object.values.shape().rank() == 0)
    return absl::InvalidArgumentError("a component that is a scalar has no rows");
  return object.values.shape().dim(0);
}

// Outputs [0, rank of the batch): the batch's own dims, then the rows of every object.
absl::Status GiveBatchSplits(const KernelContext& ctx, const Wanted& wanted, const Shape& batch,
                             const std::vector<const RaggedObject*>& objects) {
  int64_t rows = 1;
  for (int d = 1; d < batch.rank(); ++d) {
    rows *= batch.dim(d - 1);
    const int64_t length = batch.dim(d);
    FLOE_ASSIGN_OR_RETURN(const TensorView out,
                          AllocateSplits(ctx, d - 1, wanted.splits, rows, rows * length));
    for (int64_t i = 0; i <= rows; ++i) PutInt(out, i, i * length);
  }
  Splits ends = {0};
  for (const RaggedObject* object : objects) {
    FLOE_ASSIGN_OR_RETURN(const int64_t length, RowsOf(*object));
    ends.push_back(ends.back() + length);
  }
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        AllocateSplits(ctx, batch.rank() - 1, wanted.splits,
                                       static_cast<int64_t>(objects.size()), ends.back()));
  for (size_t i = 0; i < ends.size(); ++i) PutInt(out, static_cast<int64_t>(i), ends[i]);
  return absl::OkStatus();
}

// Output k: level `level` of all objects, one after the other.
absl::Status GiveJoinedSplits(const KernelContext& ctx, int k, int level, DType dtype,
                              const std::vector<const RaggedObject*>& objects) {
  Splits ends = {0};
  for (const RaggedObject* object : objects) {
    FLOE_ASSIGN_OR_RETURN(const Splits part, ReadSplits(object->splits[level].view()));
    const int64_t base = ends.back();
    for (size_t i = 1; i < part.size(); ++i) ends.push_back(base + part[i]);
  }
  FLOE_ASSIGN_OR_RETURN(
      const TensorView out,
      AllocateSplits(ctx, k, dtype, static_cast<int64_t>(ends.size()) - 1, ends.back()));
  for (size_t i = 0; i < ends.size(); ++i) PutInt(out, static_cast<int64_t>(i), ends[i]);
  return absl::OkStatus();
}

absl::Status GiveJoinedValues(const KernelContext& ctx, int k, DType dtype,
                              const std::vector<const RaggedObject*>& objects) {
  Shape shape({0});
  if (!objects.empty()) shape = objects[0]->values.shape();
  if (shape.rank() == 0) return absl::InvalidArgumentError("a component's values are a scalar");
  int64_t rows = 0;
  for (const RaggedObject* object : objects) {
    const Shape& part = object->values.shape();
    if (part.rank() != shape.rank() || WithoutDim0(part) != WithoutDim0(shape))
      return absl::InvalidArgumentError(absl::StrCat("the components' values ", shape.ToString(),
                                                     " and ", part.ToString(),
                                                     " differ behind dimension 0"));
    rows += part.dim(0);
  }
  shape.set_dim(0, rows);
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(k, dtype, shape));
  int64_t at = 0;
  for (const RaggedObject* object : objects) {
    const Shape& part = object->values.shape();
    if (part.elements() != 0)
      CopyElements(dtype, object->values.data(), Rows(out, at, part).data, part.elements());
    at += part.dim(0);
  }
  return absl::OkStatus();
}

absl::Status FromVariant(const KernelContext& ctx, const Wanted& wanted) {
  const TensorView& handles = ctx.in(0);
  const int batch = handles.shape.rank();
  const int levels = wanted.levels >= 0 ? wanted.levels : wanted.out_levels - batch;
  if (levels < 0 || levels + batch != wanted.out_levels)
    return absl::InvalidArgumentError(
        absl::StrCat("a batch ", handles.shape.ToString(), " of components of ragged rank ", levels,
                     " does not give ragged rank ", wanted.out_levels));
  FLOE_ASSIGN_OR_RETURN(const std::vector<const RaggedObject*> objects,
                        Objects(handles, levels, wanted));
  if (batch == 0) {
    for (int k = 0; k < levels; ++k)
      FLOE_RETURN_IF_ERROR(GiveTensor(ctx, k, objects[0]->splits[k].view()));
    return GiveTensor(ctx, levels, objects[0]->values.view());
  }
  FLOE_RETURN_IF_ERROR(GiveBatchSplits(ctx, wanted, handles.shape, objects));
  for (int level = 0; level < levels; ++level)
    FLOE_RETURN_IF_ERROR(GiveJoinedSplits(ctx, batch + level, level, wanted.splits, objects));
  return GiveJoinedValues(ctx, wanted.out_levels, wanted.values, objects);
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeFromVariant(const KernelArgs& args) {
  const Attrs& attrs = args.node.attrs;
  const Wanted wanted{static_cast<int>(attrs.Int("input_ragged_rank", -1)),
                      static_cast<int>(attrs.Int("output_ragged_rank")),
                      attrs.Type("Tsplits", DType::kInt64), attrs.Type("Tvalues")};
  return FromFunction([wanted](const KernelContext& ctx) { return FromVariant(ctx, wanted); });
}
FLOE_REGISTER_KERNEL(RaggedTensorFromVariant, kCpu, MakeFromVariant);

}  // namespace
}  // namespace floe::kernels
