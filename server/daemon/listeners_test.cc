#include "server/daemon/listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Listeners, Addresses) {
  ListenConfig config;
  EXPECT_THAT(ListenAddresses(config), ElementsAre("127.0.0.1:8500"));
  config.bind_address = "::";
  config.port = 9;
  config.grpc_socket_path = "/run/s";
  EXPECT_THAT(ListenAddresses(config), ElementsAre("[::]:9", "unix:/run/s"));
  config.bind_address = "0.0.0.0";
  config.port = 0;
  EXPECT_THAT(ListenAddresses(config), ElementsAre("unix:/run/s"));
  config.grpc_socket_path = "@floe";
  EXPECT_THAT(ListenAddresses(config), ElementsAre("unix-abstract:floe"));
}

TEST(Listeners, TheLogNamesTheFlagThatOpensALoopbackListener) {
  ListenConfig config;
  EXPECT_THAT(DescribeListeners(config),
              ElementsAre(AllOf(HasSubstr("127.0.0.1:8500"), HasSubstr("--bind_address=0.0.0.0"),
                                HasSubstr("--insecure_public"))));
  config.bind_address = "10.0.0.1";
  EXPECT_THAT(DescribeListeners(config),
              ElementsAre(AllOf(HasSubstr("10.0.0.1:8500"), Not(HasSubstr("--insecure_public")))));
}

}  // namespace
}  // namespace floe::server
