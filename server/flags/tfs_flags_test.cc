#include "server/flags/tfs_flags.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "server/flags/flags_for_test.h"

namespace floe::server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using TfsFlagsTest = FlagsTest;

// Every flag of TensorFlow Serving 2.20's model server, with a value of its kind.
const std::vector<std::pair<std::string, std::string>>& ValueFlags() {
  static const auto* flags = new std::vector<std::pair<std::string, std::string>>{
      {"port", "8500"},
      {"grpc_socket_path", "/run/s"},
      {"rest_api_port", "8501"},
      {"rest_api_num_threads", "8"},
      {"rest_api_timeout_in_ms", "30000"},
      {"model_config_file_poll_wait_seconds", "2"},
      {"model_name", "m"},
      {"model_base_path", "/m"},
      {"num_load_threads", "2"},
      {"num_unload_threads", "2"},
      {"max_num_load_retries", "3"},
      {"load_retry_interval_micros", "-1"},
      {"file_system_poll_wait_seconds", "4"},
      {"tensorflow_session_parallelism", "0"},
      {"tensorflow_session_config_file", "/c"},
      {"tensorflow_intra_op_parallelism", "2"},
      {"tensorflow_inter_op_parallelism", "3"},
      {"ssl_config_file", ""},
      {"platform_config_file", "/p"},
      {"per_process_gpu_memory_fraction", "0.5"},
      {"saved_model_tags", "serve"},
      {"grpc_channel_arguments", "a=1"},
      {"grpc_max_threads", "16"},
      {"num_request_iterations_for_warmup", "2"},
      {"monitoring_config_file", ""},
      {"num_tflite_pools", "1"},
      {"num_tflite_interpreters_per_pool", "1"},
      {"thread_pool_factory_config_file", "/t"},
      {"mixed_precision", "bfloat16"}};
  return *flags;
}
constexpr const char* kSwitches[] = {"rest_api_enable_cors_support",
                                     "enable_batching",
                                     "allow_version_labels_for_unavailable_models",
                                     "enable_per_model_batching_parameters",
                                     "flush_filesystem_caches",
                                     "enable_model_warmup",
                                     "remove_unused_fields_from_bundle_metagraph",
                                     "prefer_tflite_model",
                                     "enable_signature_method_name_check",
                                     "xla_cpu_compilation_enabled",
                                     "xla_gpu_compilation_enabled",
                                     "enable_profiler",
                                     "skip_initialize_tpu",
                                     "enable_grpc_healthcheck_service",
                                     "enable_serialization_as_tensor_content"};

TEST_F(TfsFlagsTest, EveryFlagOfTfServingInEverySpelling) {
  std::vector<std::string> equals, separate, bare;
  for (const auto& [name, value] : ValueFlags()) {
    equals.push_back(absl::StrCat("--", name, "=", value));
    separate.insert(separate.end(), {"--" + name, value});
  }
  bare = equals;
  for (const char* name : kSwitches) {
    equals.push_back(std::string("--") + name + "=true");
    separate.insert(separate.end(), {std::string("--") + name, "true"});
    bare.push_back(std::string("--") + name);
  }
  const std::string batching = Write("b", "max_batch_size { value: 5 }");
  const std::string list = Write("m", "model_config_list { config { name: 'x' base_path: '/x' } }");
  for (std::vector<std::string>* args : {&equals, &separate, &bare}) {
    args->insert(args->end(),
                 {"--batching_parameters_file=" + batching, "--model_config_file=" + list});
    const Parsed p = Parse(*args);
    ASSERT_TRUE(p.command) << p.err;
    const ServerConfig& c = p.command->config;
    EXPECT_EQ(c.server.port, 8500);
    EXPECT_EQ(c.server.grpc_socket_path, "/run/s");
    EXPECT_EQ(c.server.grpc_channel_arguments, "a=1");
    EXPECT_EQ(c.reply, ReplyFormat::kContent);
    EXPECT_TRUE(c.server.enable_signature_method_name_check);
    EXPECT_EQ(c.lifecycle.model_config_file_poll_wait_seconds, 2);
    EXPECT_EQ(c.lifecycle.num_load_threads, 2);
    EXPECT_EQ(c.lifecycle.max_num_load_retries, 3);
    EXPECT_EQ(c.lifecycle.load_retry_interval_micros, 0);
    EXPECT_EQ(c.lifecycle.file_system_poll_wait_seconds, 4);
    EXPECT_EQ(c.lifecycle.num_request_iterations_for_warmup, 2);
    EXPECT_TRUE(c.lifecycle.enable_per_model_batching_parameters);
    EXPECT_TRUE(c.lifecycle.allow_version_labels_for_unavailable_models);
    ASSERT_EQ(c.models.size(), 1u);
    EXPECT_EQ(c.models[0].name, "x") << "the list wins over --model_name, as in TensorFlow Serving";
    EXPECT_EQ(c.models[0].batching.max_batch_size, 5);
    EXPECT_EQ(c.models[0].intra_op_threads, 2);
    EXPECT_EQ(c.models[0].workers, 3);
    EXPECT_EQ(c.models[0].saved_model_tags, "serve");
    EXPECT_THAT(c.server.cors_origins, testing::ElementsAre("*"));
    EXPECT_EQ(c.server.metrics_path, "/monitoring/prometheus/metrics");
    EXPECT_THAT(c.notes, Contains(StartsWith("--model_base_path has no effect here")));
  }
}

// TensorFlow Serving runs with these.
TEST_F(TfsFlagsTest, NumbersBeyondWhatIsPossibleMeanTheNearest) {
  const auto lifecycle = [](const std::vector<std::string>& flags) {
    std::vector<std::string> args = {"--model_base_path=/a"};
    args.insert(args.end(), flags.begin(), flags.end());
    const Parsed p = Parse(args);
    EXPECT_TRUE(p.command) << p.err;
    return p.command ? p.command->config : ServerConfig();
  };
  const ServerConfig low =
      lifecycle({"--file_system_poll_wait_seconds=-1", "--model_config_file_poll_wait_seconds=-1",
                 "--num_load_threads=-1", "--max_num_load_retries=-1",
                 "--tensorflow_intra_op_parallelism=-1", "--tensorflow_inter_op_parallelism=-1",
                 "--load_retry_interval_micros=-1", "--num_request_iterations_for_warmup=-1"});
  EXPECT_EQ(low.lifecycle.file_system_poll_wait_seconds, 0);
  EXPECT_EQ(low.lifecycle.model_config_file_poll_wait_seconds, 0);
  EXPECT_EQ(low.lifecycle.num_load_threads, 0);
  EXPECT_EQ(low.lifecycle.max_num_load_retries, 0);
  EXPECT_EQ(low.lifecycle.load_retry_interval_micros, 0);
  EXPECT_EQ(low.lifecycle.num_request_iterations_for_warmup, 1);
  EXPECT_EQ(low.models[0].workers, 0);
  EXPECT_EQ(low.models[0].intra_op_threads, 1);
  EXPECT_THAT(low.notes, Contains("--file_system_poll_wait_seconds=-1 means 0 here"));
  const ServerConfig high =
      lifecycle({"--file_system_poll_wait_seconds=2147483647", "--num_load_threads=5000",
                 "--max_num_load_retries=2147483647", "--tensorflow_session_parallelism=1000",
                 "--load_retry_interval_micros=9223372036854775807",
                 "--num_request_iterations_for_warmup=2147483647"});
  EXPECT_EQ(high.lifecycle.file_system_poll_wait_seconds, 86'400);
  EXPECT_EQ(high.lifecycle.num_load_threads, 1024);
  EXPECT_EQ(high.lifecycle.max_num_load_retries, 1'000'000);
  EXPECT_EQ(high.lifecycle.num_request_iterations_for_warmup, 10'000);
  EXPECT_EQ(high.models[0].workers, 256);
  EXPECT_THAT(high.notes, testing::SizeIs(6));
}

TEST_F(TfsFlagsTest, EncryptionThatIsAskedForIsNotLeftOutSilently) {
  const Parsed alts = Parse({"--model_base_path=/a", "--use_alts_credentials"});
  EXPECT_EQ(alts.exit_code, 1);
  EXPECT_THAT(alts.err, HasSubstr("--use_alts_credentials: floed does not speak ALTS"));
  const Parsed ssl = Parse({"--model_base_path=/a", "--ssl_config_file=/ssl"});
  ASSERT_TRUE(ssl.command) << ssl.err;
  EXPECT_EQ(ssl.command->config.server.tls.ssl_config_file, "/ssl");
  EXPECT_TRUE(ssl.command->config.server.tls.is_on());
  EXPECT_TRUE(Parse({"--model_base_path=/a", "--use_alts_credentials=false"}).command);
}

TEST_F(TfsFlagsTest, MetricsAreWhereTheFileSays) {
  const auto path = [this](const std::string& text) {
    const Parsed p =
        Parse({"--model_base_path=/a", "--monitoring_config_file=" + Write("p", text)});
    return p.command ? p.command->config.server.metrics_path : p.err;
  };
  EXPECT_EQ(path("prometheus_config { enable: true path: '/mine' }"), "/mine");
  EXPECT_EQ(path("prometheus_config { enable: false }"), "");
  EXPECT_THAT(path("prometheus_config { on: true }"), HasSubstr(":1"));
  EXPECT_EQ(Parse({"--model_base_path=/a", "--monitoring_config_file=/nowhere"}).exit_code, 1);
}

// The notes of a command line of flags without effect; a mistake's text when it is wrong.
std::vector<std::string> NotesOf(std::vector<std::string> args) {
  std::vector<std::string> notes;
  CLI::App app;
  AddFlagsWithoutEffect(app, &notes);
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(args));
  } catch (const CLI::ParseError& e) {
    return {e.what()};
  }
  return notes;
}

// Values of each flag without effect by what its help calls them.
std::map<std::string, std::string> FlagsWithValues() {
  std::vector<std::string> notes;
  CLI::App app;
  AddFlagsWithoutEffect(app, &notes);
  const std::map<std::string, std::string> values = {
      {"BOOL", "false"}, {"INT", "-3"}, {"NUMBER", "0.25"}, {"TEXT", "a b"}};
  std::map<std::string, std::string> flags;
  for (const CLI::Option* option : app.get_options())
    if (option->get_name() != "--help")
      flags[option->get_name()] = values.at(option->get_type_name());
  return flags;
}

TEST(FlagsWithoutEffect, EachIsTakenInEverySpellingAndSaysWhy) {
  EXPECT_GT(FlagsWithValues().size(), 20u);
  for (const auto& [name, value] : FlagsWithValues()) {
    const std::string note = absl::StrCat(name, "=", value, " has no effect here: ");
    EXPECT_THAT(NotesOf({absl::StrCat(name, "=", value)}), ElementsAre(StartsWith(note)));
    EXPECT_THAT(NotesOf({name, value}), ElementsAre(StartsWith(note)));
    if (value == "false")
      EXPECT_THAT(NotesOf({name}), ElementsAre(StartsWith(name + "=true has no effect here: ")));
    else
      EXPECT_THAT(NotesOf({name}), ElementsAre(HasSubstr(name))) << "a value is missing";
  }
}

TEST(FlagsWithoutEffect, ValuesOfAnotherKindAreMistakes) {
  EXPECT_THAT(NotesOf({"--rest_api_num_threads=1.5"}),
              ElementsAre(HasSubstr("--rest_api_num_threads: expected a whole number, got '1.5'")));
  EXPECT_THAT(NotesOf({"--per_process_gpu_memory_fraction=half"}),
              ElementsAre(HasSubstr("expected a number, got 'half'")));
  EXPECT_THAT(NotesOf({"--enable_profiler=2"}),
              ElementsAre(HasSubstr("--enable_profiler: expected true or false, got '2'")));
}

TEST(AddFlag, ABareSwitchMeansTrueAndTheNextFlagStaysAFlag) {
  struct Case {
    std::vector<std::string> args;  // from the back
    std::string seen;
  };
  for (const Case& c : {Case{{"--f"}, "1-"}, Case{{"--f=true"}, "1-"}, Case{{"--f=0"}, "0-"},
                        Case{{"no", "--f"}, "0-"}, Case{{"--g", "--f"}, "11"},
                        Case{{"--g=false", "--f"}, "10"}, Case{{}, "--"}}) {
    std::string seen = "--";
    CLI::App app;
    const auto set = [&seen](size_t at) {
      return [&seen, at](const std::string& value) { seen[at] = value == "true" ? '1' : '0'; };
    };
    AddFlag(app, "--f", FlagKind::kSwitch, set(0), "");
    AddFlag(app, "--g", FlagKind::kSwitch, set(1), "");
    app.parse(std::vector<std::string>(c.args));
    EXPECT_EQ(seen, c.seen) << testing::PrintToString(c.args);
  }
}

}  // namespace
}  // namespace floe::server
