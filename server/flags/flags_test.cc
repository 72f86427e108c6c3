#include "server/flags/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Parsed {
  std::optional<Command> command;
  int exit_code = -1;
  std::string out, err;
};

Parsed Parse(std::vector<std::string> args) {
  std::vector<const char*> argv = {"floed"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  std::ostringstream out, err;
  Parsed parsed;
  parsed.command =
      ParseCommandLine(static_cast<int>(argv.size()), argv.data(), out, err, &parsed.exit_code);
  parsed.out = out.str();
  parsed.err = err.str();
  return parsed;
}

class FlagsTest : public testing::Test {
 protected:
  FlagsTest() {
    directory_ = testing::TempDir() + "floe_flags";
    std::filesystem::create_directories(directory_ + "/model");
    file_ = directory_ + "/f.yaml";
    std::ofstream(file_) << "server: {port: 1234, enable_reflection: true}\n"
                            "models: [{name: a, base_path: model}]\n";
  }
  ~FlagsTest() override { std::filesystem::remove_all(directory_); }
  std::string directory_, file_;
};

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

TEST_F(FlagsTest, FlagsWinOverTheFile) {
  const Parsed plain = Parse({"--config", file_});
  ASSERT_TRUE(plain.command) << plain.err;
  EXPECT_EQ(plain.command->config.server.port, 1234);
  EXPECT_TRUE(plain.command->config.server.enable_reflection);
  EXPECT_EQ(plain.command->config.models[0].name, "a");
  const Parsed p = Parse(
      {"--config=" + file_, "--port=5", "--enable_reflection=false", "--bind_address=10.0.0.1",
       "--insecure_public", "--grpc_socket_path=/run/s", "--cpu_gemm=openblas",
       "--grpc_max_message_bytes=4096", "--enable_serialization_as_tensor_content",
       "--grpc_channel_arguments=a=1,b=2", "--log_level=debug", "--log_format=json"});
  ASSERT_TRUE(p.command) << p.err;
  const ServerConfig& c = p.command->config;
  EXPECT_EQ(c.server.port, 5);
  EXPECT_FALSE(c.server.enable_reflection);
  EXPECT_EQ(c.server.bind_address, "10.0.0.1");
  EXPECT_TRUE(c.server.insecure_public);
  EXPECT_EQ(c.server.grpc_socket_path, "/run/s");
  EXPECT_EQ(c.cpu.gemm, "openblas");
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
  for (const char* flag : {"--config", "--check-config", "--port", "--model_name",
                           "--model_base_path", "--bind_address", "--grpc_socket_path",
                           "--cpu_gemm", "--grpc_max_message_bytes", "--enable_reflection",
                           "--enable_serialization_as_tensor_content", "--grpc_channel_arguments",
                           "--log_level", "--log_format", "--insecure_public", "--version"})
    EXPECT_THAT(help.out, HasSubstr(flag));
  const Parsed version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "floed 0.1.0\n");
}

TEST_F(FlagsTest, MistakesAreSaidOnStderr) {
  const auto fails = [](std::vector<std::string> args, int code, const std::string& words) {
    const Parsed p = Parse(std::move(args));
    EXPECT_FALSE(p.command);
    EXPECT_EQ(p.exit_code, code);
    EXPECT_THAT(p.err, HasSubstr(words));
    EXPECT_EQ(p.out, "");
  };
  fails({"--no-such-flag"}, 2, "no-such-flag");
  fails({"--port=high"}, 2, "port");
  fails({"--port=70000"}, 2, "port");
  fails({"--cpu_gemm=atlas"}, 2, "atlas");
  fails({}, 1, "nothing to serve");
  fails({"--model_name=a"}, 1, "'a' has no path");
  fails({"--config=/nonexistent.yaml"}, 1, "/nonexistent.yaml");
  fails({"--config=" + file_, "--bind_address=0.0.0.0"}, 1, "insecure_public");
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
