// ConvLSTM1D, 2D and 3D.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/recurrent.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

// Channels first to last (`in`) or back, where they are first; `at`: the axis that they have there.
ValueRef Moved(GraphBuilder& b, ValueRef x, int at, bool last, bool in) {
  const int rank = Rank(b, x);
  if (last || !b.ok() || rank <= at) return x;
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (in)
    std::rotate(order.begin() + at, order.begin() + at + 1, order.end());
  else
    std::rotate(order.begin() + at, order.end() - 1, order.end());
  return Transpose(b, x, order);
}

class ConvLstm : public Cell {
 public:
  ConvLstm(LayerContext& c, const Json& config, LayerWeights weights, int spatial, bool last)
      : Cell(c, config, std::move(weights)), spatial_(spatial), last_(last) {
    Config options = this->options();
    const std::vector<int64_t> ones(spatial, 1);
    size_ = options.Ints("kernel_size", spatial, ones);
    strides_ = options.Ints("strides", spatial, ones);
    dilation_ = options.Ints("dilation_rate", spatial, ones);
    padding_ = options.String("padding", "valid") == "same" ? "SAME" : "VALID";
    c.b.Fail(options.status());
  }

  // x: [batch, time, spatial..., channels]; all steps as one batch of images.
  ValueRef Project(GraphBuilder& b, ValueRef x) override {
    x = Moved(b, x, 2, last_, true);
    const int rank = Rank(b, x);
    if (b.ok() && rank != spatial_ + 3) b.Fail(absl::StrCat("an input of rank ", rank));
    if (!b.ok()) return {};
    CheckKernel(b, Weight(b, 0), size_);
    std::vector<WantedDim> merged{-1}, dims{DimOf(b, x, 0), DimOf(b, x, 1)};
    for (int k = 2; k < rank; ++k) merged.push_back(SizeOf(b, x, k, "the size of the images"));
    ValueRef y = Convolve(b, Reshape(b, x, merged), Weight(b, 0), strides_, dilation_, padding_);
    if (Option("use_bias", true)) y = b.Op("BiasAdd", {y, Weight(b, 2)});
    for (int k = 1; k < rank - 1; ++k) dims.push_back(SizeOf(b, y, k, "the size of the images"));
    if (!dims[0].fixed() && dims[1].fixed()) dims[0] = -1;
    return Reshape(b, y, dims);
  }

  CellStep Step(GraphBuilder& b, ValueRef x, const std::vector<ValueRef>& states) override {
    if (states.size() < 2) {
      b.Fail("it needs two initial states");
      return {};
    }
    const std::vector<int64_t> ones(spatial_, 1);
    const ValueRef z = Add(b, x, Convolve(b, states[0], Weight(b, 1), ones, ones, "SAME"));
    const std::vector<ValueRef> gates = Split(b, z, spatial_ + 1, 4);
    const auto gate = [&](int k) { return Activate(b, "recurrent_activation", gates[k]); };
    const ValueRef kept = Mul(b, gate(1), states[1]);
    const ValueRef c = Add(b, kept, Mul(b, gate(0), Activate(b, "activation", gates[2])));
    const ValueRef h = Mul(b, gate(3), Activate(b, "activation", c));
    return {h, {h, c}};
  }

  std::vector<ValueRef> ZeroStates(GraphBuilder& b, ValueRef projected) override {
    std::vector<WantedDim> dims{DimOf(b, projected, 0)};
    for (int k = 0; k < spatial_; ++k)
      dims.emplace_back(SizeOf(b, projected, k + 2, "the size of the images"));
    dims.emplace_back(units());
    const ValueRef zeros = Fill(b, dims, Scalar(b, b.dtype(projected), 0));
    return {zeros, zeros};
  }

 private:
  ValueRef Convolve(GraphBuilder& b, ValueRef x, ValueRef kernel,
                    const std::vector<int64_t>& strides, const std::vector<int64_t>& dilation,
                    const std::string& padding) const {
    const bool one = spatial_ == 1, three = spatial_ == 3;
    const auto attribute = [&](const std::vector<int64_t>& numbers) {
      std::vector<int64_t> all{1};
      if (one) all.push_back(1);
      all.insert(all.end(), numbers.begin(), numbers.end());
      all.push_back(1);
      return all;
    };
    if (one) {
      x = ExpandDims(b, x, 1);
      kernel = ExpandDims(b, kernel, 0);
    }
    const ValueRef y = b.Op(three ? "Conv3D" : "Conv2D", {x, kernel},
                            {{"strides", attribute(strides)},
                             {"dilations", attribute(dilation)},
                             {"padding", padding},
                             {"data_format", std::string(three ? "NDHWC" : "NHWC")}});
    return one ? Squeeze(b, y, {1}) : y;
  }

  const int spatial_;
  const bool last_;
  std::vector<int64_t> size_, strides_, dilation_;
  std::string padding_;
};

KValue Layer(LayerContext& c) {
  GraphBuilder& b = c.b;
  const bool last = c.ChannelsLast();
  const Json& config = Member(*c.layer.json, "config");
  const RecurrentOptions options = OptionsOf(c, config);
  ConvLstm cell(c, config, c.layer.weights.Child("cell"), SpatialOf(c.class_name), last);
  std::vector<ValueRef> states = InitialStates(c);
  for (ValueRef& state : states) state = Moved(b, state, 1, last, true);
  if (!b.ok()) return {};
  KValue out = RunRecurrent(c, cell, options, std::move(states));
  if (last || !b.ok()) return out;
  const auto back = [&](KValue* value, bool sequence) {
    if (value->is_tensor())
      value->tensor.value = Moved(b, value->tensor.value, sequence ? 2 : 1, last, false);
  };
  back(&out, options.return_sequences);
  for (size_t k = 0; k < out.items.size(); ++k)
    back(&out.items[k], k == 0 && options.return_sequences);
  return out;
}

const LayerRegistrar kConvLstm({"ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"}, Layer);

}  // namespace
}  // namespace floe::keras
