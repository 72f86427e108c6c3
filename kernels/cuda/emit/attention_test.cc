#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/device_for_test.h"

namespace floe::cuda {
namespace {

struct Case {
  int64_t batch, heads, queries, keys, features, width;
  std::string q = "BTNH", k = "BTNH", v = "BTNH", out = "BTNH";
  std::vector<int64_t> mask = {};  // empty: none
  float scale = 0.4f;
  std::optional<float> fill = {};  // the mask has bools
  bool zero = false;
};

Shape ShapeOf(const std::string& layout, int64_t b, int64_t n, int64_t t, int64_t h) {
  Shape shape;
  for (const char c : layout) shape.push_back(c == 'B' ? b : c == 'N' ? n : c == 'T' ? t : h);
  return shape;
}

int64_t Offset(const Shape& shape, const std::string& layout, int64_t b, int64_t n, int64_t t,
               int64_t h) {
  int64_t at = 0;
  for (size_t i = 0; i < layout.size(); ++i) {
    const int64_t size = shape.dim(static_cast<int>(i));
    const char c = layout[i];
    const int64_t place = c == 'B' ? b : c == 'N' ? n : c == 'T' ? t : h;
    at = at * size + (size == 1 ? 0 : place);
  }
  return at;
}

Attrs AttrsOf(const Case& c) {
  Attrs attrs;
  attrs.Set("q", c.q);
  attrs.Set("k", c.k);
  attrs.Set("v", c.v);
  attrs.Set("out", c.out);
  attrs.Set("scale", c.scale);
  if (c.fill.has_value()) attrs.Set("fill", *c.fill);
  attrs.Set("zero", c.zero);
  return attrs;
}

std::vector<Tensor> InputsOf(const Case& c) {
  std::vector<Tensor> inputs = {
      RandomTensor(ShapeOf(c.q, c.batch, c.heads, c.queries, c.features), 1),
      RandomTensor(ShapeOf(c.k, c.batch, c.heads, c.keys, c.features), 2),
      RandomTensor(ShapeOf(c.v, c.batch, c.heads, c.keys, c.width), 3)};
  if (c.mask.empty()) return inputs;
  const Tensor numbers = RandomTensor(Shape(c.mask), 4);
  if (!c.fill.has_value()) {
    inputs.push_back(numbers);
    return inputs;
  }
  inputs.push_back(Tensor::Allocate(DType::kBool, numbers.shape()));
  for (int64_t i = 0; i < numbers.elements(); ++i)
    static_cast<bool*>(inputs[3].mutable_data())[i] = numbers.as<float>()[i] > -0.3f;
  return inputs;
}

// One query's row of the result, in float64.
void ExactQuery(const Case& c, const std::vector<Tensor>& in, int64_t b, int64_t n, int64_t t,
                double* out, int64_t step) {
  std::vector<double> scores(static_cast<size_t>(c.keys));
  std::vector<bool> hidden(scores.size(), false);
  const std::string all = c.q.size() == 4 ? "BNTH" : "BTH";
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t s = 0; s < c.keys; ++s) {
    double score = 0;
    for (int64_t h = 0; h < c.features; ++h) {
      score += double{in[0].as<float>()[Offset(in[0].shape(), c.q, b, n, t, h)]} *
               double{in[1].as<float>()[Offset(in[1].shape(), c.k, b, n, s, h)]};
    }
    score *= double{c.scale};
    if (!c.mask.empty()) {
      const int64_t at = Offset(in[3].shape(), all.substr(all.size() - c.mask.size()), b, n, t, s);
      hidden[s] = c.fill.has_value() && !in[3].as<bool>()[at];
      if (!c.fill.has_value()) score += double{in[3].as<float>()[at]};
      if (hidden[s]) score = double{*c.fill};
    }
    scores[s] = score;
    most = std::max(most, score);
  }
  for (double& score : scores) sum += score = std::exp(score - most);
  for (int64_t h = 0; h < c.width; ++h) {
    double value = 0;
    for (int64_t s = 0; s < c.keys; ++s) {
      if (c.zero && hidden[s]) continue;
      value += scores[s] / sum * double{in[2].as<float>()[Offset(in[2].shape(), c.v, b, n, s, h)]};
    }
    out[h * step] = value;
  }
}

void Check(const Case& c) {
  const std::vector<Tensor> in = InputsOf(c);
  SCOPED_TRACE(in[0].shape().ToString() + in[1].shape().ToString());
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), in);
  ASSERT_EQ(got.shape(), ShapeOf(c.out, c.batch, c.heads, c.queries, c.width));
  std::vector<double> want(static_cast<size_t>(got.elements()));
  for (int64_t i = 0; i < c.batch * c.heads * c.queries; ++i) {
    const int64_t t = i % c.queries, n = i / c.queries % c.heads, b = i / c.queries / c.heads;
    ExactQuery(c, in, b, n, t, want.data() + Offset(got.shape(), c.out, b, n, t, 0), 1);
  }
  ExpectNear(got, want.data(), 1e-5);
  const bool mask_has_rows = !c.mask.empty() && c.mask.size() == c.q.size() && c.mask[0] != 1;
  ExpectRowsAlone("Attention", AttrsOf(c), in, mask_has_rows ? 15 : 7, got);
}

TEST(AttentionOnDeviceTest, AgreesWithFloat64) {
  Check({2, 3, 5, 7, 4, 6});
  Check({2, 2, 64, 64, 16, 64});
  Check({1, 1, 65, 130, 33, 70});
  Check({2, 2, 3, 200, 8, 8, "BNTH", "BNHT", "BNTH", "BTNH"});
  Check({3, 1, 9, 20, 5, 7, "BTH", "BTH", "BTH", "BTH"});
  Check({3, 1, 9, 20, 5, 7, "BTH", "BHT", "BTH", "BTH"});
  Check({2, 4, 1, 90, 16, 16, "BTNH", "BTNH", "BTNH", "BNTH"});
}

TEST(AttentionOnDeviceTest, AppliesMasks) {
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {5, 70}});
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {2, 3, 5, 70}});
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {2, 1, 1, 70}, 0.3f, -1e9f});
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {1, 1, 5, 70}, 0.3f, -2.0f, true});
  Check({2, 1, 5, 70, 4, 6, "BTH", "BTH", "BTH", "BTH", {2, 1, 70}, 0.3f, -1e9f, true});
}

// The first tile of keys is hidden, and one query's keys all are.
TEST(AttentionOnDeviceTest, HidesWholeTiles) {
  const Case c = {1, 1, 3, 150, 4, 5, "BTH", "BTH", "BTH", "BTH", {3, 150}};
  std::vector<Tensor> in = InputsOf(c);
  auto* mask = static_cast<float*>(in[3].mutable_data());
  for (int64_t i = 0; i < 3 * 150; ++i) {
    if (i % 150 < 70 || i / 150 == 2) mask[i] = -std::numeric_limits<float>::infinity();
  }
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), in);
  ASSERT_EQ(got.elements(), 15);
  std::vector<double> want(10);
  for (int64_t t = 0; t < 2; ++t) ExactQuery(c, in, 0, 0, t, want.data() + t * 5, 1);
  ExpectNear(RowsOf(got.Reshaped(Shape({3, 5})), 0, 2), want.data(), 1e-5);
  for (int i = 10; i < 15; ++i) EXPECT_TRUE(std::isnan(got.as<float>()[i]));
}

TEST(AttentionOnDeviceTest, NaNAndInfinityStayInTheirQuery) {
  const Case c = {1, 1, 3, 70, 4, 5, "BTH", "BTH", "BTH", "BTH"};
  std::vector<Tensor> in = InputsOf(c);
  static_cast<float*>(in[0].mutable_data())[0] = std::numeric_limits<float>::quiet_NaN();
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), in);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(got.as<float>()[i]));
  for (int i = 5; i < 15; ++i) EXPECT_TRUE(std::isfinite(got.as<float>()[i]));
}

TEST(AttentionOnDeviceTest, WithoutKeysThereIsNothing) {
  const Case c = {1, 1, 3, 0, 4, 5, "BTH", "BTH", "BTH", "BTH"};
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), InputsOf(c));
  for (int i = 0; i < 15; ++i) EXPECT_EQ(got.as<float>()[i], 0);
}

TEST(AttentionOnDeviceTest, RefusesShapesThatDoNotFit) {
  const Case c = {2, 3, 5, 7, 4, 6};
  std::vector<Tensor> in = InputsOf(c);
  EXPECT_TRUE(Computes("Attention", AttrsOf(c), in));
  in[2] = RandomTensor(Shape({2, 8, 3, 6}), 1);
  EXPECT_FALSE(Computes("Attention", AttrsOf(c), in));
}

}  // namespace
}  // namespace floe::cuda
