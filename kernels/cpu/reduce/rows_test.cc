// The bits of a row are the same alone and among any number of others, whatever numbers it holds.
// Every op that folds along an axis, with the rows in axis 0 and, time-major, in axis 1.
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/denormals.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

using kernels::Compute;
using kernels::kIsComplex;

// Numbers of every kind in no order; rows of zeros alone, of both signs.
template <class T>
Tensor Special(const Shape& shape, int seed) {
  using C = Compute<T>;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  constexpr float kValues[] = {-0.0f, 0.0f,    1.5f, -0.0f, 3e-39f, -2.75f, kNan,   -kInf,
                               kInf,  -1e-40f, 0.1f, 7e5f,  -0.0f,  1e-20f, -3e30f, 0.3f};
  Tensor t = Tensor::Allocate(kernels::kDTypeOf<T>, shape);
  T* x = static_cast<T*>(t.mutable_data());
  for (int64_t i = 0; i < t.elements(); ++i) {
    const auto k = static_cast<size_t>(i * 31 + i / 7 * 13 + seed * 5) % 16;
    if constexpr (kIsComplex<T>) {
      x[i] = T(kValues[k], kValues[(k * 7 + 3) % 16]);
    } else if constexpr (std::is_floating_point_v<C>) {
      x[i] = seed % 3 == 0 ? T(k < 8 ? -0.0f : 0.0f) : T(static_cast<C>(kValues[k]));
    } else if constexpr (std::is_same_v<T, bool>) {
      x[i] = k % 3 != 0;
    } else {
      x[i] = static_cast<T>((k * 2654435761u) >> 3);
    }
  }
  return t;
}

// Index `at` of one axis, which stays with size 1.
Tensor Slice(const Tensor& t, int axis, int64_t at) {
  Shape shape = t.shape();
  int64_t outer = 1, inner = static_cast<int64_t>(DTypeSize(t.dtype()));
  for (int i = 0; i < axis; ++i) outer *= shape.dim(i);
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
  const int64_t size = shape.dim(axis);
  shape.set_dim(axis, 1);
  Tensor one = Tensor::Allocate(t.dtype(), shape);
  for (int64_t i = 0; i < outer; ++i) {
    std::memcpy(static_cast<std::byte*>(one.mutable_data()) + i * inner,
                t.as<std::byte>() + (i * size + at) * inner, inner);
  }
  return one;
}

// Equal bits, except that any NaN is as good as another: which of two NaN an addition passes on is
// the processor's and the compiler's choice.
template <class T>
bool SameNumber(const T& x, const T& y) {
  if constexpr (kIsComplex<T>)
    return SameNumber(x.real(), y.real()) && SameNumber(x.imag(), y.imag());
  else
    return std::memcmp(&x, &y, sizeof(T)) == 0 || (x != x && y != y);
}

bool SameNumbers(const Tensor& a, const Tensor& b) {
  bool same = true;
  const auto compare = [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < a.elements(); ++i)
      same = same && SameNumber(a.as<T>()[i], b.as<T>()[i]);
  };
  if (kernels::ForDType(a.dtype(), kernels::Numbers{}, compare)) return same;
  return kernels::ForDType(a.dtype(), kernels::Booleans{}, compare) && same;
}

struct Op {
  std::string name;
  Attrs attrs;
  std::vector<Tensor> others;  // inputs behind the first
  int rows_out;                // the axis of the rows in the output
};

void ExpectRowsAlone(const Op& op, const Tensor& x, int rows_axis) {
  const ScopedFlushDenormals flush;
  std::vector<Tensor> inputs = {x};
  inputs.insert(inputs.end(), op.others.begin(), op.others.end());
  RunOptions options;
  options.threads = 3;
  options.const_mask = op.others.empty() ? 0 : 2;
  const auto all = RunKernel(op.name, op.attrs, inputs, options);
  ASSERT_TRUE(all.ok()) << all.status();
  for (int64_t row = 0; row < x.shape().dim(rows_axis); ++row) {
    inputs[0] = Slice(x, rows_axis, row);
    const auto alone = RunKernel(op.name, op.attrs, inputs, {.const_mask = options.const_mask});
    ASSERT_TRUE(alone.ok()) << alone.status();
    const Tensor want = Slice((*all)[0], op.rows_out, row);
    ASSERT_EQ((*alone)[0].shape(), want.shape());
    EXPECT_TRUE(SameNumbers((*alone)[0], want)) << "row " << row;
  }
}

// Sets of axes without the one of the rows.
std::vector<std::vector<int32_t>> AxisSets(int rank, int rows_axis) {
  std::vector<std::vector<int32_t>> sets;
  for (int set = 0; set < 1 << rank; ++set) {
    if ((set >> rows_axis & 1) != 0) continue;
    sets.emplace_back();
    for (int a = 0; a < rank; ++a) {
      if ((set >> a & 1) != 0) sets.back().push_back(a);
    }
  }
  return sets;
}

// Shapes [rows, ...] and [..., rows, ...].
std::vector<Shape> Shapes(int64_t rows, int rows_axis) {
  std::vector<Shape> shapes;
  const std::vector<std::vector<int64_t>> others = {
      {}, {1}, {2}, {1, 1}, {7, 1}, {1, 5}, {2, 9}, {3, 1, 1}, {1, 1, 3}, {35}, {2, 1, 33}};
  for (std::vector<int64_t> dims : others) {
    if (static_cast<int>(dims.size()) < rows_axis) continue;
    dims.insert(dims.begin() + rows_axis, rows);
    shapes.emplace_back(dims);
  }
  return shapes;
}

Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector(DType::kInt32, values); }

template <class T>
void Reductions(const std::vector<std::string>& names, const std::vector<int64_t>& row_counts) {
  Attrs keep;
  keep.Set("keep_dims", true);
  for (int rows_axis : {0, 1}) {
    for (int64_t rows : row_counts) {
      for (const Shape& shape : Shapes(rows, rows_axis)) {
        for (int seed : {0, 1}) {
          const Tensor x = Special<T>(shape, seed);
          for (const auto& axes : AxisSets(shape.rank(), rows_axis)) {
            for (const std::string& name : names) {
              SCOPED_TRACE(absl::StrCat(name, " of ", DTypeName(x.dtype()), shape.ToString(),
                                        ", rows in ", rows_axis, ", ", axes.size(), " axes, first ",
                                        axes.empty() ? -1 : axes[0]));
              ExpectRowsAlone({name, keep, {Ints(axes)}, rows_axis}, x, rows_axis);
              if (testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

template <class... Ts>
void ReductionsOf(kernels::TypeList<Ts...>, const std::vector<std::string>& names) {
  (Reductions<Ts>(names, {3}), ...);
}

TEST(Rows, ReductionsOfFloat32OnEveryIsa) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    Reductions<float>({"Sum", "Mean", "Prod", "Max", "Min"}, {2, 19});
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Rows, ReductionsOfOtherTypes) {
  using Other = kernels::TypeList<double, Half, BFloat16, int8_t, int64_t, uint16_t>;
  ReductionsOf(Other{}, {"Sum", "Mean", "Prod", "Max", "Min"});
  ReductionsOf(kernels::Complexes{}, {"Sum", "Mean", "Prod"});
  ReductionsOf(kernels::FloatsAndComplexes{}, {"EuclideanNorm"});
  ReductionsOf(kernels::Booleans{}, {"All", "Any"});
}

// Ops along one axis that keep all of them, or drop the last.
template <class T>
void AlongAxis() {
  for (int64_t rows : {2, 5, 19}) {
    for (const Shape& shape : Shapes(rows, 0)) {
      if (shape.rank() < 2) continue;
      const Tensor x = Special<T>(shape, 1);
      for (const std::string name :
           {"Cumsum", "Cumprod", "Softmax", "LogSoftmax", "ArgMax", "ArgMin"}) {
        SCOPED_TRACE(absl::StrCat(name, " of ", DTypeName(x.dtype()), shape.ToString()));
        std::vector<Tensor> others = {Tensor::Scalar(DType::kInt32, int32_t{-1})};
        if (name == "Softmax" || name == "LogSoftmax") others.clear();
        ExpectRowsAlone({name, Attrs(), others, 0}, x, 0);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Rows, ScansAndSoftmaxAndArgMax) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    AlongAxis<float>();
    hwy::SetSupportedTargetsForTest(0);
  }
  AlongAxis<double>();
  AlongAxis<Half>();
  AlongAxis<BFloat16>();
}

}  // namespace
}  // namespace floe
