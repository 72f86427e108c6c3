#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "cli/floectl_for_test.h"
#include "cli/scripted_server_test_util.h"
#include "config/config.h"
#include "floe/admin.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tensorflow_serving/apis/model_management.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kReload[] = "/tensorflow.serving.ModelService/HandleReloadConfigRequest";
constexpr char kGetConfig[] = "/floe.Admin/GetConfig";

class ConfigCommand : public testing::Test {
 protected:
  ConfigCommand() {
    folder_ = testing::TempDir() + "floectl_config";
    std::filesystem::create_directories(folder_ + "/model");
  }
  ~ConfigCommand() override { std::filesystem::remove_all(folder_); }

  int Floectl(const std::vector<std::string>& args) {
    Outcome outcome = cli::Floectl(args);
    out_ = std::move(outcome.out);
    err_ = std::move(outcome.err);
    return outcome.code;
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  // Remembers the request and answers `status`, and `inner` inside the response.
  void AnswerReload(const grpc::Status& status, int inner = 0) {
    server_.handlers[kReload] = [this, status, inner](const std::string& bytes,
                                                      std::string* reply) {
      EXPECT_TRUE(request_.ParseFromString(bytes));
      tfs::ReloadConfigResponse response;
      response.mutable_status()->set_error_code(static_cast<tensorflow::error::Code>(inner));
      response.mutable_status()->set_error_message("inside");
      *reply = response.SerializeAsString();
      return status;
    };
  }

  std::string folder_, out_, err_;
  ScriptedServer server_;
  tfs::ReloadConfigRequest request_;
};

TEST_F(ConfigCommand, CheckPrintsWhatTheFilesAmountTo) {
  const std::string yaml =
      Write("f.yaml", "models: [{name: a, base_path: model, cpu_shares: 5}]\n");
  const std::string list =
      Write("m", "model_config_list { config { name: 'a' base_path: 'model' } }");
  const std::string batching = Write("b", "max_batch_size { value: 9 } thread_pool_name {}");
  ASSERT_EQ(Floectl({"config", "check", batching, yaml, list}), kExitOk) << err_;
  const auto config = ParseConfig(out_, "out", "");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->models.size(), 1u);
  EXPECT_EQ(config->models[0].base_path, folder_ + "/model");
  EXPECT_EQ(config->models[0].cpu_shares, 5);
  EXPECT_EQ(config->models[0].batching.max_batch_size, 9);
  EXPECT_THAT(err_, HasSubstr("thread_pool_name has no effect here"));
}

TEST_F(ConfigCommand, CheckWarnsOfMoreThreadsThanCpus) {
  const std::string many = absl::StrCat(FindUsableCpus().count() + 1);
  const std::string yaml =
      Write("f.yaml", "models: [{name: a, base_path: model, workers: " + many + "}]\n");
  ASSERT_EQ(Floectl({"config", "check", yaml}), kExitOk) << err_;
  EXPECT_THAT(err_, AllOf(HasSubstr("on this machine: model 'a': " + many + " workers"),
                          HasSubstr("lower workers")));
}

TEST_F(ConfigCommand, CheckSaysEveryMistake) {
  const std::string yaml = Write("f.yaml", "modles: []\nserver: {prt: 1}\n");
  const std::string list = Write("m", "model_config_list { config { nam: 'a' } }");
  EXPECT_EQ(Floectl({"config", "check", yaml, list}), kExitFailed);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(err_, AllOf(HasSubstr(yaml + ":1: modles"), HasSubstr(yaml + ":2: server.prt"),
                          HasSubstr(list + ":1: unknown field 'nam'"), HasSubstr("3 mistakes")));
  const std::string missing = Write("g.yaml", "models: [{name: a, base_path: none}]\n");
  EXPECT_EQ(Floectl({"config", "check", missing}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("No such file"));
  EXPECT_EQ(Floectl({"config", "check", missing, "--skip-paths"}), kExitOk) << err_;
  EXPECT_EQ(Floectl({"config", "check", missing, yaml}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("files of the same kind"));
  EXPECT_EQ(Floectl({"config", "check", folder_ + "/none"}), kExitFailed);
  EXPECT_EQ(Floectl({"config", "check"}), kExitUsage);
  EXPECT_EQ(Floectl({"config"}), kExitUsage);
}

TEST_F(ConfigCommand, ShowPrintsYamlWithTheRestAsComments) {
  ServerConfig config;
  config.server.port = 77;
  server_.handlers[kGetConfig] = [&](const std::string&, std::string* reply) {
    floe::GetConfigResponse response;
    response.set_generation(3);
    response.mutable_last_error()->set_error_code(tensorflow::error::INVALID_ARGUMENT);
    response.mutable_last_error()->set_error_message("first\nsecond");
    response.set_yaml(ConfigToYaml(config));
    *reply = response.SerializeAsString();
    return grpc::Status::OK;
  };
  ASSERT_EQ(Floectl({"config", "show", "--target", server_.address()}), kExitOk) << err_;
  EXPECT_THAT(out_, StartsWith("# generation 3\n# the last reload failed: INVALID_ARGUMENT: first\n"
                               "# second\nbackend: \"auto\"\n"));
  EXPECT_EQ(ParseConfig(out_, "out", "")->server.port, 77);
  ASSERT_EQ(Floectl({"config", "show", "--target", server_.address(), "--json"}), kExitOk);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["generation"], 3);
  EXPECT_EQ(json["last_error_message"], "first\nsecond");
}

TEST_F(ConfigCommand, CheckSaysWhenThereAreNoModels) {
  ASSERT_EQ(Floectl({"config", "check", Write("empty", "# nothing yet\n")}), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("there are no models"));
}

TEST_F(ConfigCommand, ApplySendsAListAsItIs) {
  AnswerReload(grpc::Status::OK);
  const std::string list =
      Write("m",
            "model_config_list { config { name: 'a' base_path: 'model' version_labels { key: 'l' "
            "value: 2 } } }");
  ASSERT_EQ(Floectl({"config", "apply", "--target", server_.address(), list}), kExitOk) << err_;
  EXPECT_EQ(out_, "applied\n");
  ASSERT_EQ(request_.config().model_config_list().config_size(), 1);
  const auto& sent = request_.config().model_config_list().config(0);
  EXPECT_EQ(sent.base_path(), std::filesystem::absolute(folder_ + "/model").lexically_normal());
  EXPECT_EQ(sent.version_labels().at("l"), 2);
  EXPECT_EQ(server_.metadata.count("floe-config-generation"), 0u);
  ASSERT_EQ(
      Floectl({"config", "apply", "--target", server_.address(), list, "--if-generation", "5"}),
      kExitOk);
  EXPECT_EQ(server_.metadata.find("floe-config-generation")->second, "5");
}

TEST_F(ConfigCommand, ApplySendsYamlWhole) {
  AnswerReload(grpc::Status::OK);
  const std::string text =
      "server: {port: 9}\nmodels: [{name: a, base_path: model, cpu_shares: 5}]\n";
  const std::string yaml = Write("f.yaml", text);
  ASSERT_EQ(Floectl({"config", "apply", "--target", server_.address(), yaml}), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("only the models"));
  floe::YamlModels sent;
  ASSERT_TRUE(request_.config().custom_model_config().UnpackTo(&sent));
  EXPECT_EQ(sent.yaml(), text);
  EXPECT_EQ(sent.file(), yaml);
  EXPECT_EQ(sent.directory(), std::filesystem::absolute(folder_).lexically_normal());
}

TEST_F(ConfigCommand, ApplyFailsWithTheServersReason) {
  const std::string list =
      Write("m", "model_config_list { config { name: 'a' base_path: 'model' } }");
  AnswerReload(grpc::Status(grpc::StatusCode::NOT_FOUND, "model 'a': no versions"));
  EXPECT_EQ(Floectl({"config", "apply", "--target", server_.address(), list}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("NOT_FOUND: model 'a': no versions"));
  AnswerReload(grpc::Status::OK, 3);
  EXPECT_EQ(Floectl({"config", "apply", "--target", server_.address(), list}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("INVALID_ARGUMENT: inside"));
  request_.Clear();
  EXPECT_EQ(Floectl({"config", "apply", "--target", server_.address(),
                     Write("bad", "model_config_list {")}),
            kExitFailed);
  EXPECT_EQ(
      Floectl({"config", "apply", "--target", server_.address(), Write("b", "max_batch_size {}")}),
      kExitFailed);
  EXPECT_EQ(
      Floectl({"config", "apply", "--target", server_.address(), Write("none", "# nothing yet\n")}),
      kExitFailed);
  EXPECT_THAT(err_, HasSubstr("names no models"));
  EXPECT_FALSE(request_.has_config()) << "what is wrong here is not sent";
}

TEST_F(ConfigCommand, KeysAreListedWithDefaults) {
  EXPECT_EQ(Floectl({"config", "keys"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("## server\n"), HasSubstr("| `port` | 8500 | TCP port"),
                          HasSubstr("| `batching.max_batch_size` | auto | Rows")));
}

}  // namespace
}  // namespace floe::cli
