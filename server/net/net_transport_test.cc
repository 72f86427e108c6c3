// gRPC over HTTP/2, seen by a client that knows no gRPC library.
#include "server/net/net_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "server/net/grpc_wire.h"
#include "server/net/h2_client_for_test.h"
#include "server/net/net_server_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(NetServer, EchoesMessagesOfAnySize) {
  Open();
  H2Client client(address_);
  for (const size_t size : {0, 1, 100, 65530, 65536, 300'000, 5'000'000}) {
    const std::string message(size, static_cast<char>('a' + size % 26));
    for (const char* path : {"/t/Echo", "/t/Later"}) {
      const auto& answer = client.Await(client.Call(path, Framed(message)));
      EXPECT_EQ(answer.code(), "0") << size;
      EXPECT_EQ(answer.fields.at(":status"), "200");
      EXPECT_TRUE(answer.message() == message) << size;
    }
  }
}

TEST_F(NetServer, AMessageThatIsAnnouncedNeedNotWaitForItsWindow) {
  Open();
  H2Client client(address_);
  client.Await(client.Call("/t/Echo", Framed("x")));  // the server's settings are known
  const std::string message = Framed(std::string(size_t{1} << 20, 'm'));
  const int32_t call = client.Call("/t/Echo", message.substr(0, 5), {}, /*more=*/true);
  EXPECT_EQ(client.Window(call), (256 << 10) - 5);
  while (client.Window(call) < (1 << 20) - 5 && client.Turn()) {
  }
  client.SendMore(call, message.substr(5), /*more=*/false);
  EXPECT_EQ(client.Await(call).body, message);
}

TEST_F(NetServer, ManyCallsAtOnceFromSeveralThreads) {
  Open();
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([this, t] {
      H2Client client(address_);
      std::vector<int32_t> calls;
      calls.reserve(50);
      for (int i = 0; i < 50; ++i)
        calls.push_back(
            client.Call(i % 2 == 0 ? "/t/Later" : "/t/Echo", Framed(std::to_string(1000 * t + i))));
      for (int i = 0; i < 50; ++i)
        EXPECT_EQ(client.Await(calls[static_cast<size_t>(i)]).message(),
                  std::to_string(1000 * t + i));
    });
  for (std::thread& caller : callers) caller.join();
}

TEST_F(NetServer, ErrorsAreTrailersAlone) {
  Open();
  H2Client client(address_);
  const auto& failed = client.Await(client.Call("/t/Fail", Framed("x")));
  EXPECT_EQ(failed.code(), "5");
  EXPECT_EQ(failed.fields.at("grpc-message"), "no %C3%A4%0A");
  EXPECT_EQ(failed.fields.at("a-bin"), "AAE");
  EXPECT_EQ(failed.body, "");
  EXPECT_EQ(client.Await(client.Call("/t/Nothing", Framed("x"))).code(), "12");
  const H2Client::Fields followed = {{"x-request-id", "mine"}};
  EXPECT_EQ(
      client.Await(client.Call("/t/Nothing", Framed("x"), followed)).fields.at("x-request-id"),
      "mine");
  EXPECT_EQ(client.Await(client.Call("/t/Echo", "")).code(), "3") << "no message";
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x"), {{"grpc-timeout", "soon"}})).code(),
            "3");
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x"), {{"grpc-encoding", "brotli"}})).code(),
            "12");
}

H2Client::Fields Plain(const std::string& method, const std::string& path) {
  return {{":method", method}, {":scheme", "http"}, {":path", path}, {":authority", "a"}};
}

TEST_F(NetServer, WhatIsNoGrpcGetsAnHttpStatus) {
  Open();
  H2Client client(address_);
  EXPECT_EQ(client.Await(client.Ask(Plain("GET", "/t/Echo"), "")).fields.at(":status"), "405");
  const H2Client::Fields json = {{":method", "POST"},
                                 {":scheme", "http"},
                                 {":path", "/t/Echo"},
                                 {":authority", "a"},
                                 {"content-type", "application/json"}};
  EXPECT_EQ(client.Await(client.Ask(json, "{}")).fields.at(":status"), "415");
}

// Gathers the body, and answers with it from a thread of its own, in parts if it is asked to.
class GatheringHandler : public HttpHandler {
 public:
  GatheringHandler(std::shared_ptr<HttpResponder> to, bool in_parts)
      : to_(std::move(to)), in_parts_(in_parts) {}
  ~GatheringHandler() override {
    if (thread_.joinable()) thread_.join();
  }
  void OnBody(std::string_view part) override { body_ += part; }
  void OnEnd() override {
    thread_ = std::thread([to = to_, in_parts = in_parts_, body = std::move(body_)]() mutable {
      HttpReply reply;
      reply.fields = {{"X-Kind", "gathered"}};
      if (in_parts) {
        to->Begin(std::move(reply));
        to->Write("parts: ");
        to->Write(std::move(body));
        to->End();
      } else {
        reply.body = std::move(body);
        to->Send(std::move(reply));
      }
    });
  }

 private:
  const std::shared_ptr<HttpResponder> to_;
  const bool in_parts_;
  std::string body_;
  std::thread thread_;
};

TEST_F(NetServer, PlainRequestsAreServedInStreams) {
  constexpr int64_t kMost = 1 << 20;
  routes_.Add(SimpleRoute("/hello", MethodRole::kHealth, [](const HttpHead& head) {
    HttpReply reply;
    reply.body = head.query + *head.Field("host");
    return reply;
  }));
  for (const bool in_parts : {false, true})
    routes_.Add({"POST", in_parts ? "/parts" : "/whole", MethodRole::kInference, kMost,
                 [in_parts](const HttpHead&, std::shared_ptr<HttpResponder> to) {
                   return std::make_shared<GatheringHandler>(std::move(to), in_parts);
                 }});
  Open();
  H2Client client(address_);
  const auto& hello = client.Await(client.Ask(Plain("GET", "/hello?x=1"), ""));
  EXPECT_EQ(hello.fields.at(":status"), "200");
  EXPECT_EQ(hello.body, "x=1a");
  const auto& head = client.Await(client.Ask(Plain("HEAD", "/hello?x=1"), ""));
  EXPECT_EQ(head.fields.at("content-length"), "4");
  EXPECT_EQ(head.body, "");
  const std::string large(kMost, 'l');  // more than the windows of both ends
  const auto& whole = client.Await(client.Ask(Plain("POST", "/whole"), large));
  EXPECT_EQ(whole.fields.at("x-kind"), "gathered");
  EXPECT_TRUE(whole.body == large);
  EXPECT_EQ(client.Await(client.Ask(Plain("POST", "/parts"), "abc")).body, "parts: abc");
  EXPECT_EQ(client.Await(client.Ask(Plain("POST", "/whole"), large + "l")).fields.at(":status"),
            "413");
  EXPECT_EQ(client.Await(client.Ask(Plain("GET", "/nowhere"), "")).fields.at(":status"), "404");
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x"))).code(), "0");
}

// Before the message has arrived, which the client then does not send.
TEST_F(NetServer, AHeadIsRefusedBeforeItsBody) {
  methods_.Add(
      "/t/Guarded",
      {{}, [](const CallHead&, const auto&) -> absl::StatusOr<std::shared_ptr<CallHandler>> {
         return absl::PermissionDeniedError("not you");
       }});
  Open();
  H2Client client(address_);
  const int32_t call = client.Call("/t/Guarded", "", {}, /*more=*/true);
  const auto& answer = client.Await(call);
  EXPECT_EQ(answer.code(), "7");
  EXPECT_EQ(answer.reset, uint32_t{NGHTTP2_NO_ERROR});
}

TEST_F(NetServer, TooLargeAMessageIsRefusedByItsPrefix) {
  TransportOptions options;
  options.max_message_bytes = 1000;
  Open(options);
  H2Client client(address_);
  const std::string prefix = Framed(std::string(1001, 'a')).substr(0, 5);
  const auto& answer = client.Await(client.Call("/t/Echo", prefix, {}, /*more=*/true));
  EXPECT_EQ(answer.code(), "8");
  EXPECT_THAT(answer.fields.at("grpc-message"), HasSubstr("--grpc_max_message_bytes"));
}

TEST_F(NetServer, DeadlinesEndCalls) {
  Open();
  H2Client client(address_);
  // On a busy machine it may pass before the method has its message.
  for (int millis = 20; Held().empty(); millis *= 2) {
    const std::string timeout = absl::StrCat(millis, "m");
    const auto& late =
        client.Await(client.Call("/t/Hold", Framed("x"), {{"grpc-timeout", timeout}}));
    EXPECT_EQ(late.code(), "4");
  }
  AwaitCancelled(1);
  // One whose message never comes.
  EXPECT_EQ(client.Await(client.Call("/t/Echo", "", {{"grpc-timeout", "20m"}}, true)).code(), "4");
}

TEST_F(NetServer, CallersThatLeaveCancel) {
  Open();
  {
    H2Client client(address_);
    client.Reset(client.Call("/t/Hold", Framed("x")));
    AwaitCancelled(1);
    client.Call("/t/Hold", Framed("x"));
    AwaitHeld(2);
  }
  AwaitCancelled(2);  // the connection is gone
  for (const auto& one : Held()) {
    one->Write("late");
    one->Finish(absl::OkStatus());
  }
}

TEST_F(NetServer, StreamsGoBothWays) {
  Open();
  H2Client client(address_);
  const int32_t chat = client.Call("/t/Chat", Framed("a"), {}, /*more=*/true);
  EXPECT_EQ(client.AwaitBody(chat, 6).body, Framed("a"));
  client.SendMore(chat, Framed("b") + Framed("c"), /*more=*/false);
  EXPECT_EQ(client.Await(chat).body, Framed("a") + Framed("b") + Framed("c"));
  EXPECT_EQ(client.answer(chat).code(), "0");
}

TEST_F(NetServer, CompressionIsAnsweredInKind) {
  TransportOptions options;
  options.compression = true;
  Open(options);
  H2Client client(address_);
  const std::string zeros(100'000, '\0');
  // zlib's bytes of 100,000 zeros are made by the module under test, and its own tests check them.
  for (const char* name : {"gzip", "deflate"}) {
    const std::string packed = Pack(zeros, PackingOf(name));
    const auto& answer = client.Await(
        client.Call("/t/Echo", Framed(packed, 1),
                    {{"grpc-encoding", name}, {"grpc-accept-encoding", "identity,gzip,deflate"}}));
    EXPECT_EQ(answer.code(), "0");
    EXPECT_EQ(answer.fields.at("grpc-encoding"), name);
    EXPECT_EQ(answer.body, Framed(packed, 1));
  }
  const auto& plain = client.Await(client.Call("/t/Echo", Framed(zeros)));
  EXPECT_EQ(plain.message(), zeros);
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x", 1))).code(), "13") << "by what?";
}

TEST_F(NetServer, AskedToLeaveInTwoSteps) {
  TransportOptions options;
  options.times.idle = std::chrono::milliseconds(1);
  Open(options);
  H2Client client(address_);
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x"))).code(), "0");
  client.AwaitEnd();
  EXPECT_GE(client.goaways, 1);
  while (server_->connections().open > 0) std::this_thread::yield();
  EXPECT_EQ(server_->ends().count(EndReason::kIdle), 1);
}

TEST_F(NetServer, RapidResetsEndTheConnection) {
  Open();
  H2Client client(address_);
  for (int i = 0; i < 6000; ++i) client.Reset(client.Call("/t/Chat", Framed("x"), {}, true));
  ExpectCut(&client, EndReason::kResets);
  EXPECT_EQ(client.goaway_text, "too_many_resets");
}

TEST_F(NetServer, PingsBeyondTheRuleEndTheConnection) {
  Open();
  H2Client client(address_);
  for (int i = 0; i < 10; ++i) client.Ping();
  ExpectCut(&client, EndReason::kPings);
  EXPECT_EQ(client.goaway_text, "too_many_pings");
}

TEST_F(NetServer, FramesThatBringNothingEndTheConnection) {
  Open();
  H2Client client(address_);
  ASSERT_EQ(client.Await(client.Call("/t/Echo", Framed("x"))).code(), "0");
  // WINDOW_UPDATE of the connection, by one.
  const std::string update("\0\0\4\x8\0\0\0\0\0\0\0\0\1", 13);
  for (int i = 0; i < 200'000 && client.SendRaw(update); ++i) {
  }
  ExpectCut(&client, EndReason::kFrames);
}

TEST_F(NetServer, TooManyHeaderBytesEndTheConnection) {
  Open();
  H2Client client(address_);
  const std::string large(15'000, 'v');
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x"), {{"some", large}})).code(), "0");
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x"), {{"a", large}, {"b", large}})).code(),
            "8");
  // One field of 3,900 bytes, and references to it of a byte each (RFC 7541 6.1).
  const std::string block = std::string("\x83\x86\x84\x40\x01k\x7f\xbd\x1d", 9) +
                            std::string(3900, 'v') + std::string(60, '\xbe');
  std::string frame("\0\0\0\1\4\0\0\0\x65", 9);
  frame[1] = static_cast<char>(block.size() >> 8);
  frame[2] = static_cast<char>(block.size());
  ASSERT_TRUE(client.SendRaw(frame + block));
  ExpectCut(&client, EndReason::kHeaders);
}

TEST_F(NetServer, AHandshakeHasItsTime) {
  TransportOptions options;
  options.times.handshake = std::chrono::milliseconds(50);
  Open(options);
  EXPECT_EQ(RawSocket(address_).ReadAll(), "");
  EXPECT_EQ(server_->ends().count(EndReason::kHandshake), 1);
}

TEST_F(NetServer, Http1OnTheSamePort) {
  routes_.Add(SimpleRoute("/hello", MethodRole::kHealth, [](const HttpHead& head) {
    return HttpReply{.status = 200, .body = "at " + head.path};
  }));
  Open();
  RawSocket client(address_);
  client.Send(
      "GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string said = client.ReadAll();
  EXPECT_THAT(said, HasSubstr("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(said, HasSubstr("at /hello"));
  EXPECT_THAT(said, HasSubstr("HTTP/1.1 404 "));
  EXPECT_THAT(said.substr(said.find("404")), HasSubstr("at /hello"));
  RawSocket broken(address_);
  broken.Send("GET /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n");
  EXPECT_THAT(broken.ReadAll(), HasSubstr("HTTP/1.1 "));
}

TEST_F(NetServer, RequestsOfWhoSendsNoMoreAreAnswered) {
  routes_.Add(SimpleRoute("/hello", MethodRole::kHealth, [](const HttpHead& head) {
    return HttpReply{.status = 200, .body = "[" + head.query + "]"};
  }));
  Open();
  RawSocket client(address_);
  std::string requests;
  for (int i = 0; i < 9; ++i)
    requests += absl::StrCat("GET /hello?", i, " HTTP/1.1\r\nHost: a\r\n\r\n");
  client.Send(requests);
  client.StopSending();
  const std::string said = client.ReadAll();
  for (int i = 0; i < 9; ++i) EXPECT_THAT(said, HasSubstr(absl::StrCat("[", i, "]")));
}

TEST_F(NetServer, ABodyMayComeBehindItsRefusal) {
  routes_.Add(SimpleRoute("/hello", MethodRole::kHealth,
                          [](const HttpHead&) { return HttpReply{.status = 200, .body = "hi"}; }));
  Open();
  RawSocket client(address_);
  for (int i = 0; i < 3; ++i) {
    client.Send("POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    EXPECT_THAT(client.ReadUntil("'/nothing'"), HasSubstr("HTTP/1.1 404 "));
    client.Send("cdeGET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(client.ReadUntil("hi"), HasSubstr("HTTP/1.1 200 "));
  }
  // What is too long to be dropped ends the connection, and takes nothing with it.
  client.Send("POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nab");
  EXPECT_THAT(client.ReadUntil("'/nothing'"), HasSubstr("HTTP/1.1 404 "));
  client.Send(std::string(100'000, 'c'));
}

TEST_F(NetServer, StreamsOfHttpEndWithTheServer) {
  AddEvents();
  Open();
  RawSocket one(address_);
  one.Send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(one.ReadUntil("begun"), HasSubstr("Transfer-Encoding: chunked"));
  H2Client two(address_);
  const int32_t stream = two.Ask(Plain("GET", "/events"), "");
  EXPECT_EQ(two.AwaitBody(stream, 5).body, "begun");
  for (const auto& events : Events()) events->Write(" and on");
  one.ReadUntil("and on");
  EXPECT_EQ(two.AwaitBody(stream, 12).body, "begun and on");
  // The readers have all.
  for (const auto& events : Events())
    while (events->Unsent() > 0) std::this_thread::yield();
  std::thread stops([this] { server_->Shutdown(Clock::Steady().Now() + std::chrono::hours(1)); });
  EXPECT_EQ(one.ReadAll(), "\r\n0\r\n\r\n");
  EXPECT_EQ(two.Await(stream).body, "begun and on");
  stops.join();
  for (const auto& events : Events()) events->Write("late");
}

TEST_F(NetServer, AHeadOfAStreamIsAllOfIt) {
  AddEvents();
  Open();
  RawSocket one(address_);
  one.Send("HEAD /events HTTP/1.1\r\nHost: a\r\n\r\nGET /later HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(one.ReadUntil("\r\n\r\n"), HasSubstr("HTTP/1.1 200 "));
  H2Client two(address_);
  const int32_t stream = two.Ask(Plain("HEAD", "/events"), "");
  EXPECT_EQ(two.Await(stream).body, "");
  while (Events().size() < 3) std::this_thread::yield();
  // Who writes on is not heard, nor who answers twice.
  for (const auto& events : Events()) {
    events->Write("and on");
    events->Send(HttpReply{.status = 200, .body = "the answer"});
    events->Send(HttpReply{.status = 200, .body = "another"});
  }
  EXPECT_THAT(one.ReadUntil("the answer"), Not(HasSubstr("and on")));
  one.Send("GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(one.ReadAll(), AllOf(HasSubstr("HTTP/1.1 404 "), Not(HasSubstr("another"))));
}

TEST_F(NetServer, ALeavingServerSaysSoInItsAnswers) {
  AddEvents();
  Open();
  RawSocket client(address_);
  client.Send("GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
  while (Events().empty()) std::this_thread::yield();
  H2Client witnesses[] = {H2Client(address_), H2Client(address_)};  // one a loop
  for (H2Client& one : witnesses) one.Await(one.Call("/t/Echo", Framed("x")));
  std::thread stops([this] { server_->Shutdown(Clock::Steady().Now() + std::chrono::hours(1)); });
  for (H2Client& one : witnesses)
    while (one.goaways == 0 && one.Turn()) {
    }
  Events()[0]->Send(HttpReply{.status = 200, .body = "the last"});
  EXPECT_THAT(client.ReadAll(), AllOf(HasSubstr("Connection: close"), HasSubstr("the last")));
  stops.join();
}

TEST_F(NetServer, AStreamThatNobodyReadsIsCut) {
  AddEvents();
  Open();
  RawSocket one(address_);
  one.Send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
  one.ReadUntil("begun");
  H2Client two(address_);
  const int32_t stream = two.Ask(Plain("GET", "/events"), "");
  two.AwaitBody(stream, 5);
  ASSERT_EQ(Events().size(), 2u);
  for (const auto& events : Events()) {
    // More than the kernel and the connection hold.
    constexpr size_t kPart = size_t{1} << 20;
    for (int i = 0; i < 64 && events->Unsent() < 2 * kPart; ++i)
      events->Write(std::string(kPart, 'x'));
    EXPECT_GE(events->Unsent(), kPart);
    events->Cut();
  }
  // The connection of HTTP/1.1 ends, and of HTTP/2 the stream alone.
  EXPECT_LT(one.ReadAll().size(), size_t{64} << 20);
  EXPECT_EQ(server_->ends().count(EndReason::kUnread), 1);
  EXPECT_EQ(two.Await(stream).reset, uint32_t{NGHTTP2_CANCEL});
  EXPECT_EQ(two.Await(two.Call("/t/Echo", Framed("x"))).code(), "0");
}

TEST_F(NetServer, ChannelArgumentsAreHonoured) {
  Open({}, {{"grpc.max_metadata_size", "1000"}, {"grpc.primary_user_agent", "x"}});
  H2Client client(address_);
  EXPECT_EQ(
      client.Await(client.Call("/t/Echo", Framed("x"), {{"some", std::string(900, 'v')}})).code(),
      "8");
}

TEST_F(NetServer, AStuckLoopIsNoticed) {
  methods_.AddUnary("/t/Stuck", [this](const CallHead&, const Message&, const auto& to) {
    while (server_->CheckTurning().ok()) std::this_thread::yield();  // 2 s
    to->Finish(absl::AbortedError("noticed"));
  });
  Open();
  EXPECT_TRUE(server_->CheckTurning().ok());
  H2Client client(address_);
  EXPECT_EQ(client.Await(client.Call("/t/Stuck", Framed("x"))).code(), "10");
  EXPECT_EQ(client.Await(client.Call("/t/Echo", Framed("x"))).code(), "0");
  EXPECT_TRUE(server_->CheckTurning().ok());
}

TEST_F(NetServer, ShutdownFinishesCallsInProgress) {
  Open();
  H2Client client(address_);
  const int32_t call = client.Call("/t/Hold", Framed("x"));
  AwaitHeld(1);
  std::thread stopping([this] { server_->Shutdown(TimePoint::max()); });
  while (client.goaways == 0 && client.Turn()) {
  }
  for (const auto& one : Held()) {
    one->Write("done");
    one->Finish(absl::OkStatus());
  }
  EXPECT_EQ(client.Await(call).message(), "done");
  client.AwaitEnd();
  stopping.join();
}

}  // namespace
}  // namespace floe::server
