// Running a test's graph with and without passes.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/exec_context.h"
#include "runtime/test_graph.h"

namespace floe {

// Numbers that look random and repeat from run to run, in [-1, 1].
inline Tensor Wavy(const Shape& shape, float seed) {
  Tensor t = Tensor::Allocate(DType::kFloat32, shape);
  for (int64_t i = 0; i < t.elements(); ++i)
    static_cast<float*>(t.mutable_data())[i] = std::sin(seed + 1.7f * static_cast<float>(i));
  return t;
}

// The outputs of one run; empty after a failure.
inline std::vector<Tensor> RunGraph(const TestGraph& t, const std::vector<Tensor>& inputs,
                                    const std::vector<std::string>& disabled = {}) {
  const auto compiled =
      CompiledSignature::Compile(t.graph, t.signature, {.disabled_passes = disabled});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return {};
  std::vector<Shape> shapes;
  int64_t rows = 1;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape());
    if ((*compiled)->InputHasRows(static_cast<int>(shapes.size()) - 1)) rows = input.shape().dim(0);
  }
  const auto plan = (*compiled)->Bind(shapes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  ExecContext context;
  const absl::Status prepared = context.Prepare(*plan, (*plan)->has_rows() ? rows : 1);
  EXPECT_TRUE(prepared.ok()) << prepared;
  for (size_t i = 0; i < inputs.size(); ++i)
    context.BindInput(static_cast<int>(i), inputs[i].data());
  const absl::Status status = context.Run();
  EXPECT_TRUE(status.ok()) << status;
  std::vector<Tensor> outputs;
  for (size_t k = 0; status.ok() && k < t.graph.outputs.size(); ++k)
    outputs.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
  return outputs;
}

// float32 tensors within `tolerance` of each other, relative to numbers above 1; NaN meets NaN.
inline void ExpectClose(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double w = want.as<float>()[i], g = got.as<float>()[i];
    if (std::isnan(w) && std::isnan(g)) continue;
    if (w == g) continue;
    ASSERT_NEAR(g, w, tolerance * std::max(1.0, std::abs(w))) << "element " << i;
  }
}

inline void ExpectSameBits(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.bytes()), 0);
}

}  // namespace floe
