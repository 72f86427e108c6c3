#include <gtest/gtest.h>

#include <cmath>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

Graph FusedGelu(const TestGraph& t) {
  Graph graph = t.graph;
  const absl::Status status = FuseGelu(&graph, t.InputTypes(), {});
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

// Writes formulas into a graph, one operation after the other.
struct Formula {
  Formula() : x(t.Input("x", DType::kFloat32, {Dim::Unknown(), 37})) {}
  std::string Name() { return "n" + std::to_string(next++); }
  ValueRef C(float value) { return t.Floats(Name(), {}, {value}); }
  ValueRef F(const char* op, ValueRef a) { return t.Op(op, Name(), {a}); }
  ValueRef F(const char* op, ValueRef a, ValueRef b) { return t.Op(op, Name(), {a, b}); }

  TestGraph t;
  ValueRef x;
  int next = 0;
};

// One node is left, and it gives float64's answers.
void ExpectFused(Formula* f, ValueRef y, const char* op, double (*reference)(double)) {
  f->t.Output(y);
  const Graph fused = FusedGelu(f->t);
  EXPECT_EQ(CountOps(fused, op), 1) << DebugString(fused);
  EXPECT_EQ(fused.size(), 2) << DebugString(fused);
  Tensor in = Wavy(Shape({9, 37}), 1), want = Tensor::Allocate(DType::kFloat32, in.shape());
  for (int64_t i = 0; i < in.elements(); ++i) {
    float& x = static_cast<float*>(in.mutable_data())[i];
    x *= 6;
    static_cast<float*>(want.mutable_data())[i] = static_cast<float>(reference(x));
  }
  const auto got = RunGraph(f->t, {in});
  ASSERT_EQ(got.size(), 1u);
  ExpectClose(got[0], want, 1e-6);
}

void ExpectLeft(Formula* f, ValueRef y) {
  f->t.Output(y);
  const Graph fused = FusedGelu(f->t);
  EXPECT_EQ(CountOps(fused, "Gelu") + CountOps(fused, "GeluTanh") + CountOps(fused, "Mish"), 0)
      << DebugString(fused);
  const std::vector<Tensor> in = {Wavy(Shape({9, 37}), 1)};
  const auto got = RunGraph(f->t, in), want = RunGraph(f->t, in, {"all"});
  ASSERT_EQ(got.size(), f->t.graph.outputs.size());
  ASSERT_EQ(want.size(), got.size());
  for (size_t k = 0; k < got.size(); ++k) ExpectClose(got[k], want[k], 2e-6);
}

double Gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double GeluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

TEST(FuseGelu, ErfcAsKerasWritesIt) {
  Formula f;
  const ValueRef inner = f.F("Mul", f.F("Neg", f.x), f.C(0.70710677f));
  ExpectFused(&f, f.F("Mul", f.F("Mul", f.C(0.5f), f.x), f.F("Erfc", inner)), "Gelu", Gelu);
}

TEST(FuseGelu, ErfInAnyOrder) {
  for (const int order : {0, 1, 2, 3}) {
    Formula f;
    const ValueRef inner =
        order % 2 == 0 ? f.F("RealDiv", f.x, f.C(1.41421354f)) : f.F("Mul", f.C(0.70710677f), f.x);
    const ValueRef more = f.F("Add", f.F("Erf", inner), f.C(1));
    const ValueRef y = order == 0   ? f.F("Mul", f.F("Mul", f.x, more), f.C(0.5f))
                       : order == 1 ? f.F("Mul", f.x, f.F("Mul", more, f.C(0.5f)))
                       : order == 2 ? f.F("Mul", f.F("RealDiv", f.x, f.C(2)), more)
                                    : f.F("Mul", f.F("Mul", f.C(0.5f), more), f.x);
    ExpectFused(&f, y, "Gelu", Gelu);
  }
}

TEST(FuseGelu, TanhWithEveryCube) {
  for (const int cube : {0, 1, 2, 3}) {
    Formula f;
    const ValueRef small = f.C(0.044715f), slope = f.C(0.797884583f), one = f.C(1);
    ValueRef inner;
    if (cube == 0) {
      inner = f.F("Add", f.x, f.F("Mul", small, f.F("Pow", f.x, f.C(3))));
    } else if (cube == 1) {
      inner = f.F("Add", f.F("Mul", f.F("Mul", f.F("Square", f.x), f.x), small), f.x);
    } else if (cube == 2) {
      inner = f.F("Add", f.x, f.F("Mul", f.x, f.F("Mul", f.F("Mul", f.x, f.x), small)));
    } else {
      inner = f.F("Mul", f.x, f.F("Add", one, f.F("Mul", small, f.F("Mul", f.x, f.x))));
    }
    const ValueRef tanh = f.F("Tanh", f.F("Mul", inner, slope));
    ExpectFused(&f, f.F("Mul", f.F("Mul", f.C(0.5f), f.x), f.F("Add", tanh, one)), "GeluTanh",
                GeluTanh);
  }
}

double Mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }

TEST(FuseGelu, MishInEitherOrder) {
  for (const bool first : {true, false}) {
    Formula f;
    const ValueRef tanh = f.F("Tanh", f.F("Softplus", f.x));
    ExpectFused(&f, first ? f.F("Mul", f.x, tanh) : f.F("Mul", tanh, f.x), "Mish", Mish);
  }
}

TEST(FuseGelu, LeavesWhatIsNearlyMish) {
  {
    Formula f;  // of another value
    ExpectLeft(&f, f.F("Mul", f.F("Neg", f.x), f.F("Tanh", f.F("Softplus", f.x))));
  }
  {
    Formula f;  // whose inner value is an answer
    const ValueRef inner = f.F("Softplus", f.x);
    f.t.Output(inner);
    ExpectLeft(&f, f.F("Mul", f.x, f.F("Tanh", inner)));
  }
}

TEST(FuseGelu, OfASumThatIsItselfArithmetic) {
  Formula f;
  const ValueRef x = f.F("Add", f.F("Mul", f.x, f.C(2)), f.C(1));
  const ValueRef more = f.F("Add", f.F("Erf", f.F("Mul", x, f.C(0.70710677f))), f.C(1));
  f.t.Output(f.F("Mul", f.F("Mul", x, more), f.C(0.5f)));
  const Graph fused = FusedGelu(f.t);
  EXPECT_EQ(CountOps(fused, "Gelu"), 1) << DebugString(fused);
  EXPECT_EQ(CountOps(fused, "Erf"), 0) << DebugString(fused);
  const std::vector<Tensor> in = {Wavy(Shape({9, 37}), 1)};
  const auto got = RunGraph(f.t, in), want = RunGraph(f.t, in, {"all"});
  ASSERT_EQ(got.size(), 1u);
  ExpectClose(got[0], want[0], 1e-6);
}

TEST(FuseGelu, LeavesWhatIsNearlyOne) {
  {
    Formula f;  // another slope
    const ValueRef more = f.F("Add", f.F("Erf", f.F("Mul", f.x, f.C(0.7071f))), f.C(1));
    ExpectLeft(&f, f.F("Mul", f.F("Mul", f.x, more), f.C(0.5f)));
  }
  {
    Formula f;  // 1 - erf
    const ValueRef less = f.F("Sub", f.C(1), f.F("Erf", f.F("Mul", f.x, f.C(0.70710677f))));
    ExpectLeft(&f, f.F("Mul", f.F("Mul", f.x, less), f.C(0.5f)));
  }
  {
    Formula f;  // x is not halved
    const ValueRef more = f.F("Add", f.F("Erf", f.F("Mul", f.x, f.C(0.70710677f))), f.C(1));
    ExpectLeft(&f, f.F("Mul", f.x, more));
  }
  {
    Formula f;  // the square for the cube
    const ValueRef inner = f.F("Add", f.x, f.F("Mul", f.C(0.044715f), f.F("Square", f.x)));
    const ValueRef tanh = f.F("Tanh", f.F("Mul", inner, f.C(0.797884583f)));
    ExpectLeft(&f, f.F("Mul", f.F("Mul", f.C(0.5f), f.x), f.F("Add", tanh, f.C(1))));
  }
  {
    Formula f;  // erf of another value
    const ValueRef inner = f.F("Mul", f.F("Square", f.x), f.C(0.70710677f));
    const ValueRef more = f.F("Add", f.F("Erf", inner), f.C(1));
    ExpectLeft(&f, f.F("Mul", f.F("Mul", f.x, more), f.C(0.5f)));
  }
  {
    Formula f;  // a value on the way is an output too
    const ValueRef erf = f.F("Erf", f.F("Mul", f.x, f.C(0.70710677f)));
    f.t.Output(erf);
    ExpectLeft(&f, f.F("Mul", f.F("Mul", f.x, f.F("Add", erf, f.C(1))), f.C(0.5f)));
  }
  {
    Formula f;  // a factor of its own for each column
    std::vector<float> slopes(37, 0.70710677f);
    slopes[5] = 0.5f;
    const ValueRef inner = f.F("Mul", f.x, f.t.Floats("slopes", {37}, slopes));
    const ValueRef more = f.F("Add", f.F("Erf", inner), f.C(1));
    ExpectLeft(&f, f.F("Mul", f.F("Mul", f.x, more), f.C(0.5f)));
  }
}

}  // namespace
}  // namespace floe
