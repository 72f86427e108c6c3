#include "server/flags/flags.h"

#include <cstdlib>
#include <filesystem>

#include "server/flags/flags_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(FlagsTest, SwitchesCanBeFalseAndTheLastFlagWins) {
  const Parsed p =
      Parse({"--model_name=a", "--model_base_path=/a", "--enable_model_warmup=false", "--port=1",
             "--port", "2", "--prefer_tflite_model=false", "--enable_reflection",
             "--enable_reflection=false", "--enable_batching", "false"});
  ASSERT_TRUE(p.command) << p.err;
  EXPECT_FALSE(p.command->config.lifecycle.enable_model_warmup);
  EXPECT_EQ(p.command->config.server.port, 2);
  EXPECT_FALSE(p.command->config.server.enable_reflection);
  EXPECT_THAT(p.command->config.notes,
              ElementsAre(StartsWith("--prefer_tflite_model=false has no effect"),
                          StartsWith("--enable_batching=false has no effect")));
  EXPECT_THAT(Parse({"--model_base_path=/a", "--enable_batching"}).command->config.notes,
              IsEmpty());
}

TEST_F(FlagsTest, FloesOwnLifecycleFlags) {
  const Parsed p =
      Parse({"--config", file_, "--memory_limit=1GiB", "--batching_full_status=resource_exhausted",
             "--exit_on_error", "--strict_readiness=false", "--warmup_optional"});
  ASSERT_TRUE(p.command) << p.err;
  const ServerConfig& c = p.command->config;
  EXPECT_EQ(c.lifecycle.memory_limit, (MemoryLimit{0, int64_t{1} << 30}));
  EXPECT_EQ(c.models[0].batching_full_status, FullStatus::kResourceExhausted);
  EXPECT_TRUE(c.lifecycle.exit_on_error);
  EXPECT_FALSE(c.lifecycle.strict_readiness);
  EXPECT_TRUE(c.lifecycle.warmup_optional);
}

TEST_F(FlagsTest, BatchingParametersNeedTheSwitch) {
  const std::string file = Write("b", "num_batch_threads { value: 4 } max_batch_size { value: 9 }");
  const Parsed without = Parse({"--model_base_path=/a", "--batching_parameters_file=" + file});
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.err, HasSubstr("without --enable_batching"));
  const Parsed p =
      Parse({"--model_base_path=/a", "--batching_parameters_file=" + file, "--enable_batching"});
  ASSERT_TRUE(p.command) << p.err;
  EXPECT_EQ(p.command->config.models[0].workers, 4);
  EXPECT_EQ(p.command->config.models[0].batching.max_batch_size, 9);
}

TEST_F(FlagsTest, ParallelismMeansThreads) {
  const auto model = [](const std::vector<std::string>& flags) {
    std::vector<std::string> args = {"--model_base_path=/a"};
    args.insert(args.end(), flags.begin(), flags.end());
    const Parsed p = Parse(args);
    EXPECT_TRUE(p.command) << p.err;
    return p.command->config.models[0];
  };
  EXPECT_EQ(model({"--tensorflow_session_parallelism=4"}).workers, 4);
  EXPECT_EQ(model({"--tensorflow_session_parallelism=4"}).intra_op_threads, 1);
  EXPECT_EQ(model({"--tensorflow_session_parallelism=4", "--tensorflow_intra_op_parallelism=2"}),
            model({"--tensorflow_intra_op_parallelism=2"}));
  EXPECT_EQ(model({"--tensorflow_inter_op_parallelism=0"}), model({}));
  EXPECT_EQ(Parse({"--model_base_path=/a", "--tensorflow_session_parallelism=4",
                   "--tensorflow_intra_op_parallelism=2", "--tensorflow_inter_op_parallelism=2"})
                .exit_code,
            1);
}

TEST_F(FlagsTest, TheEnvironmentNamesAModelWhenNothingElseDoes) {
  setenv("MODEL_NAME", "digits", 1);
  EXPECT_EQ(Parse({}).command->config.models[0].base_path, "/models/digits");
  setenv("MODEL_BASE_PATH", "/srv", 1);
  EXPECT_EQ(Parse({}).command->config.models[0].base_path, "/srv/digits");
  EXPECT_EQ(Parse({}).command->config.models[0].name, "digits");
  EXPECT_EQ(Parse({"--config=" + file_}).command->config.models[0].name, "a");
  EXPECT_EQ(Parse({"--model_base_path=/x"}).command->config.models[0].base_path, "/x");
  unsetenv("MODEL_NAME");
  EXPECT_EQ(Parse({}).command->config.models[0].base_path, "/srv/model");
  unsetenv("MODEL_BASE_PATH");
}

TEST_F(FlagsTest, TheEnvironmentOpensAServerToOthers) {
  const auto listen = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> args = {"--config=" + file_};
    args.insert(args.end(), flags.begin(), flags.end());
    const Parsed p = Parse(args);
    return p.command ? p.command->config.server.bind_address : p.err;
  };
  setenv("FLOE_INSECURE_PUBLIC", "true", 1);
  EXPECT_EQ(listen({}), "0.0.0.0");
  EXPECT_EQ(listen({"--bind_address=127.0.0.2"}), "127.0.0.2");
  EXPECT_EQ(listen({"--bind_address=10.0.0.1"}), "10.0.0.1");
  setenv("FLOE_INSECURE_PUBLIC", "false", 1);
  EXPECT_EQ(listen({}), "127.0.0.1");
  setenv("FLOE_INSECURE_PUBLIC", "yes", 1);
  EXPECT_THAT(listen({}), HasSubstr("FLOE_INSECURE_PUBLIC is 'yes'; set it to true or false"));
  unsetenv("FLOE_INSECURE_PUBLIC");
  EXPECT_EQ(listen({}), "127.0.0.1");
}

TEST_F(FlagsTest, ReloadReadsTheFilesAgain) {
  const std::string list = Write("m", "model_config_list { config { name: 'x' base_path: '/x' } }");
  const Parsed p = Parse({"--config=" + file_, "--model_config_file=" + list, "--port=7"});
  ASSERT_TRUE(p.command) << p.err;
  const ServerConfig& first = p.command->config;
  EXPECT_THAT(first.source.files, ElementsAre(file_, list));
  auto again = ReloadConfig(first);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->models, first.models);
  EXPECT_EQ(again->source.content_hash, first.source.content_hash);
  Write("m", "model_config_list { config { name: 'y' base_path: '/y' } }");
  again = ReloadConfig(first);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->models[0].name, "y");
  EXPECT_EQ(again->server.port, 7);
  EXPECT_NE(again->source.content_hash, first.source.content_hash);
  // As TensorFlow Serving: a file that says nothing unloads nothing, but a server may start with
  // it.
  Write("m", "# to be written\n");
  EXPECT_THAT(ReloadConfig(*again).status().ToString(), HasSubstr("there is no model_config_list"));
  const Parsed empty = Parse({"--model_config_file=" + list});
  ASSERT_TRUE(empty.command) << empty.err;
  EXPECT_THAT(empty.command->config.models, IsEmpty());
  EXPECT_THAT(empty.command->config.notes, ElementsAre(HasSubstr("names no models to serve")));
  Write("m", "model_config_list { config {");
  EXPECT_THAT(ReloadConfig(*again).status().ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(list + ":1: ")));
}

TEST_F(FlagsTest, AYamlFileCutShortUnloadsNothing) {
  const ServerConfig first = Parse({"--config", file_}).command->config;
  for (const char* text : {"", "server: {port: 7}\n", "models:\n", "models: ~\n"}) {
    Write("f.yaml", text);
    EXPECT_THAT(
        ReloadConfig(first).status().ToString(),
        AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("f.yaml: there is no list 'models'")))
        << text;
    EXPECT_TRUE(Parse({"--config", file_}).command) << "a server may start with it";
  }
  Write("f.yaml", "models: []\n");
  const auto none = ReloadConfig(first);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->models, IsEmpty());
  // Others say the models.
  Write("f.yaml", "server: {port: 7}\n");
  const Parsed single = Parse({"--config", file_, "--model_name=m", "--model_base_path=/m"});
  EXPECT_EQ(ReloadConfig(single.command->config)->models.size(), 1u);
  const std::string list = Write("m", "model_config_list {}");
  const Parsed listed = Parse({"--config", file_, "--model_config_file=" + list});
  EXPECT_TRUE(ReloadConfig(listed.command->config).ok());
}

TEST_F(FlagsTest, NumbersAreDecimal) {
  const Parsed p = Parse({"--config", file_, "--port=08500", "--num_load_threads=010",
                          "--file_system_poll_wait_seconds", "-01"});
  ASSERT_TRUE(p.command) << p.err;
  EXPECT_EQ(p.command->config.server.port, 8500);
  EXPECT_EQ(p.command->config.lifecycle.num_load_threads, 10);
  EXPECT_EQ(p.command->config.lifecycle.file_system_poll_wait_seconds, 0);
  EXPECT_THAT(Parse({"--config", file_, "--port=65536"}).err,
              HasSubstr("--port: expected a whole number from 0 to 65535, got '65536'"));
  for (const char* wrong : {"0x10", "1.5", "ten"}) {
    const Parsed refused = Parse({"--config", file_, "--num_load_threads", wrong});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--num_load_threads: expected a whole number, got"));
  }
}

TEST_F(FlagsTest, TfServingsSingleModelFlags) {
  // Both spellings of a value.
  const Parsed p =
      Parse({"--model_name=digits", "--model_base_path", "/srv/digits", "--port", "9000"});
  ASSERT_TRUE(p.command) << p.err;
  ASSERT_EQ(p.command->config.models.size(), 1u);
  EXPECT_EQ(p.command->config.models[0].name, "digits");
  EXPECT_EQ(p.command->config.models[0].base_path, "/srv/digits");
  EXPECT_EQ(p.command->config.server.port, 9000);
  EXPECT_FALSE(p.command->config.server.enable_reflection);
}

TEST_F(FlagsTest, AFlagWithAnEmptyValueDoesNotTakeTheNextArgument) {
  const Parsed p =
      Parse({"--grpc_socket_path=", "--model_config_file=", "--ssl_config_file=", "--model_name=a",
             "--model_base_path=/a", "--monitoring_config_file="});
  ASSERT_TRUE(p.command) << p.err;
  EXPECT_EQ(p.command->config.models.at(0).base_path, "/a");
  EXPECT_EQ(p.command->config.server.grpc_socket_path, "");
  EXPECT_EQ(Parse({"--port=", "--model_base_path=/a"}).exit_code, 2);
}

TEST_F(FlagsTest, RelativePathsAreMadeAbsoluteSoThatOthersCanNameThem) {
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(Parse({"--model_base_path=m"}).command->config.models[0].base_path, here + "/m");
}

TEST_F(FlagsTest, FlagsWinOverTheFile) {
  const Parsed plain = Parse({"--config", file_});
  ASSERT_TRUE(plain.command) << plain.err;
  EXPECT_EQ(plain.command->config.server.port, 1234);
  EXPECT_TRUE(plain.command->config.server.enable_reflection);
  EXPECT_EQ(plain.command->config.models[0].name, "a");
  const Parsed p = Parse({"--config=" + file_,
                          "--port=5",
                          "--enable_reflection=false",
                          "--bind_address=10.0.0.1",
                          "--insecure_public",
                          "--grpc_socket_path=/run/s",
                          "--cpu_gemm=openblas",
                          "--backend=cuda",
                          "--gpu_memory_limit=50%",
                          "--on_device_error=cpu",
                          "--gpu_libraries=cudnn",
                          "--grpc_max_message_bytes=4096",
                          "--enable_serialization_as_tensor_content",
                          "--enable_health_watch=false",
                          "--enable_config_rpcs=false",
                          "--grpc_channel_arguments=a=1,b=2",
                          "--log_level=debug",
                          "--log_format=json",
                          "--admin_socket_path=/run/a",
                          "--auth_tokens_file=/t"});
  ASSERT_TRUE(p.command) << p.err;
  const ServerConfig& c = p.command->config;
  EXPECT_EQ(c.server.port, 5);
  EXPECT_FALSE(c.server.enable_reflection);
  EXPECT_FALSE(c.server.enable_health_watch);
  EXPECT_EQ(c.server.enable_config_rpcs, ConfigRpcs::kNobody);
  EXPECT_EQ(c.server.bind_address, "10.0.0.1");
  EXPECT_TRUE(c.server.insecure_public);
  EXPECT_EQ(c.server.grpc_socket_path, "/run/s");
  EXPECT_EQ(c.server.admin_socket_path, "/run/a");
  EXPECT_EQ(c.server.auth.tokens_file, "/t");
  EXPECT_EQ(c.cpu.gemm, "openblas");
  EXPECT_EQ(c.backend, Backend::kCuda);
  EXPECT_EQ(c.gpu_memory_limit.percent, 50);
  EXPECT_EQ(c.on_device_error, OnDeviceError::kCpu);
  EXPECT_EQ(c.gpu_libraries, "cudnn");
  EXPECT_EQ(c.server.max_message_bytes, 4096);
  EXPECT_EQ(c.reply, ReplyFormat::kContent);
  EXPECT_EQ(c.server.grpc_channel_arguments, "a=1,b=2");
  EXPECT_EQ(c.log.level, "debug");
  EXPECT_EQ(c.log.format, LogFormat::kJson);
  EXPECT_EQ(c.models[0].name, "a");
}

TEST_F(FlagsTest, HelpAndVersionEndWell) {
  const Parsed help = Parse({"--help"});
  EXPECT_FALSE(help.command);
  EXPECT_EQ(help.exit_code, 0);
  for (const char* flag : {"--config",
                           "--check-config",
                           "--port",
                           "--model_name",
                           "--model_base_path",
                           "--bind_address",
                           "--grpc_socket_path",
                           "--backend",
                           "--gpu_memory_limit",
                           "--on_device_error",
                           "--gpu_libraries",
                           "--cpu_gemm",
                           "--grpc_max_message_bytes",
                           "--enable_reflection",
                           "--enable_health_watch",
                           "--enable_config_rpcs",
                           "--enable_serialization_as_tensor_content",
                           "--grpc_channel_arguments",
                           "--log_level",
                           "--log_format",
                           "--insecure_public",
                           "--version",
                           "--model_config_file",
                           "--batching_parameters_file",
                           "--memory_limit"})
    EXPECT_THAT(help.out, HasSubstr(flag));
  const Parsed version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("floed 0.1.0\n"));
  EXPECT_THAT(version.out, HasSubstr("CUDA")) << "without a library it says so";
}

TEST_F(FlagsTest, MistakesAreSaidOnStderr) {
  const auto fails = [](const std::vector<std::string>& args, int code, const std::string& words) {
    const Parsed p = Parse(args);
    EXPECT_FALSE(p.command);
    EXPECT_EQ(p.exit_code, code);
    EXPECT_THAT(p.err, HasSubstr(words));
    EXPECT_EQ(p.out, "");
  };
  fails({"--no-such-flag"}, 2, "no-such-flag");
  fails({"--prot=5"}, 2, "nearest: '--port'");
  fails({"--version_transition=resource"}, 2, "'--version_transition': was removed: new versions");
  fails({"--host=h"}, 2, "floed has no flag '--host': the address is server.bind_address");
  fails({"-p", "8500"}, 2, "floed has no flag '-p': the port is server.port");
  fails({"--tls_cert"}, 2, "floed has no flag '--tls_cert'");
  fails({"--rest_port=1"}, 2, "server.http_port");
  fails({"serve"}, 2, "floed takes no argument 'serve'");
  fails({"--log_level=loud"}, 2, "expected one of 'trace'");
  fails({"--grpc_max_message_bytes=1"}, 2, "from 1024");
  fails({"--model_base_path=s3://b/m"}, 1, "--model_base_path: 's3://b/m' is a URL");
  fails({"--model_base_path=~/m"}, 1, "only shells know");
  fails({"--enable_reflection=maybe"}, 2, "maybe");
  fails({"--enable_profiler=maybe"}, 2, "maybe");
  fails({"--rest_api_port=x"}, 2, "rest_api_port");
  fails({"--memory_limit=x"}, 2, "bytes");
  fails({"--port=high"}, 2, "port");
  fails({"--port=70000"}, 2, "port");
  fails({"--cpu_gemm=atlas"}, 2, "atlas");
  fails({"--backend=gpu"}, 2, "'auto', 'cpu', 'cuda'");
  fails({}, 1, "nothing to serve");
  fails({"--model_name=a"}, 1, "'a' has no path");
  fails({"--config=/nonexistent.yaml"}, 1, "/nonexistent.yaml");
  fails({"--config=" + file_, "--bind_address=0.0.0.0"}, 1, "--bind_address: '0.0.0.0' is reach");
}

TEST_F(FlagsTest, SizesLevelsAndUrlsAsInTheFile) {
  const Parsed p = Parse({"--model_base_path=file:///srv/m", "--grpc_max_message_bytes=10MB",
                          "--memory_limit=4GB", "--log_level=warning"});
  ASSERT_TRUE(p.command) << p.err;
  EXPECT_EQ(p.command->config.models.at(0).base_path, "/srv/m");
  EXPECT_EQ(p.command->config.server.max_message_bytes, 10'000'000);
  EXPECT_EQ(p.command->config.lifecycle.memory_limit.bytes, 4'000'000'000);
  EXPECT_EQ(p.command->config.log.level, "warn");
}

TEST_F(FlagsTest, CheckConfigLooksAtPathsToo) {
  EXPECT_TRUE(Parse({"--config=" + file_, "--check-config"}).command);
  std::filesystem::remove_all(directory_ + "/model");
  EXPECT_TRUE(Parse({"--config=" + file_}).command)
      << "a missing model does not keep the others from being served";
  const Parsed p = Parse({"--config=" + file_, "--check-config"});
  EXPECT_EQ(p.exit_code, 1);
  EXPECT_THAT(p.err, AllOf(HasSubstr("f.yaml:2"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace floe::server
