// What is written is read as the same.
#include "config/config.h"
#include "config/mistakes_for_test.h"
#include "config/model_changes_for_test.h"

namespace floe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void ExpectReadsBack(const ServerConfig& config, const std::string& what) {
  const std::string yaml = ConfigToYaml(config);
  const auto again = ParseConfig(yaml, "again.yaml", "");
  ASSERT_TRUE(again.ok()) << what << ": " << again.status() << "\n" << yaml;
  EXPECT_EQ(again->server, config.server) << what << "\n" << yaml;
  EXPECT_EQ(again->log, config.log) << what << "\n" << yaml;
  EXPECT_EQ(again->cpu, config.cpu) << what << "\n" << yaml;
  EXPECT_EQ(again->lifecycle, config.lifecycle) << what << "\n" << yaml;
  EXPECT_EQ(again->models, config.models) << what << "\n" << yaml;
  EXPECT_EQ(again->reply, config.reply) << what << "\n" << yaml;
  EXPECT_EQ(again->backend, config.backend) << what << "\n" << yaml;
  EXPECT_EQ(again->gpu_memory_limit, config.gpu_memory_limit) << what << "\n" << yaml;
  EXPECT_EQ(again->on_device_error, config.on_device_error) << what << "\n" << yaml;
  EXPECT_EQ(again->gpu_libraries, config.gpu_libraries) << what << "\n" << yaml;
}

ServerConfig OneModel() {
  ServerConfig config;
  config.models = {{.name = "m", .base_path = "/m"}};
  return config;
}

TEST(ConfigToYaml, DefaultsAreSpeltOut) {
  const std::string yaml = ConfigToYaml(OneModel());
  for (const char* line :
       {"server:\n  port: 8500\n  bind_address: \"127.0.0.1\"\n  grpc_socket_path: \"\"\n",
        "  reply: \"typed\"\n",
        "log:\n  level: \"info\"\n  format: \"text\"\n  slow_request_ms: 0\n"
        "  access_path: \"\"\n  access_one_in: 1\n  requests_directory: \"\"\n",
        "cpu:\n  gemm: \"auto\"\n", "  memory_limit: \"90%\"\n",
        "  - name: \"m\"\n    base_path: \"/m\"\n    versions: {latest: 1}\n",
        "    workers: auto\n", "      max_batch_size: auto\n"})
    EXPECT_THAT(yaml, HasSubstr(line));
  for (const char* key : {"cpu_set", "allowed_batch_sizes", "placeholder_defaults", " signature:"})
    EXPECT_THAT(yaml, Not(HasSubstr(key))) << "there is nothing to say";
  ExpectReadsBack(OneModel(), "defaults");
  ExpectReadsBack(ServerConfig(), "no model");
}

TEST(ConfigToYaml, EverySettingOfAModelReadsBack) {
  ServerConfig all = OneModel();
  for (const ModelChange& change : ModelChanges()) {
    ServerConfig one = OneModel();
    change.make(one.models[0]);
    ExpectReadsBack(one, change.name);
    EXPECT_NE(ConfigToYaml(one), ConfigToYaml(OneModel())) << change.name;
    all.models.push_back(one.models[0]);
    all.models.back().name = change.name;
  }
  ExpectReadsBack(all, "a list of models");
}

TEST(ConfigToYaml, EverySettingOfTheServerReadsBack) {
  ServerConfig config;
  ListenConfig& s = config.server;
  s = {.port = 9000,
       .bind_address = "::",
       .grpc_socket_path = "/run/s",
       .enable_reflection = true,
       .max_message_bytes = 4096,
       .drain_timeout_seconds = 7,
       .drain_lame_duck_seconds = 3,
       .grpc_channel_arguments = "a=1,b=x",
       .insecure_public = true,
       .max_connections = 11,
       .max_connections_per_address = 12,
       .enable_config_rpcs = ConfigRpcs::kAll,
       .enable_health_watch = false,
       .enable_compression = true,
       .max_calls = 13,
       .max_calls_per_address = 14,
       .max_calls_per_connection = 15,
       .max_call_bytes = 16,
       .max_call_bytes_per_address = 17,
       .max_call_bytes_per_connection = 18,
       .connection_idle_seconds = 19,
       .connection_age_seconds = 20,
       .keepalive_seconds = 21,
       .send_timeout_seconds = 22};
  config.reply = ReplyFormat::kContent;
  config.backend = Backend::kCuda;
  config.gpu_memory_limit = {0, int64_t{8} << 30};
  config.on_device_error = OnDeviceError::kCpu;
  config.gpu_libraries = "all";
  config.log = {.level = "debug",
                .format = LogFormat::kJson,
                .slow_request_ms = 250,
                .access_path = "/a",
                .access_one_in = 7,
                .requests_directory = "/r",
                .requests_file_bytes = 5000};
  config.cpu = {.gemm = "openblas", .blas_library = "libblis.so.4"};
  config.lifecycle = {.file_system_poll_wait_seconds = 2,
                      .model_config_file_poll_wait_seconds = 3,
                      .max_num_load_retries = 4,
                      .load_retry_interval_micros = 6,
                      .num_load_threads = 7,
                      .trial_load = TrialLoad::kUpdates,
                      .max_load_seconds = 9,
                      .allow_version_labels_for_unavailable_models = true,
                      .enable_model_warmup = false,
                      .num_request_iterations_for_warmup = 8,
                      .enable_per_model_batching_parameters = true,
                      .warmup_optional = true,
                      .strict_readiness = false,
                      .exit_on_error = true,
                      .memory_limit = {0, int64_t{3} << 30}};
  ExpectReadsBack(config, "everything");
}

TEST(ConfigToYaml, HostileTextsReadBack) {
  const std::vector<std::string> texts = {"a \"quoted\" 'path'",
                                          "true",
                                          "1",
                                          "~",
                                          "null",
                                          " spaces ",
                                          "a: b # c",
                                          "- x",
                                          "{[&*!|>%@`",
                                          "two\nlines\r\n\ttab",
                                          "back\\slash\\n",
                                          std::string("nul\0 and \x01\x1b\x7f", 12),
                                          "\u00e9\u4e2d\U0001F600\u2028\u0085\ufeff",
                                          "<<",
                                          "...\n---\n",
                                          std::string(1000, 'x')};
  for (const std::string& text : texts) {
    ServerConfig config = OneModel();
    config.server.bind_address = config.server.grpc_socket_path = text;
    ModelConfig& m = config.models[0];
    m.name = text;
    m.base_path = "/" + text;
    m.version_labels[text] = 1;
    m.batching.pad_variable_length_inputs = true;
    m.batching.padding_values[text] = 1;
    m.placeholder_defaults[text] = {text, ""};
    m.placeholder_defaults["~typed"] = {text, "string"};
    m.signature.inputs[text] = m.signature.outputs[text] = text;
    ExpectReadsBack(config, text);
  }
}

TEST(ConfigToYaml, BytesThatAreNotUtf8StillGiveYaml) {
  ServerConfig config = OneModel();
  config.models[0].base_path = "/a\xff\xc3";
  const auto again = ParseConfig(ConfigToYaml(config), "again.yaml", "");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->models[0].base_path, "/a\ufffd\ufffd");
}

}  // namespace
}  // namespace floe
