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

TEST(Listeners, TheProbeReachesWildcards) {
  EXPECT_EQ(ProbeAddress("127.0.0.1:8500", true), "127.0.0.1:8500");
  EXPECT_EQ(ProbeAddress("0.0.0.0:9", true), "127.0.0.1:9");
  EXPECT_EQ(ProbeAddress("[::]:9", true), "[::1]:9");
  EXPECT_EQ(ProbeAddress("[::]:9", false), "127.0.0.1:9");
  EXPECT_EQ(ProbeAddress("unix:/run/s", true), "unix:/run/s");
}

TEST(Listeners, TheProbesAddressIsATargetOfGrpc) {
  EXPECT_EQ(ProbeAddress("[fe80::1%eth0]:9", true), "ipv6:%5Bfe80%3A%3A1%25eth0%5D:9");
  EXPECT_EQ(ProbeAddress("unix:/run/a?b#c%d", true), "unix:/run/a%3Fb%23c%25d");
  EXPECT_EQ(ProbeAddress("unix-abstract:a:0.1", true), "unix-abstract:a%3A0.1");
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
