#include "model/epilogue.h"

#include <gtest/gtest.h>

#include <string>

#include "model/attrs.h"

namespace floe {
namespace {

TEST(Epilogue, IsWhatWasSet) {
  Attrs attrs;
  EXPECT_EQ(EpilogueOf(attrs), Epilogue());
  EXPECT_EQ(EpilogueOf(attrs).inputs(), 0);
  Epilogue epilogue{.activation = Activation::kLeakyRelu, .alpha = 0.3f, .bias = 2};
  SetEpilogue(epilogue, &attrs);
  EXPECT_EQ(EpilogueOf(attrs), epilogue);
  EXPECT_EQ(EpilogueOf(attrs).inputs(), 1);
  epilogue.residual = 3;
  SetEpilogue(epilogue, &attrs);
  EXPECT_EQ(EpilogueOf(attrs), epilogue);
  EXPECT_EQ(EpilogueOf(attrs).inputs(), 2);
}

// What a file can give an attribute, of any name, is none.
TEST(Epilogue, IsNotReadFromAttributesOfFiles) {
  Attrs attrs;
  attrs.Set("fused_bias", true);
  for (const AttrValue& value :
       {AttrValue(true), AttrValue(int64_t{2}), AttrValue(std::string("Relu")),
        AttrValue(std::vector<int64_t>{1, 2})}) {
    attrs.Set("epilogue", value);
    EXPECT_EQ(EpilogueOf(attrs), Epilogue());
  }
}

}  // namespace
}  // namespace floe
