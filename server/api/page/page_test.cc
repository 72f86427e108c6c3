#include "server/api/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "server/api/fakes_for_test.h"
#include "server/api/page/assets.h"
#include "server/api/page/html.h"
#include "server/api/page/snippets.h"
#include "server/api/refusal_log.h"
#include "server/api/rest/rest_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEvil[] = "<script>alert('1')</script>";

// Waits for what the page's thread writes.
class AwaitedResponder : public HttpResponder {
 public:
  void Send(HttpReply&& reply) override { Note(std::move(reply)); }
  void Begin(HttpReply&& head) override { Note(std::move(head)); }
  void Write(std::string&& part) override {
    const MutexLock lock(mutex_);
    written_ += part;
    changed_.NotifyAll();
  }
  void End() override {}
  HttpReply Await() {
    const MutexLock lock(mutex_);
    while (!has_reply_) changed_.Wait(mutex_);
    return reply_;
  }
  std::string AwaitWritten() {
    const MutexLock lock(mutex_);
    while (written_.empty()) changed_.Wait(mutex_);
    return written_;
  }

 private:
  void Note(HttpReply&& reply) {
    const MutexLock lock(mutex_);
    reply_ = std::move(reply);
    has_reply_ = true;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  HttpReply reply_ ABSL_GUARDED_BY(mutex_);
  std::string written_ ABSL_GUARDED_BY(mutex_);
  bool has_reply_ ABSL_GUARDED_BY(mutex_) = false;
};

std::string FieldOf(const HttpReply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.fields)
    if (key == name) return value;
  return "";
}

class Page : public testing::Test {
 protected:
  Page() {
    for (const char* name : {"m", kEvil}) {
      registry_.models[name] = std::make_shared<FakeServed>(MakeTestModel(name, 2));
      VersionStats served{{2, VersionState::kAvailable, {}}};
      served.scheduler.emplace().by_code[0] = 41;
      served.scheduler->by_code[3] = 2;
      VersionStats loading{{3, VersionState::kLoading, {}}};
      loading.load_stage = "compiling <it>";
      loading.loading = std::chrono::seconds(7);
      registry_.stats.push_back({name, {loading, served}, {{"stable", 2}}});
    }
    registry_.config.generation = 4;
    registry_.config.changes = {
        {4, Clock::Steady().Now(), "RPC from 10.0.0.1:5", "model 'm': base_path /secret", {}}};
    ApiContext context{registry_, health_};
    context.refusals = &refusals_;
    context.server.version = "1.2.3";
    context.server.instructions = "avx512";
    AddPageRoutes(context, &routes_);
  }

  HttpReply Get(const std::string& path, HttpHead head = {}) {
    head.method = "GET";
    head.path = path;
    const auto responder = std::make_shared<AwaitedResponder>();
    int64_t most = -1;
    const auto handler = routes_.Open(head, responder, &most);
    EXPECT_LE(most, 0) << "no body is read";
    if (handler != nullptr) handler->OnEnd();
    HttpReply reply = responder->Await();
    if (handler != nullptr) handler->OnDone();
    return reply;
  }

  FakeRegistry registry_;
  HealthState health_;
  RefusalLog refusals_;
  HttpRoutes routes_;
};

TEST_F(Page, ShowsModelsErrorsAndTheConfiguration) {
  (void)refusals_.Line("m", "id-7", absl::InvalidArgumentError("bad <b>"), Clock::Steady().Now());
  const HttpReply reply = Get("/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(reply.body, AllOf(HasSubstr("<a href=\"/models/m\">m</a>"), HasSubstr("AVAILABLE"),
                                HasSubstr("LOADING: compiling &lt;it&gt;, for 7 s"),
                                HasSubstr(">43</td>"), HasSubstr("avx512"), HasSubstr("not ready"),
                                HasSubstr("id-7"), HasSubstr("INVALID_ARGUMENT"),
                                HasSubstr("bad &lt;b&gt;"), HasSubstr("Generation 4 is active"),
                                HasSubstr("data-events=\"/page/events\"")));
  EXPECT_THAT(reply.body, Not(HasSubstr("{{")));
  // Who reads is told that it changed, not by whom and what.
  EXPECT_THAT(reply.body, AllOf(Not(HasSubstr("10.0.0.1")), Not(HasSubstr("/secret"))));
}

TEST_F(Page, NothingThatWasConfiguredOrAskedBecomesMarkup) {
  (void)refusals_.Line(kEvil, kEvil, absl::InternalError(kEvil), Clock::Steady().Now());
  const std::string segment = UrlSegment(kEvil);
  EXPECT_EQ(segment, "%3Cscript%3Ealert%28%271%27%29%3C%2Fscript%3E");
  for (const std::string& path : {std::string("/"), "/models/" + segment}) {
    const HttpReply reply = Get(path);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_THAT(reply.body, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"));
    EXPECT_THAT(reply.body, Not(HasSubstr("<script>"))) << path;
    EXPECT_THAT(reply.body, Not(HasSubstr("alert('"))) << path;
  }
  HttpHead head;
  head.fields = {{"host", "a\"><script>"}};
  EXPECT_THAT(Get("/", head).body, Not(HasSubstr("a\"><script>")));
  head.fields = {{"host", "floe.example:8500"}};
  EXPECT_THAT(Get("/", head).body, HasSubstr("floe at floe.example:8500"));
  EXPECT_THAT(Get("/models/%3Cb%3E").body, HasSubstr("&#39;&lt;b&gt;&#39;"));
}

TEST_F(Page, CallersSeeTheModelsThatTheyMayUse) {
  for (const char* model : {"m", kEvil})
    (void)refusals_.Line(model, "id", absl::InternalError("broken"), Clock::Steady().Now());
  auto who = std::make_shared<Principal>();
  who->roles.AddNamed("read");
  who->models = {"m*"};
  HttpHead head;
  head.caller = Caller(nullptr, who);
  EXPECT_THAT(Get("/", head).body,
              AllOf(HasSubstr("/models/m"), HasSubstr("broken"), Not(HasSubstr("script&gt;"))));
  head.method = "GET";
  head.path = "/page/events";
  const auto responder = std::make_shared<AwaitedResponder>();
  int64_t most = 0;
  const auto handler = routes_.Open(head, responder, &most);
  ASSERT_NE(handler, nullptr);
  handler->OnEnd();
  EXPECT_THAT(responder->AwaitWritten(),
              AllOf(HasSubstr("AVAILABLE"), Not(HasSubstr("script&gt;"))));
  handler->OnDone();
}

TEST_F(Page, TheModelsPageSaysHowToCallIt) {
  HttpHead head;
  head.fields = {{"host", "floe.example:8500"}};
  const HttpReply reply = Get("/models/m", head);
  EXPECT_THAT(
      reply.body,
      AllOf(HasSubstr("data-events=\"/page/events/m\""), HasSubstr("src=\"/page/model.js\""),
            HasSubstr("float32"), HasSubstr("data-predict=\"/v1/models/m:predict\""),
            HasSubstr("{&quot;key&quot;:&quot;x&quot;,&quot;dtype&quot;:&quot;float32&quot;,"
                      "&quot;optional&quot;:false,&quot;shape&quot;:[-1,2]}"),
            HasSubstr("http://floe.example:8500/v1/models/m:predict"),
            HasSubstr("Label stable: version 2"), HasSubstr("No run was timed yet")));
  EXPECT_EQ(Get("/models/none").status, 404);
}

TEST_F(Page, PoliciesKeepEverythingElseOut) {
  for (const char* path : {"/", "/models/m", "/models/none"}) {
    const HttpReply reply = Get(path);
    const std::string policy = FieldOf(reply, "Content-Security-Policy");
    EXPECT_THAT(policy, AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'self'"),
                              HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))));
    EXPECT_EQ(FieldOf(reply, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(FieldOf(reply, "Referrer-Policy"), "same-origin");
    // The policy would refuse these.
    EXPECT_THAT(reply.body, AllOf(Not(HasSubstr("style=\"")), Not(HasSubstr("<style")),
                                  Not(HasSubstr(" onclick"))));
  }
}

TEST_F(Page, FilesAreSentOnce) {
  for (const char* name : {"page.css", "page.js", "model.js", "icon.svg"}) {
    const HttpReply reply = Get(std::string("/page/") + name);
    EXPECT_EQ(reply.body, PageFile(name));
    EXPECT_FALSE(reply.body.empty()) << name;
    HttpHead known;
    known.fields = {{"if-none-match", FieldOf(reply, "ETag")}};
    const HttpReply again = Get(std::string("/page/") + name, known);
    EXPECT_EQ(again.status, 304);
    EXPECT_EQ(again.body, "");
    known.fields = {{"if-none-match", "\"other\""}};
    EXPECT_EQ(Get(std::string("/page/") + name, known).status, 200);
  }
}

TEST_F(Page, TheConfigurationIsForOperators) {
  HttpHead head;
  head.roles = {.infer = OfferedTo::kAll, .read = OfferedTo::kAll, .admin = OfferedTo::kNobody};
  EXPECT_EQ(Get("/page/config", head).status, 403);
  EXPECT_EQ(Get("/", head).status, 200);
  head.roles.admin = OfferedTo::kAll;
  EXPECT_THAT(Get("/page/config", head).body,
              AllOf(HasSubstr("RPC from 10.0.0.1:5"), HasSubstr("/secret"), HasSubstr("models:")));
  head.roles.read = OfferedTo::kNobody;
  for (const char* path : {"/", "/models/m", "/page/events", "/page/page.css"})
    EXPECT_EQ(Get(path, head).status, 403) << path;
}

TEST_F(Page, EventsHaveTheSections) {
  for (const char* path : {"/page/events", "/page/events/m"}) {
    HttpHead head;
    head.method = "GET";
    head.path = path;
    const auto responder = std::make_shared<AwaitedResponder>();
    int64_t most = 0;
    const auto handler = routes_.Open(head, responder, &most);
    ASSERT_NE(handler, nullptr);
    handler->OnEnd();
    EXPECT_EQ(responder->Await().content_type, "text/event-stream");
    EXPECT_THAT(responder->AwaitWritten(),
                AllOf(HasSubstr("data: {"), HasSubstr("\"errors\":\"<h2>Recent errors"),
                      HasSubstr("AVAILABLE")));
    handler->OnDone();
  }
}

TEST(PageSnippets, SendOneRowOfZeros) {
  SignatureDef def;
  def.inputs = {{"x", "x:0", {DType::kFloat32, {Dim::Unknown(), 2}}},
                {"it's", "y:0", {DType::kString, {Dim::Unknown()}}},
                {"training", "t:0", {DType::kBool, {}}, true}};
  const Snippets small = SnippetsFor(def, "http://h/v1/models/m:predict");
  EXPECT_EQ(small.curl, R"(curl -sf -d '{"inputs": {"x": [[0.0,0.0]], "it'\''s": ["text"]}}' )"
                        "'http://h/v1/models/m:predict'\n");
  EXPECT_THAT(small.python, HasSubstr(R"({"inputs": {"x": [[0.0] * 2], "it's": ["text"]}})"));
  EXPECT_THAT(small.cpp, HasSubstr(R"(List(List(std::string("0.0"), 2), 1))"));
  def.name = "other";
  def.inputs = {{"x", "x:0", {DType::kUInt8, {Dim::Unknown(), 28, 28}}}};
  const Snippets large = SnippetsFor(def, "http://h/v1/models/m:predict");
  EXPECT_THAT(large.curl, HasSubstr(R"(print(json.dumps({"signature_name": "other", )"
                                    R"("inputs": {"x": [[[0] * 28] * 28]}})))"));
  def.inputs = {{"c", "c:0", {DType::kComplex64, {}}}};
  EXPECT_THAT(SnippetsFor(def, "u").python, HasSubstr("complex64, which JSON has not"));
}

TEST(PageHtml, EscapesText) {
  EXPECT_EQ(HtmlEscaped("a<b>&\"'\x01\xff"), "a&lt;b&gt;&amp;&quot;&#39;\\x01\\xff");
  EXPECT_EQ(HtmlEscaped("\xc3\xa4"), "\xc3\xa4");
  Html html;
  html.Filled("<a t=\"{{a}}\">{{b}}</a>", {{"a", "{{b}}\""}, {"b", "<"}});
  EXPECT_EQ(html.text(), "<a t=\"{{b}}&quot;\">&lt;</a>");
}

}  // namespace
}  // namespace floe::server
