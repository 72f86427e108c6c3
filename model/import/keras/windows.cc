#include "model/import/keras/windows.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe::keras {

int SpatialOf(const std::string& class_name) {
  for (int n = 1; n <= 3; ++n) {
    if (absl::StrContains(class_name, absl::StrCat(n, "D"))) return n;
  }
  return 0;
}

ValueRef ChannelsToLast(GraphBuilder& b, ValueRef x, bool channels_last) {
  const int rank = Rank(b, x);
  if (channels_last || !b.ok() || rank < 3) return x;
  std::vector<int64_t> order{0};
  for (int k = 2; k < rank; ++k) order.push_back(k);
  order.push_back(1);
  return Transpose(b, x, order);
}

ValueRef ChannelsFromLast(GraphBuilder& b, ValueRef y, bool channels_last) {
  const int rank = Rank(b, y);
  if (channels_last || !b.ok() || rank < 3) return y;
  std::vector<int64_t> order{0, rank - 1};
  for (int k = 1; k + 1 < rank; ++k) order.push_back(k);
  return Transpose(b, y, order);
}

void CheckKernel(GraphBuilder& b, ValueRef kernel, const std::vector<int64_t>& sizes) {
  const int rank = static_cast<int>(sizes.size());
  for (int k = 0; k < rank; ++k) {
    const int64_t size = SizeOf(b, kernel, k - rank - 2, "a kernel");
    if (b.ok() && size != sizes[k])
      b.Fail(absl::StrCat("kernel_size has ", sizes[k], " and its kernel ", size));
  }
}

ValueRef SpatialInput(LayerContext& c, int spatial) {
  const ValueRef x = c.In();
  if (Rank(c.b, x) != spatial + 2)
    c.Fail(absl::StrCat("the input is ", c.b.shape(x).ToString(), ", expected rank ", spatial + 2));
  return x;
}

Windows::Windows(LayerContext& c, int spatial) : c_(c), spatial_(spatial) {
  GraphBuilder& b = c.b;
  channels_last_ = c.ChannelsLast();
  x_ = ChannelsToLast(b, SpatialInput(c, spatial), channels_last_);
  if (spatial == 1) x_ = ExpandDims(b, x_, 1);
}

ValueRef Windows::Back(ValueRef y) {
  if (spatial_ == 1) y = Squeeze(c_.b, y, {1});
  return ChannelsFromLast(c_.b, y, channels_last_);
}

std::vector<int64_t> Windows::Option(const std::string& name, int64_t otherwise) {
  std::vector<int64_t> numbers =
      c_.config.Ints(name, spatial_, std::vector<int64_t>(spatial_, otherwise));
  for (int64_t& number : numbers) {
    if (number >= 1 && number <= INT32_MAX) continue;
    c_.Fail(absl::StrCat("option ", Quoted(name), " has ", number));
    number = 1;
  }
  return numbers;
}

std::vector<int64_t> Windows::Attribute(const std::vector<int64_t>& numbers) const {
  std::vector<int64_t> all{1};
  if (spatial_ == 1) all.push_back(1);
  all.insert(all.end(), numbers.begin(), numbers.end());
  all.push_back(1);
  return all;
}

ValueRef Windows::Kernel(ValueRef kernel) {
  if (c_.b.ok() && Rank(c_.b, kernel) != spatial_ + 2)
    c_.Fail(absl::StrCat("its kernel is ", c_.b.shape(kernel).ToString()));
  return spatial_ == 1 ? ExpandDims(c_.b, kernel, 0) : kernel;
}

std::string Windows::Padding(const std::vector<int64_t>& kernel,
                             const std::vector<int64_t>& dilation) {
  const std::string padding = c_.config.String("padding", "valid");
  if (padding == "same") return "SAME";
  if (padding == "causal" && spatial_ == 1) {
    const int64_t before = dilation[0] * (kernel[0] - 1);
    x_ = Pad(c_.b, x_, {{0, 0}, {0, 0}, {before, 0}, {0, 0}});
  } else if (padding != "valid") {
    c_.Fail(absl::StrCat("padding is ", Quoted(padding)));
  }
  return "VALID";
}

}  // namespace floe::keras
