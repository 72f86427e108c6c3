#include "base/cancel.h"

#include <gtest/gtest.h>

namespace floe {
namespace {

TEST(CancelToken, TellsAllThatListen) {
  CancelToken token;
  int one = 0, other = 0, late = 0;
  token.SetListener(&one, [&] { ++one; });
  token.SetListener(&other, [&] { ++other; });
  token.Cancel();
  token.Cancel();
  EXPECT_TRUE(token.cancelled());
  EXPECT_EQ(one, 1);
  EXPECT_EQ(other, 1);
  token.SetListener(&late, [&] { ++late; });
  EXPECT_EQ(late, 1);
}

TEST(CancelToken, AnOwnerHasOneListener) {
  CancelToken token;
  int first = 0, second = 0, gone = 0;
  token.SetListener(&token, [&] { ++first; });
  token.SetListener(&token, [&] { ++second; });
  token.SetListener(&gone, [&] { ++gone; });
  token.ClearListener(&gone);
  token.Cancel();
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(gone, 0);
}

}  // namespace
}  // namespace floe
