// Weights in bfloat16 give the bits that the same numbers give as floats.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/kernel_test_util.h"
#include "model/half.h"
#include "model/ops/recurrent.h"

namespace floe {
namespace {

Tensor Rounded(const Tensor& weights) {
  Tensor rounded = Tensor::Allocate(DType::kFloat32, weights.shape());
  for (int64_t i = 0; i < weights.elements(); ++i)
    static_cast<float*>(rounded.mutable_data())[i] = BFloat16(weights.as<float>()[i]);
  return rounded;
}

// Runs the op with bf16 weights, and with floats that were rounded before. `weights`: which inputs.
void ExpectSameBits(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& inputs,
                    uint64_t constants, uint64_t weights) {
  std::vector<Tensor> rounded = inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    if ((weights >> i & 1) != 0) rounded[i] = Rounded(inputs[i]);
  for (const int threads : {1, 3}) {
    RunOptions options;
    options.const_mask = constants;
    options.threads = threads;
    const auto want = RunKernel(op, attrs, rounded, options);
    const auto exact = RunKernel(op, attrs, inputs, options);
    options.kernels.precision = Precision::kBf16;
    const auto got = RunKernel(op, attrs, inputs, options);
    ASSERT_TRUE(got.ok() && want.ok() && exact.ok()) << got.status() << want.status();
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_EQ(std::memcmp((*got)[i].data(), (*want)[i].data(), (*want)[i].bytes()), 0);
      if ((*got)[i].bytes() > 0) {
        EXPECT_NE(std::memcmp((*got)[i].data(), (*exact)[i].data(), (*exact)[i].bytes()), 0);
      }
    }
  }
}

TEST(Bf16Weights, MatMulAtOddSizes) {
  OnEveryIsa([] {
    for (const int64_t rows : {1, 2, 3, 7, 8, 9, 100}) {
      for (const int64_t columns : {5, 8, 9, 16, 31, 33, 67, 130}) {
        const int64_t k = rows == 9 ? 900 : 37;
        Attrs attrs;
        attrs.Set("fused_bias", true);
        const std::vector<Tensor> inputs = {
            RandomTensor({rows, k}, 1), RandomTensor({k, columns}, 2), RandomTensor({columns}, 3)};
        SCOPED_TRACE(absl::StrCat(rows, " rows, ", columns, " columns"));
        ExpectSameBits("MatMul", attrs, inputs, /*constants=*/6, /*weights=*/2);
      }
    }
  });
}

TEST(Bf16Weights, SeveralMatrices) {
  OnEveryIsa([] {
    const std::vector<Tensor> inputs = {RandomTensor({3, 4, 21}, 1), RandomTensor({3, 21, 19}, 2)};
    ExpectSameBits("BatchMatMul", {}, inputs, /*constants=*/2, /*weights=*/2);
  });
}

TEST(Bf16Weights, OfARightSideThatIsNoConstantNothingChanges) {
  const std::vector<Tensor> inputs = {RandomTensor({4, 21}, 1), RandomTensor({21, 19}, 2)};
  RunOptions options;
  const auto want = RunKernel("MatMul", {}, inputs, options);
  options.kernels.precision = Precision::kBf16;
  const auto got = RunKernel("MatMul", {}, inputs, options);
  ASSERT_TRUE(got.ok() && want.ok()) << got.status();
  EXPECT_EQ(std::memcmp((*got)[0].data(), (*want)[0].data(), (*want)[0].bytes()), 0);
}

TEST(Bf16Weights, EveryRecurrentCell) {
  using ops::RecurrentCell;
  using ops::RecurrentFunction;
  OnEveryIsa([] {
    for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGruResetAfter,
                                     RecurrentCell::kGruResetBefore, RecurrentCell::kSimple}) {
      for (const RecurrentFunction value : {RecurrentFunction::kTanh, RecurrentFunction::kRelu}) {
        for (const int64_t rows : {1, 2, 5, 13}) {
          ops::RecurrentSpec spec;
          spec.cell = cell;
          spec.units = rows == 5 ? 70 : 19;
          spec.sequence = true;
          const ops::RecurrentGate s{RecurrentFunction::kSigmoid, 0.2f, 0.5f}, t{value, 0.2f, 0.5f};
          spec.gates = cell == RecurrentCell::kLstm     ? std::vector{s, s, t, s, t}
                       : cell == RecurrentCell::kSimple ? std::vector{t}
                                                        : std::vector{s, s, t};
          const int64_t columns = spec.columns() * spec.units;
          std::vector<Tensor> inputs = {RandomTensor({rows, 6, 9}, 1),
                                        RandomTensor({rows, spec.units}, 2)};
          if (spec.has_c()) inputs.push_back(RandomTensor({rows, spec.units}, 3));
          inputs.push_back(RandomTensor({9, columns}, 4));
          inputs.push_back(RandomTensor({spec.units, columns}, 5));
          inputs.push_back(RandomTensor({columns}, 6));
          if (spec.rb() >= 0) inputs.push_back(RandomTensor({spec.units}, 7));
          const uint64_t all = (uint64_t{1} << inputs.size()) - 1,
                         constants = all & ~((uint64_t{1} << spec.weights()) - 1);
          SCOPED_TRACE(absl::StrCat(RecurrentCellName(cell), ", ", rows, " rows"));
          Attrs attrs;
          spec.ToAttrs(&attrs);
          ExpectSameBits("FusedRecurrent", attrs, inputs, constants,
                         uint64_t{1} << spec.w() | uint64_t{1} << spec.r());
        }
      }
    }
  });
}

}  // namespace
}  // namespace floe
