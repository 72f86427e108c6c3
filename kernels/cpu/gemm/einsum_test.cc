#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

Tensor Floats(const Shape& shape, float start) {
  std::vector<float> values(shape.elements());
  std::iota(values.begin(), values.end(), start);
  return FloatTensor(shape, values);
}

absl::StatusOr<std::vector<Tensor>> Einsum(const std::string& equation,
                                           const std::vector<Tensor>& inputs) {
  Attrs attrs;
  attrs.Set("equation", equation);
  return RunKernel("Einsum", attrs, inputs, {.threads = 2});
}

void ExpectEinsum(const std::string& equation, const std::vector<Tensor>& inputs,
                  const Shape& shape, const std::vector<float>& want) {
  const auto out = Einsum(equation, inputs);
  ASSERT_TRUE(out.ok()) << equation << ": " << out.status();
  ASSERT_EQ((*out)[0].shape(), shape) << equation;
  const float* y = (*out)[0].as<float>();
  EXPECT_EQ(std::vector<float>(y, y + shape.elements()), want) << equation;
}

// NumPy's answers.
TEST(Einsum, Equations) {
  const Tensor a = Floats({2, 3}, 1), b = Floats({3, 2}, 1);
  ExpectEinsum("ij,jk->ik", {a, b}, {2, 2}, {22, 28, 49, 64});
  ExpectEinsum("ij,kj->ik", {a, a}, {2, 2}, {14, 32, 32, 77});
  ExpectEinsum("ij->ji", {a}, {3, 2}, {1, 4, 2, 5, 3, 6});
  ExpectEinsum("ij->", {a}, {}, {21});
  ExpectEinsum("ij->j", {a}, {3}, {5, 7, 9});
  ExpectEinsum("ii->i", {Floats({3, 3}, 0)}, {3}, {0, 4, 8});
  ExpectEinsum("i,j->ij", {Floats({2}, 1), Floats({2}, 3)}, {2, 2}, {3, 4, 6, 8});
  ExpectEinsum("...ij,...jk->...ik", {Floats({2, 1, 2}, 1), Floats({2, 1}, 1)}, {2, 1, 1}, {5, 11});
  ExpectEinsum("bij,bjk->bik", {Floats({2, 1, 2}, 1), Floats({2, 2, 1}, 1)}, {2, 1, 1}, {5, 25});
}

Tensor Waves(const Shape& shape, double frequency) {
  std::vector<float> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(frequency * static_cast<double>(i)));
  return FloatTensor(shape, values);
}

// The blocked form against the definition, for every way the labels may lie: attention, dense
// layers, operands and results that have to be turned, either operand constant.
TEST(Einsum, BlockedAgreesWithTheDefinition) {
  struct Case {
    std::string equation;
    Shape a, b;
  };
  const Case cases[] = {
      {"aecd,abcd->acbe", {2, 5, 3, 7}, {2, 4, 3, 7}},  // scores of attention
      {"acbe,aecd->abcd", {2, 3, 4, 5}, {2, 5, 3, 7}},  // values of attention
      {"abc,cde->abde", {2, 9, 6}, {6, 4, 5}},          // projections
      {"abcd,cde->abe", {2, 3, 4, 5}, {4, 5, 17}},      // and back
      {"ij,jk->ik", {1, 1}, {1, 1}},
      {"ij,jk->ki", {7, 33}, {33, 19}},
      {"ijk,kl->lji", {3, 5, 8}, {8, 6}},      // neither in order
      {"ikj,lk->jil", {3, 8, 5}, {6, 8}},      // left side turned
      {"bij,bjk->ikb", {3, 4, 5}, {3, 5, 6}},  // batch last
      {"bij,bij->b", {3, 4, 5}, {3, 4, 5}},    // only sums
      {"i,i->", {9}, {9}},
      {"bji,bkij->bk", {2, 4, 5}, {2, 3, 5, 4}},  // sums in another order
      {"...ij,jk->...ik", {2, 3, 4, 5}, {5, 6}},
      {"...ij,...jk->...ik", {2, 1, 4, 5}, {3, 5, 6}},  // batch stretched on both sides
      {"ij,jk->ik", {0, 3}, {3, 2}},
      {"ij,jk->ik", {2, 0}, {0, 2}},
  };
  for (const Case& c : cases) {
    Attrs attrs;
    attrs.Set("equation", c.equation);
    const std::vector<Tensor> inputs = {Waves(c.a, .7), Waves(c.b, .3)};
    const auto want =
        RunKernel("Einsum", attrs, inputs, {.kernels = {.gemm = GemmBackend::kReference}});
    ASSERT_TRUE(want.ok()) << c.equation << ": " << want.status();
    for (const uint64_t constants : {0, 1, 2}) {
      const auto got = RunKernel("Einsum", attrs, inputs, {.threads = 2, .const_mask = constants});
      ASSERT_TRUE(got.ok()) << c.equation << ": " << got.status();
      ASSERT_EQ((*got)[0].shape(), (*want)[0].shape()) << c.equation;
      for (int64_t i = 0; i < (*want)[0].view().elements(); ++i)
        ASSERT_NEAR((*got)[0].as<float>()[i], (*want)[0].as<float>()[i], 1e-5)
            << c.equation << " at " << i << ", constants " << constants;
    }
  }
}

TEST(Einsum, RefusesWhatDoesNotFit) {
  const Tensor a = Floats({2, 3}, 1);
  for (const char* equation :
       {"ij,jk->ik", "ij", "ijk,jk->i", "ij,jl->iz", "ij,jk->ii", "i1,jk->i"}) {
    EXPECT_FALSE(Einsum(equation, {a, a}).ok()) << equation;
  }
}

}  // namespace
}  // namespace floe
