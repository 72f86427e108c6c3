// Every kind of listener offers the methods of its roles, and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/transport/tests/transport_for_test.h"

namespace floe::server {
namespace {

const std::map<std::string, MethodRole> kMethodOfRole = {
    {"/test/Infer", MethodRole::kInference},   {"/test/Models", MethodRole::kModels},
    {"/test/Health", MethodRole::kHealth},     {"/test/Reflect", MethodRole::kReflection},
    {"/test/Operate", MethodRole::kOperators},
};
constexpr char kWatchStream[] = "/test/Watch";  // of kHealth

class RolesOfListeners : public TransportTest {
 protected:
  RolesOfListeners() {
    for (const auto& [path, role] : kMethodOfRole)
      methods_.AddUnary(
          path,
          [](const CallHead&, const Message&, const auto& responder) {
            responder->Write("done");
            responder->Finish(absl::OkStatus());
          },
          /*max_bytes=*/0, role);
    methods_.Add(kWatchStream, {{MethodKind::kStream, MethodRole::kHealth},
                                [this](const CallHead&, std::shared_ptr<Responder> responder) {
                                  return std::make_shared<EchoHandler>(std::move(responder),
                                                                       &over_);
                                }});
  }

  // One of each kind: TCP on loopback and for all, a unix socket with a file and without, and a
  // socket that the service manager passed, which is the transport's from then on.
  std::vector<ListenerSpec> Kinds(const std::string& name, const ListenerRoles& roles) {
    const std::string id = absl::StrCat("floe_roles_", getpid(), "_", name);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(listen(fd, 16), 0);  // at a free port of every address
    std::vector<ListenerSpec> listeners;
    for (const std::string& address : {std::string("127.0.0.1:0"), std::string("0.0.0.0:0"),
                                       absl::StrCat("unix:", testing::TempDir(), id, ".sock"),
                                       absl::StrCat("unix-abstract:", id), absl::StrCat("fd:", fd)})
      listeners.push_back({address, {}, roles});
    return listeners;
  }

  grpc::StatusCode CodeOf(const std::string& path) {
    return Finished(path, "m")->status.error_code();
  }
};

constexpr OfferedTo kNone = OfferedTo::kNobody;

TEST_F(RolesOfListeners, EachOffersItsOwn) {
  const std::map<std::string, ListenerRoles> kRoles = {
      {"infer", {OfferedTo::kAll, kNone, kNone}},
      {"read", {kNone, OfferedTo::kAll, kNone}},
      {"admin", {kNone, kNone, OfferedTo::kAll}},
      {"local", {kNone, kNone, OfferedTo::kLocal}},
      {"usual", {}},
      {"nothing", {kNone, kNone, kNone}},
  };
  std::vector<ListenerSpec> listeners;
  for (const auto& [name, roles] : kRoles)
    for (const ListenerSpec& one : Kinds(name, roles)) listeners.push_back(one);
  transport_ = Make();
  const absl::Status started = transport_->Start(listeners);
  ASSERT_TRUE(started.ok()) << started;
  for (size_t i = 0; i < listeners.size(); ++i) {
    Connect(transport_->addresses().at(i));
    for (const auto& [path, role] : kMethodOfRole) {
      // Every caller of this test is local.
      const bool offered = CheckRole(listeners[i].roles, role, /*local=*/true).ok();
      EXPECT_EQ(CodeOf(path), offered ? grpc::StatusCode::OK : grpc::StatusCode::PERMISSION_DENIED)
          << path << " at " << listeners[i].address;
    }
    ClientStream stream;
    stream.Start(stub_.get(), kWatchStream);
    stream.HalfClose();
    stream.Release();
    ASSERT_TRUE(stream.done.Reaches(1));
    EXPECT_EQ(stream.status.error_code(), listeners[i].roles.read == OfferedTo::kAll
                                              ? grpc::StatusCode::OK
                                              : grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_F(RolesOfListeners, AllServersOfATransportEndTogether) {
  std::vector<ListenerSpec> listeners = Kinds("infer", {OfferedTo::kAll, kNone, kNone});
  for (const ListenerSpec& one : Kinds("read", {kNone, OfferedTo::kAll, kNone}))
    listeners.push_back(one);
  transport_ = Make();
  ASSERT_TRUE(transport_->Start(listeners).ok());
  Connect(transport_->addresses().back());
  EXPECT_EQ(CodeOf("/test/Models"), grpc::StatusCode::OK);
  Connect(transport_->addresses().front());
  const auto held = Call("/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  std::thread shutting([&] { transport_->Shutdown(Clock::Steady().Now()); });
  ASSERT_TRUE(cancelled_.Reaches(1));
  TakeHeld().second->Finish(absl::CancelledError("stopped"));
  shutting.join();
  ASSERT_TRUE(held->done.Reaches(1));
}

}  // namespace
}  // namespace floe::server
