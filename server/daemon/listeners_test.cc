#include "server/daemon/listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Addresses(const ListenConfig& config,
                                   const std::vector<std::string>& activated = {}) {
  std::vector<std::string> addresses;
  for (const ListenerSpec& listener : ListenersOf(config, activated))
    addresses.push_back(listener.address);
  return addresses;
}

TEST(Listeners, Addresses) {
  ListenConfig config;
  EXPECT_THAT(Addresses(config), ElementsAre("127.0.0.1:8500"));
  config.bind_address = "::";
  config.port = 9;
  config.grpc_socket_path = "/run/s";
  EXPECT_THAT(Addresses(config), ElementsAre("[::]:9", "unix:/run/s"));
  config.bind_address = "0.0.0.0";
  config.port = 0;
  EXPECT_THAT(Addresses(config), ElementsAre("unix:/run/s"));
  config.http_port = 7;
  EXPECT_THAT(Addresses(config), ElementsAre("0.0.0.0:7", "unix:/run/s"));
  config.port = 7;
  EXPECT_THAT(Addresses(config), ElementsAre("0.0.0.0:7", "unix:/run/s"));
  EXPECT_THAT(DescribeListeners(config), ElementsAre(HasSubstr("0.0.0.0:7"), HasSubstr("/run/s")));
  config.port = config.http_port = 0;
  config.grpc_socket_path = "@floe";
  EXPECT_THAT(Addresses(config), ElementsAre("unix-abstract:floe"));
}

TEST(Listeners, TheServiceManagersReplaceTheConfigurations) {
  EXPECT_THAT(Addresses({}, {"fd:3", "fd:4"}), ElementsAre("fd:3", "fd:4"));
}

TEST(Listeners, OperatorsMayHaveOneOfTheirOwn) {
  ListenConfig config;
  config.admin_socket_path = "/run/a";
  const auto all = ListenersOf(config, {"fd:3"});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].roles.admin, OfferedTo::kNobody);
  EXPECT_FALSE(all[0].for_operators);
  EXPECT_EQ(all[1].address, "unix:/run/a");
  EXPECT_EQ(all[1].roles.admin, OfferedTo::kAll);
  EXPECT_TRUE(all[1].for_operators);
  EXPECT_THAT(DescribeListeners(config).back(), HasSubstr("for operators"));
  EXPECT_THAT(DescribeActivated(config, {"127.0.0.1:8500", "unix:/run/a"}),
              ElementsAre(HasSubstr("service manager"), HasSubstr("for operators")));
  config.enable_config_rpcs = ConfigRpcs::kAll;
  EXPECT_EQ(ListenersOf(config, {})[0].roles.admin, OfferedTo::kAll) << "it was asked for";
}

TEST(Listeners, EnableConfigRpcsSaysToWhomTheyOfferTheRpcsForOperators) {
  ListenConfig config;
  config.grpc_socket_path = "/run/s";
  for (const auto& [key, offered] : {std::pair(ConfigRpcs::kNobody, OfferedTo::kNobody),
                                     std::pair(ConfigRpcs::kLocal, OfferedTo::kLocal),
                                     std::pair(ConfigRpcs::kAll, OfferedTo::kAll)}) {
    config.enable_config_rpcs = key;
    ListenerRoles roles;
    roles.admin = offered;
    for (const auto& activated : {std::vector<std::string>(), std::vector<std::string>{"fd:3"}})
      for (const ListenerSpec& listener : ListenersOf(config, activated))
        EXPECT_EQ(listener.roles, roles) << listener.address;
  }
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

TEST(Listeners, UnixSocketsStayPlainWhereTcpIsEncrypted) {
  ListenConfig config;
  config.grpc_socket_path = "/run/s";
  config.tls.certificate = "c";
  const TlsSpec tls{[] { return std::shared_ptr<ssl_ctx_st>(); }};
  std::vector<std::string> encrypted;
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  const int tcp = socket(AF_INET, SOCK_STREAM, 0);
  for (const auto& activated :
       {std::vector<std::string>(),
        std::vector<std::string>{absl::StrCat("fd:", sockets[0]), absl::StrCat("fd:", tcp)}})
    for (const ListenerSpec& listener : ListenersOf(config, activated, tls))
      if (listener.tls.context != nullptr) encrypted.push_back(listener.address);
  EXPECT_THAT(encrypted, ElementsAre("127.0.0.1:8500", absl::StrCat("fd:", tcp)));
  EXPECT_THAT(DescribeListeners(config), ElementsAre(AllOf(HasSubstr("(gRPC and REST, TLS"),
                                                           Not(HasSubstr("--insecure_public"))),
                                                     HasSubstr("unix socket")));
  EXPECT_THAT(DescribeActivated(config, {"unix:/s", "127.0.0.1:1"}),
              ElementsAre(HasSubstr("plain text"), HasSubstr("TLS")));
  for (const int fd : {sockets[0], sockets[1], tcp}) close(fd);
}

}  // namespace
}  // namespace floe::server
