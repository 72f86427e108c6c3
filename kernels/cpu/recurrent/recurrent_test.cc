#include "kernels/cpu/recurrent/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/gemm/bf16_weights_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"
#include "kernels/cpu/recurrent/layer_case_for_test.h"
#include "model/ops/recurrent_pair.h"

namespace floe::kernels {
namespace {

using ops::RecurrentCell;
using ops::RecurrentFunction;
using ops::RecurrentGate;
using ops::RecurrentSpec;

double Function(const RecurrentGate& gate, double x) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (gate.function) {
    case RecurrentFunction::kLinear:
      return x;
    case RecurrentFunction::kSigmoid:
      return sigmoid(x);
    case RecurrentFunction::kTanh:
      return std::tanh(x);
    case RecurrentFunction::kRelu:
      return std::max(x, 0.0);
    case RecurrentFunction::kRelu6:
      return std::min(std::max(x, 0.0), 6.0);
    case RecurrentFunction::kElu:
      return x < 0 ? std::exp(x) - 1 : x;
    case RecurrentFunction::kSelu:
      return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * (std::exp(x) - 1) : x);
    case RecurrentFunction::kLeakyRelu:
      return x < 0 ? x * gate.scale : x;
    case RecurrentFunction::kSwish:
      return x * sigmoid(x);
    case RecurrentFunction::kSoftplus:
      return std::log(1 + std::exp(x));
    case RecurrentFunction::kSoftsign:
      return x / (1 + std::abs(x));
    case RecurrentFunction::kExp:
      return std::exp(x);
    case RecurrentFunction::kHardSigmoid:
      return std::min(std::max(gate.scale * x + gate.shift, 0.0), 1.0);
  }
  return x;
}

// The layer by its definition, in float64: sequence, h, c.
class Oracle {
 public:
  Oracle(const LayerCase& layer, const std::vector<Tensor>& inputs)
      : layer_(layer), spec_(layer.spec), inputs_(inputs) {
    steps = spec_.steps > 0 ? spec_.steps : layer.time;
    for (int64_t row = 0; row < layer.rows; ++row) Row(row);
  }
  std::vector<double> sequence, last_h, last_c;
  int64_t steps = 0;

 private:
  double In(int i, int64_t at) const { return inputs_[i].as<float>()[at]; }

  void Row(int64_t row) {
    const int64_t units = spec_.units, state = layer_.one_state ? 0 : row;
    h_.clear();
    c_.assign(units, 0);
    for (int64_t u = 0; u < units; ++u) {
      h_.push_back(In(1, state * units + u));
      if (spec_.has_c()) c_[u] = In(2, state * units + u);
    }
    std::vector<double> out(units, 0);
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t at = row * layer_.time + (spec_.backwards ? layer_.time - 1 - s : s);
      if (!spec_.masked || inputs_[spec_.mask()].as<bool>()[at]) {
        Step(at);
        out = h_;
      } else if (spec_.zero_output) {
        out.assign(units, 0);
      }
      sequence.insert(sequence.end(), out.begin(), out.end());
    }
    last_h.insert(last_h.end(), h_.begin(), h_.end());
    last_c.insert(last_c.end(), c_.begin(), c_.end());
  }

  // x W + b, and of another vector v R.
  double X(int64_t at, int gate, int64_t u) const {
    const int64_t columns = spec_.columns() * spec_.units, j = gate * spec_.units + u;
    double sum = In(spec_.b(), j);
    if (spec_.projected) return sum + In(0, at * columns + j);
    for (int64_t k = 0; k < layer_.in; ++k)
      sum += In(0, at * layer_.in + k) * In(spec_.w(), k * columns + j);
    return sum;
  }
  double R(const std::vector<double>& v, int gate, int64_t u) const {
    const int64_t columns = spec_.columns() * spec_.units;
    double sum = 0;
    for (int64_t k = 0; k < spec_.units; ++k)
      sum += v[k] * In(spec_.r(), k * columns + gate * spec_.units + u);
    return sum;
  }

  void Step(int64_t at) {
    const std::vector<double> h = h_;
    const auto gate = [&](int g, int64_t u) {
      return Function(spec_.gates[g], X(at, g, u) + R(h, g, u));
    };
    for (int64_t u = 0; u < spec_.units; ++u) {
      if (spec_.cell == RecurrentCell::kLstm) {
        c_[u] = gate(1, u) * c_[u] + gate(0, u) * gate(2, u);
        h_[u] = gate(3, u) * Function(spec_.gates[4], c_[u]);
      } else if (spec_.cell == RecurrentCell::kSimple) {
        h_[u] = gate(0, u);
      } else {
        double inner = 0;
        if (spec_.cell == RecurrentCell::kGruResetAfter) {
          inner = gate(1, u) * (R(h, 2, u) + In(spec_.rb(), u));
        } else {
          std::vector<double> reset = h;
          for (int64_t k = 0; k < spec_.units; ++k) reset[k] *= gate(1, k);
          inner = R(reset, 2, u);
        }
        const double z = gate(0, u);
        h_[u] = z * h[u] + (1 - z) * Function(spec_.gates[2], X(at, 2, u) + inner);
      }
    }
  }

  const LayerCase& layer_;
  const RecurrentSpec& spec_;
  const std::vector<Tensor>& inputs_;
  std::vector<double> h_, c_;
};

void ExpectNear(const Tensor& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.elements(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got.as<float>()[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << i;
}

std::vector<Tensor> RunLayer(const LayerCase& layer, const std::vector<Tensor>& inputs,
                             GemmBackend backend, int threads) {
  Attrs attrs;
  layer.spec.ToAttrs(&attrs);
  auto out = RunKernel("FusedRecurrent", attrs, inputs, {{backend}, threads, layer.Weights()});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : std::vector<Tensor>();
}

void ExpectLayer(const LayerCase& layer, int threads = 1) {
  SCOPED_TRACE(layer.Name());
  const std::vector<Tensor> inputs = layer.Inputs();
  const Oracle oracle(layer, inputs);
  for (const GemmBackend backend : {GemmBackend::kAuto, GemmBackend::kReference}) {
    const std::vector<Tensor> got = RunLayer(layer, inputs, backend, threads);
    ASSERT_EQ(got.size(), 3u);
    const double tolerance = 3e-6 * std::sqrt(static_cast<double>(layer.time * layer.spec.units));
    ExpectNear(got[0], layer.spec.sequence ? oracle.sequence : std::vector<double>(), tolerance);
    ExpectNear(got[1], oracle.last_h, tolerance);
    ExpectNear(got[2], layer.spec.has_c() ? oracle.last_c : std::vector<double>(), tolerance);
  }
}

class OnEveryIsa : public testing::Test {
 protected:
  template <class F>
  void ForEach(const F& f) {
    for (const int64_t isa : IsasToTest()) {
      hwy::SetSupportedTargetsForTest(isa);
      SCOPED_TRACE(hwy::TargetName(isa));
      f();
    }
    hwy::SetSupportedTargetsForTest(0);
  }
};
using FusedRecurrent = OnEveryIsa;

TEST_F(FusedRecurrent, EveryCellAtOddSizes) {
  ForEach([] {
    for (const RecurrentCell cell : kRecurrentCellsToTest) {
      for (const int64_t units : {1, 3, 4, 15, 16, 17, 33, 70}) {
        for (const int64_t rows : {1, 2, 3, 5, 13}) {
          ExpectLayer({SpecOf(cell, units), rows, 3, 5});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_F(FusedRecurrent, LongSequencesInPieces) {
  ForEach([] {
    for (const RecurrentCell cell : kRecurrentCellsToTest) {
      for (const int64_t rows : {1, 7, 101}) {
        for (const bool backwards : {false, true}) {
          LayerCase layer{SpecOf(cell, 5), rows, rows == 1 ? 211 : 30, 3};
          layer.spec.backwards = backwards;
          ExpectLayer(layer);
          layer.spec.steps = 17;
          layer.spec.projected = true;
          ExpectLayer(layer);
        }
      }
    }
  });
}

TEST_F(FusedRecurrent, EveryFunction) {
  ForEach([] {
    for (const RecurrentCell cell : kRecurrentCellsToTest) {
      for (int f = 0; f <= static_cast<int>(RecurrentFunction::kHardSigmoid); ++f) {
        SCOPED_TRACE(f);
        const auto function = static_cast<RecurrentFunction>(f);
        ExpectLayer({SpecOf(cell, 5, RecurrentFunction::kSigmoid, function), 2, 2, 3});
        ExpectLayer({SpecOf(cell, 5, function, RecurrentFunction::kTanh), 2, 2, 3});
      }
    }
  });
}

TEST_F(FusedRecurrent, MasksStatesAndSequences) {
  ForEach([] {
    for (const RecurrentCell cell : kRecurrentCellsToTest) {
      for (int flags = 0; flags < 16; ++flags) {
        LayerCase layer{SpecOf(cell, 6), 3, 7, 2};
        layer.spec.masked = (flags & 1) != 0;
        layer.spec.zero_output = (flags & 2) != 0;
        layer.spec.sequence = (flags & 4) != 0;
        layer.spec.backwards = (flags & 8) != 0;
        layer.one_state = (flags & 8) != 0;
        ExpectLayer(layer);
      }
    }
  });
}

// The bits of a row are the same in any batch, at any place, on any number of threads.
TEST_F(FusedRecurrent, RowsDoNotDependOnTheBatch) {
  ForEach([] {
    for (const RecurrentCell cell : kRecurrentCellsToTest) {
      LayerCase all{SpecOf(cell, 37), 19, 23, 11}, one = all;
      one.rows = 1;
      const std::vector<Tensor> inputs = all.Inputs();
      const std::vector<Tensor> want = RunLayer(all, inputs, GemmBackend::kAuto, 1);
      const std::vector<Tensor> threads = RunLayer(all, inputs, GemmBackend::kAuto, 3);
      ASSERT_EQ(want.size(), 3u);
      ASSERT_EQ(threads.size(), 3u);
      EXPECT_EQ(std::memcmp(want[0].data(), threads[0].data(), want[0].bytes()), 0);
      for (const int64_t row : {0, 5, 18}) {
        std::vector<Tensor> alone = inputs;
        for (int i = 0; i < all.spec.weights(); ++i) {
          Shape shape = inputs[i].shape();
          shape.set_dim(0, 1);
          alone[i] = FloatTensor(shape, {});
          std::memcpy(alone[i].mutable_data(), inputs[i].as<float>() + row * shape.elements(),
                      alone[i].bytes());
        }
        const std::vector<Tensor> got = RunLayer(one, alone, GemmBackend::kAuto, 1);
        ASSERT_EQ(got.size(), 3u);
        for (int k = 0; k < 3; ++k) {
          EXPECT_EQ(std::memcmp(got[k].data(), want[k].as<float>() + row * got[k].elements(),
                                got[k].bytes()),
                    0)
              << RecurrentCellName(cell) << " row " << row << " output " << k;
        }
      }
    }
  });
}

// On as many threads as there may be, one for each layer.
TEST_F(FusedRecurrent, PairsHaveTheBitsOfTheirLayers) {
  ForEach([] {
    for (const int64_t rows : {1, 2, 5}) {
      LayerCase first{SpecOf(RecurrentCell::kLstm, 70), rows, 100, 11}, second = first;
      second.spec = SpecOf(RecurrentCell::kGruResetAfter, 65);
      second.spec.backwards = true;
      const std::vector<Tensor> of_first = first.Inputs(), of_second = second.Inputs();
      std::vector<Tensor> inputs = of_first;
      inputs.insert(inputs.end(), of_second.begin(), of_second.end());
      Node nodes[2];
      first.spec.ToAttrs(&nodes[0].attrs);
      second.spec.ToAttrs(&nodes[1].attrs);
      const Attrs attrs = ops::PairRecurrent(nodes[0], nodes[1]).attrs;
      const uint64_t weights = first.Weights() | second.Weights() << of_first.size();
      std::vector<Tensor> want = RunLayer(first, of_first, GemmBackend::kAuto, 1);
      for (Tensor& output : RunLayer(second, of_second, GemmBackend::kAuto, 1))
        want.push_back(std::move(output));
      for (const int threads : {1, 2, 3}) {
        const auto got =
            RunKernel("RecurrentPair", attrs, inputs, {{GemmBackend::kAuto}, threads, weights});
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ(got->size(), want.size());
        for (size_t k = 0; k < want.size(); ++k) {
          ASSERT_EQ((*got)[k].shape(), want[k].shape());
          EXPECT_EQ(std::memcmp((*got)[k].data(), want[k].data(), want[k].bytes()), 0)
              << "output " << k << ", rows " << rows << ", threads " << threads;
        }
      }
    }
  });
}

TEST_F(FusedRecurrent, Bf16WeightsHaveTheBitsOfRoundedFloats) {
  ForEach([] {
    for (const RecurrentCell cell : kRecurrentCellsToTest) {
      for (const RecurrentFunction value : {RecurrentFunction::kTanh, RecurrentFunction::kRelu}) {
        for (const auto& [rows, units] :
             std::vector<std::pair<int, int>>{{1, 19}, {1, 70}, {2, 19}, {5, 70}, {13, 19}}) {
          const LayerCase layer{SpecOf(cell, units, RecurrentFunction::kSigmoid, value), rows, 6,
                                9};
          SCOPED_TRACE(layer.Name());
          Attrs attrs;
          layer.spec.ToAttrs(&attrs);
          ExpectSameBits("FusedRecurrent", attrs, layer.Inputs(), layer.Weights(),
                         uint64_t{1} << layer.spec.w() | uint64_t{1} << layer.spec.r());
        }
      }
    }
  });
}

// A NaN or an infinity in one row stays there.
TEST_F(FusedRecurrent, NanStaysInItsRow) {
  ForEach([] {
    for (const RecurrentCell cell : kRecurrentCellsToTest) {
      const LayerCase layer{SpecOf(cell, 9), 4, 3, 2};
      std::vector<Tensor> inputs = layer.Inputs();
      auto* x = static_cast<float*>(inputs[0].mutable_data());
      x[6] = std::nanf("");
      const std::vector<Tensor> got = RunLayer(layer, inputs, GemmBackend::kAuto, 1);
      ASSERT_EQ(got.size(), 3u);
      for (int64_t i = 0; i < got[1].elements(); ++i)
        EXPECT_EQ(std::isnan(got[1].as<float>()[i]), i / 9 == 1) << i;
    }
  });
}

TEST(FusedRecurrentErrors, SizesThatDoNotFit) {
  const LayerCase layer{SpecOf(RecurrentCell::kLstm, 4), 2, 3, 2};
  Attrs attrs;
  layer.spec.ToAttrs(&attrs);
  const std::vector<Tensor> good = layer.Inputs();
  const auto status = [&](int i, const Shape& shape) {
    std::vector<Tensor> inputs = good;
    inputs[i] = RandomTensor(shape, 1);
    return RunKernel("FusedRecurrent", attrs, inputs, {{}, 1, layer.Weights()}).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(status(0, {2, 3, 5})));
  EXPECT_TRUE(absl::IsInvalidArgument(status(0, {2, 0, 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(status(1, {3, 4})));
  EXPECT_TRUE(absl::IsInvalidArgument(status(2, {2, 5})));
  EXPECT_TRUE(absl::IsInvalidArgument(status(4, {5, 16})));
  EXPECT_TRUE(absl::IsInvalidArgument(status(5, {15})));
  attrs.Set("steps", int64_t{4});
  EXPECT_TRUE(absl::IsInvalidArgument(status(5, {16})));
  attrs.Set("steps", int64_t{-1});
  attrs.Set("cell", std::string("LSTMN"));
  EXPECT_TRUE(absl::IsInvalidArgument(status(5, {16})));
}

}  // namespace
}  // namespace floe::kernels
