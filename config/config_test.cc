#include "config/config.h"

#include <filesystem>
#include <fstream>

#include "config/files.h"
#include "config/mistakes_for_test.h"

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

// The mistakes of a text, one string each.
std::vector<std::string> Mistakes(const std::string& text) {
  return MistakesOf(ParseConfig(text, "f.yaml", "").status());
}

void CheckLifecycle(const LifecycleConfig& l) {
  EXPECT_EQ(l.file_system_poll_wait_seconds, 2);
  EXPECT_EQ(l.model_config_file_poll_wait_seconds, 3);
  EXPECT_EQ(l.max_num_load_retries, 4);
  EXPECT_EQ(l.load_retry_interval_micros, 5);
  EXPECT_EQ(l.num_load_threads, 6);
  EXPECT_EQ(l.trial_load, TrialLoad::kUpdates);
  EXPECT_EQ(l.max_load_seconds, 8);
  EXPECT_TRUE(l.allow_version_labels_for_unavailable_models);
  EXPECT_FALSE(l.enable_model_warmup);
  EXPECT_EQ(l.num_request_iterations_for_warmup, 7);
  EXPECT_TRUE(l.enable_per_model_batching_parameters);
  EXPECT_TRUE(l.warmup_optional);
  EXPECT_FALSE(l.strict_readiness);
  EXPECT_TRUE(l.exit_on_error);
  EXPECT_EQ(l.memory_limit, (MemoryLimit{0, int64_t{2} << 30}));
}

constexpr char kEveryKey[] = R"(
server:
  port: 9000
  bind_address: 0.0.0.0
  grpc_socket_path: /run/floe/grpc.sock
  enable_reflection: true
  max_message_bytes: 1048576
  drain_timeout_seconds: 7
  drain_lame_duck_seconds: 3
  grpc_channel_arguments: "a=1,b=x"
  insecure_public: true
  enable_config_rpcs: false
  enable_health_watch: false
  enable_compression: true
  max_calls: 500
  max_call_bytes: 2GiB
  send_timeout_seconds: 5
  max_connections: 1000
  max_connections_per_address: 10
  reply: content
log: {level: debug, format: json, slow_request_ms: 250}
cpu: {gemm: openblas, blas_library: libblis.so.4}
lifecycle:
  file_system_poll_wait_seconds: 2
  model_config_file_poll_wait_seconds: 3
  max_num_load_retries: 4
  load_retry_interval_micros: 5
  num_load_threads: 6
  trial_load: updates
  max_load_seconds: 8
  allow_version_labels_for_unavailable_models: true
  enable_model_warmup: false
  num_request_iterations_for_warmup: 7
  enable_per_model_batching_parameters: true
  warmup_optional: true
  strict_readiness: false
  exit_on_error: true
  memory_limit: 2GiB
models:
  - name: digits
    base_path: models/digits
    workers: 2
    intra_op_threads: 3
    batching:
      max_batch_size: 16
      batch_timeout_micros: 500
      max_enqueued_batches: 8
      max_enqueued_bytes: 64MiB
      max_enqueued_micros: 250000
      allowed_batch_sizes: [2, 8]
      pad_variable_length_inputs: true
      padding_values: {x: 0.5, y: -1}
      enable_large_batch_splitting: true
      max_execution_batch_size: 8
    versions: {specific: [9, 4, 9]}
    version_labels: {stable: 4, canary: 9}
    cpu_set: "0-2,5"
    cpu_shares: 3
    max_run_seconds: 12
    default_timeout_microseconds: 250000
    inline_below_us: 0
    placeholder_defaults:
      keras_learning_phase: false
      steps: 3
      rate: 0.5
      mode: "1"
      wide: {value: 4, dtype: int64}
    signature: {inputs: {x: input}, outputs: {y: "softmax:0"}}
    reply: content
  - {name: other, base_path: /srv/other}
)";

TEST(Config, EveryKeyIsRead) {
  const auto config = ParseConfig(kEveryKey, "f.yaml", "/etc/floe");
  ASSERT_TRUE(config.ok()) << config.status();
  CheckLifecycle(config->lifecycle);
  EXPECT_EQ(config->server.port, 9000);
  EXPECT_EQ(config->server.enable_config_rpcs, ConfigRpcs::kNobody);
  EXPECT_FALSE(config->server.enable_health_watch);
  EXPECT_TRUE(config->server.enable_compression);
  EXPECT_EQ(config->server.max_calls, 500);
  EXPECT_EQ(config->server.max_call_bytes, int64_t{2} << 30);
  EXPECT_EQ(config->server.send_timeout_seconds, 5);
  EXPECT_EQ(config->server.max_connections, 1000);
  EXPECT_EQ(config->server.max_connections_per_address, 10);
  EXPECT_EQ(config->reply, ReplyFormat::kContent);
  EXPECT_EQ(config->server.bind_address, "0.0.0.0");
  EXPECT_EQ(config->server.grpc_socket_path, "/run/floe/grpc.sock");
  EXPECT_TRUE(config->server.enable_reflection);
  EXPECT_EQ(config->server.max_message_bytes, 1048576);
  EXPECT_EQ(config->server.drain_timeout_seconds, 7);
  EXPECT_EQ(config->server.drain_lame_duck_seconds, 3);
  EXPECT_EQ(config->server.grpc_channel_arguments, "a=1,b=x");
  EXPECT_TRUE(config->server.insecure_public);
  EXPECT_EQ(config->log.level, "debug");
  EXPECT_EQ(config->log.format, LogFormat::kJson);
  EXPECT_EQ(config->log.slow_request_ms, 250);
  EXPECT_EQ(config->cpu.gemm, "openblas");
  EXPECT_EQ(config->cpu.blas_library, "libblis.so.4");
  ASSERT_EQ(config->models.size(), 2u);
  const ModelConfig& m = config->models[0];
  EXPECT_EQ(m.name, "digits");
  EXPECT_EQ(m.base_path, "/etc/floe/models/digits");
  EXPECT_EQ(m.where, "f.yaml:41");
  EXPECT_EQ(m.workers, 2);
  EXPECT_EQ(m.intra_op_threads, 3);
  EXPECT_EQ(m.batching.max_batch_size, 16);
  EXPECT_EQ(m.batching.batch_timeout_micros, 500);
  EXPECT_EQ(m.batching.max_enqueued_batches, 8);
  EXPECT_EQ(m.batching.max_enqueued_bytes, int64_t{64} << 20);
  EXPECT_EQ(m.batching.max_enqueued_micros, 250'000);
  EXPECT_THAT(m.batching.allowed_batch_sizes, ElementsAre(2, 8));
  EXPECT_TRUE(m.batching.pad_variable_length_inputs);
  EXPECT_THAT(m.batching.padding_values, ElementsAre(Pair("x", 0.5), Pair("y", -1)));
  EXPECT_EQ(m.batching.max_execution_rows(), 8);
  EXPECT_EQ(m.versions.kind, VersionPolicy::Kind::kSpecific);
  EXPECT_THAT(m.versions.specific, ElementsAre(4, 9));
  EXPECT_THAT(m.version_labels, ElementsAre(Pair("canary", 9), Pair("stable", 4)));
  EXPECT_THAT(m.cpu_set, ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(m.cpu_shares, 3);
  EXPECT_EQ(m.max_run_seconds, 12);
  EXPECT_EQ(m.default_timeout_microseconds, 250'000);
  EXPECT_EQ(m.inline_below_us, 0);
  EXPECT_EQ(std::get<bool>(m.placeholder_defaults.at("keras_learning_phase").value), false);
  EXPECT_EQ(std::get<int64_t>(m.placeholder_defaults.at("steps").value), 3);
  EXPECT_EQ(std::get<double>(m.placeholder_defaults.at("rate").value), 0.5);
  EXPECT_EQ(std::get<std::string>(m.placeholder_defaults.at("mode").value), "1");
  EXPECT_EQ(std::get<int64_t>(m.placeholder_defaults.at("wide").value), 4);
  EXPECT_EQ(m.placeholder_defaults.at("wide").dtype, "int64");
  EXPECT_THAT(m.signature.inputs, ElementsAre(Pair("x", "input")));
  EXPECT_THAT(m.signature.outputs, ElementsAre(Pair("y", "softmax:0")));
  EXPECT_EQ(m.reply, ReplyFormat::kContent);
  EXPECT_EQ(config->models[1].base_path, "/srv/other");
  EXPECT_FALSE(config->models[1].reply.has_value());
  EXPECT_EQ(config->models[1].batching, BatchingConfig());
  EXPECT_EQ(config->models[1].versions, VersionPolicy());
}

TEST(Config, ModelsStartFromTheDefaultsGiven) {
  ModelConfig defaults;
  defaults.workers = 5;
  defaults.batching.max_enqueued_batches = 3;
  const auto config = ParseConfig(
      "models: [{name: a, base_path: /a, batching: {max_batch_size: auto}}, {name: b, base_path: "
      "/b, workers: 2}, {name: c, base_path: /c, workers: auto}]",
      "f.yaml", "", defaults);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->models[0].workers, 5);
  EXPECT_EQ(config->models[0].batching.max_batch_size, 0);
  EXPECT_EQ(config->models[0].batching.max_enqueued_batches, 3);
  EXPECT_EQ(config->models[1].workers, 2);
  EXPECT_EQ(config->models[2].workers, 0);
  EXPECT_THAT(ConfigToYaml(*config), HasSubstr("workers: auto"));
}

TEST(Config, VersionsInAllTheirForms) {
  const auto versions = [](const std::string& text) {
    const auto config =
        ParseConfig("models: [{name: a, base_path: /a, versions: " + text + "}]", "f", "");
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->models[0].versions : VersionPolicy{};
  };
  using Kind = VersionPolicy::Kind;
  EXPECT_EQ(versions("latest"), (VersionPolicy{Kind::kLatest, 1, {}}));
  EXPECT_EQ(versions("all"), (VersionPolicy{Kind::kAll, 1, {}}));
  EXPECT_EQ(versions("{latest: 3}"), (VersionPolicy{Kind::kLatest, 3, {}}));
  EXPECT_EQ(versions("{specific: [5, 2]}"), (VersionPolicy{Kind::kSpecific, 1, {2, 5}}));
}

TEST(Config, MistakesOfModelsAndLifecycle) {
  const auto mistakes = Mistakes(R"(lifecycle:
  memory_limit: much
  exit_on_error: 1
models:
  - name: a
    base_path: /a
    versions: newest
    version_labels: {stable: one}
    version_transition: fast
    cpu_set: 3-1
    cpu_shares: 0
    batching:
      allowed_batch_sizes: [2, x]
      padding_values: {i: nan}
      preferred_batch_size: [4]
  - name: b
    base_path: /b
    versions: {specific: []}
    batching: {allowed_batch_sizes: [8, 4], max_batch_size: 8}
  - name: c
    base_path: /c
    versions: {latest: 0, specific: [1]}
    cpu_set: {a: b}
)");
  EXPECT_THAT(
      mistakes,
      ElementsAre(
          AllOf(StartsWith("f.yaml:2: lifecycle.memory_limit: expected bytes"),
                HasSubstr("'much'")),
          StartsWith("f.yaml:3: lifecycle.exit_on_error: expected true or false"),
          AllOf(StartsWith("f.yaml:7: models[0].versions: expected latest, all,"),
                HasSubstr("'newest'")),
          StartsWith("f.yaml:8: models[0].version_labels.stable: expected a whole number, at "
                     "least 0, got 'one'"),
          StartsWith("f.yaml:9: models[0].version_transition: was removed: new versions always "),
          StartsWith("f.yaml:10: models[0].cpu_set: '3-1' is no CPU"),
          StartsWith("f.yaml:11: models[0].cpu_shares: expected a whole number from 1 to 1000"),
          StartsWith("f.yaml:13: models[0].batching.allowed_batch_sizes[1]: expected a whole"),
          StartsWith("f.yaml:14: models[0].batching.padding_values.i: expected a number"),
          AllOf(StartsWith("f.yaml:15: models[0].batching.preferred_batch_size: was removed"),
                HasSubstr("max_batch_size")),
          StartsWith("f.yaml:18: models[1].versions: specific names no version"),
          AllOf(StartsWith("f.yaml:19: models[1].batching: allowed_batch_sizes: 4 follows 8")),
          AllOf(StartsWith("f.yaml:19: models[1].batching: allowed_batch_sizes: the last, 4,")),
          StartsWith("f.yaml:22: models[2].versions: expected latest, all,"),
          StartsWith("f.yaml:23: models[2].cpu_set: expected CPUs")));
}

TEST(Config, AFileIsOneDocument) {
  EXPECT_THAT(ParseConfig("server: {port: 1}\n---\nmodels: []\n", "f.yaml", "").status().ToString(),
              HasSubstr("f.yaml:3: another document"));
  EXPECT_TRUE(ParseConfig("---\nmodels: []\n...\n", "f.yaml", "").ok());
}

TEST(Config, KeysOfOtherServersAreExplained) {
  EXPECT_THAT(
      Mistakes("tls: {cert: x}\nserver:\n  metrics: 9\nauth: a\nrest_port: 8501\n"),
      ElementsAre(AllOf(StartsWith("f.yaml:1: tls: the keys of TLS are server.tls.certificate"),
                        HasSubstr("docs/security.md")),
                  AllOf(StartsWith("f.yaml:3: server.metrics: metrics need no key"),
                        HasSubstr("docs/metrics.md")),
                  AllOf(StartsWith("f.yaml:4: auth: the keys are server.auth.tokens_file"),
                        HasSubstr("docs/auth.md")),
                  AllOf(StartsWith("f.yaml:5: rest_port: the REST API is served at server.port"),
                        HasSubstr("server.http_port"))));
}

TEST(Config, UnknownKeysNameTheNearestOnlyIfItIsLikeThem) {
  EXPECT_THAT(
      Mistakes("logg: {}\nzzz: 1\n"),
      ElementsAre(
          StartsWith("f.yaml:1: logg: unknown key; nearest: 'log'; expected one"),
          StartsWith("f.yaml:2: zzz: unknown key; expected one of backend, gpu_memory_limit")));
}

TEST(Config, KeysOfTheWrongLevelNameTheirPlace) {
  EXPECT_THAT(
      Mistakes("server:\nport: 1\nlevel: info\nmodels:\n- {name: a, base_path: /a, workers: 1}\n"
               "base_path: /b\nlog: {cpu: {}}\n"),
      ElementsAre("f.yaml:2: port: is no key here, but 'server.port' is one; check the indent",
                  "f.yaml:3: level: is no key here, but 'log.level' is one; check the indent",
                  "f.yaml:6: base_path: is no key here, but 'models[].base_path' is one; check "
                  "the indent",
                  "f.yaml:7: log.cpu: is no key here, but 'cpu' is one; check the indent"));
}

TEST(Config, TabsAndWrongIndentsAreNamed) {
  EXPECT_THAT(Mistakes("server:\n\tport: 1\n"),
              ElementsAre(HasSubstr("a tab indents line 2, and YAML allows spaces only")));
  for (const char* text :
       {"server:\n  port: 1\n   bind_address: ::1\n", "models:\n- name: a\n   base_path: /a\n"})
    EXPECT_THAT(Mistakes(text),
                ElementsAre(AllOf(StartsWith("f.yaml:3: not valid YAML"),
                                  HasSubstr("this line is indented by 3 and none above it is"))))
        << text;
  // What is wrong elsewhere is not the indent's fault.
  for (const char* text : {"a: b: c\n", "models:\n- name: a\n  base_path: b: c\n", "server: {\n"})
    EXPECT_THAT(Mistakes(text), ElementsAre(Not(HasSubstr("indent")))) << text;
}

TEST(Config, SizesHaveUnitsEverywhere) {
  const auto config = ParseConfig(R"(
server: {max_message_bytes: 10MB, max_call_bytes: 4GB, max_call_bytes_per_address: 4 GiB}
lifecycle: {memory_limit: 4GB}
models:
  - {name: a, base_path: /a, max_run_bytes: 1GiB, batching: {max_enqueued_bytes: 512mb}}
)",
                                  "f.yaml", "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.max_message_bytes, 10'000'000);
  EXPECT_EQ(config->server.max_call_bytes, 4'000'000'000);
  EXPECT_EQ(config->server.max_call_bytes_per_address, int64_t{4} << 30);
  EXPECT_EQ(config->lifecycle.memory_limit, (MemoryLimit{0, 4'000'000'000}));
  EXPECT_EQ(config->models[0].max_run_bytes, 1 << 30);
  EXPECT_EQ(config->models[0].batching.max_enqueued_bytes, 512'000'000);
  EXPECT_THAT(Mistakes("server: {max_message_bytes: 10}\n"),
              ElementsAre(HasSubstr("from 1024 to 2147483647, got '10'")));
}

TEST(Config, WarningIsALogLevel) {
  const auto config = ParseConfig("log: {level: warning}", "f.yaml", "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->log.level, "warn");
}

TEST(Config, ListenMistakesNameTheirPlace) {
  const auto mistake = [](const std::string& text) {
    const auto config = ParseConfig(text, "f.yaml", "");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::string(ValidateConfig(*config).message());
  };
  EXPECT_THAT(mistake("server:\n  port: 8500\n  bind_address: 0.0.0.0\n"),
              AllOf(StartsWith("f.yaml:3: server.bind_address: '0.0.0.0' is reachable"),
                    HasSubstr("insecure_public: true")));
  for (const std::string address : {"127.0.0.1:8500", "\"[::1]:8500\"", "localhost:8500"})
    EXPECT_THAT(mistake("server:\n  bind_address: " + address + "\n"),
                AllOf(StartsWith("f.yaml:2: server.bind_address: "),
                      HasSubstr("has a port, which belongs to server.port")))
        << address;
  EXPECT_EQ(mistake("server: {bind_address: \"::1\"}"), "");
  EXPECT_THAT(mistake("server:\n  grpc_channel_arguments: x\n"),
              StartsWith("f.yaml:2: server.grpc_channel_arguments: 'x' is not key=value"));
}

TEST(Config, LabelsHaveNames) {
  EXPECT_THAT(
      ParseConfig("models:\n- {name: a, base_path: /a, version_labels: {\"\": 2}}", "f.yaml", "")
          .status()
          .ToString(),
      HasSubstr("f.yaml:2: models[0].version_labels: a number has no name"));
}

TEST(Config, EmptyTextGivesDefaults) {
  const auto config = ParseConfig("", "f.yaml", "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.port, 8500);
  EXPECT_EQ(config->server.bind_address, "127.0.0.1");
  EXPECT_TRUE(config->models.empty());
}

TEST(Config, MistakesNameLineKeyAndExpectation) {
  const auto mistakes = Mistakes(R"(server:
  port: high
  drain_timeout_seconds: "30"
  enable_reflection: 1
  max_mesage_bytes: 5
log:
  level: loud
models:
  - name: a
    base_path: /x
  - name: b
    base_path: /y
    batching:
      max_batch_size: 0
      max_batch_size: 4
  - base_path: [/z]
modles: []
)");
  EXPECT_THAT(
      mistakes,
      ElementsAre(
          "f.yaml:2: server.port: expected a whole number from 0 to 65535, got 'high'",
          "f.yaml:3: server.drain_timeout_seconds: expected a whole number from 0 to 3600, got the "
          "text '30'",
          "f.yaml:4: server.enable_reflection: expected true or false, got '1'",
          AllOf(StartsWith(
                    "f.yaml:5: server.max_mesage_bytes: unknown key; nearest: 'max_message_bytes'"),
                HasSubstr("drain_timeout_seconds")),
          "f.yaml:7: log.level: expected one of 'trace', 'debug', 'info', 'warn', 'error', 'off', "
          "got 'loud'",
          "f.yaml:14: models[1].batching.max_batch_size: expected a whole number from 1 to 65536, "
          "got '0'",
          "f.yaml:15: models[1].batching.max_batch_size: is written twice (first in line 14); keep "
          "one",
          "f.yaml:16: models[2].base_path: expected text, got a list",
          StartsWith("f.yaml:16: models[2]: expected 'name: NAME'"),
          StartsWith("f.yaml:16: models[2]: expected 'base_path: PATH'"),
          StartsWith("f.yaml:17: modles: unknown key; nearest: 'models'")));
}

TEST(Config, WrongKindsOfNodes) {
  EXPECT_THAT(Mistakes("server: 3\n"),
              ElementsAre("f.yaml:1: server: expected a mapping of keys, got '3'"));
  EXPECT_THAT(Mistakes("- a\n"), ElementsAre("f.yaml:1: expected a mapping of keys, got a list"));
  EXPECT_THAT(Mistakes("\nmodels: {a: b}\n"),
              ElementsAre("f.yaml:2: models: expected a list, got a mapping"));
  EXPECT_THAT(
      Mistakes("models:\n  - name: a\n    base_path: /x\n    placeholder_defaults: {p: [1]}\n"),
      ElementsAre(
          StartsWith("f.yaml:4: models[0].placeholder_defaults.p: expected a value such as")));
  EXPECT_THAT(
      Mistakes("models:\n  - name: a\n    base_path: /x\n    signature: {inputs: {p: }}\n"),
      ElementsAre("f.yaml:4: models[0].signature.inputs.p: expected a tensor's name, got nothing"));
  EXPECT_THAT(Mistakes("server:\n  port: -1\n"), ElementsAre(HasSubstr("got '-1'")));
  EXPECT_THAT(Mistakes("server:\n  port: 99999999999999999999\n"),
              ElementsAre(HasSubstr("0 to 65535")));
}

TEST(Config, DuplicateModelNamesAreRefused) {
  EXPECT_THAT(
      Mistakes("models:\n- name: a\n  base_path: /x\n- name: a\n  base_path: /y\n"),
      ElementsAre(
          "f.yaml:4: models[1].name: the model name 'a' is taken (f.yaml:3); names must differ"));
}

TEST(Config, BrokenYamlNamesTheLine) {
  EXPECT_THAT(Mistakes("server:\n  port: [1\nlog: x\n"),
              ElementsAre(AllOf(StartsWith("f.yaml:"), HasSubstr("not valid YAML"))));
}

TEST(Config, HostileTextsAreMistakes) {
  EXPECT_THAT(Mistakes(std::string(100000, '['))[0], HasSubstr("not valid YAML"));
  std::string many = "models: [";
  for (int i = 0; i < 10001; ++i) many += "{},";
  EXPECT_THAT(Mistakes(many + "]"),
              ElementsAre("f.yaml:1: models: 10001 entries; expected at most 10000"));
}

absl::StatusOr<ServerConfig> LoadConfigFile(const std::string& path) {
  ModelConfig defaults;
  return LoadConfigFiles({.yaml = path}, &defaults);
}

TEST(Config, MissingFileIsNotFound) {
  const auto config = LoadConfigFile("/nonexistent/floe.yaml");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("'/nonexistent/floe.yaml'"));
  EXPECT_EQ(LoadConfigFile("/").status().code(), absl::StatusCode::kNotFound) << "a directory";
}

TEST(Config, RelativePathsStartAtTheFile) {
  const std::string directory = testing::TempDir() + "floe_config_test";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/f.yaml") << "models: [{name: a, base_path: m}]\n";
  const auto config = LoadConfigFile(directory + "/f.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->models[0].base_path, directory + "/m");

  const absl::Status missing = CheckPaths(*config);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              AllOf(HasSubstr("f.yaml:1: model 'a'"), HasSubstr(directory + "/m"),
                    HasSubstr("No such file")));
  std::filesystem::create_directories(directory + "/m");
  EXPECT_TRUE(CheckPaths(*config).ok());
  std::filesystem::remove_all(directory);
}

TEST(ValidateConfig, PublicPlainTextNeedsConsent) {
  ServerConfig config;
  EXPECT_TRUE(ValidateConfig(config).ok());
  config.server.bind_address = "0.0.0.0";
  const absl::Status refused = ValidateConfig(config);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--insecure_public"));
  config.server.insecure_public = true;
  EXPECT_TRUE(ValidateConfig(config).ok());
  config.server.insecure_public = false;
  config.server.port = 0;  // only a unix socket: no address is bound
  config.server.grpc_socket_path = "/run/x";
  EXPECT_TRUE(ValidateConfig(config).ok());
  config.server.grpc_socket_path = "";
  EXPECT_THAT(std::string(ValidateConfig(config).message()), HasSubstr("nothing to listen on"));
}

TEST(ValidateConfig, KeysOfTlsBelongTogether) {
  const auto said = [](const TlsConfig& tls) {
    ServerConfig config;
    config.server.bind_address = "0.0.0.0";
    config.server.tls = tls;
    return std::string(ValidateConfig(config).message());
  };
  const TlsConfig pair{.certificate = "c", .key = "k"};
  EXPECT_EQ(said(pair), "") << "others may connect then";
  EXPECT_EQ(said({.ssl_config_file = "s"}), "");
  EXPECT_THAT(said({.certificate = "c"}), HasSubstr("server.tls.certificate: is given without"));
  EXPECT_THAT(said({.key = "k"}), HasSubstr("server.tls.key: is given without"));
  EXPECT_THAT(said({.certificate = "c", .key = "k", .ssl_config_file = "s"}),
              HasSubstr("give it alone"));
  EXPECT_THAT(said({.client_ca = "a"}), HasSubstr("server.tls.client_ca: has no effect"));
  TlsConfig asked = pair;
  asked.client = ClientCertificates::kRequired;
  EXPECT_THAT(said(asked), HasSubstr("server.tls.client: asks clients for certificates; give"));
  asked.client_ca = "a";
  EXPECT_EQ(said(asked), "");
  asked.client = ClientCertificates::kNone;
  EXPECT_THAT(said(asked), HasSubstr("no client is asked"));
}

TEST(Config, TlsIsASectionInTheServers) {
  const auto config = ParseConfig(
      "server: {tls: {certificate: c.pem, key: /k.pem, client: optional, min_version: 1.3}}\n"
      "models: []\n",
      "f.yaml", "/etc/floe");
  ASSERT_TRUE(config.ok()) << config.status();
  const TlsConfig& tls = config->server.tls;
  EXPECT_EQ(tls.certificate, "/etc/floe/c.pem") << "relative paths start at the file";
  EXPECT_EQ(tls.key, "/k.pem");
  EXPECT_EQ(tls.client, ClientCertificates::kOptional);
  EXPECT_EQ(tls.min_version, TlsVersion::k13);
  EXPECT_THAT(ConfigToYaml(*config),
              HasSubstr("\n  tls:\n    certificate: \"/etc/floe/c.pem\"\n    key:"));
  EXPECT_THAT(Mistakes("server: {tls: {certificat: x, min_version: 1.1}}\n"),
              ElementsAre(AllOf(HasSubstr("server.tls.certificat"), HasSubstr("'certificate'")),
                          HasSubstr("server.tls.min_version: expected one of")));
}

TEST(ValidateConfig, NamesAndRanges) {
  ServerConfig config;
  config.cpu.gemm = "atlas";
  config.server.grpc_socket_path = std::string(108, 'x');
  config.server.grpc_channel_arguments = "a=1,b";
  config.models = {{.name = "m", .base_path = "/a", .where = "f:1"},
                   {.name = "m", .where = "--model_name"}};
  EXPECT_THAT(std::string(ValidateConfig(config).message()),
              AllOf(HasSubstr("cpu.gemm: expected one of"), HasSubstr("limit is 107"),
                    HasSubstr("'b' is not key=value"), HasSubstr("'m' has no path"),
                    HasSubstr("given twice (f:1 and --model_name)")));
  // It is repeated in what is logged and answered.
  config = {};
  config.models = {{.name = std::string(256, 'n'), .base_path = "/a"}};
  EXPECT_TRUE(ValidateConfig(config).ok()) << ValidateConfig(config);
  config.models[0].name += "\n";
  const std::string long_name(ValidateConfig(config).message());
  EXPECT_THAT(long_name, HasSubstr("has 257 bytes; give it at most 256"));
  EXPECT_LT(long_name.size(), 500u);
}

TEST(ParseChannelArguments, Pairs) {
  EXPECT_THAT(*ParseChannelArguments("a=1,b=x=y"), ElementsAre(Pair("a", "1"), Pair("b", "x=y")));
  EXPECT_TRUE(ParseChannelArguments("")->empty());
  for (const char* bad : {"a", "=1", "a=1,", ",", "a=1,b"})
    EXPECT_EQ(ParseChannelArguments(bad).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
}

TEST(IsLoopback, Addresses) {
  for (const char* yes : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "[::1]"})
    EXPECT_TRUE(IsLoopback(yes)) << yes;
  for (const char* no : {"0.0.0.0", "::", "10.0.0.1", "", "127.0.0.1.example.org"})
    EXPECT_FALSE(IsLoopback(no)) << no;
}

}  // namespace
}  // namespace floe
