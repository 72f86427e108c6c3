// Examples into tensors: first the lists of the wanted features are found and counted, so that
// outputs are made at their size, then their values are written.
#include "model/ops/parse_example.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

using ops::ExampleSpec;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// The wanted features: sparse, dense, ragged, in the order of the node.
struct Keys {
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, int> places;
};

absl::StatusOr<Keys> MakeKeys(std::vector<std::string> names) {
  Keys keys{std::move(names), {}};
  for (size_t i = 0; i < keys.names.size(); ++i) {
    if (!keys.places.emplace(keys.names[i], static_cast<int>(i)).second)
      return absl::InvalidArgumentError(
          absl::StrCat("key ", Quoted(keys.names[i]), " is asked for twice"));
  }
  return keys;
}

// One example: a row of FeatureLists. Of one that is not a vector of examples there is one.
struct Found {
  const Keys& keys;
  const ExampleSpec& spec;
  bool batch = true;
  int64_t examples = 0;
  BudgetVector<FeatureList> lists;  // [examples, features]

  const FeatureList& At(int64_t example, size_t feature) const {
    return lists[static_cast<size_t>(example) * keys.names.size() + feature];
  }
  int64_t Total(size_t feature) const {
    int64_t total = 0;
    for (int64_t e = 0; e < examples; ++e) total += At(e, feature).count;
    return total;
  }
  int64_t Longest(size_t feature) const {
    int64_t longest = 0;
    for (int64_t e = 0; e < examples; ++e) longest = std::max(longest, At(e, feature).count);
    return longest;
  }
};

std::string NameOf(const KernelContext& ctx, const ExampleSpec& spec, int64_t example) {
  return spec.keys[0] >= 0 ? ExampleName(ctx, example) : absl::StrCat("example ", example);
}

DType WantedType(const ExampleSpec& spec, size_t feature) {
  if (feature < spec.sparse.size()) return spec.sparse[feature];
  feature -= spec.sparse.size();
  return feature < spec.dense.size() ? spec.dense[feature]
                                     : spec.ragged[feature - spec.dense.size()];
}

absl::Status FindFeatures(const KernelContext& ctx, int64_t example, Found* found) {
  const std::string& bytes = ctx.in(0).as<std::string>()[example];
  FeatureList* const row =
      found->lists.data() + static_cast<size_t>(example) * found->keys.names.size();
  const bool parsed = ForEachFeature(bytes, [&](std::string_view key, std::string_view feature) {
    const auto at = found->keys.places.find(Absl(key));
    if (at != found->keys.places.end()) row[at->second] = {DType::kInvalid, -1, feature};
  });
  if (!parsed)
    return absl::InvalidArgumentError(absl::StrCat(
        "could not parse ", NameOf(ctx, found->spec, example), ": it is no tf.train.Example"));
  for (size_t k = 0; k < found->keys.names.size(); ++k) {
    if (row[k].count == 0) continue;
    const auto error = [&](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat(NameOf(ctx, found->spec, example), ", key ",
                                                     Quoted(found->keys.names[k]), ": ", what));
    };
    const std::string_view feature = row[k].bytes;
    if (!ReadFeature(feature, &row[k])) return error("could not parse its values");
    const DType wanted = WantedType(found->spec, k);
    if (row[k].dtype != DType::kInvalid && row[k].dtype != wanted)
      return error(absl::StrCat("Data types don't match: it holds ", DTypeName(row[k].dtype),
                                ", expected ", DTypeName(wanted)));
  }
  return absl::OkStatus();
}

// All values of a feature, example after example.
absl::Status GiveValues(const KernelContext& ctx, const Found& found, size_t feature, int output) {
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(output, WantedType(found.spec, feature),
                                                Shape({found.Total(feature)})));
  int64_t at = 0;
  for (int64_t e = 0; e < found.examples; ++e) {
    WriteValues(found.At(e, feature), out, at);
    at += found.At(e, feature).count;
  }
  return absl::OkStatus();
}

absl::Status GiveSparse(const KernelContext& ctx, const Found& found, size_t feature) {
  const auto sparse = static_cast<int>(found.spec.sparse.size()), k = static_cast<int>(feature);
  FLOE_ASSIGN_OR_RETURN(const TensorView indices,
                        ctx.allocator->Allocate(
                            k, DType::kInt64, Shape({found.Total(feature), found.batch ? 2 : 1})));
  auto* to = indices.as<int64_t>();
  for (int64_t e = 0; e < found.examples; ++e) {
    for (int64_t i = 0; i < found.At(e, feature).count; ++i) {
      if (found.batch) *to++ = e;
      *to++ = i;
    }
  }
  FLOE_RETURN_IF_ERROR(GiveValues(ctx, found, feature, sparse + k));
  std::vector<int64_t> shape = {found.Longest(feature)};
  if (found.batch) shape.insert(shape.begin(), found.examples);
  return Give(ctx, 2 * sparse + k, shape);
}

absl::Status GiveRagged(const KernelContext& ctx, const Found& found, size_t ragged) {
  const ExampleSpec& spec = found.spec;
  const size_t feature = spec.sparse.size() + spec.dense.size() + ragged;
  const size_t output = 3 * spec.sparse.size() + spec.dense.size() + ragged;
  FLOE_RETURN_IF_ERROR(GiveValues(ctx, found, feature, static_cast<int>(output)));
  std::vector<int64_t> splits;
  if (found.batch) splits.push_back(0);
  for (int64_t e = 0; found.batch && e < found.examples; ++e)
    splits.push_back(splits.back() + found.At(e, feature).count);
  return GiveInts(ctx, static_cast<int>(output + spec.ragged.size()), spec.ragged_splits[ragged],
                  splits);
}

// `count` elements of `from` from its element `first` on; strings count against the budget.
absl::Status CopyDefault(const TensorView& from, bool one, int64_t count, const TensorView& out,
                         int64_t at, int64_t* string_bytes) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = one ? 0 : i;
    if (out.dtype == DType::kString) {
      const std::string& text = from.as<std::string>()[k];
      *string_bytes += static_cast<int64_t>(text.size());
      FLOE_RETURN_IF_ERROR(CheckValueBytes(*string_bytes));
      out.as<std::string>()[at + i] = text;
    } else if (out.dtype == DType::kFloat32) {
      out.as<float>()[at + i] = from.as<float>()[k];
    } else {
      out.as<int64_t>()[at + i] = from.as<int64_t>()[k];
    }
  }
  return absl::OkStatus();
}

// What a dense output looks like once the lists are counted.
struct DenseShape {
  Shape shape;            // of the output
  int64_t each = 1;       // elements of one example
  bool variable = false;  // shorter examples are padded
};

absl::StatusOr<DenseShape> DenseShapeOf(const Found& found, size_t dense) {
  const SymShape& declared = found.spec.dense_shapes[dense];
  const size_t feature = found.spec.sparse.size() + dense;
  DenseShape result;
  result.variable = found.spec.VariableLength(static_cast<int>(dense));
  std::vector<int64_t> dims;
  for (int i = result.variable ? 1 : 0; i < declared.rank(); ++i)
    dims.push_back(declared.dim(i).size());
  FLOE_ASSIGN_OR_RETURN(const int64_t step, CheckedElements(dims, sizeof(int64_t)));
  if (result.variable) {
    for (int64_t e = 0; e < found.examples; ++e) {
      const int64_t count = found.At(e, feature).count;
      if (step == 0 ? count != 0 : count % step != 0)
        return absl::InvalidArgumentError(
            absl::StrCat("example ", e, ", key ", Quoted(found.keys.names[feature]), ": ", count,
                         " values, expected a multiple of ", step));
    }
    dims.insert(dims.begin(), step == 0 ? 0 : found.Longest(feature) / step);
  }
  if (found.batch) result.shape.push_back(found.examples);
  for (const int64_t dim : dims) result.shape.push_back(dim);
  FLOE_ASSIGN_OR_RETURN(result.each, CheckedElements(dims, sizeof(int64_t)));
  return result;
}

absl::Status CheckDefault(const Found& found, size_t dense, const TensorView& value) {
  const SymShape& declared = found.spec.dense_shapes[dense];
  bool fits = found.spec.VariableLength(static_cast<int>(dense)) ? value.elements() == 1
                                                                 : value.elements() == 0;
  if (!fits && !found.spec.VariableLength(static_cast<int>(dense)))
    fits = SymShape(value.shape) == declared;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dense_defaults[", dense, "] of shape ", value.shape.ToString(),
                   " is not compatible with dense_shapes[", dense, "], ", declared.ToString()));
}

absl::Status GiveDense(const KernelContext& ctx, const Found& found, size_t dense) {
  const ExampleSpec& spec = found.spec;
  const size_t feature = spec.sparse.size() + dense;
  const TensorView& otherwise = ctx.in(spec.first_default + static_cast<int>(dense));
  FLOE_RETURN_IF_ERROR(CheckDefault(found, dense, otherwise));
  FLOE_ASSIGN_OR_RETURN(const DenseShape form, DenseShapeOf(found, dense));
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(static_cast<int>(3 * spec.sparse.size() + dense),
                                                spec.dense[dense], form.shape));
  int64_t string_bytes = 0;
  for (int64_t e = 0; e < found.examples; ++e) {
    const FeatureList& list = found.At(e, feature);
    const bool missing = list.dtype == DType::kInvalid;
    const auto error = [&](const std::string& what) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(ctx, spec, e), ", key ", Quoted(found.keys.names[feature]), what));
    };
    if (missing && !form.variable && otherwise.elements() == 0)
      return error(
          absl::StrCat(" (", DTypeName(spec.dense[dense]), ") is required but could not be found"));
    if (!missing && !form.variable && list.count != form.each)
      return error(absl::StrCat(": Number of values != expected: ", list.count,
                                " values for the shape ", spec.dense_shapes[dense].ToString()));
    const int64_t at = e * form.each, given = missing ? 0 : list.count;
    if (!missing) WriteValues(list, out, at);
    FLOE_RETURN_IF_ERROR(
        CopyDefault(otherwise, form.variable, form.each - given, out, at + given, &string_bytes));
  }
  return absl::OkStatus();
}

absl::Status Parse(const KernelContext& ctx, const ExampleSpec& spec, const Keys& keys) {
  const TensorView& in = ctx.in(0);
  Found found{keys, spec, in.shape.rank() == 1, in.elements(), {}};
  if (spec.keys[0] >= 0 && ctx.in(1).elements() != 0 && ctx.in(1).elements() != in.elements())
    return absl::InvalidArgumentError(
        absl::StrCat(ctx.in(1).elements(), " names for ", in.elements(), " examples"));
  found.lists.resize(static_cast<size_t>(in.elements()) * keys.names.size());
  for (int64_t e = 0; e < in.elements(); ++e) {
    if (e % 256 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
    FLOE_RETURN_IF_ERROR(FindFeatures(ctx, e, &found));
  }
  for (size_t k = 0; k < spec.sparse.size(); ++k) FLOE_RETURN_IF_ERROR(GiveSparse(ctx, found, k));
  for (size_t k = 0; k < spec.dense.size(); ++k) FLOE_RETURN_IF_ERROR(GiveDense(ctx, found, k));
  for (size_t k = 0; k < spec.ragged.size(); ++k) FLOE_RETURN_IF_ERROR(GiveRagged(ctx, found, k));
  return absl::OkStatus();
}

// The keys that inputs hold; each(i) gives input i.
template <class F>
absl::StatusOr<Keys> KeysOf(const ExampleSpec& spec, const Attrs& attrs, const F& each) {
  std::vector<std::string> names;
  const size_t counts[] = {spec.sparse.size(), spec.dense.size(), spec.ragged.size()};
  constexpr const char* kAttrs[] = {"sparse_keys", "dense_keys"};
  for (int kind = 0; kind < 3; ++kind) {
    const int first = spec.keys[kind];
    std::vector<std::string> some;
    if (spec.keys[0] < 0) {
      if (kind < 2) some = attrs.Get<std::vector<std::string>>(kAttrs[kind], {});
    } else if (first >= 0 && spec.key_vectors) {
      const TensorView in = each(first);
      some.assign(in.as<std::string>(), in.as<std::string>() + in.elements());
    } else if (first >= 0) {
      for (size_t i = 0; i < counts[kind]; ++i)
        some.push_back(*each(first + static_cast<int>(i)).template as<std::string>());
    }
    if (some.size() != counts[kind])
      return absl::InvalidArgumentError(
          absl::StrCat(some.size(), " keys for ", counts[kind], " features"));
    names.insert(names.end(), some.begin(), some.end());
  }
  return MakeKeys(std::move(names));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeParse(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ExampleSpec spec,
                        ops::ExampleSpecOf(args.node, static_cast<int>(args.inputs.size())));
  bool known = true;
  for (int i = spec.keys[0]; i >= 0 && i < spec.first_default; ++i)
    known = known && args.inputs[i].has_constant();
  if (known) {
    FLOE_ASSIGN_OR_RETURN(Keys keys, KeysOf(spec, args.node.attrs, [&args](int i) {
                            return args.inputs[i].constant.view();
                          }));
    return FromFunction([spec, keys = std::move(keys)](const KernelContext& ctx) {
      return Parse(ctx, spec, keys);
    });
  }
  return FromFunction([spec, attrs = args.node.attrs](const KernelContext& ctx) {
    return ParseFeatures(ctx, spec, attrs);
  });
}
FLOE_REGISTER_KERNEL(ParseExample, kCpu, MakeParse, DType::kString);
FLOE_REGISTER_KERNEL(ParseExampleV2, kCpu, MakeParse, DType::kString);
FLOE_REGISTER_KERNEL(ParseSingleExample, kCpu, MakeParse, DType::kString);

}  // namespace

absl::Status ParseFeatures(const KernelContext& ctx, const ExampleSpec& spec, const Attrs& attrs) {
  FLOE_ASSIGN_OR_RETURN(const Keys keys, KeysOf(spec, attrs, [&ctx](int i) { return ctx.in(i); }));
  return Parse(ctx, spec, keys);
}

void WriteValues(const FeatureList& list, const TensorView& out, int64_t at) {
  if (list.count == 0) return;
  if (out.dtype == DType::kString) {
    WriteStrings(list, out.as<std::string>() + at);
  } else if (out.dtype == DType::kFloat32) {
    WriteFloats(list, out.as<float>() + at);
  } else {
    WriteInts(list, out.as<int64_t>() + at);
  }
}

std::string ExampleName(const KernelContext& ctx, int64_t example) {
  return example < ctx.in(1).elements()
             ? absl::StrCat("example ", Quoted(ctx.in(1).as<std::string>()[example]))
             : absl::StrCat("example ", example);
}

}  // namespace floe::kernels
