// Cases of Attention with their answers in float64, for tests of every device.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {

struct AttentionCase {
  int64_t batch, heads, queries, keys, features, width;
  std::string q = "BTNH", k = "BTNH", v = "BTNH", out = "BTNH";
  std::vector<int64_t> mask = {};  // empty: none
  float scale = 0.4f;
  std::optional<float> fill = {};  // the mask has bools
  bool zero = false;
};

inline Shape ShapeOf(const std::string& layout, int64_t b, int64_t n, int64_t t, int64_t h) {
  Shape shape;
  for (const char c : layout) shape.push_back(c == 'B' ? b : c == 'N' ? n : c == 'T' ? t : h);
  return shape;
}

// The element's place. Dims of 1 serve all.
inline int64_t PlaceOf(const Shape& shape, const std::string& layout, int64_t b, int64_t n,
                       int64_t t, int64_t h) {
  int64_t at = 0;
  for (size_t i = 0; i < layout.size(); ++i) {
    const char c = layout[i];
    const int64_t size = shape.dim(static_cast<int>(i));
    const int64_t place = c == 'B' ? b : c == 'N' ? n : c == 'T' ? t : h;
    at = at * size + (size == 1 ? 0 : place);
  }
  return at;
}
inline double At(const Tensor& x, const std::string& layout, int64_t b, int64_t n, int64_t t,
                 int64_t h) {
  const int64_t at = PlaceOf(x.shape(), layout, b, n, t, h);
  return x.dtype() == DType::kBool ? x.as<bool>()[at] : x.as<float>()[at];
}

inline Attrs AttrsOf(const AttentionCase& c) {
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

inline std::vector<Tensor> InputsOf(const AttentionCase& c) {
  std::vector<Tensor> inputs = {
      RandomTensor(ShapeOf(c.q, c.batch, c.heads, c.queries, c.features), 1),
      RandomTensor(ShapeOf(c.k, c.batch, c.heads, c.keys, c.features), 2),
      RandomTensor(ShapeOf(c.v, c.batch, c.heads, c.keys, c.width), 3)};
  if (!c.mask.empty()) inputs.push_back(RandomTensor(Shape(c.mask), 4));
  if (c.fill.has_value()) {
    const Tensor numbers = inputs.back();
    inputs.back() = Tensor::Allocate(DType::kBool, numbers.shape());
    for (int64_t i = 0; i < numbers.elements(); ++i)
      static_cast<bool*>(inputs.back().mutable_data())[i] = numbers.as<float>()[i] > -0.3f;
  }
  return inputs;
}

// The result, laid out as `out`. A query whose scores are all -infinity gives NaN.
inline std::vector<double> ExactAttention(const AttentionCase& c, const std::vector<Tensor>& in) {
  const Shape shape = ShapeOf(c.out, c.batch, c.heads, c.queries, c.width);
  const std::string all = c.q.size() == 4 ? "BNTH" : "BTH";
  std::vector<double> out(static_cast<size_t>(shape.elements()));
  for (int64_t i = 0; i < c.batch * c.heads * c.queries; ++i) {
    const int64_t t = i % c.queries, n = i / c.queries % c.heads, b = i / c.queries / c.heads;
    std::vector<double> scores(static_cast<size_t>(c.keys));
    std::vector<bool> hidden(scores.size(), false);
    for (int64_t s = 0; s < c.keys; ++s) {
      double& score = scores[static_cast<size_t>(s)];
      for (int64_t h = 0; h < c.features; ++h)
        score += At(in[0], c.q, b, n, t, h) * At(in[1], c.k, b, n, s, h);
      score *= double{c.scale};
      if (c.mask.empty()) continue;
      const double mask = At(in[3], all.substr(all.size() - c.mask.size()), b, n, t, s);
      hidden[static_cast<size_t>(s)] = c.fill.has_value() && mask == 0;
      if (!c.fill.has_value()) score += mask;
      if (hidden[static_cast<size_t>(s)]) score = double{*c.fill};
    }
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const double score : scores) most = std::max(most, score);
    for (double& score : scores) sum += score = std::exp(score - most);
    for (int64_t h = 0; h < c.width; ++h) {
      double& value = out[static_cast<size_t>(PlaceOf(shape, c.out, b, n, t, h))];
      for (int64_t s = 0; s < c.keys; ++s) {
        if (c.zero && hidden[static_cast<size_t>(s)]) continue;
        value += scores[static_cast<size_t>(s)] / sum * At(in[2], c.v, b, n, s, h);
      }
    }
  }
  return out;
}

}  // namespace floe
