// Random numbers that follow from a seed given as an input, the same in every run. Version 1 has a
// seed of two numbers, version 2 the key and the counter of a generator.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::Status ExpectSeed(const InferContext& c, int input) {
  if (IsInteger(c.dtype(input))) return absl::OkStatus();
  return Bad(absl::StrCat("the seed is ", DTypeName(c.dtype(input)), ", expected integers"));
}

enum class Kind : uint8_t { kFloat, kInt, kFullInt };

// shape, seed (or key, counter, algorithm)[, low, high].
template <Kind kKind, bool kSecond>
absl::StatusOr<Types> Infer(const InferContext& c) {
  if (!kSecond) FLOE_RETURN_IF_ERROR(ExpectSeed(c, 1));
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
  for (int i = c.num_inputs() - 2; kKind == Kind::kInt && i < c.num_inputs(); ++i)
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, *dtype));
  return ops::One(*dtype, std::move(shape));
}

// A number's place in the output decides it.
template <Kind kKind, bool kSecond>
OpDef Random() {
  constexpr bool kBounds = kKind == Kind::kInt;
  return {.infer = Infer<kKind, kSecond>,
          .rows = ops::NoRows,
          .shape_inputs = 1,
          .input_types = kSecond   ? kBounds ? "S uint64[_] uint64[_] int32[] T[] T[]"
                                             : "S uint64[_] uint64[_] int32[]"
                         : kBounds ? "S T[2] U[] U[]"
                                   : "S T[2]"};
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

// shape, seed (or key, counter, algorithm), parameters that broadcast to the last dims.
template <bool kSecond>
absl::StatusOr<Types> InferGamma(const InferContext& c) {
  if (!kSecond) FLOE_RETURN_IF_ERROR(ExpectSeed(c, 1));
  FLOE_RETURN_IF_ERROR(ExpectParameter(c, kFloating));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  return ops::One(c.dtype(c.num_inputs() - 1), std::move(shape));
}
absl::StatusOr<Types> InferCounts(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSeed(c, 1));
  FLOE_RETURN_IF_ERROR(ExpectParameter(c, c.num_inputs() == 3 ? kCounted : kFloating));
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::TypeAttrOf(c, "dtype", DType::kInt64, kCounted));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  return ops::One(dtype, std::move(shape));
}
absl::StatusOr<Types> InferTruncated(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSeed(c, 1));
  FLOE_RETURN_IF_ERROR(ExpectParameter(c, {DType::kFloat32, DType::kFloat64}));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::ShapeFrom(c, 0));
  return ops::One(c.dtype(2), std::move(shape));
}

OpDef Draw(const char* name, ops::InferFunction infer, const char* types,
           const char* limits = nullptr) {
  return {.name = name,
          .infer = infer,
          .rows = ops::NoRows,
          .shape_inputs = 1,
          .input_types = types,
          .limits = limits};
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

const ops::Family kFloats({"StatelessRandomUniform", "StatelessRandomNormal",
                           "StatelessTruncatedNormal"},
                          Random<Kind::kFloat, false>());
const ops::Family kFloatsV2({"StatelessRandomUniformV2", "StatelessRandomNormalV2",
                             "StatelessTruncatedNormalV2"},
                            Random<Kind::kFloat, true>());
const ops::Family kInts({"StatelessRandomUniformInt"}, Random<Kind::kInt, false>());
const ops::Family kIntsV2({"StatelessRandomUniformIntV2"}, Random<Kind::kInt, true>());
const ops::Family kFullInts({"StatelessRandomUniformFullInt"}, Random<Kind::kFullInt, false>());
const ops::Family kFullIntsV2({"StatelessRandomUniformFullIntV2"}, Random<Kind::kFullInt, true>());

const OpRegistrar kStatelessRandom[] = {
    OpRegistrar(Draw("StatelessRandomGammaV2", InferGamma<false>, "S T[2] U")),
    OpRegistrar(
        Draw("StatelessRandomGammaV3", InferGamma<true>, "S uint64[_] uint64[_] int32[] T")),
    OpRegistrar(Draw("StatelessRandomPoisson", InferCounts, "S T[2] U")),
    OpRegistrar(Draw("StatelessRandomBinomial", InferCounts, "S T[2] U U")),
    OpRegistrar(Draw("StatelessParameterizedTruncatedNormal", InferTruncated, "S T[2] U U U U",
                     "float32 and float64; TensorFlow's numbers of one thread: with more, it "
                     "skips numbers for each thread")),
    OpRegistrar(
        ops::MixingRows("StatelessRandomGetKeyCounter", {"key", "counter"}, InferKeyCounter),
        "T[2]"),
    OpRegistrar(ops::MixingRows("StatelessRandomGetKeyCounterAlg", {"key", "counter", "alg"},
                                InferKeyCounterAlg),
                "T[2]"),
    OpRegistrar(ops::MixingRows("StatelessRandomGetAlg", {"alg"}, InferAlg)),
};

}  // namespace
}  // namespace floe
