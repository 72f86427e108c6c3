#include "server/api/call_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/fakes_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kTrace[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

struct HttpAnswer : public HttpResponder {
  void Send(HttpReply&& reply) override { last = std::move(reply); }
  void Begin(HttpReply&& head) override { last = std::move(head); }
  void Write(std::string&& /*part*/) override {}
  void End() override {}
  HttpReply last;
};

class CallWatchTest : public testing::Test {
 protected:
  CallWatchTest() {
    methods_.Add("/a.B/Read", UnaryMethod(MethodRole::kModels,
                                          [this](const CallHead&, Message, const auto& responder) {
                                            if (answer_.ok()) responder->Write("reply");
                                            responder->Finish(answer_);
                                          }));
    methods_.Add("/a.B/None", RefusedMethod(MethodRole::kInference, "not offered"));
    routes_.Add(
        SimpleRoute("/read", MethodRole::kModels, [](const HttpHead&) { return HttpReply(); }));
    methods_.SetWatch(&watch_);
    routes_.SetWatch(&watch_);
  }
  static CallHead Head(const std::string& id = "", const std::string& timing = "") {
    CallHead head;
    head.path = "/a.B/Read";
    head.request_id = id;
    if (!timing.empty()) head.metadata.emplace_back(kTimingKey, timing);
    head.cancel = std::make_shared<CancelToken>();
    return head;
  }
  std::map<std::string, uint64_t> Rpcs() const {
    std::map<std::string, uint64_t> all;
    watch_.ForEachRpc([&](const std::string& name, const std::string& code, uint64_t count) {
      all[absl::StrCat(name, " ", code)] = count;
    });
    return all;
  }
  std::map<std::string, uint64_t> Requests() const {
    std::map<std::string, uint64_t> all;
    watch_.ForEachRoute([&](const std::string& name, const std::string& code, uint64_t count) {
      all[absl::StrCat(name, " ", code)] = count;
    });
    return all;
  }
  HttpReply Ask(const std::string& method, const std::string& path, const HttpFields& fields) {
    HttpHead head;
    head.method = method;
    head.path = path;
    head.fields = fields;
    head.peer = "10.0.0.1:5";
    const auto answer = std::make_shared<HttpAnswer>();
    int64_t most = 0;
    const auto handler = routes_.Open(head, answer, &most);
    if (handler != nullptr) handler->OnEnd();
    return answer->last;
  }

  std::vector<std::string> lines_;
  AccessLog log_{1, [this](std::string line) { lines_.push_back(std::move(line)); }};
  CallWatch watch_{&log_};
  absl::Status answer_;
  MethodTable methods_;
  HttpRoutes routes_;
};

TEST_F(CallWatchTest, RpcsAreCountedAndFollowed) {
  const auto plain = std::make_shared<FakeResponder>();
  Invoke(*methods_.Find("/a.B/Read"), Head(), {}, plain);
  EXPECT_TRUE(plain->trailers.empty()) << "nobody asked";
  CallHead head = Head("mine", "1");
  head.traceparent = kTrace;
  const auto followed = std::make_shared<FakeResponder>();
  Invoke(*methods_.Find("/a.B/Read"), head, {}, followed);
  EXPECT_THAT(std::map(followed->trailers.begin(), followed->trailers.end()),
              ElementsAre(Pair(kQueueTimeKey, "0"), Pair(kRunTimeKey, "0"),
                          Pair(kTraceparentKey, HasSubstr("0af7651916cd43dd8448eb211c80319c")),
                          Pair(kRequestIdKey, "mine")));
  answer_ = absl::NotFoundError("no model");
  Invoke(*methods_.Find("/a.B/Read"), Head(), {}, std::make_shared<FakeResponder>());
  Invoke(*methods_.Find("/a.B/Read"), Head("", "yes"), {}, std::make_shared<FakeResponder>());
  Invoke(*methods_.Find("/a.B/None"), Head(), {}, std::make_shared<FakeResponder>());
  EXPECT_THAT(Rpcs(), UnorderedElementsAre(Pair("/a.B/Read OK", 2), Pair("/a.B/Read NOT_FOUND", 1),
                                           Pair("/a.B/Read INVALID_ARGUMENT", 1),
                                           Pair("/a.B/Read UNIMPLEMENTED", 1)));
  EXPECT_THAT(lines_,
              ElementsAre(HasSubstr("\"refused\":\"head\""),
                          AllOf(HasSubstr("\"refused\":\"unknown\""), HasSubstr("not offered"))));
}

TEST_F(CallWatchTest, WhatNoMethodTookHasALine) {
  CallHead head = Head("mine");
  head.peer = "10.0.0.1:5";
  head.roles.read = OfferedTo::kNobody;
  Invoke(*methods_.Find("/a.B/Read"), head, {}, std::make_shared<FakeResponder>());
  const auto call = methods_.Find("/a.B/Read")->Open(Head(), std::make_shared<FakeResponder>());
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*call)->OnRefused(absl::ResourceExhaustedError("large"))));
  watch_.Refused(CallRefusal::kUnknown, {"10.0.0.2:6", "/chosen.by/Callers", {}, {}, kTrace},
                 absl::UnimplementedError("no method"));
  EXPECT_THAT(
      lines_,
      ElementsAre(AllOf(HasSubstr("\"peer\":\"10.0.0.1:5\""), HasSubstr("/a.B/Read"),
                        HasSubstr("\"code\":\"PERMISSION_DENIED\""),
                        HasSubstr("\"request_id\":\"mine\""), HasSubstr("\"refused\":\"access\"")),
                  HasSubstr("\"refused\":\"size\""),
                  AllOf(HasSubstr("/chosen.by/Callers"),
                        HasSubstr("\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\""))));
  EXPECT_EQ(Rpcs()["other UNIMPLEMENTED"], 1u) << "callers make no names";
}

TEST_F(CallWatchTest, RequestsOverHttpAre) {
  const HttpReply plain = Ask("GET", "/read", {});
  EXPECT_EQ(plain.status, 200);
  EXPECT_TRUE(plain.fields.empty());
  const HttpReply followed = Ask("GET", "/read", {{"x-request-id", "mine"}, {"floe-timing", "1"}});
  EXPECT_THAT(followed.fields,
              ElementsAre(Pair("x-request-id", "mine"), Pair(kQueueTimeKey, "0"),
                          Pair(kRunTimeKey, "0"), Pair("Server-Timing", HasSubstr("run;dur=0"))));
  EXPECT_EQ(Ask("GET", "/read", {{"floe-timing", "no"}}).status, 400);
  const HttpReply missing = Ask("GET", "/elsewhere", {{"x-request-id", "lost"}});
  EXPECT_EQ(missing.status, 404);
  EXPECT_THAT(missing.fields, ElementsAre(Pair("x-request-id", "lost")));
  EXPECT_EQ(Ask("POST", "/read", {}).status, 405);
  EXPECT_EQ(Ask("OPTIONS", "/read", {}).status, 204);
  EXPECT_THAT(Requests(), UnorderedElementsAre(Pair("GET /read 200", 2), Pair("GET /read 400", 1),
                                               Pair("other 404", 1), Pair("other 405", 1)));
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("\"method\":\"/elsewhere\""),
                                        HasSubstr("HTTP 404"), HasSubstr("\"request_id\":\"lost\""),
                                        HasSubstr("\"refused\":\"unknown\"")),
                                  HasSubstr("HTTP 405")));
}

}  // namespace
}  // namespace floe::server
