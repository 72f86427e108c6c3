// What layers with windows over one to three dims share: their layout and their options.
#pragma once

#include <string>
#include <vector>

#include "model/import/keras/layer.h"

namespace floe::keras {

// Channels moved last and, over one dim, a dim of one put before it: the form that floe's ops
// take. Back() undoes both.
class Windows {
 public:
  // `spatial`: 1, 2 or 3, and the rank of input 0 must be that and two.
  Windows(LayerContext& c, int spatial);

  ValueRef x() const { return x_; }
  int spatial() const { return spatial_; }
  ValueRef Back(ValueRef y);
  // Numbers of an option, one for each spatial dim.
  std::vector<int64_t> Option(const std::string& name, int64_t otherwise);
  // {1, numbers..., 1} for an op's attribute, as many as the op has dims.
  std::vector<int64_t> Attribute(const std::vector<int64_t>& numbers) const;
  // A kernel [sizes..., in, out] with the dim that x() got.
  ValueRef Kernel(ValueRef kernel);
  // "SAME" or "VALID"; causal padding is put before x() in time.
  std::string Padding(const std::vector<int64_t>& kernel, const std::vector<int64_t>& dilation);

 private:
  LayerContext& c_;
  const int spatial_;
  bool channels_last_ = true;
  ValueRef x_;
};

// Input 0, whose rank must be `spatial` and two.
ValueRef SpatialInput(LayerContext& c, int spatial);
// Fails where a kernel [(1,) sizes..., in, out] has not the sizes that the options say.
void CheckKernel(GraphBuilder& b, ValueRef kernel, const std::vector<int64_t>& sizes);
// The spatial dims that the end of a class name tells ("Conv2D"), or 0.
int SpatialOf(const std::string& class_name);
// Channels of an input moved to the last axis, and back to where `channels_last` says.
ValueRef ChannelsToLast(GraphBuilder& b, ValueRef x, bool channels_last);
ValueRef ChannelsFromLast(GraphBuilder& b, ValueRef y, bool channels_last);

}  // namespace floe::keras
