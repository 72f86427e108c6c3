// The addresses of listeners of every kind lead the probe back to them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/daemon/listeners.h"
#include "server/transport/grpcpp/grpcpp_transport.h"
#include "server/transport/grpcpp/unary_client.h"

namespace floe::server {
namespace {

TEST(ProbeAddress, IsReached) {
  MethodTable methods;
  methods.AddUnary("/test/Echo", [](const CallInfo&, const Message& message, const auto& reply) {
    reply->Write(std::string(message.bytes));
    reply->Finish(absl::OkStatus());
  });
  const std::string name = absl::StrCat("floe?probe#", getpid(), "%41 x");
  std::vector<std::string> listeners = {"127.0.0.1:0", "0.0.0.0:0",
                                        absl::StrCat("unix:", testing::TempDir(), name),
                                        absl::StrCat("unix-abstract:", name)};
  if (HasIpv6Loopback()) listeners.insert(listeners.end(), {"[::1]:0", "[::]:0"});
  const auto server = MakeGrpcppTransport(methods, {});
  ASSERT_TRUE(server->Start(listeners).ok());
  CancelToken cancel;
  for (const std::string& bound : server->addresses()) {
    const auto reply = CallOnce(ProbeAddress(bound, HasIpv6Loopback()), "/test/Echo", "hear",
                                std::chrono::seconds(60), &cancel);
    EXPECT_EQ(reply.value_or(reply.status().ToString()), "hear") << bound;
  }
}

}  // namespace
}  // namespace floe::server
