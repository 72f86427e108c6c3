#include "base/quoted.h"

#include <gtest/gtest.h>

namespace floe {
namespace {

TEST(Quoted, IsPrintableAndBounded) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("a b"), "'a b'");
  EXPECT_EQ(Quoted("a\n\xff"), "'a\\n\\xff'");
  EXPECT_EQ(Quoted(std::string(100, 'x')), "'" + std::string(100, 'x') + "'");
  EXPECT_EQ(Quoted(std::string(101, 'x')), "'" + std::string(100, 'x') + "...'");
}

}  // namespace
}  // namespace floe
