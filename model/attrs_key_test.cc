#include "model/attrs_key.h"

#include <gtest/gtest.h>

#include <set>

namespace floe {
namespace {

std::string KeyOf(AttrValue value, const std::string& name = "a") {
  Attrs attrs;
  attrs.Set(name, std::move(value));
  return AttrsKey(attrs);
}

TEST(AttrsKey, TellsApartWhateverAKernelMayRead) {
  const std::vector<AttrValue> values = {
      int64_t{1},
      int64_t{2},
      1.f,
      1.0000001f,
      0.f,
      -0.f,
      true,
      false,
      std::string("1"),
      std::string("ab"),
      DType::kFloat32,
      DType::kInt32,
      SymShape({2, 3}),
      SymShape({2, Dim::Unknown()}),
      SymShape::UnknownRank(),
      Tensor::Scalar(DType::kInt32, 1),
      Tensor::Scalar(DType::kInt32, 2),
      Tensor::Vector(DType::kInt32, std::vector<int32_t>{1}),
      FunctionName{"ab"},
      std::vector<int64_t>{1, 2},
      std::vector<int64_t>{12},
      std::vector<std::string>{"a", "b"},
      std::vector<std::string>{"ab"},
      std::vector<bool>{true, false},
      std::vector<DType>{DType::kBool},
      std::vector<SymShape>{SymShape({2}), SymShape({3})},
      std::vector<SymShape>{SymShape({2, 3})},
      Epilogue{},
      Epilogue{.activation = Activation::kRelu},
      Epilogue{.alpha = 0.3f},
      Epilogue{.bias = 2},
      Epilogue{.residual = 2},
  };
  std::set<std::string> keys;
  for (const AttrValue& value : values) keys.insert(KeyOf(value));
  EXPECT_EQ(keys.size(), values.size());
  EXPECT_NE(KeyOf(int64_t{1}, "a"), KeyOf(int64_t{1}, "b"));
}

TEST(AttrsKey, IsByContent) {
  EXPECT_EQ(KeyOf(Tensor::Scalar(DType::kInt32, 7)), KeyOf(Tensor::Scalar(DType::kInt32, 7)));
}

}  // namespace
}  // namespace floe
