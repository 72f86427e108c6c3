#include "model/ops/recurrent.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/recurrent/layer_case_for_test.h"
#include "kernels/cuda/device_for_test.h"
#include "kernels/cuda/recurrent_args.h"

namespace floe::cuda {
namespace {

using ops::RecurrentCell;
using ops::RecurrentFunction;

using Case = LayerCase;

// Every output against the float64 loops of the CPU's reference, in every order of threads, and
// each row against that row alone.
void Check(const Case& c, double part = 2e-5) {
  SCOPED_TRACE(c.Name());
  Attrs attrs;
  c.spec.ToAttrs(&attrs);
  const std::vector<Tensor> inputs = c.Inputs();
  RunOptions reference;
  reference.kernels.gemm = GemmBackend::kReference;
  const auto want = RunKernel("FusedRecurrent", attrs, inputs, reference);
  ASSERT_TRUE(want.ok()) << want.status();
  const uint64_t weights = c.Weights();
  ASSERT_TRUE(Computes("FusedRecurrent", attrs, inputs));
  std::vector<Tensor> first;
  for (const EmulatorOptions& options : EveryOrder()) {
    const ScopedEmulatorOptions scoped(options);
    const auto got = RunKernel("FusedRecurrent", attrs, inputs, OnDevice(weights));
    ASSERT_TRUE(got.ok()) << got.status();
    if (first.empty()) first = *got;
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(SameBits(first[i], (*got)[i])) << i;
  }
  const size_t outputs = c.spec.has_c() ? 3 : 2;
  for (size_t i = c.spec.sequence ? 0 : 1; i < outputs; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(first[i].shape(), (*want)[i].shape());
    ExpectNear(first[i], (*want)[i].as<float>(), part);
  }
  const uint64_t states = c.one_state ? 0 : c.spec.has_c() ? 6 : 2;
  const uint64_t batched = 1 | states | (c.spec.masked ? uint64_t{1} << c.spec.mask() : 0);
  ExpectRowsAlone("FusedRecurrent", attrs, inputs, batched, first[0], weights);
}

TEST(RecurrentOnDeviceTest, AgreesWithFloat64) {
  for (const RecurrentCell cell : kRecurrentCellsToTest) {
    Check({SpecOf(cell, 5), 3, 7, 4});
    Check({SpecOf(cell, 33), 9, 5, 6, true});
    Check({SpecOf(cell, 300), 2, 3, 8});
  }
}

// Whether weights and states are in shared memory is no matter to the bits.
TEST(RecurrentOnDeviceTest, AnyNumberOfUnits) {
  constexpr double kOfLongSums = 1e-4;
  Check({SpecOf(RecurrentCell::kLstm, 1027), 2, 2, 3}, kOfLongSums);
  Check({SpecOf(RecurrentCell::kGruResetBefore, 1027), 5, 2, 3}, kOfLongSums);
  EXPECT_EQ(RecurrentRoomFor(1025, 1), RecurrentRoom::kNone);
  EXPECT_EQ(RecurrentRoomFor(53, 4), RecurrentRoom::kAll);
  EXPECT_EQ(RecurrentRoomFor(54, 4), RecurrentRoom::kStates);
  EXPECT_EQ(RecurrentRoomFor(1024, 4), RecurrentRoom::kStates);
  Check({SpecOf(RecurrentCell::kLstm, 53), 5, 3, 4});
  Check({SpecOf(RecurrentCell::kLstm, 54), 5, 3, 4});
}

TEST(RecurrentOnDeviceTest, ReadsEveryOption) {
  for (const RecurrentCell cell : kRecurrentCellsToTest) {
    Case c = {SpecOf(cell, 6), 5, 7, 4};
    c.spec.backwards = true;
    Check(c);
    c.spec.masked = true;
    Check(c);
    c.spec.zero_output = true;
    c.spec.steps = 4;
    Check(c);
    c.spec.backwards = false;
    c.spec.projected = true;
    Check(c);
    c.spec.sequence = false;
    c.spec.masked = false;
    Check(c);
  }
}

TEST(RecurrentOnDeviceTest, AppliesEveryFunction) {
  for (int i = 0; i <= static_cast<int>(RecurrentFunction::kHardSigmoid); ++i) {
    const auto function = static_cast<RecurrentFunction>(i);
    if (function == RecurrentFunction::kExp) continue;  // grows without bound
    Check({SpecOf(RecurrentCell::kSimple, 4, function, function), 2, 2, 3});
    Check({SpecOf(RecurrentCell::kGruResetBefore, 4, function), 2, 2, 3});
  }
}

TEST(RecurrentOnDeviceTest, RefusesWhatItCannotCompute) {
  Attrs attrs;
  const Case fits = {SpecOf(RecurrentCell::kSimple, 8), 2, 3, 4};
  fits.spec.ToAttrs(&attrs);
  std::vector<Tensor> inputs = fits.Inputs();
  EXPECT_TRUE(Computes("FusedRecurrent", attrs, inputs));
  inputs[0] = RandomTensor({2, 3, 5}, 1);
  EXPECT_FALSE(Computes("FusedRecurrent", attrs, inputs));
}

}  // namespace
}  // namespace floe::cuda
