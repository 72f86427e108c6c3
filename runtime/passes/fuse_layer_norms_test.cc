#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

constexpr int kWidth = 19;

// Writes formulas into a graph, one operation after the other.
struct NormFormula {
  NormFormula() : x(t.Input("x", DType::kFloat32, {Dim::Unknown(), 5, kWidth})) {}
  std::string Name() { return "n" + std::to_string(next++); }
  ValueRef C(float value) { return t.Floats(Name(), {}, {value}); }
  ValueRef V(float seed) { return t.Const(Name(), Wavy(Shape({kWidth}), seed)); }
  ValueRef F(const char* op, ValueRef a) { return t.Op(op, Name(), {a}); }
  ValueRef F(const char* op, ValueRef a, ValueRef b) { return t.Op(op, Name(), {a, b}); }
  ValueRef Mean(ValueRef a, int axis = -1, bool keep = true) {
    return t.Op("Mean", Name(), {a, t.Ints(Name(), {axis})}, {{"keep_dims", keep}});
  }

  TestGraph t;
  ValueRef x;
  int next = 0;
};

void ExpectNorms(NormFormula* f, int count) {
  Graph fused = f->t.graph;
  const absl::Status status = FuseLayerNorms(&fused, f->t.InputTypes(), {});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(CountOps(fused, "LayerNorm"), count) << DebugString(fused);
  if (count > 0) {
    EXPECT_EQ(CountOps(fused, "Mean") + CountOps(fused, "FusedBatchNormV3"), 0)
        << DebugString(fused);
  }
  const std::vector<Tensor> in = {Wavy(Shape({3, 5, kWidth}), 1)};
  const auto got = RunGraph(f->t, in), want = RunGraph(f->t, in, {"all"});
  ASSERT_EQ(got.size(), f->t.graph.outputs.size());
  ASSERT_EQ(want.size(), got.size());
  for (size_t k = 0; k < got.size(); ++k) ExpectClose(got[k], want[k], 5e-6);
}

// tf.nn.batch_normalization over tf.nn.moments, which Keras 3 calls: x * f + (offset - mean * f).
TEST(FuseLayerNorms, MomentsAndBatchNormalization) {
  for (const bool negated : {false, true}) {
    NormFormula f;
    const ValueRef mean = f.Mean(f.x);
    const ValueRef variance = f.Mean(f.F("SquaredDifference", f.x, mean));
    ValueRef factor = f.F("Rsqrt", f.F("Add", variance, f.C(1e-3f)));
    factor = f.F("Mul", factor, f.V(2));
    const ValueRef rest = negated ? f.F("Add", f.F("Mul", f.F("Neg", mean), factor), f.V(3))
                                  : f.F("Sub", f.V(3), f.F("Mul", mean, factor));
    f.t.Output(f.F("Add", f.F("Mul", f.x, factor), rest));
    ExpectNorms(&f, 1);
  }
}

// As ONNX's exporters write it.
TEST(FuseLayerNorms, DistanceOverRoot) {
  for (const char* square : {"Square", "Mul", "Pow"}) {
    NormFormula f;
    const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x));
    const ValueRef squares = std::string(square) == "Mul"   ? f.F("Mul", distance, distance)
                             : std::string(square) == "Pow" ? f.F("Pow", distance, f.C(2))
                                                            : f.F("Square", distance);
    const ValueRef root = f.F("Sqrt", f.F("Add", f.Mean(squares), f.C(1e-5f)));
    const ValueRef scaled = f.F("Mul", f.F("RealDiv", distance, root), f.V(2));
    f.t.Output(f.F("Add", scaled, f.V(3)));
    ExpectNorms(&f, 1);
  }
}

TEST(FuseLayerNorms, WithoutScaleOrOffset) {
  NormFormula f;
  const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x, 2));
  const ValueRef variance = f.Mean(f.F("Square", distance), 2);
  f.t.Output(f.F("Mul", distance, f.F("Rsqrt", f.F("Add", f.C(1e-3f), variance))));
  ExpectNorms(&f, 1);
}

// What is read before the offset ends the formula there.
TEST(FuseLayerNorms, EndsWhereOthersRead) {
  NormFormula f;
  const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x));
  const ValueRef variance = f.Mean(f.F("Square", distance));
  const ValueRef y = f.F("Mul", distance, f.F("Rsqrt", f.F("Add", variance, f.C(1e-3f))));
  f.t.Output(y);
  f.t.Output(f.F("Add", y, f.V(1)));
  ExpectNorms(&f, 1);
}

// As Keras 2 writes it.
ValueRef TrainingNorm(NormFormula* f, ValueRef flat, float scale, int channels) {
  std::vector<float> scales(channels, scale);
  std::vector<ValueRef> inputs = {
      flat, f->t.Floats(f->Name(), {channels}, scales),
      f->t.Floats(f->Name(), {channels}, std::vector<float>(channels, 0)),
      f->t.Floats(f->Name(), {0}, {}), f->t.Floats(f->Name(), {0}, {})};
  return f->t.Op("FusedBatchNormV3", f->Name(), inputs,
                 {{"is_training", true}, {"epsilon", 1e-3f}, {"data_format", std::string("NCHW")}});
}

TEST(FuseLayerNorms, TheTrainingFormOfBatchNorm) {
  for (const float scale : {1.0f, 2.0f}) {
    NormFormula f;
    const ValueRef flat =
        f.t.Op("Reshape", f.Name(), {f.x, f.t.Ints(f.Name(), {1, -1, kWidth, 1})});
    const ValueRef norm = TrainingNorm(&f, flat, scale, 15);
    const ValueRef back = f.t.Op("Reshape", f.Name(), {norm, f.F("Shape", f.x)});
    f.t.Output(f.F("Add", f.F("Mul", back, f.V(2)), f.V(3)));
    ExpectNorms(&f, scale == 1 ? 1 : 0);
  }
}

TEST(FuseLayerNorms, NotWhenTheReshapeCutsRows) {
  NormFormula f;
  const ValueRef flat =
      f.t.Op("Reshape", f.Name(), {f.x, f.t.Ints(f.Name(), {1, -1, 5 * kWidth, 1})});
  const ValueRef norm = TrainingNorm(&f, flat, 1, 3);
  f.t.Output(f.t.Op("Reshape", f.Name(), {norm, f.F("Shape", f.x)}));
  ExpectNorms(&f, 0);
}

TEST(FuseLayerNorms, LeavesWhatIsNearlyOne) {
  {
    NormFormula f;  // the mean of another dim
    const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x, 1));
    const ValueRef variance = f.Mean(f.F("Square", distance), 1);
    f.t.Output(f.F("Mul", distance, f.F("Rsqrt", f.F("Add", variance, f.C(1e-3f)))));
    ExpectNorms(&f, 0);
  }
  {
    NormFormula f;  // the variance of one dim, the mean of another
    const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x));
    const ValueRef variance = f.Mean(f.F("Square", distance), 1);
    f.t.Output(f.F("Mul", distance, f.F("Rsqrt", f.F("Add", variance, f.C(1e-3f)))));
    ExpectNorms(&f, 0);
  }
  {
    NormFormula f;  // without the mean in the result
    const ValueRef variance = f.Mean(f.F("SquaredDifference", f.x, f.Mean(f.x)));
    f.t.Output(f.F("Mul", f.x, f.F("Rsqrt", f.F("Add", variance, f.C(1e-3f)))));
    ExpectNorms(&f, 0);
  }
  {
    NormFormula f;  // squares of x itself
    const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x));
    const ValueRef squares = f.Mean(f.F("Square", f.x));
    f.t.Output(f.F("Mul", distance, f.F("Rsqrt", f.F("Add", squares, f.C(1e-3f)))));
    ExpectNorms(&f, 0);
  }
  {
    NormFormula f;  // the mean scaled by something else
    const ValueRef mean = f.Mean(f.x);
    const ValueRef variance = f.Mean(f.F("SquaredDifference", f.x, mean));
    const ValueRef factor = f.F("Rsqrt", f.F("Add", variance, f.C(1e-3f)));
    const ValueRef part = f.F("Mul", f.F("Mul", mean, factor), f.V(2));
    f.t.Output(f.F("Sub", f.F("Mul", f.x, factor), part));
    ExpectNorms(&f, 0);
  }
  {
    NormFormula f;  // the variance is an output too
    const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x));
    const ValueRef variance = f.Mean(f.F("Square", distance));
    f.t.Output(variance);
    f.t.Output(f.F("Mul", distance, f.F("Rsqrt", f.F("Add", variance, f.C(1e-3f)))));
    ExpectNorms(&f, 0);
  }
  {
    NormFormula f;  // an epsilon for each column
    const ValueRef distance = f.F("Sub", f.x, f.Mean(f.x));
    const ValueRef variance = f.Mean(f.F("Square", distance));
    const ValueRef epsilon = f.t.Floats(f.Name(), {kWidth}, std::vector<float>(kWidth, 1e-3f));
    f.t.Output(f.F("Mul", distance, f.F("Rsqrt", f.F("Add", variance, epsilon))));
    ExpectNorms(&f, 0);
  }
}

}  // namespace
}  // namespace floe
