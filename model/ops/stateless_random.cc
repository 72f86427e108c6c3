// Random numbers that follow from a seed given as an input, the same in every run. Version 1 has a
// seed of two numbers, version 2 the key and the counter of a generator.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::Status ExpectSeed(const InferContext& c, int input) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, input, 1));
  if (!IsInteger(c.dtype(input)))
    return Bad(absl::StrCat("the seed is ", DTypeName(c.dtype(input)), ", expected integers"));
  const Dim count = c.shape(input).rank_known() ? c.shape(input).dim(0) : Dim::Unknown();
  if (count.concrete() && count.size() != 2)
    return Bad(absl::StrCat("the seed has ", count.size(), " elements, expected 2"));
  return absl::OkStatus();
}

absl::Status ExpectGenerator(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kUInt64));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2, DType::kUInt64));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 3, DType::kInt32));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 1));
  return ops::ExpectRank(c, 3, 0);
}

enum class Kind : uint8_t { kFloat, kInt, kFullInt };

// shape, seed (or key, counter, algorithm)[, low, high].
template <Kind kKind, bool kSecond>
absl::StatusOr<Types> Infer(const InferContext& c) {
  if (kSecond) {
    FLOE_RETURN_IF_ERROR(ExpectGenerator(c));
  } else {
    FLOE_RETURN_IF_ERROR(ExpectSeed(c, 1));
  }
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  const DType usual = kKind == Kind::kFloat ? DType::kFloat32
                      : kKind == Kind::kInt ? c.dtype(c.num_inputs() - 1)
                                            : DType::kUInt64;
  absl::StatusOr<DType> dtype =
      kKind == Kind::kFloat
          ? ops::TypeAttrOf(c, "dtype", usual,
                            {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
          : ops::TypeAttrOf(c, "dtype", usual,
                            {DType::kInt32, DType::kInt64, DType::kUInt32, DType::kUInt64});
  if (!dtype.ok()) return dtype.status();
  for (int i = c.num_inputs() - 2; kKind == Kind::kInt && i < c.num_inputs(); ++i) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, *dtype));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, 0));
  }
  return ops::One(*dtype, std::move(shape));
}

// A number's place in the output decides it.
template <Kind kKind, bool kSecond>
OpDef Random(const std::string& name) {
  const int inputs = (kSecond ? 4 : 2) + (kKind == Kind::kInt ? 2 : 0);
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = Infer<kKind, kSecond>,
          .rows = ops::NoRows,
          .shape_inputs = 1,
          .tensorflow = {name}};
}

// shape, seed (or key, counter, algorithm), parameters that broadcast to the last dims.
template <bool kSecond>
absl::Status CheckDraw(const InferContext& c) {
  if (kSecond) return ExpectGenerator(c);
  return ExpectSeed(c, 1);
}
constexpr std::initializer_list<DType> kFloating = {DType::kFloat32, DType::kFloat64,
                                                    DType::kFloat16};
constexpr std::initializer_list<DType> kCounted = {DType::kFloat32, DType::kFloat64,
                                                   DType::kFloat16, DType::kInt32, DType::kInt64};

absl::Status ExpectParameter(const InferContext& c, std::initializer_list<DType> allowed) {
  const DType dtype = c.dtype(c.num_inputs() - 1);
  if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) return absl::OkStatus();
  return Bad(absl::StrCat("parameters of ", DTypeName(dtype)));
}

template <bool kSecond>
absl::StatusOr<Types> InferGamma(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckDraw<kSecond>(c));
  FLOE_RETURN_IF_ERROR(ExpectParameter(c, kFloating));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  return ops::One(c.dtype(c.num_inputs() - 1), std::move(shape));
}
absl::StatusOr<Types> InferCounts(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckDraw<false>(c));
  if (c.num_inputs() == 3) {
    FLOE_RETURN_IF_ERROR(ExpectParameter(c, kCounted));
  } else {
    FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c, 2));
    FLOE_RETURN_IF_ERROR(ExpectParameter(c, kFloating));
  }
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::TypeAttrOf(c, "dtype", DType::kInt64, kCounted));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  return ops::One(dtype, std::move(shape));
}
absl::StatusOr<Types> InferTruncated(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckDraw<false>(c));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c, 2));
  FLOE_RETURN_IF_ERROR(ExpectParameter(c, {DType::kFloat32, DType::kFloat64}));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  return ops::One(c.dtype(2), std::move(shape));
}

OpDef Draw(const std::string& name, int inputs, absl::StatusOr<Types> (*infer)(const InferContext&),
           const char* limits = nullptr) {
  OpDef def = ops::Simple(name, inputs, infer, ops::NoRows);
  def.shape_inputs = 1;
  def.limits = limits;
  return def;
}

const TensorType kKey{DType::kUInt64, {1}}, kCounter{DType::kUInt64, {2}},
    kAlgorithm{DType::kInt32, SymShape()};

absl::StatusOr<Types> InferKeyCounter(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSeed(c, 0));
  return Types{kKey, kCounter};
}
absl::StatusOr<Types> InferKeyCounterAlg(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSeed(c, 0));
  return Types{kKey, kCounter, kAlgorithm};
}
absl::StatusOr<Types> InferAlg(const InferContext&) { return Types{kAlgorithm}; }

const OpRegistrar kStatelessRandom[] = {
    OpRegistrar(Random<Kind::kFloat, false>("StatelessRandomUniform")),
    OpRegistrar(Random<Kind::kFloat, false>("StatelessRandomNormal")),
    OpRegistrar(Random<Kind::kFloat, false>("StatelessTruncatedNormal")),
    OpRegistrar(Random<Kind::kInt, false>("StatelessRandomUniformInt")),
    OpRegistrar(Random<Kind::kFullInt, false>("StatelessRandomUniformFullInt")),
    OpRegistrar(Random<Kind::kFloat, true>("StatelessRandomUniformV2")),
    OpRegistrar(Random<Kind::kFloat, true>("StatelessRandomNormalV2")),
    OpRegistrar(Random<Kind::kFloat, true>("StatelessTruncatedNormalV2")),
    OpRegistrar(Random<Kind::kInt, true>("StatelessRandomUniformIntV2")),
    OpRegistrar(Random<Kind::kFullInt, true>("StatelessRandomUniformFullIntV2")),
    OpRegistrar(Draw("StatelessRandomGammaV2", 3, InferGamma<false>)),
    OpRegistrar(Draw("StatelessRandomGammaV3", 5, InferGamma<true>)),
    OpRegistrar(Draw("StatelessRandomPoisson", 3, InferCounts)),
    OpRegistrar(Draw("StatelessRandomBinomial", 4, InferCounts)),
    OpRegistrar(Draw("StatelessParameterizedTruncatedNormal", 6, InferTruncated,
                     "float32 and float64; TensorFlow's numbers of one thread: with more, it "
                     "skips numbers for each thread")),
    OpRegistrar(
        ops::MixingRows("StatelessRandomGetKeyCounter", 1, {"key", "counter"}, InferKeyCounter)),
    OpRegistrar(ops::MixingRows("StatelessRandomGetKeyCounterAlg", 1, {"key", "counter", "alg"},
                                InferKeyCounterAlg)),
    OpRegistrar(ops::MixingRows("StatelessRandomGetAlg", 0, {"alg"}, InferAlg)),
};

}  // namespace
}  // namespace floe
