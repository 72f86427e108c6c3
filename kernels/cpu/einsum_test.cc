#include <gtest/gtest.h>

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

TEST(Einsum, RefusesWhatDoesNotFit) {
  const Tensor a = Floats({2, 3}, 1);
  for (const char* equation :
       {"ij,jk->ik", "ij", "ijk,jk->i", "ij,jl->iz", "ij,jk->ii", "i1,jk->i"}) {
    EXPECT_FALSE(Einsum(equation, {a, a}).ok()) << equation;
  }
}

}  // namespace
}  // namespace floe
