// Sequence examples into tensors: the context as of examples, then each wanted list: its steps are
// found and counted in all examples, so that outputs are made at their size, and written.
#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/parse/example_reader.h"
#include "kernels/cpu/parse/parse_features.h"

namespace floe::kernels {
namespace {

using ops::SequenceSpec;

constexpr uint32_t kFeatureLists = 2;  // field of a SequenceExample

// One list in all examples: what each of its steps holds, example after example.
struct SequenceSteps {
  std::string key;
  BudgetVector<FeatureList> steps;
  std::vector<int64_t> first = {0};  // step of each example, and one past the last
  bool batch = true;

  int64_t examples() const { return static_cast<int64_t>(first.size()) - 1; }
  int64_t Count(int64_t example) const {
    return first[static_cast<size_t>(example) + 1] - first[static_cast<size_t>(example)];
  }
  int64_t Longest() const {
    int64_t longest = 0;
    for (int64_t e = 0; e < examples(); ++e) longest = std::max(longest, Count(e));
    return longest;
  }
  int64_t Values() const {
    int64_t total = 0;
    for (const FeatureList& step : steps) total += step.count;
    return total;
  }
};

// The list of a key in one example: its bytes, and whether it is there at all. The last one counts.
bool FindList(std::string_view example, std::string_view key, std::string_view* list, bool* found) {
  *found = false;
  return ForEachPart(example, kFeatureLists, [&](std::string_view lists) {
    return ForEachPart(lists, 1, [&](std::string_view entry) {
      std::string_view name, value;
      const auto keep = [](std::string_view* to) {
        return [to](std::string_view bytes) {
          *to = bytes;
          return true;
        };
      };
      if (!ForEachPart(entry, 1, keep(&name)) || !ForEachPart(entry, 2, keep(&value))) return false;
      if (name == key) {
        *list = value;
        *found = true;
      }
      return true;
    });
  });
}

absl::StatusOr<SequenceSteps> FindSteps(const KernelContext& ctx, const std::string& key,
                                        DType wanted, bool required) {
  SequenceSteps found;
  found.key = key;
  found.batch = ctx.in(0).shape.rank() == 1;
  for (int64_t e = 0; e < ctx.in(0).elements(); ++e) {
    if (e % 256 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
    const auto error = [&](const std::string& what) {
      return absl::InvalidArgumentError(
          absl::StrCat(ExampleName(ctx, e), ", feature list ", Quoted(key), ": ", what));
    };
    std::string_view list;
    bool there = false;
    if (!FindList(ctx.in(0).as<std::string>()[e], key, &list, &there))
      return error("could not parse it: it is no tf.train.SequenceExample");
    if (!there && required) return error("it is required but could not be found");
    absl::Status step_error;
    const bool parsed = ForEachPart(list, 1, [&](std::string_view feature) {
      FeatureList step;
      if (!ReadFeature(feature, &step)) return false;
      if (step.dtype != DType::kInvalid && step.dtype != wanted)
        step_error = error(absl::StrCat("Data types don't match: it holds ", DTypeName(step.dtype),
                                        ", expected ", DTypeName(wanted)));
      found.steps.push_back(step);
      return step_error.ok();
    });
    FLOE_RETURN_IF_ERROR(step_error);
    if (!parsed) return error("could not parse its values");
    found.first.push_back(static_cast<int64_t>(found.steps.size()));
  }
  return found;
}

absl::Status GiveValues(const KernelContext& ctx, const SequenceSteps& list, int output,
                        DType dtype) {
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(output, dtype, Shape({list.Values()})));
  int64_t at = 0;
  for (const FeatureList& step : list.steps) {
    WriteValues(step, out, at);
    at += step.count;
  }
  return absl::OkStatus();
}

// Outputs `first` (indices), `first` + `apart` (values), `first` + 2 `apart` (the shape).
absl::Status GiveSparse(const KernelContext& ctx, const SequenceSteps& list, int first, int apart,
                        DType dtype) {
  const int64_t width = list.batch ? 3 : 2;
  FLOE_ASSIGN_OR_RETURN(
      const TensorView indices,
      ctx.allocator->Allocate(first, DType::kInt64, Shape({list.Values(), width})));
  auto* to = indices.as<int64_t>();
  int64_t widest = 0;
  for (int64_t e = 0; e < list.examples(); ++e) {
    for (int64_t s = 0; s < list.Count(e); ++s) {
      const int64_t count = list.steps[static_cast<size_t>(list.first[e] + s)].count;
      widest = std::max(widest, count);
      for (int64_t i = 0; i < count; ++i) {
        if (list.batch) *to++ = e;
        *to++ = s;
        *to++ = i;
      }
    }
  }
  FLOE_RETURN_IF_ERROR(GiveValues(ctx, list, first + apart, dtype));
  std::vector<int64_t> shape = {list.Longest(), widest};
  if (list.batch) shape.insert(shape.begin(), list.examples());
  return Give(ctx, first + 2 * apart, shape);
}

// Output `values`: steps that shorter examples lack are 0 or empty; output `lengths`.
absl::Status GiveDense(const KernelContext& ctx, const SequenceSteps& list,
                       const SymShape& step_shape, DType dtype, int values, int lengths) {
  std::vector<int64_t> dims;
  dims.reserve(static_cast<size_t>(step_shape.rank()) + 2);
  for (int i = 0; i < step_shape.rank(); ++i) dims.push_back(step_shape.dim(i).size());
  FLOE_ASSIGN_OR_RETURN(const int64_t each, CheckedElements(dims, sizeof(int64_t)));
  const int64_t longest = list.Longest();
  dims.insert(dims.begin(), longest);
  if (list.batch) dims.insert(dims.begin(), list.examples());
  FLOE_RETURN_IF_ERROR(CheckedElements(dims, sizeof(std::string)).status());
  Shape shape;
  for (const int64_t dim : dims) shape.push_back(dim);
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(values, dtype, shape));
  if (dtype != DType::kString) std::memset(out.data, 0, out.bytes());
  std::vector<int64_t> counts;
  for (int64_t e = 0; e < list.examples(); ++e) {
    counts.push_back(list.Count(e));
    for (int64_t s = 0; s < list.Count(e); ++s) {
      const FeatureList& step = list.steps[static_cast<size_t>(list.first[e] + s)];
      if (step.count != each)
        return absl::InvalidArgumentError(
            absl::StrCat(ExampleName(ctx, e), ", feature list ", Quoted(list.key), ", step ", s,
                         ": Number of values != expected: ", step.count, " values for the shape ",
                         step_shape.ToString()));
      WriteValues(step, out, (e * longest + s) * each);
    }
  }
  return list.batch ? Give(ctx, lengths, counts) : Give(ctx, lengths, counts, Shape());
}

// Outputs `first` (values), then `apart` further the splits of examples and those of steps.
absl::Status GiveRagged(const KernelContext& ctx, const SequenceSteps& list, DType dtype,
                        DType splits_type, int first, int apart) {
  FLOE_RETURN_IF_ERROR(GiveValues(ctx, list, first, dtype));
  std::vector<int64_t> inner = {0};
  for (const FeatureList& step : list.steps) inner.push_back(inner.back() + step.count);
  FLOE_RETURN_IF_ERROR(list.batch ? GiveInts(ctx, first + apart, splits_type, list.first)
                                  : GiveInts(ctx, first + apart, splits_type, {0}, Shape()));
  return GiveInts(ctx, first + 2 * apart, splits_type, inner);
}

absl::Status ParseLists(const KernelContext& ctx, const SequenceSpec& spec) {
  const auto keys = [&ctx](int kind) { return ctx.in(SequenceSpec::kListKeys + kind); };
  const auto sparse = static_cast<int>(spec.lists.sparse.size()),
             dense = static_cast<int>(spec.lists.dense.size()),
             ragged = static_cast<int>(spec.lists.ragged.size());
  const TensorView missing = ctx.in(SequenceSpec::kMayBeMissing);
  if (keys(0).elements() != sparse || keys(1).elements() != dense || keys(2).elements() != ragged ||
      missing.elements() != dense)
    return absl::InvalidArgumentError(
        absl::StrCat(keys(0).elements(), ", ", keys(1).elements(), " and ", keys(2).elements(),
                     " keys and ", missing.elements(), " flags for ", sparse, " sparse, ", dense,
                     " dense and ", ragged, " ragged feature lists"));
  const int first_dense = spec.context_outputs() + 3 * sparse,
            first_ragged = first_dense + 2 * dense;
  for (int k = 0; k < sparse; ++k) {
    const DType dtype = spec.lists.sparse[static_cast<size_t>(k)];
    FLOE_ASSIGN_OR_RETURN(const SequenceSteps list,
                          FindSteps(ctx, keys(0).as<std::string>()[k], dtype, false));
    FLOE_RETURN_IF_ERROR(GiveSparse(ctx, list, spec.context_outputs() + k, sparse, dtype));
  }
  for (int k = 0; k < dense; ++k) {
    const DType dtype = spec.lists.dense[static_cast<size_t>(k)];
    FLOE_ASSIGN_OR_RETURN(const SequenceSteps list, FindSteps(ctx, keys(1).as<std::string>()[k],
                                                              dtype, !missing.as<bool>()[k]));
    FLOE_RETURN_IF_ERROR(GiveDense(ctx, list, spec.lists.dense_shapes[static_cast<size_t>(k)],
                                   dtype, first_dense + k, first_dense + dense + k));
  }
  for (int k = 0; k < ragged; ++k) {
    const DType dtype = spec.lists.ragged[static_cast<size_t>(k)];
    FLOE_ASSIGN_OR_RETURN(const SequenceSteps list,
                          FindSteps(ctx, keys(2).as<std::string>()[k], dtype, false));
    FLOE_RETURN_IF_ERROR(GiveRagged(ctx, list, dtype,
                                    spec.lists.ragged_splits[static_cast<size_t>(k)],
                                    first_ragged + k, ragged));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSequenceExample(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const SequenceSpec spec,
                        ops::SequenceSpecOf(args.node, static_cast<int>(args.inputs.size())));
  return FromFunction([spec, attrs = args.node.attrs](const KernelContext& ctx) -> absl::Status {
    FLOE_RETURN_IF_ERROR(ParseFeatures(ctx, spec.context, attrs));
    return ParseLists(ctx, spec);
  });
}
FLOE_REGISTER_KERNEL(ParseSequenceExampleV2, kCpu, MakeSequenceExample, DType::kString);

}  // namespace
}  // namespace floe::kernels
