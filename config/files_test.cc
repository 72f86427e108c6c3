#include "config/files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "config/mistakes_for_test.h"

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ConfigFilesTest : public testing::Test {
 protected:
  ConfigFilesTest() {
    directory_ = testing::TempDir() + "floe_config_files";
    std::filesystem::create_directories(directory_);
  }
  ~ConfigFilesTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<ServerConfig> Load(const ModelConfig& defaults = {}) {
    ModelConfig base = defaults;
    return LoadConfigFiles(files_, &base);
  }

  std::string directory_;
  ConfigFiles files_;
};

TEST_F(ConfigFilesTest, EachLayerWinsOverTheOneBelow) {
  files_.batching_parameters =
      Write("b.config", "max_batch_size { value: 32 } batch_timeout_micros { value: 9 }");
  files_.yaml = Write("f.yaml",
                      "server: {port: 1}\n"
                      "models:\n"
                      "- {name: a, base_path: a, workers: 7, batching: {max_batch_size: 8}}\n"
                      "- {name: gone, base_path: gone}\n");
  ModelConfig defaults;
  defaults.intra_op_threads = 3;
  auto config = Load(defaults);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->models.size(), 2u);
  EXPECT_EQ(config->models[0].batching.max_batch_size, 8);
  EXPECT_EQ(config->models[0].batching.batch_timeout_micros, 9);
  EXPECT_EQ(config->models[0].intra_op_threads, 3);
  EXPECT_EQ(config->models[1].batching.max_batch_size, 32);

  files_.model_config = Write("m.config",
                              "model_config_list { config { name: 'a' base_path: 'b' } "
                              "config { name: 'new' base_path: '/n' } }");
  config = Load(defaults);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.port, 1);
  ASSERT_EQ(config->models.size(), 2u) << "the list says which models there are";
  EXPECT_EQ(config->models[0].workers, 7);
  EXPECT_EQ(config->models[0].base_path, directory_ + "/b");
  EXPECT_EQ(config->models[1].batching.max_batch_size, 32);
  EXPECT_THAT(config->source.files,
              ElementsAre(files_.batching_parameters, files_.yaml, files_.model_config));
}

TEST_F(ConfigFilesTest, MistakesOfEveryFile) {
  files_.batching_parameters = Write("b.config", "max_batch_size { value: 0 }");
  files_.yaml = Write("f.yaml", "modles: []\n");
  files_.model_config = Write("m.config", "model_config_list { config { name: 'a' } }");
  const absl::Status status = Load().status();
  EXPECT_THAT(MistakesOf(status),
              ElementsAre(StartsWith(files_.batching_parameters + ":1: max_batch_size"),
                          StartsWith(files_.yaml + ":1: modles"),
                          StartsWith(files_.model_config + ":1: ")));
  files_.model_config = directory_ + "/none";
  EXPECT_EQ(Load().status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Load().status().ToString(),
              AllOf(HasSubstr("/none' cannot be read: No such file"), HasSubstr("modles")));
  files_.model_config = directory_;
  EXPECT_THAT(Load().status().ToString(), HasSubstr("it is a directory"));
}

TEST_F(ConfigFilesTest, TheHashFollowsTheBytes) {
  files_.yaml = Write("f.yaml", "models: []\n");
  files_.model_config = Write("m.config", "model_config_list {}");
  const uint64_t loaded = Load()->source.content_hash;
  Write("f.yaml", "models: []\n");
  EXPECT_EQ(Load()->source.content_hash, loaded) << "written, but the same";
  Write("m.config", "model_config_list { }");
  EXPECT_NE(Load()->source.content_hash, loaded);
}

TEST_F(ConfigFilesTest, FilesAreBounded) {
  const std::string path = Write("large", "a");
  std::filesystem::resize_file(path, size_t{16} << 20);
  EXPECT_EQ(ReadConfigText(path)->size(), size_t{16} << 20);
  std::filesystem::resize_file(path, (size_t{16} << 20) + 1);
  EXPECT_THAT(ReadConfigText(path).status().ToString(),
              AllOf(HasSubstr(path), HasSubstr("more than 16777216 bytes")));
  EXPECT_EQ(ReadConfigText("/dev/zero").status().code(), absl::StatusCode::kNotFound)
      << "it has no end";
}

TEST(KindOf, ByTheFirstField) {
  EXPECT_EQ(KindOf("# c\n\n  model_config_list: {\n"), ConfigKind::kModelConfig);
  EXPECT_EQ(KindOf("model_config_list{}"), ConfigKind::kModelConfig);
  EXPECT_EQ(KindOf("max_batch_size { value: 1 }"), ConfigKind::kBatchingParameters);
  EXPECT_EQ(KindOf("pad_variable_length_inputs: true"), ConfigKind::kBatchingParameters);
  EXPECT_EQ(KindOf("server:\n  port: 1\n"), ConfigKind::kYaml);
  EXPECT_EQ(KindOf("models: []"), ConfigKind::kYaml);
  EXPECT_EQ(KindOf(""), ConfigKind::kYaml);
}

TEST(ChangesForRestart, NamesKeysWithBothValues) {
  ServerConfig before, after;
  EXPECT_THAT(ChangesForRestart(before, after), IsEmpty());
  after.models.resize(1);
  EXPECT_THAT(ChangesForRestart(before, after), IsEmpty());
  after.lifecycle.max_num_load_retries = 1;
  after.server.port = 9;
  after.server.grpc_socket_path = "/s";
  after.reply = ReplyFormat::kContent;
  EXPECT_THAT(
      ChangesForRestart(before, after),
      ElementsAre("server.port: 8500 -> 9", "server.grpc_socket_path: (empty) -> /s",
                  "server.reply: typed -> content", "lifecycle.max_num_load_retries: 5 -> 1"));
}

}  // namespace
}  // namespace floe
