#include "model/ops/recurrent.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_for_test.h"
#include "kernels/cuda/recurrent_args.h"

namespace floe::cuda {
namespace {

using ops::RecurrentCell;
using ops::RecurrentFunction;
using ops::RecurrentGate;
using ops::RecurrentSpec;

struct Case {
  RecurrentSpec spec;
  int64_t rows = 1, time = 1, in = 1;
  bool one_state = false;  // one row of states for the whole batch
};

RecurrentSpec SpecOf(RecurrentCell cell, int64_t units,
                     RecurrentFunction gate = RecurrentFunction::kSigmoid,
                     RecurrentFunction value = RecurrentFunction::kTanh) {
  RecurrentSpec spec;
  spec.cell = cell;
  spec.units = units;
  spec.sequence = true;
  const RecurrentGate s{gate, 0.2f, 0.5f}, t{value, 0.2f, 0.5f};
  if (cell == RecurrentCell::kLstm) {
    spec.gates = {s, s, t, s, t};
  } else if (cell == RecurrentCell::kSimple) {
    spec.gates = {t};
  } else {
    spec.gates = {s, s, t};
  }
  return spec;
}

std::vector<Tensor> InputsOf(const Case& c) {
  const RecurrentSpec& spec = c.spec;
  const int64_t columns = spec.columns() * spec.units, states = c.one_state ? 1 : c.rows;
  std::vector<Tensor> inputs = {RandomTensor({c.rows, c.time, spec.projected ? columns : c.in}, 1),
                                RandomTensor({states, spec.units}, 2)};
  if (spec.has_c()) inputs.push_back(RandomTensor({states, spec.units}, 3));
  if (spec.masked) {
    Tensor mask = Tensor::Allocate(DType::kBool, {c.rows, c.time});
    for (int64_t i = 0; i < mask.elements(); ++i)
      static_cast<bool*>(mask.mutable_data())[i] = (i * 7 + i / 3) % 5 > 1;
    inputs.push_back(mask);
  }
  if (!spec.projected) inputs.push_back(RandomTensor({c.in, columns}, 4));
  inputs.push_back(RandomTensor({spec.units, columns}, 5));
  inputs.push_back(RandomTensor({columns}, 6));
  if (spec.rb() >= 0) inputs.push_back(RandomTensor({spec.units}, 7));
  return inputs;
}

// Every output against the float64 loops of the CPU's reference, in every order of threads, and
// each row against that row alone.
void Check(const Case& c) {
  SCOPED_TRACE(absl::StrCat(ops::RecurrentCellName(c.spec.cell), ", ", c.spec.units, " units"));
  Attrs attrs;
  c.spec.ToAttrs(&attrs);
  const std::vector<Tensor> inputs = InputsOf(c);
  RunOptions reference;
  reference.kernels.gemm = GemmBackend::kReference;
  const auto want = RunKernel("FusedRecurrent", attrs, inputs, reference);
  ASSERT_TRUE(want.ok()) << want.status();
  const uint64_t weights =
      ((uint64_t{1} << c.spec.inputs()) - 1) & ~((uint64_t{1} << c.spec.weights()) - 1);
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
    ExpectNear(first[i], (*want)[i].as<float>(), 2e-5);
  }
  const uint64_t states = c.one_state ? 0 : c.spec.has_c() ? 6 : 2;
  const uint64_t batched = 1 | states | (c.spec.masked ? uint64_t{1} << c.spec.mask() : 0);
  ExpectRowsAlone("FusedRecurrent", attrs, inputs, batched, first[0], weights);
}

constexpr RecurrentCell kCells[] = {RecurrentCell::kLstm, RecurrentCell::kGruResetAfter,
                                    RecurrentCell::kGruResetBefore, RecurrentCell::kSimple};

TEST(RecurrentOnDeviceTest, AgreesWithFloat64) {
  for (const RecurrentCell cell : kCells) {
    Check({SpecOf(cell, 5), 3, 7, 4});
    Check({SpecOf(cell, 33), 9, 5, 6, true});
    Check({SpecOf(cell, 300), 2, 3, 8});
  }
}

TEST(RecurrentOnDeviceTest, ReadsEveryOption) {
  for (const RecurrentCell cell : kCells) {
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
  const Case c = {SpecOf(RecurrentCell::kSimple, kRecurrentUnits + 1), 1, 1, 1};
  c.spec.ToAttrs(&attrs);
  EXPECT_FALSE(Computes("FusedRecurrent", attrs, InputsOf(c)));
  const Case fits = {SpecOf(RecurrentCell::kSimple, 8), 2, 3, 4};
  fits.spec.ToAttrs(&attrs);
  std::vector<Tensor> inputs = InputsOf(fits);
  EXPECT_TRUE(Computes("FusedRecurrent", attrs, inputs));
  inputs[0] = RandomTensor({2, 3, 5}, 1);
  EXPECT_FALSE(Computes("FusedRecurrent", attrs, inputs));
}

}  // namespace
}  // namespace floe::cuda
