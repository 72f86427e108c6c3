// SparseCross and RaggedCross: for each row of a batch every combination of one value from each
// feature, as a string or as a hash of their fingerprints.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/text/string_hash.h"

namespace floe::kernels {
namespace {

// How a combination becomes one value.
struct SparseCrossOptions {
  int64_t sparse = 0;  // features given as indices, values and shape
  int64_t more = 0;    // inputs after the features
  bool hashed = false;
  bool keyed = false, strong = false;  // version 2 of hashing
  uint64_t buckets = 0;                // 0: as many as there are numbers
  uint64_t key[2] = {0, 0};
  std::string separator = "_X_";
};

// The values of one feature, row by row.
struct Feature {
  TensorView values;
  bool dense = false;
  std::vector<int64_t> first = {};  // of each row, and one past the last

  std::string Text(int64_t i) const {
    return values.dtype == DType::kString ? values.as<std::string>()[i]
                                          : absl::StrCat(values.as<int64_t>()[i]);
  }
  uint64_t Hash(int64_t i, const SparseCrossOptions& options) const {
    if (values.dtype == DType::kString) {
      const std::string& text = values.as<std::string>()[i];
      return options.strong ? SipHash(options.key[0], options.key[1], text) : Fingerprint64(text);
    }
    const int64_t number = values.as<int64_t>()[i];
    if (!options.keyed || (dense && !options.strong)) return static_cast<uint64_t>(number);
    // TensorFlow hashes the lower half of the number.
    const std::string half(reinterpret_cast<const char*>(&number), 4);
    return options.strong ? SipHash(options.key[0], options.key[1], half) : Fingerprint64(half);
  }
};

absl::StatusOr<Feature> SparseFeature(const TensorView& indices, const TensorView& values,
                                      int64_t rows) {
  if (indices.shape.rank() != 2 || indices.shape.dim(1) != 2 || values.shape.rank() != 1 ||
      indices.shape.dim(0) != values.shape.dim(0))
    return absl::InvalidArgumentError(absl::StrCat("indices ", indices.shape.ToString(),
                                                   " for values ", values.shape.ToString()));
  Feature feature{values, false, std::vector<int64_t>(static_cast<size_t>(rows) + 1)};
  int64_t last = 0;
  for (int64_t i = 0; i < values.elements(); ++i) {
    const int64_t row = indices.as<int64_t>()[2 * i];
    if (row < last || row >= rows)
      return absl::InvalidArgumentError(absl::StrCat("index ", row, " after ", last, " in ", rows,
                                                     " rows, expected ascending ones"));
    last = row;
    ++feature.first[static_cast<size_t>(row) + 1];
  }
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) feature.first[r + 1] += feature.first[r];
  return feature;
}

absl::StatusOr<Feature> RaggedFeature(const TensorView& values, const TensorView& splits) {
  IntList first;
  FLOE_RETURN_IF_ERROR(ReadInts(splits, &first));
  if (values.shape.rank() != 1 || splits.shape.rank() != 1 || first.empty() || first[0] != 0 ||
      first.back() != values.elements() || !std::is_sorted(first.begin(), first.end()))
    return absl::InvalidArgumentError(
        absl::StrCat("row splits ", splits.shape.ToString(), " that do not ascend from 0 to the ",
                     values.elements(), " values of ", values.shape.ToString()));
  return Feature{values, false, std::vector<int64_t>(first.begin(), first.end())};
}

Feature DenseFeature(const TensorView& values) {
  Feature feature{values, true};
  for (int64_t r = 0; r <= values.shape.dim(0); ++r)
    feature.first.push_back(r * values.shape.dim(1));
  return feature;
}

absl::StatusOr<std::vector<Feature>> FeaturesOf(const KernelContext& ctx,
                                                const SparseCrossOptions& options, int64_t* rows) {
  const auto inputs = static_cast<int64_t>(ctx.inputs.size()) - options.more;
  const auto in = [&](int64_t i) -> const TensorView& { return ctx.in(static_cast<int>(i)); };
  *rows = -1;
  for (int64_t i = 2 * options.sparse; i < inputs; ++i) {
    const bool shape = i < 3 * options.sparse;
    if (in(i).shape.rank() != (shape ? 1 : 2) || (shape && in(i).elements() != 2))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                     in(i).shape.ToString(), ", expected ",
                                                     shape ? "[2]" : "a matrix"));
    const int64_t count = shape ? in(i).as<int64_t>()[0] : in(i).shape.dim(0);
    if (*rows >= 0 && count != *rows)
      return absl::InvalidArgumentError(
          absl::StrCat("features of ", *rows, " and of ", count, " rows"));
    *rows = count;
  }
  if (*rows < 0) return absl::InvalidArgumentError("there are no features, or none with rows");
  const int64_t row_places[] = {*rows, inputs};  // each feature has a place for every row
  FLOE_ASSIGN_OR_RETURN(const int64_t places, CheckedElements(row_places, sizeof(int64_t)));
  FLOE_RETURN_IF_ERROR(CheckValueBytes(places * static_cast<int64_t>(sizeof(int64_t))));
  std::vector<Feature> features;
  for (int64_t i = 0; i < options.sparse; ++i) {
    FLOE_ASSIGN_OR_RETURN(Feature feature, SparseFeature(in(i), in(options.sparse + i), *rows));
    features.push_back(std::move(feature));
  }
  for (int64_t i = 3 * options.sparse; i < inputs; ++i) {
    features.push_back(DenseFeature(in(i)));
  }
  return features;
}

int64_t HashOf(const std::vector<Feature>& features, const std::vector<int64_t>& at,
               const SparseCrossOptions& options) {
  // Version 1 begins with the key, version 2 with the first feature.
  const size_t begun = options.keyed ? 1 : 0;
  uint64_t hash = options.keyed ? features[0].Hash(at[0], options) : options.key[0];
  for (size_t k = begun; k < features.size(); ++k)
    hash = FingerprintCat64(hash, features[k].Hash(at[k], options));
  const uint64_t most = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(hash % (options.buckets > 0 ? options.buckets : most));
}

std::string TextOf(const std::vector<Feature>& features, const std::vector<int64_t>& at,
                   const SparseCrossOptions& options) {
  std::string text;
  for (size_t k = 0; k < features.size(); ++k)
    absl::StrAppend(&text, k == 0 ? "" : options.separator, features[k].Text(at[k]));
  return text;
}

// Calls each(places) for every combination of a row, the last feature changing first.
template <class F>
absl::Status Combinations(const std::vector<Feature>& features, size_t row, const F& each) {
  std::vector<int64_t> at;
  for (const Feature& feature : features) {
    if (feature.first[row] == feature.first[row + 1]) return absl::OkStatus();
    at.push_back(feature.first[row]);
  }
  while (true) {
    FLOE_RETURN_IF_ERROR(each(at));
    size_t k = features.size();
    while (k > 0 && ++at[k - 1] == features[k - 1].first[row + 1]) {
      at[k - 1] = features[k - 1].first[row];
      --k;
    }
    if (k == 0) return absl::OkStatus();
  }
}

absl::Status Cross(const KernelContext& ctx, const SparseCrossOptions& options) {
  int64_t rows = 0;
  FLOE_ASSIGN_OR_RETURN(const std::vector<Feature> features, FeaturesOf(ctx, options, &rows));
  std::vector<int64_t> indices, hashes;
  std::vector<std::string> texts;
  int64_t widest = 0, bytes = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t count = 0;
    FLOE_RETURN_IF_ERROR(Combinations(
        features, static_cast<size_t>(r), [&](const std::vector<int64_t>& at) -> absl::Status {
          indices.insert(indices.end(), {r, count++});
          if (options.hashed) {
            hashes.push_back(HashOf(features, at, options));
          } else {
            texts.push_back(TextOf(features, at, options));
          }
          // Few values make many combinations.
          bytes += 64 + (options.hashed ? 0 : static_cast<int64_t>(texts.back().size()));
          return CheckValueBytes(bytes);
        }));
    widest = std::max(widest, count);
  }
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({static_cast<int64_t>(indices.size()) / 2, 2})));
  if (options.hashed) {
    FLOE_RETURN_IF_ERROR(Give(ctx, 1, hashes));
  } else {
    FLOE_RETURN_IF_ERROR(Give(ctx, 1, texts));
  }
  return Give(ctx, 2, std::vector<int64_t>{rows, widest});
}

// Features in the order of a RaggedCross: by kind the inputs, by `order` the features.
absl::StatusOr<std::vector<Feature>> OrderedFeatures(const KernelContext& ctx,
                                                     const std::string& order) {
  const auto count = [&order](char kind) {
    return static_cast<int>(std::count(order.begin(), order.end(), kind));
  };
  const int ragged = count('R'), sparse = count('S'), first_sparse = 2 * ragged;
  int next_ragged = 0, next_sparse = first_sparse, next_dense = first_sparse + 3 * sparse;
  std::vector<Feature> features;
  for (const char kind : order) {
    absl::StatusOr<Feature> feature = absl::InternalError("no feature");
    if (kind == 'R') {
      feature = RaggedFeature(ctx.in(next_ragged), ctx.in(ragged + next_ragged));
      ++next_ragged;
    } else if (kind == 'S') {
      IntList shape;
      FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(next_sparse + 2 * sparse), &shape));
      if (shape.size() != 2) return absl::InvalidArgumentError("a sparse feature is no matrix");
      FLOE_RETURN_IF_ERROR(CheckedElements(absl::MakeConstSpan(shape.data(), 1), 8).status());
      FLOE_RETURN_IF_ERROR(CheckValueBytes(shape[0] * static_cast<int64_t>(sizeof(int64_t))));
      feature = SparseFeature(ctx.in(next_sparse), ctx.in(next_sparse + sparse), shape[0]);
      ++next_sparse;
    } else {
      const TensorView& values = ctx.in(next_dense++);
      if (values.shape.rank() != 2)
        return absl::InvalidArgumentError(absl::StrCat(
            "a dense feature has shape ", values.shape.ToString(), ", expected a matrix"));
      feature = DenseFeature(values);
    }
    if (!feature.ok()) return feature.status();
    if (!features.empty() && features[0].first.size() != feature->first.size())
      return absl::InvalidArgumentError(absl::StrCat("features of ", features[0].first.size() - 1,
                                                     " and of ", feature->first.size() - 1,
                                                     " rows"));
    features.push_back(*std::move(feature));
  }
  if (features.empty()) return absl::InvalidArgumentError("there are no features");
  return features;
}

absl::Status CrossRagged(const KernelContext& ctx, const std::string& order,
                         const SparseCrossOptions& options, DType splits_type) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<Feature> features, OrderedFeatures(ctx, order));
  std::vector<int64_t> hashes, splits = {0};
  std::vector<std::string> texts;
  int64_t count = 0, bytes = 0;
  for (size_t r = 0; r + 1 < features[0].first.size(); ++r) {
    FLOE_RETURN_IF_ERROR(
        Combinations(features, r, [&](const std::vector<int64_t>& at) -> absl::Status {
          ++count;
          if (options.hashed) {
            hashes.push_back(HashOf(features, at, options));
          } else {
            texts.push_back(TextOf(features, at, options));
          }
          bytes += 48 + (options.hashed ? 0 : static_cast<int64_t>(texts.back().size()));
          return CheckValueBytes(bytes);
        }));
    splits.push_back(count);
  }
  if (splits_type == DType::kInt32 && count > INT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat(count, " crossed values for splits of int32"));
  FLOE_RETURN_IF_ERROR(options.hashed ? Give(ctx, 0, hashes) : Give(ctx, 0, texts));
  return GiveInts(ctx, 1, splits_type, splits);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRagged(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  SparseCrossOptions options;
  options.hashed = a.Bool("hashed_output");
  options.buckets = static_cast<uint64_t>(std::max<int64_t>(a.Int("num_buckets"), 0));
  options.key[0] = static_cast<uint64_t>(a.Int("hash_key"));
  return FromFunction(
      [options, order = a.String("input_order"),
       splits = a.Type("out_row_splits_type", DType::kInt64)](const KernelContext& ctx) {
        return CrossRagged(ctx, order, options, splits);
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSparseCross(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  SparseCrossOptions options;
  options.sparse = a.Int("N");
  options.hashed = a.Bool("hashed_output");
  options.buckets = static_cast<uint64_t>(std::max<int64_t>(a.Int("num_buckets"), 0));
  options.key[0] = static_cast<uint64_t>(a.Int("hash_key"));
  return FromFunction([options](const KernelContext& ctx) { return Cross(ctx, options); });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeV2(const KernelArgs& args) {
  SparseCrossOptions options;
  options.sparse = args.node.attrs.Int("N");
  options.more = 1;
  return FromFunction([base = options](const KernelContext& ctx) -> absl::Status {
    SparseCrossOptions options = base;
    if (ctx.inputs.back().elements() != 1) return absl::InvalidArgumentError("sep is no scalar");
    options.separator = *ctx.inputs.back().as<std::string>();
    return Cross(ctx, options);
  });
}

// The last inputs: num_buckets, strong_hash, salt.
absl::StatusOr<std::unique_ptr<Kernel>> MakeHashed(const KernelArgs& args) {
  SparseCrossOptions options;
  options.sparse = args.node.attrs.Int("N");
  options.more = 3;
  options.hashed = options.keyed = true;
  return FromFunction([base = options](const KernelContext& ctx) -> absl::Status {
    SparseCrossOptions options = base;
    const auto last = ctx.inputs.subspan(ctx.inputs.size() - 3);
    FLOE_ASSIGN_OR_RETURN(const int64_t buckets, ReadInt(last[0]));
    if (last[1].elements() != 1 || last[2].elements() != 2)
      return absl::InvalidArgumentError(absl::StrCat("strong_hash ", last[1].shape.ToString(),
                                                     " and salt ", last[2].shape.ToString(),
                                                     ", expected [] and [2]"));
    options.buckets = static_cast<uint64_t>(std::max<int64_t>(buckets, 0));
    options.strong = *last[1].as<bool>();
    for (int i = 0; i < 2; ++i) options.key[i] = static_cast<uint64_t>(last[2].as<int64_t>()[i]);
    return Cross(ctx, options);
  });
}
FLOE_REGISTER_KERNEL(SparseCross, kCpu, MakeSparseCross);
FLOE_REGISTER_KERNEL(SparseCrossV2, kCpu, MakeV2);
FLOE_REGISTER_KERNEL(SparseCrossHashed, kCpu, MakeHashed);
FLOE_REGISTER_KERNEL(RaggedCross, kCpu, MakeRagged);

}  // namespace
}  // namespace floe::kernels
