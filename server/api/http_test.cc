#include "server/api/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/api/cors.h"
#include "server/api/fakes_for_test.h"
#include "server/api/gunzip.h"
#include "server/api/http_health.h"
#include "server/api/packed_reply.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class NotingResponder : public HttpResponder {
 public:
  void Send(HttpReply&& reply) override { sent.push_back(std::move(reply)); }
  void Begin(HttpReply&& head) override { sent.push_back(std::move(head)); }
  void Write(std::string&& part) override { sent.back().body += part; }
  void End() override {}
  std::vector<HttpReply> sent;
};

// The answer to a request without body.
HttpReply Ask(const HttpRoutes& routes, const std::string& method, const std::string& path,
              HttpHead head = {}) {
  head.method = method;
  head.path = path;
  const auto responder = std::make_shared<NotingResponder>();
  int64_t most = -1;
  const auto handler = routes.Open(head, responder, &most);
  if (handler != nullptr) {
    EXPECT_TRUE(responder->sent.empty()) << "answered before the request was whole";
    handler->OnEnd();
    handler->OnDone();
  }
  EXPECT_EQ(responder->sent.size(), 1u);
  return responder->sent.empty() ? HttpReply{0, "", "", {}} : responder->sent[0];
}

HttpRoute NamesRoute(const char* method, const char* pattern) {
  HttpRoute route = SimpleRoute(pattern, MethodRole::kModels, [pattern](const HttpHead& head) {
    HttpReply reply;
    reply.body = pattern;
    for (const auto& [name, value] : head.names) reply.body += " " + name + "=" + value;
    return reply;
  });
  route.method = method;
  return route;
}

TEST(HttpRoutes, PathsAreMatchedBySegments) {
  HttpRoutes routes;
  for (const char* pattern :
       {"/v1/models/{model}:predict", "/v1/models/{model}/versions/{version}:predict"})
    routes.Add(NamesRoute("POST", pattern));
  routes.Add(NamesRoute("GET", "/v1/models/{model}"));
  EXPECT_EQ(Ask(routes, "POST", "/v1/models/a:predict").body, "/v1/models/{model}:predict model=a");
  EXPECT_EQ(Ask(routes, "POST", "/v1/models/a%2Fb%20:predict").body,
            "/v1/models/{model}:predict model=a/b ");
  EXPECT_EQ(Ask(routes, "POST", "/v1/models/a/versions/3:predict").body,
            "/v1/models/{model}/versions/{version}:predict model=a version=3");
  EXPECT_EQ(Ask(routes, "GET", "/v1/models/a:b").body, "/v1/models/{model} model=a:b");
  EXPECT_EQ(Ask(routes, "HEAD", "/v1/models/a").status, 200);
  for (const char* path :
       {"/v1/models", "/v1/models/", "/v1/models/a/", "/v1/models/a/b", "/V1/models/a", ""})
    EXPECT_EQ(Ask(routes, "GET", path).status, 404) << path;
  for (const char* path :
       {"/v1/models/a%", "/v1/models/a%2", "/v1/models/%g0", "/v1/models/%00", "/v1/models/%0a"})
    EXPECT_EQ(Ask(routes, "GET", path).status, 400) << path;
}

TEST(HttpRoutes, MethodsThatThePathDoesNotTakeAreToldWhichItTakes) {
  HttpRoutes routes;
  routes.Add(NamesRoute("GET", "/a"));
  routes.Add(NamesRoute("POST", "/a"));
  const HttpReply reply = Ask(routes, "DELETE", "/a");
  EXPECT_EQ(reply.status, 405);
  EXPECT_THAT(reply.fields, ElementsAre(Pair("Allow", "GET, HEAD, POST, OPTIONS")));
}

TEST(HttpRoutes, RolesAndSizesAreCheckedByTheHead) {
  HttpRoutes routes;
  int opened = 0;
  routes.Add({"POST", "/a", MethodRole::kInference, 10,
              [&](const HttpHead&, std::shared_ptr<HttpResponder> responder) {
                ++opened;
                responder->Send({});
                return nullptr;
              }});
  HttpHead head;
  head.content_length = 11;
  const HttpReply large = Ask(routes, "POST", "/a", head);
  EXPECT_EQ(large.status, 413);
  EXPECT_THAT(large.body, HasSubstr("11 bytes; this path takes 10"));
  head.content_length = 10;
  head.roles.infer = OfferedTo::kNobody;
  EXPECT_EQ(Ask(routes, "POST", "/a", head).status, 403);
  EXPECT_EQ(opened, 0);
  head.roles.infer = OfferedTo::kAll;
  EXPECT_EQ(Ask(routes, "POST", "/a", head).status, 200);
  EXPECT_EQ(opened, 1);
}

TEST(Http, OptionsSaysWhatAPathTakes) {
  HttpRoutes routes;
  routes.Add(SimpleRoute("/a", MethodRole::kHealth, [](const HttpHead&) { return HttpReply{}; }));
  HttpHead head;
  head.roles.read = OfferedTo::kNobody;  // which it does not ask
  const HttpReply reply = Ask(routes, "OPTIONS", "/a", head);
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.body, "");
  EXPECT_THAT(reply.fields, ElementsAre(Pair("Allow", "GET, HEAD, OPTIONS")));
  EXPECT_EQ(Ask(routes, "OPTIONS", "/v1/nothing").status, 404);
}

TEST(Http, SitesThatAreAllowedMayCall) {
  HttpRoutes routes;
  const auto hello = [](const HttpHead&) { return HttpReply{.status = 200, .body = "hi"}; };
  routes.Add(SimpleRoute("/v1/a", MethodRole::kHealth, hello));
  HttpHead head;
  head.fields = {{"origin", "https://app.example"},
                 {"access-control-request-method", "POST"},
                 {"access-control-request-headers", "content-type, x-request-id"}};
  const auto field = [&](const char* method, const std::string& name) {
    for (const auto& [key, value] : Ask(routes, method, "/v1/a", head).fields)
      if (key == name) return value;
    return std::string();
  };
  EXPECT_EQ(field("GET", "Access-Control-Allow-Origin"), "") << "by default nobody may";
  const Cors cors({"http://localhost:3000", "https://app.example"});
  routes.SetCors(&cors);
  EXPECT_EQ(field("GET", "Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(field("GET", "Vary"), "Origin");
  EXPECT_EQ(field("GET", "Access-Control-Allow-Methods"), "");
  EXPECT_EQ(field("OPTIONS", "Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(field("OPTIONS", "Access-Control-Allow-Methods"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(field("OPTIONS", "Access-Control-Allow-Headers"), "content-type, x-request-id");
  EXPECT_EQ(field("POST", "Access-Control-Allow-Origin"), "https://app.example")
      << "refusals are shown too";
  head.fields[2].second = "a\"; x";
  EXPECT_EQ(field("OPTIONS", "Access-Control-Allow-Headers"), "");
  head.fields[0].second = "https://app.example.evil";
  for (const char* method : {"GET", "OPTIONS"}) {
    EXPECT_EQ(field(method, "Access-Control-Allow-Origin"), "");
    EXPECT_EQ(field(method, "Access-Control-Allow-Methods"), "");
    EXPECT_EQ(field(method, "Vary"), "Origin");
  }
  const Cors all({"*"});
  routes.SetCors(&all);
  EXPECT_EQ(field("GET", "Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(field("GET", "Access-Control-Allow-Credentials"), "");
}

TEST(HttpHealth, IsWhatTheHealthServiceSays) {
  HealthState health;
  HttpRoutes routes;
  std::string detail;
  AddHealthRoutes(
      health, [&] { return detail; }, &routes);
  const auto status = [&](const char* path) { return Ask(routes, "GET", path).status; };
  EXPECT_EQ(status("/readyz"), 503) << "nothing is known yet";
  health.Set("", ServingStatus::kServing);
  detail = "TLS: the certificate expired\n";
  for (const char* path : {"/healthz", "/livez", "/readyz", "/v2/health/live", "/v2/health/ready"})
    EXPECT_EQ(status(path), 200) << path;
  EXPECT_EQ(Ask(routes, "GET", "/readyz").body, "ok\nTLS: the certificate expired\n");
  EXPECT_EQ(Ask(routes, "GET", "/v2/health/ready").body, "{\"ready\":true}");
  EXPECT_EQ(Ask(routes, "GET", "/v2/health/live").content_type, "application/json");
  EXPECT_EQ(status("/healthz/"), 404);
  EXPECT_EQ(Ask(routes, "POST", "/readyz").status, 405);
  health.Shutdown();
  EXPECT_EQ(status("/readyz"), 503);
  EXPECT_EQ(status("/v2/health/ready"), 503);
  EXPECT_EQ(Ask(routes, "GET", "/v2/health/ready").body, "{\"ready\":false}");
  EXPECT_EQ(status("/livez"), 200) << "calls in progress are finished";
  HttpHead remote;
  remote.roles.read = OfferedTo::kLocal;
  EXPECT_EQ(Ask(routes, "GET", "/readyz", remote).status, 403);
}

TEST(HttpHealth, OfAModelIsThatOfItsVersionsAndItsHealth) {
  FakeRegistry registry;
  HealthState health;
  HttpRoutes routes;
  AddModelHealthRoutes(registry, health, &routes);
  const auto status = [&](const char* path) { return Ask(routes, "GET", path).status; };
  registry.statuses["m"] = {{3, VersionState::kLoading, {}}, {2, VersionState::kAvailable, {}}};
  registry.statuses["new"] = {{1, VersionState::kLoading, {}}};
  health.Set("model/m", ServingStatus::kServing);
  health.Set("model/new", ServingStatus::kNotServing);
  health.Set("model/missing", ServingStatus::kNotServing);
  EXPECT_EQ(status("/v2/models/m/ready"), 200);
  EXPECT_EQ(Ask(routes, "GET", "/v2/models/m/ready").body, "{\"ready\":true}");
  EXPECT_EQ(status("/v2/models/m/versions/2/ready"), 200);
  EXPECT_EQ(status("/v2/models/m/versions/3/ready"), 503);
  EXPECT_EQ(Ask(routes, "GET", "/v2/models/m/versions/3/ready").body, "{\"ready\":false}");
  EXPECT_EQ(status("/v2/models/new/ready"), 503);
  EXPECT_EQ(status("/v2/models/missing/ready"), 503) << "configured, and nothing was found yet";
  EXPECT_EQ(status("/v2/models/nobody/ready"), 404);
  EXPECT_EQ(status("/v2/models/nobody/versions/1/ready"), 404);
  const HttpReply word = Ask(routes, "GET", "/v2/models/m/versions/two/ready");
  EXPECT_EQ(word.status, 404);
  EXPECT_THAT(word.body, HasSubstr("a version is a number, got 'two'"));
  health.Set("model/m", ServingStatus::kNotServing);
  EXPECT_EQ(status("/v2/models/m/ready"), 503) << "its work does not go on";
  EXPECT_EQ(status("/v2/models/m/versions/2/ready"), 503);
}

TEST(Http, StatusesAreThoseOfGrpcsGateways) {
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kOk), 200);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kDeadlineExceeded), 504);
  EXPECT_EQ(HttpStatusOf(static_cast<absl::StatusCode>(77)), 500);
}

TEST(HttpRoutes, ALoginCountsForReadingAndForWhatOwnPagesSend) {
  AuthConfig auth;
  auth.tokens_file = absl::StrCat(testing::TempDir(), "floe_http_", getpid());
  TokenLine line;
  line.name = "t";
  line.roles.Add(Role::kRead);
  const std::string token = MakeToken(&line).value();
  std::ofstream(auth.tokens_file) << TokenLineText(line) << "\n";
  const std::shared_ptr<Access> access = *Access::Make(auth);
  unlink(auth.tokens_file.c_str());
  const std::string cookie = access->LogIn(token, "unix").value();
  HttpRoutes routes;
  for (const char* method : {"GET", "POST"}) {
    HttpRoute route = SimpleRoute("/a", MethodRole::kModels, [](const HttpHead& head) {
      EXPECT_EQ(head.Field("cookie"), nullptr) << "nobody else sees it";
      return HttpReply();
    });
    route.method = method;
    routes.Add(std::move(route));
  }
  const auto status = [&](const char* method, const std::string& cookies,
                          const HttpFields& fields = {}) {
    HttpHead head;
    head.caller = access->OfConnection({});
    head.fields = fields;
    head.fields.emplace_back("host", "h:1");
    head.fields.emplace_back("cookie", "other=1");
    head.fields.emplace_back("cookie", cookies);
    return Ask(routes, method, "/a", head).status;
  };
  const std::string sent = "__Host-floe=" + cookie;
  EXPECT_EQ(status("GET", "a=b; " + sent + "; c=d"), 200);
  EXPECT_EQ(status("GET", "x" + sent), 401);
  EXPECT_EQ(status("GET", "__Host-floe=" + token), 401);
  EXPECT_EQ(status("POST", sent), 401);
  EXPECT_EQ(status("POST", sent, {{"origin", "https://h:1"}}), 200);
  EXPECT_EQ(status("POST", sent, {{"origin", "https://h:2"}}), 401);
  EXPECT_EQ(status("POST", sent, {{"origin", "null"}}), 401);
  EXPECT_EQ(status("POST", sent, {{"sec-fetch-site", "same-origin"}, {"origin", "null"}}), 200);
  EXPECT_EQ(status("POST", sent, {{"sec-fetch-site", "same-site"}, {"origin", "https://h:1"}}),
            401);
}

TEST(HttpRoutes, ClientsWhoTakeGzipGetIt) {
  for (const char* takes : {"gzip", "br, GZIP", "identity;q=1, gzip;q=0.5"})
    EXPECT_TRUE(TakesGzip(takes)) << takes;
  for (const char* not_takes : {"", "gzip;q=0", "gzip; q=0.0", "x-gzip2", "*", "gzip;level=1"})
    EXPECT_FALSE(TakesGzip(not_takes)) << not_takes;
  HttpRoutes routes;
  routes.PackReplies();
  routes.Add(SimpleRoute("/long", MethodRole::kModels, [](const HttpHead&) {
    return HttpReply{200, std::string(5000, 'x'), "text/plain", {}};
  }));
  HttpHead head;
  EXPECT_EQ(Ask(routes, "GET", "/long", head).body.size(), 5000u);
  head.fields = {{"accept-encoding", "gzip"}};
  const HttpReply reply = Ask(routes, "GET", "/long", head);
  EXPECT_THAT(reply.fields, testing::Contains(Pair("Content-Encoding", "gzip")));
  EXPECT_EQ(Gunzip(reply.body, 6000).value_or(""), std::string(5000, 'x'));
  // More follows the first part of others, as of events.
  const auto events = std::make_shared<NotingResponder>();
  PackingResponder(head, events)->Begin({200, std::string(5000, 'x'), "text/plain", {}});
  EXPECT_EQ(events->sent.front().body, std::string(5000, 'x'));
}

}  // namespace
}  // namespace floe::server
