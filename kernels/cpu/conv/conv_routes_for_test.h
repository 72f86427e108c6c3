// What tests of several routes of Conv2D share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/cpu/gemm/activation.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {

// Names of the routes that are open to a convolution, and "chosen NAME".
inline std::vector<std::string> ConvOffers(const Attrs& attrs, const std::vector<Tensor>& inputs,
                                           const RunOptions& options) {
  const auto made = MakeTestKernel("Conv2D", attrs, inputs, options);
  EXPECT_TRUE(made.ok()) << made.status();
  std::vector<std::string> names;
  if (made.ok()) {
    for (const auto& offer : (*made)->kernel->choice().offers) names.push_back(offer.name);
    names.push_back("chosen " + (*made)->kernel->choice().chosen);
  }
  return names;
}

// That the route adds a residual to `sums`, its results without one and without an activation.
// `inputs`: image, constant filter and bias.
inline void ExpectResidualAdded(Attrs attrs, std::vector<Tensor> inputs, const std::string& route,
                                Activation activation, const Tensor& sums) {
  const Tensor residual = RandomTensor(sums.shape(), 4);
  Epilogue epilogue = EpilogueOf(attrs);
  epilogue.activation = activation;
  epilogue.residual = static_cast<int>(inputs.size());
  inputs.push_back(residual);
  SetEpilogue(epilogue, &attrs);
  RunOptions options;
  options.kernels.routes["under_test"] = route;
  options.const_mask = 2;
  const auto got = RunKernel("Conv2D", attrs, inputs, options);
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t i = 0; i < residual.elements(); ++i) {
    const float sum = sums.as<float>()[i] + residual.as<float>()[i];
    const float want = kernels::ActivatePlain(epilogue, sum), is = (*got)[0].as<float>()[i];
    if (std::isfinite(want)) {
      ASSERT_NEAR(is, want, 1e-6) << i;
    } else {
      ASSERT_EQ(is, want) << i;
    }
  }
}

}  // namespace floe
