#include "runtime/kernel_key.h"

#include <gtest/gtest.h>

namespace floe {
namespace {

class KernelKeyTest : public testing::Test {
 protected:
  KernelKeyTest() { Use("MatMul"); }
  void Use(const char* op) {
    node_.name = "node";
    node_.op = FindOp(op);
    inputs_ = {{{DType::kFloat32, {Dim::Unknown(), 2}}, {}, {}}, Constant({1, 2})};
  }
  // Memory of its own.
  static ValueInfo Constant(const std::vector<float>& values) {
    const Tensor tensor = Tensor::Vector(DType::kFloat32, values);
    return {{DType::kFloat32, SymShape(tensor.shape())}, tensor, {}};
  }
  static ValueInfo Strings(const std::vector<std::string>& values) {
    const Tensor tensor =
        Tensor::Allocate(DType::kString, Shape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), static_cast<std::string*>(tensor.view().data));
    return {{DType::kString, SymShape(tensor.shape())}, tensor, {}};
  }
  KernelKey Key() const { return KeyOf(node_, inputs_, options_); }
  // Whether `change` gives another key, and undoing it the first one again.
  template <class Change>
  bool TellsApart(const Change& change) {
    const absl::uint128 before = Key().hash;
    const auto kept = std::make_tuple(node_, inputs_, options_);
    change();
    const absl::uint128 after = Key().hash;
    std::tie(node_, inputs_, options_) = kept;
    return after != before && Key().hash == before;
  }

  Node node_;
  std::vector<ValueInfo> inputs_;
  KernelOptions options_;
};

TEST_F(KernelKeyTest, ConstantsCountByContent) {
  EXPECT_TRUE(Key().of_content);
  EXPECT_FALSE(TellsApart([&] { inputs_[1] = Constant({1, 2}); }));
  EXPECT_TRUE(TellsApart([&] { inputs_[1] = Constant({1, 3}); }));
  EXPECT_TRUE(TellsApart([&] { inputs_[1].constant = Tensor(); }));
  EXPECT_TRUE(TellsApart([&] { inputs_[1].per_row = Constant({0, 1}).constant; }));
  inputs_[1] = Strings({"a", "bc"});
  EXPECT_TRUE(Key().of_content);
  EXPECT_FALSE(TellsApart([&] { inputs_[1] = Strings({"a", "bc"}); }));
  EXPECT_TRUE(TellsApart([&] { inputs_[1] = Strings({"ab", "c"}); }));
}

TEST_F(KernelKeyTest, WhatTheKernelIsMadeFromCounts) {
  EXPECT_TRUE(TellsApart([&] { node_.op = FindOp("BatchMatMul"); }));
  EXPECT_TRUE(TellsApart([&] { node_.attrs.Set("transpose_a", true); }));
  EXPECT_TRUE(TellsApart([&] { inputs_[0].type.shape = {Dim::Unknown(), 3}; }));
  EXPECT_TRUE(TellsApart([&] { inputs_[0].type.dtype = DType::kFloat64; }));
  EXPECT_TRUE(TellsApart([&] { options_.device = DeviceKind::kCuda; }));
  EXPECT_TRUE(TellsApart([&] { options_.gemm = GemmBackend::kReference; }));
  EXPECT_TRUE(TellsApart([&] { options_.precision = Precision::kBf16; }));
  EXPECT_TRUE(TellsApart([&] { options_.routes["node"] = "gemm"; }));
  EXPECT_FALSE(TellsApart([&] { options_.routes["other"] = "gemm"; }));
  EXPECT_FALSE(TellsApart([&] { node_.name = "other"; }));
}

TEST_F(KernelKeyTest, TransformsCountForConvolutions) {
  const auto grow = [&] { options_.conv.fft_growth = 3; };
  const auto turn_off = [&] { options_.conv.fft = false; };
  const auto leave_cache = [&] { options_.conv.weights_stay_cached = false; };
  EXPECT_FALSE(TellsApart(grow));
  EXPECT_FALSE(TellsApart(turn_off));
  EXPECT_FALSE(TellsApart(leave_cache));
  Use("Conv2D");
  EXPECT_TRUE(TellsApart(grow));
  EXPECT_TRUE(TellsApart(turn_off));
  EXPECT_TRUE(TellsApart(leave_cache));
}

TEST_F(KernelKeyTest, StateAndTablesStayInTheirModel) {
  Use("RandomUniform");
  EXPECT_FALSE(Key().of_content);
  EXPECT_TRUE(TellsApart([&] { node_.name = "other"; }));
  Use("Gather");
  const Tensor table = Tensor::Allocate(DType::kResource, Shape());
  inputs_[1] = {{DType::kResource, SymShape(Shape())}, table, {}};
  EXPECT_FALSE(Key().of_content);
  EXPECT_FALSE(TellsApart([&] { inputs_[1].constant = table.Reshaped(Shape()); }));
  EXPECT_TRUE(
      TellsApart([&] { inputs_[1].constant = Tensor::Allocate(DType::kResource, Shape()); }));
}

}  // namespace
}  // namespace floe
