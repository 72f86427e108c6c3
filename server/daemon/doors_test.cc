// Every RPC and every path of HTTP, with every kind of credential, at every kind of listener. A new
// one belongs into the tables below.
#include "server/daemon/doors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/api/fakes_for_test.h"
#include "server/daemon/listeners.h"

namespace floe::server {
namespace {

const std::map<std::string, Role> kMethods = {
    {"/floe.Admin/GetConfig", Role::kAdmin},
    {"/floe.Admin/GetStats", Role::kAdmin},
    {"/floe.Admin/Reload", Role::kAdmin},
    {"/floe.Admin/SetLogLevel", Role::kAdmin},
    {"/grpc.health.v1.Health/Check", Role::kHealth},
    {"/grpc.health.v1.Health/Watch", Role::kHealth},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role::kRead},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kRead},
    {"/inference.GRPCInferenceService/CudaSharedMemoryRegister", Role::kInfer},
    {"/inference.GRPCInferenceService/CudaSharedMemoryStatus", Role::kInfer},
    {"/inference.GRPCInferenceService/CudaSharedMemoryUnregister", Role::kInfer},
    {"/inference.GRPCInferenceService/LogSettings", Role::kAdmin},
    {"/inference.GRPCInferenceService/ModelConfig", Role::kRead},
    {"/inference.GRPCInferenceService/ModelInfer", Role::kInfer},
    {"/inference.GRPCInferenceService/ModelMetadata", Role::kRead},
    {"/inference.GRPCInferenceService/ModelReady", Role::kHealth},
    {"/inference.GRPCInferenceService/ModelStatistics", Role::kRead},
    {"/inference.GRPCInferenceService/ModelStreamInfer", Role::kInfer},
    {"/inference.GRPCInferenceService/RepositoryIndex", Role::kRead},
    {"/inference.GRPCInferenceService/RepositoryModelLoad", Role::kAdmin},
    {"/inference.GRPCInferenceService/RepositoryModelUnload", Role::kAdmin},
    {"/inference.GRPCInferenceService/ServerLive", Role::kHealth},
    {"/inference.GRPCInferenceService/ServerMetadata", Role::kRead},
    {"/inference.GRPCInferenceService/ServerReady", Role::kHealth},
    {"/inference.GRPCInferenceService/SystemSharedMemoryRegister", Role::kInfer},
    {"/inference.GRPCInferenceService/SystemSharedMemoryStatus", Role::kInfer},
    {"/inference.GRPCInferenceService/SystemSharedMemoryUnregister", Role::kInfer},
    {"/inference.GRPCInferenceService/TraceSetting", Role::kAdmin},
    {"/tensorflow.serving.SessionService/SessionRun", Role::kInfer},
    {"/tensorflow.serving.ModelService/GetModelStatus", Role::kRead},
    {"/tensorflow.serving.ModelService/HandleReloadConfigRequest", Role::kAdmin},
    {"/tensorflow.serving.PredictionService/Classify", Role::kInfer},
    {"/tensorflow.serving.PredictionService/GetModelMetadata", Role::kRead},
    {"/tensorflow.serving.PredictionService/MultiInference", Role::kInfer},
    {"/tensorflow.serving.PredictionService/Predict", Role::kInfer},
    {"/tensorflow.serving.PredictionService/Regress", Role::kInfer},
};

const std::map<std::string, Role> kRoutes = {
    {"GET /", Role::kRead},
    {"GET /healthz", Role::kHealth},
    {"GET /livez", Role::kHealth},
    {"GET /metrics", Role::kRead},
    {"GET /models/{model}", Role::kRead},
    {"GET /monitoring/prometheus/metrics", Role::kRead},
    {"GET /openapi.json", Role::kRead},
    {"GET /page/config", Role::kAdmin},
    {"GET /page/events", Role::kRead},
    {"GET /page/events/{model}", Role::kRead},
    {"GET /page/model.js", Role::kRead},
    {"GET /readyz", Role::kHealth},
    {"GET /v1/models", Role::kRead},
    {"GET /v1/models/{model}", Role::kRead},
    {"GET /v1/models/{model}/labels/{label}", Role::kRead},
    {"GET /v1/models/{model}/labels/{label}/metadata", Role::kRead},
    {"GET /v1/models/{model}/metadata", Role::kRead},
    {"GET /v1/models/{model}/versions/{version}", Role::kRead},
    {"GET /v1/models/{model}/versions/{version}/metadata", Role::kRead},
    {"GET /v2", Role::kRead},
    {"GET /v2/health/live", Role::kHealth},
    {"GET /v2/health/ready", Role::kHealth},
    {"GET /v2/models/stats", Role::kRead},
    {"GET /v2/models/{model}", Role::kRead},
    {"GET /v2/models/{model}/config", Role::kRead},
    {"GET /v2/models/{model}/ready", Role::kHealth},
    {"GET /v2/models/{model}/stats", Role::kRead},
    {"GET /v2/models/{model}/versions/{version}", Role::kRead},
    {"GET /v2/models/{model}/versions/{version}/config", Role::kRead},
    {"GET /v2/models/{model}/versions/{version}/stats", Role::kRead},
    {"GET /v2/models/{model}/versions/{version}/ready", Role::kHealth},
    {"POST /v1/config/reload", Role::kAdmin},
    {"POST /v1/models/{model}/labels/{label}:classify", Role::kInfer},
    {"POST /v1/models/{model}/labels/{label}:predict", Role::kInfer},
    {"POST /v1/models/{model}/labels/{label}:regress", Role::kInfer},
    {"POST /v1/models/{model}/versions/{version}:classify", Role::kInfer},
    {"POST /v1/models/{model}/versions/{version}:predict", Role::kInfer},
    {"POST /v1/models/{model}/versions/{version}:regress", Role::kInfer},
    {"POST /v1/models/{model}:classify", Role::kInfer},
    {"POST /v1/models/{model}:predict", Role::kInfer},
    {"POST /v1/models/{model}:regress", Role::kInfer},
    {"POST /v2/models/{model}/infer", Role::kInfer},
    {"POST /v2/models/{model}/versions/{version}/infer", Role::kInfer},
    {"POST /v2/repository/index", Role::kRead},
    {"POST /v2/repository/models/{model}/load", Role::kAdmin},
    {"POST /v2/repository/models/{model}/unload", Role::kAdmin},
};

// By which callers say who they are, and what those need: for everybody.
const std::set<std::string> kOpenRoutes = {
    "GET /page/icon.svg", "GET /page/login",  "GET /page/page.css",
    "GET /page/page.js",  "POST /page/login", "POST /page/logout",
};

class LastReply : public HttpResponder {
 public:
  void Send(HttpReply&& reply) override { last = std::move(reply); }
  void Begin(HttpReply&& head) override { last = std::move(head); }
  void Write(std::string&& /*part*/) override {}
  void End() override {}
  HttpReply last{0, "", "", {}};
};

enum class Credential { kNone, kWrong, kExpired, kWithRole, kWithOtherRoles, kWithOtherModels };
constexpr Credential kCredentials[] = {Credential::kNone,           Credential::kWrong,
                                       Credential::kExpired,        Credential::kWithRole,
                                       Credential::kWithOtherRoles, Credential::kWithOtherModels};

class Doors : public testing::Test {
 protected:
  Doors() {
    auth_.tokens_file = absl::StrCat(testing::TempDir(), "floe_doors_", getpid());
    for (int i = 0; i < 4; ++i) {
      const auto role = static_cast<Role>(i);
      Roles one, others;
      one.Add(role);
      for (int k = 0; k < 4; ++k)
        if (k != i) others.Add(static_cast<Role>(k));
      tokens_[{Credential::kWithRole, role}] = MakeLine(one, {}, 0);
      tokens_[{Credential::kWithOtherRoles, role}] = MakeLine(others, {}, 0);
      tokens_[{Credential::kExpired, role}] = MakeLine(one, {}, 1);
      tokens_[{Credential::kWithOtherModels, role}] = MakeLine(one, {"other"}, 0);
    }
    std::ofstream(auth_.tokens_file) << file_;
    access_ = *Access::Make(auth_);
    ListenConfig listen;
    listen.admin_socket_path = "/run/a";
    listen.metrics_names = {"tfserving"};
    specs_ = ListenersOf(listen, {});
    ApiContext api{registry_, health_};
    api.enable_reflection = true;
    AddDoors(api, listen, {}, &methods_, &routes_);
  }
  ~Doors() override { unlink(auth_.tokens_file.c_str()); }

  std::string MakeLine(Roles roles, const std::vector<std::string>& models, int64_t expires) {
    TokenLine line;
    line.name = "t";
    line.roles = roles;
    line.models = models;
    line.expires = expires;
    const std::string token = MakeToken(&line).value();
    absl::StrAppend(&file_, TokenLineText(line), "\n");
    return absl::StrCat("Bearer ", token);
  }
  Caller CallerWith(Credential credential, Role role) {
    const Caller connection = access_->OfConnection({});
    const bool none = credential == Credential::kNone;
    const bool wrong = credential == Credential::kWrong;
    return access_->OfCall(connection, none    ? ""
                                       : wrong ? "Bearer floe_x"
                                               : tokens_.at({credential, role}));
  }
  // What a call of the role is to end in; OK: anything but a refusal of its caller.
  static absl::StatusCode Expected(const ListenerSpec& spec, Credential credential, Role role,
                                   bool model_in_path) {
    const OfferedTo offered = role == Role::kAdmin   ? spec.roles.admin
                              : role == Role::kInfer ? spec.roles.infer
                                                     : spec.roles.read;
    if (offered == OfferedTo::kNobody) return absl::StatusCode::kPermissionDenied;
    switch (credential) {
      case Credential::kWrong:
      case Credential::kExpired:
        return absl::StatusCode::kUnauthenticated;
      case Credential::kNone:
        return role == Role::kHealth ? absl::StatusCode::kOk : absl::StatusCode::kUnauthenticated;
      case Credential::kWithOtherRoles:
        return role == Role::kHealth ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied;
      case Credential::kWithOtherModels:
        return model_in_path && role != Role::kHealth ? absl::StatusCode::kPermissionDenied
                                                      : absl::StatusCode::kOk;
      case Credential::kWithRole:
        break;
    }
    return absl::StatusCode::kOk;
  }
  static absl::StatusCode Refusal(absl::StatusCode code) {
    return code == absl::StatusCode::kUnauthenticated || code == absl::StatusCode::kPermissionDenied
               ? code
               : absl::StatusCode::kOk;
  }

  AuthConfig auth_;
  std::string file_;
  std::map<std::pair<Credential, Role>, std::string> tokens_;
  std::shared_ptr<Access> access_;
  std::vector<ListenerSpec> specs_;
  FakeRegistry registry_;
  HealthState health_;
  MethodTable methods_;
  HttpRoutes routes_;
};

TEST_F(Doors, EveryMethodIsOpenedForItsRoleAlone) {
  std::map<std::string, Role> known = kMethods;
  for (const auto& [path, method] : methods_.methods()) {
    ASSERT_EQ(known.count(path), 1u) << path << " has no line in kMethods";
    const Role role = known.at(path);
    for (const ListenerSpec& spec : specs_)
      for (const Credential credential : kCredentials) {
        CallHead head;
        head.path = path;
        head.roles = spec.roles;
        head.cancel = std::make_shared<CancelToken>();
        head.caller = CallerWith(credential, role);
        const auto responder = std::make_shared<FakeResponder>();
        const auto opened = method.Open(head, responder);
        EXPECT_EQ(Refusal(opened.status().code()), Expected(spec, credential, role, false))
            << path << " at " << spec.address << " with " << static_cast<int>(credential);
        if (opened.ok()) (*opened)->OnDone();
      }
    known.erase(path);
  }
  EXPECT_TRUE(known.empty()) << known.begin()->first << " is no method";
}

TEST_F(Doors, EveryRouteIsOpenedForItsRoleAlone) {
  std::map<std::string, Role> known = kRoutes;
  for (const std::string& pattern : routes_.Patterns()) {
    if (kOpenRoutes.count(pattern) > 0) continue;
    ASSERT_EQ(known.count(pattern), 1u) << pattern << " has no line in kRoutes";
    const Role role = known.at(pattern);
    const size_t space = pattern.find(' ');
    const std::string path = absl::StrReplaceAll(
        pattern.substr(space + 1), {{"{model}", "m"}, {"{version}", "1"}, {"{label}", "l"}});
    const bool model_in_path = pattern.find("{model}") != std::string::npos;
    for (const ListenerSpec& spec : specs_)
      for (const Credential credential : kCredentials) {
        HttpHead head;
        head.method = pattern.substr(0, space);
        head.path = path;
        head.roles = spec.roles;
        head.caller = CallerWith(credential, role);
        head.content_length = int64_t{1} << 40;  // a caller who may not call learns no limit
        const auto responder = std::make_shared<LastReply>();
        int64_t most = -1;
        const auto handler = routes_.Open(head, responder, &most);
        const int status = responder->last.status;
        const absl::StatusCode expected = Expected(spec, credential, role, model_in_path);
        EXPECT_EQ(status == 401   ? absl::StatusCode::kUnauthenticated
                  : status == 403 ? absl::StatusCode::kPermissionDenied
                                  : absl::StatusCode::kOk,
                  expected)
            << pattern << " at " << spec.address << " with " << static_cast<int>(credential);
        if (expected == absl::StatusCode::kOk) continue;
        EXPECT_EQ(handler, nullptr) << "no body is read";
        const bool asks = !responder->last.fields.empty() &&
                          responder->last.fields[0].first == "WWW-Authenticate";
        EXPECT_EQ(asks, status == 401) << pattern;
      }
    known.erase(pattern);
  }
  EXPECT_TRUE(known.empty()) << known.begin()->first << " is no route";
}

TEST_F(Doors, AnybodyMaySayWhoHeIs) {
  const std::vector<std::string> patterns = routes_.Patterns();
  for (const std::string& pattern : kOpenRoutes) {
    EXPECT_THAT(patterns, testing::Contains(pattern));
    for (const Credential credential : kCredentials) {
      HttpHead head;
      head.method = pattern.substr(0, pattern.find(' '));
      head.path = pattern.substr(pattern.find(' ') + 1);
      head.roles = specs_[0].roles;
      head.caller = CallerWith(credential, Role::kRead);
      const auto responder = std::make_shared<LastReply>();
      int64_t most = -1;
      EXPECT_NE(routes_.Open(head, responder, &most), nullptr) << pattern;
      EXPECT_LE(most, 4096);
    }
  }
}

}  // namespace
}  // namespace floe::server
