#include "server/api/config_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "config/config_rpcs.h"
#include "floe/admin.pb.h"
#include "server/api/fakes_for_test.h"
#include "tensorflow_serving/apis/model_management.pb.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace pb = tensorflow::serving;

constexpr char kReload[] = "/tensorflow.serving.ModelService/HandleReloadConfigRequest";
constexpr char kGetConfig[] = "/floe.Admin/GetConfig";

// Answers come from another thread; Wait() gives them.
class WaitingResponder : public Responder {
 public:
  void Write(std::string&& message) override { message_ = std::move(message); }
  // A status of its own: the prebuilt library counts references where ThreadSanitizer does not
  // look.
  using Responder::Finish;
  void Finish(const absl::Status& status, const Trailers&) override {
    done_.set_value(absl::Status(status.code(), status.message()));
  }
  absl::Status Wait() { return done_.get_future().get(); }
  pb::ReloadConfigResponse response() const {
    pb::ReloadConfigResponse response;
    EXPECT_TRUE(response.ParseFromString(message_));
    return response;
  }

 private:
  std::string message_;
  std::promise<absl::Status> done_;
};

class ConfigService : public testing::Test {
 protected:
  ConfigService() {
    registry_.config.generation = 4;
    registry_.config.models.resize(1);
    registry_.config.models[0].name = "a";
    registry_.config.models[0].base_path = "/old";
    registry_.config.models[0].workers = 3;
    config_.server.port = 1234;
    config_.model_defaults.workers = 2;
    registry_.on_reload = [this](std::vector<ModelConfig> models, TimePoint deadline) {
      reloaded_ = std::move(models);
      deadline_ = deadline;
      if (result_.ok()) ++registry_.config.generation;
      return result_;
    };
    Register();
  }

  void Register() {
    table_ = std::make_unique<MethodTable>();
    ApiContext context{registry_, health_};
    context.config = &config_;
    RegisterApi(context, table_.get());
  }

  std::shared_ptr<WaitingResponder> Start(const pb::ReloadConfigRequest& request,
                                          const std::string& generation = "",
                                          TimePoint deadline = TimePoint::max()) {
    CallHead info;
    info.local = true;
    info.peer = "127.0.0.1:4711";
    info.cancel = cancel_;
    info.deadline = deadline;
    if (!generation.empty()) info.metadata.emplace_back(kGenerationKey, generation);
    auto responder = std::make_shared<WaitingResponder>();
    const auto bytes = std::make_shared<const std::string>(request.SerializeAsString());
    Invoke(*table_->Find(kReload), info, {*bytes, bytes}, responder);
    return responder;
  }

  static pb::ReloadConfigRequest ListOf(const std::string& name, const std::string& path) {
    pb::ReloadConfigRequest request;
    auto* const entry = request.mutable_config()->mutable_model_config_list()->add_config();
    entry->set_name(name);
    entry->set_base_path(path);
    return request;
  }
  static pb::ReloadConfigRequest YamlOf(const std::string& yaml,
                                        const std::string& directory = "") {
    floe::YamlModels models;
    models.set_yaml(yaml);
    models.set_file(directory.empty() ? "" : "mine.yaml");
    models.set_directory(directory);
    pb::ReloadConfigRequest request;
    request.mutable_config()->mutable_custom_model_config()->PackFrom(models);
    return request;
  }

  FakeRegistry registry_;
  HealthState health_;
  ServerConfig config_;
  absl::Status result_;
  std::vector<ModelConfig> reloaded_;
  TimePoint deadline_;
  std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  std::unique_ptr<MethodTable> table_;
};

TEST_F(ConfigService, ReloadsAList) {
  pb::ReloadConfigRequest request = ListOf("a", "/new");
  auto* const other = request.mutable_config()->mutable_model_config_list()->add_config();
  other->set_name("b");
  other->set_base_path("/b");
  other->mutable_model_version_policy()->mutable_all();
  request.add_metric_names("floe_config_generation");
  request.add_metric_names(":tensorflow:cc:saved_model:load_attempt_count");
  const TimePoint deadline = Clock::Steady().Now() + std::chrono::minutes(9);
  const auto responder = Start(request, "", deadline);
  ASSERT_TRUE(responder->Wait().ok());
  EXPECT_EQ(deadline_, deadline);
  ASSERT_EQ(reloaded_.size(), 2u);
  EXPECT_EQ(reloaded_[0].base_path, "/new");
  EXPECT_EQ(registry_.reload_by, "RPC from 127.0.0.1:4711");
  EXPECT_EQ(reloaded_[0].workers, 3) << "of the active model";
  EXPECT_EQ(reloaded_[1].workers, 2) << "of the command line";
  EXPECT_EQ(reloaded_[1].versions.kind, VersionPolicy::Kind::kAll);
  const pb::ReloadConfigResponse response = responder->response();
  EXPECT_EQ(response.status().error_code(), tensorflow::error::OK);
  ASSERT_EQ(response.metric_size(), 2);
  EXPECT_EQ(response.metric(0).int64_value_increase(), 1);
  EXPECT_EQ(response.metric(1).int64_value_increase(), 0);
}

TEST_F(ConfigService, ThereIsABoundWhateverTheDeadline) {
  TimePoint before = Clock::Steady().Now();
  ASSERT_TRUE(Start(ListOf("a", "/a"))->Wait().ok());
  EXPECT_GE(deadline_, before + std::chrono::minutes(2));
  EXPECT_LE(deadline_, Clock::Steady().Now() + std::chrono::minutes(2));
  before = Clock::Steady().Now();
  ASSERT_TRUE(Start(ListOf("a", "/a"), "", before + std::chrono::hours(24))->Wait().ok());
  EXPECT_GE(deadline_, before + std::chrono::minutes(10));
  EXPECT_LE(deadline_, Clock::Steady().Now() + std::chrono::minutes(10));
}

TEST_F(ConfigService, ACallerThatLeavesEndsItsReloadAndNoOther) {
  registry_.holds_reloads = true;
  const auto left = Start(ListOf("a", "/a"));
  const auto of_left = std::exchange(cancel_, std::make_shared<CancelToken>());
  EXPECT_EQ(registry_.reload_cancel, of_left);
  const auto other = Start(ListOf("a", "/a"));
  EXPECT_EQ(registry_.reload_cancel, cancel_);
  of_left->Cancel();
  registry_.held_reloads.at(0)(absl::CancelledError("the caller left"));
  registry_.held_reloads.at(1)(absl::OkStatus());
  EXPECT_EQ(left->Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(other->Wait().ok());
}

TEST_F(ConfigService, MistakesNeverReachTheRegistry) {
  pb::ReloadConfigRequest twice = ListOf("a", "/a");
  *twice.mutable_config()->mutable_model_config_list()->add_config() =
      twice.config().model_config_list().config(0);
  for (const auto& [request, words] : std::vector<std::pair<pb::ReloadConfigRequest, std::string>>{
           {ListOf("a", "relative"), "config[0].base_path: 'relative'"},
           {ListOf("", "/a"), "config[0].name"},
           {twice, "'a' is taken"},
           {pb::ReloadConfigRequest(), "expected model_config_list"},
           {YamlOf(""), "there is no list 'models'"},
           {YamlOf("models: [{name: a, base_path: a}]"), "'a' is relative"},
           {YamlOf("models: [{name: a, base_path: /a, wrkers: 2}]"), "nearest: 'workers'"}}) {
    EXPECT_THAT(Start(request)->Wait().ToString(),
                AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(words)));
  }
  EXPECT_TRUE(reloaded_.empty());
  const auto broken = CallUnary(*table_, kReload, "\x0a\xff");
  EXPECT_EQ(broken->status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ConfigService, YamlSaysWhatAListCannot) {
  ASSERT_TRUE(Start(YamlOf("models: [{name: y, base_path: /y, cpu_shares: 7}]"))->Wait().ok());
  ASSERT_EQ(reloaded_.size(), 1u);
  EXPECT_EQ(reloaded_[0].cpu_shares, 7);
  EXPECT_EQ(reloaded_[0].workers, 2);
  ASSERT_TRUE(Start(YamlOf("models: [{name: y, base_path: y}]", "/srv"))->Wait().ok());
  EXPECT_EQ(reloaded_[0].base_path, "/srv/y");
  EXPECT_THAT(Start(YamlOf("models: 3", "/srv"))->Wait().ToString(),
              HasSubstr("mine.yaml:1: models"));
  EXPECT_TRUE(Start(YamlOf("models: []"))->Wait().ok());
  EXPECT_TRUE(reloaded_.empty());
}

TEST_F(ConfigService, TheRegistrysErrorIsTheAnswerAndStaysShort) {
  result_ = absl::NotFoundError("model 'a': " + std::string(100000, 'x'));
  const absl::Status status = Start(ListOf("a", "/a"))->Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_LT(status.message().size(), 4096u);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model 'a'"));
}

TEST_F(ConfigService, OnlyTheGenerationNamedIsReplaced) {
  EXPECT_EQ(Start(ListOf("a", "/a"), "3")->Wait().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Start(ListOf("a", "/a"), "x")->Wait().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(reloaded_.empty());
  EXPECT_TRUE(Start(ListOf("a", "/a"), "4")->Wait().ok());
}

// Another configuration comes into force after this call has looked at the one that it replaces.
TEST_F(ConfigService, AnotherReloadInBetweenIsNotReverted) {
  int calls = 0;
  const auto overtake = [&](std::vector<ModelConfig> models, TimePoint) {
    reloaded_ = std::move(models);
    const int64_t before = registry_.config.generation;
    if (++calls == 1) {
      ++registry_.config.generation;
      registry_.config.models[0].workers = 9;
    }
    EXPECT_EQ(registry_.replaced, before);
    return CheckGeneration(*registry_.replaced, registry_.config.generation);
  };
  registry_.on_reload = overtake;
  const absl::Status status = Start(ListOf("a", "/a"), "4")->Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("generation 5"), HasSubstr("not 4")));
  EXPECT_EQ(calls, 1);
  // Without a condition it is made again from the one that is active now.
  calls = 0;
  registry_.config.models[0].workers = 3;
  EXPECT_TRUE(Start(ListOf("a", "/a"))->Wait().ok());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(reloaded_.at(0).workers, 9);
}

TEST_F(ConfigService, ShowsWhatIsInForce) {
  registry_.config.last_error = absl::NotFoundError("no such file");
  const auto responder = CallUnary(*table_, kGetConfig, "");
  ASSERT_TRUE(responder->status.ok()) << responder->status;
  floe::GetConfigResponse response;
  ASSERT_TRUE(response.ParseFromString(responder->messages.at(0)));
  EXPECT_EQ(response.generation(), 4);
  EXPECT_EQ(response.last_error().error_code(), tensorflow::error::NOT_FOUND);
  EXPECT_EQ(response.last_error().error_message(), "no such file");
  const auto shown = ParseConfig(response.yaml(), "yaml", "");
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->server.port, 1234);
  EXPECT_EQ(shown->models, registry_.config.models);
}

TEST_F(ConfigService, IsForOperators) {
  for (const char* path : {kReload, kGetConfig})
    EXPECT_EQ(table_->Find(path)->info().role, MethodRole::kOperators);
}

}  // namespace
}  // namespace floe::server
