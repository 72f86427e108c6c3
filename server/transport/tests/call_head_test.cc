// What a method sees of a call before its message, and how streams are paused and drained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/transport/tests/transport_for_test.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

using CallHeads = TransportTest;

// A method that refuses by the head of a call never sees its message.
TEST_F(CallHeads, TheHeadOfACallOpensIt) {
  CallHead seen;
  methods_.Add(
      "/test/Guarded",
      {{}, [&](const CallHead& head, const auto&) -> absl::StatusOr<std::shared_ptr<CallHandler>> {
         seen = head;
         seen.cancel = nullptr;
         return absl::PermissionDeniedError("not you");
       }});
  Open();
  ClientCall call;
  call.context.AddMetadata("x-request-id", "mine-1");
  call.context.AddMetadata("traceparent", "00-0af7-b7ad-01");
  call.context.AddMetadata("other", "thing");
  call.Start(stub_.get(), "/test/Guarded", "m");
  ASSERT_TRUE(call.done.Reaches(1));
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(seen.path, "/test/Guarded");
  EXPECT_THAT(seen.peer, StartsWith("127.0.0.1:"));
  EXPECT_TRUE(seen.local);
  EXPECT_NE(seen.principal, 0u);
  EXPECT_EQ(seen.request_id, "mine-1");
  EXPECT_EQ(seen.traceparent, "00-0af7-b7ad-01");
  EXPECT_TRUE(seen.metadata.empty());
  EXPECT_NE(seen.arrived, TimePoint::min());
}

TEST_F(CallHeads, AMethodHasALimitOfItsOwn) {
  methods_.AddUnary(
      "/test/Short",
      [](const CallHead&, const Message&, const auto& responder) {
        responder->Write("taken");
        responder->Finish(absl::OkStatus());
      },
      /*max_bytes=*/4);
  Open();
  EXPECT_TRUE(Finished("/test/Short", "1234")->status.ok());
  EXPECT_EQ(Finished("/test/Short", "12345")->status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(CallHeads, TrailersAreSentBesideTheStatus) {
  methods_.AddUnary("/test/Trailing", [](const CallHead&, const Message&, const auto& responder) {
    responder->Finish(absl::NotFoundError("gone"), {{"x-request-id", "7"}});
  });
  Open();
  const auto call = Finished("/test/Trailing", "");
  const auto& trailers = call->context.GetServerTrailingMetadata();
  const auto found = trailers.find("x-request-id");
  ASSERT_NE(found, trailers.end());
  EXPECT_EQ(found->second, "7");
}

// Stops after its first message until the test lets it go on.
class Pausing : public CallHandler {
 public:
  explicit Pausing(std::shared_ptr<Responder> responder) : responder_(std::move(responder)) {}
  void OnMessage(Message message) override {
    responder_->Pause();
    responder_->Write(std::string(message.bytes) + (responder_->Credit() > 0 ? " more" : " full"));
  }
  void OnHalfClose() override { responder_->Finish(absl::OkStatus()); }
  bool OnDrain() override {
    responder_->Write("farewell");
    return false;
  }

 private:
  const std::shared_ptr<Responder> responder_;
};

TEST_F(CallHeads, StreamsPauseAndSayFarewell) {
  std::shared_ptr<Responder> responder;
  methods_.AddStream("/test/Pause", [&](const CallHead&, std::shared_ptr<Responder> to) {
    responder = to;
    return std::make_shared<Pausing>(std::move(to));
  });
  Open();
  ClientStream stream;
  stream.Start(stub_.get(), "/test/Pause");
  stream.Send("a");
  ASSERT_TRUE(stream.got.Reaches(1));
  stream.Send("b");
  responder->Resume();
  ASSERT_TRUE(stream.got.Reaches(2));
  EXPECT_THAT(stream.received, ElementsAre("a more", "b more"));
  stream.Release();
  transport_->Shutdown(Soon());
  ASSERT_TRUE(stream.done.Reaches(1));
  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(stream.received, ElementsAre("a more", "b more", "farewell"));
}

}  // namespace
}  // namespace floe::server
