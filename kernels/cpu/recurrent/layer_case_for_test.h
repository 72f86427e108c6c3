// Cases of recurrent layers, for tests of every device.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel_test_util.h"
#include "model/ops/recurrent.h"

namespace floe {

inline constexpr ops::RecurrentCell kRecurrentCellsToTest[] = {
    ops::RecurrentCell::kLstm, ops::RecurrentCell::kGruResetAfter,
    ops::RecurrentCell::kGruResetBefore, ops::RecurrentCell::kSimple};

struct LayerCase {
  ops::RecurrentSpec spec;
  int64_t rows = 1, time = 1, in = 1;
  bool one_state = false;  // one row of states for the whole batch

  std::string Name() const {
    return absl::StrCat(ops::RecurrentCellName(spec.cell), " units ", spec.units, " rows ", rows,
                        " time ", time, " steps ", spec.steps, " in ", in, " backwards ",
                        spec.backwards, " projected ", spec.projected, " masked ", spec.masked,
                        " zero ", spec.zero_output, " sequence ", spec.sequence);
  }
  std::vector<Tensor> Inputs() const {
    const int64_t columns = spec.columns() * spec.units, states = one_state ? 1 : rows;
    std::vector<Tensor> inputs = {RandomTensor({rows, time, spec.projected ? columns : in}, 1),
                                  RandomTensor({states, spec.units}, 2)};
    if (spec.has_c()) inputs.push_back(RandomTensor({states, spec.units}, 3));
    if (spec.masked) {
      Tensor mask = Tensor::Allocate(DType::kBool, {rows, time});
      for (int64_t i = 0; i < mask.elements(); ++i)
        static_cast<bool*>(mask.mutable_data())[i] = (i * 7 + i / 3) % 5 > 1;
      inputs.push_back(mask);
    }
    if (!spec.projected) inputs.push_back(RandomTensor({in, columns}, 4));
    inputs.push_back(RandomTensor({spec.units, columns}, 5));
    inputs.push_back(RandomTensor({columns}, 6));
    if (spec.rb() >= 0) inputs.push_back(RandomTensor({spec.units}, 7));
    return inputs;
  }
  uint64_t Weights() const {
    return ((uint64_t{1} << spec.inputs()) - 1) & ~((uint64_t{1} << spec.weights()) - 1);
  }
};

inline ops::RecurrentSpec SpecOf(ops::RecurrentCell cell, int64_t units,
                                 ops::RecurrentFunction gate = ops::RecurrentFunction::kSigmoid,
                                 ops::RecurrentFunction value = ops::RecurrentFunction::kTanh) {
  ops::RecurrentSpec spec;
  spec.cell = cell;
  spec.units = units;
  spec.sequence = true;
  const ops::RecurrentGate s{gate, 0.2f, 0.5f}, t{value, 0.2f, 0.5f};
  if (cell == ops::RecurrentCell::kLstm) {
    spec.gates = {s, s, t, s, t};
  } else if (cell == ops::RecurrentCell::kSimple) {
    spec.gates = {t};
  } else {
    spec.gates = {s, s, t};
  }
  return spec;
}

}  // namespace floe
