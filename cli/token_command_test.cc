#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_split.h"
#include "cli/floectl_for_test.h"
#include "cli/scripted_server_test_util.h"
#include "config/token_file.h"
#include "floe/admin.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kserve/grpc_service.pb.h"

namespace floe::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class TokenCommand : public testing::Test {
 protected:
  TokenCommand() { std::filesystem::remove(path_); }
  ~TokenCommand() override { std::filesystem::remove(path_); }

  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string path_ = testing::TempDir() + "floectl_tokens_" + std::to_string(getpid());
};

TEST_F(TokenCommand, AddsLinesThatItsTokensOpen) {
  const Outcome one = Floectl({"token", "new", "--name", "ci", "--role", "infer,read", "--role",
                               "admin", "--models", "a*,b", "--expires", "90d", "--file", path_});
  ASSERT_EQ(one.code, 0) << one.err;
  std::ofstream(path_, std::ios::app) << "# a line without an end";
  const Outcome two = Floectl({"token", "new", "--file", path_});
  ASSERT_EQ(two.code, 0) << two.err;
  const auto lines = ParseTokens(Text(), "f");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2u);
  const TokenLine& first = lines->front();
  EXPECT_TRUE(IsTokenOf(one.out.substr(0, one.out.size() - 1), first));
  EXPECT_TRUE(IsTokenOf(two.out.substr(0, two.out.size() - 1), lines->back()));
  EXPECT_EQ(first.name, "ci");
  EXPECT_THAT(first.roles.Names(), ElementsAre("infer", "read", "admin"));
  EXPECT_THAT(first.models, ElementsAre("a*", "b"));
  EXPECT_NEAR(static_cast<double>(first.expires - std::time(nullptr)), 90 * 86400, 60);
  EXPECT_THAT(lines->back().roles.Names(), ElementsAre("infer"));
  EXPECT_EQ(lines->back().expires, 0);
  EXPECT_THAT(Text() + one.err, Not(HasSubstr(one.out.substr(14, 64))));
}

TEST_F(TokenCommand, WithoutAFilePrintsBoth) {
  const Outcome made = Floectl({"token", "new", "--name", "ci"});
  const std::vector<std::string> lines = absl::StrSplit(made.out, '\n');
  ASSERT_EQ(lines.size(), 3u);
  const auto read = ParseTokens(lines[1].substr(7), "f");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(IsTokenOf(lines[0].substr(7), read->at(0)));
}

TEST_F(TokenCommand, MistakesAreUsage) {
  for (const char* time : {"90", "d", "-1d", "0h", "1y", "99999999999d"})
    EXPECT_THAT(Floectl({"token", "new", "--expires", time}).err, HasSubstr("no time such as 90d"))
        << time;
  EXPECT_THAT(Floectl({"token", "new", "--role", "root"}).err, HasSubstr("'root' is none of"));
  EXPECT_THAT(Floectl({"token", "new", "--name", "a b"}).err, HasSubstr("letters, digits"));
  EXPECT_THAT(Floectl({"token", "new", "--models", "a b"}).err, HasSubstr("no model's name"));
  std::ofstream(path_) << "nonsense\n";
  EXPECT_THAT(Floectl({"token", "new", "--file", path_}).err, HasSubstr(":1: 'nonsense'"));
  EXPECT_THAT(Floectl({"token", "new", "--file", "/no/such/folder"}).err,
              HasSubstr("cannot write to '/no/such/folder'"));
}

// What the commands that change a server send.
class ModelsCommands : public testing::Test {
 protected:
  template <typename Response>
  void Answer(const std::string& method, const Response& response) {
    server_.handlers[method] = [this, response](const std::string& bytes, std::string* reply) {
      asked_ = bytes;
      *reply = response.SerializeAsString();
      return grpc::Status::OK;
    };
  }
  Outcome Call(std::vector<std::string> args) {
    args.insert(args.end(), {"--target", server_.address()});
    return Floectl(args);
  }
  ScriptedServer server_;
  std::string asked_;
};

TEST_F(ModelsCommands, NameTheModelAndSendTheToken) {
  Answer("/inference.GRPCInferenceService/RepositoryModelLoad",
         inference::RepositoryModelLoadResponse());
  Answer("/inference.GRPCInferenceService/RepositoryModelUnload",
         inference::RepositoryModelUnloadResponse());
  const std::string file = testing::TempDir() + "floectl_token_" + std::to_string(getpid());
  std::ofstream(file) << "\n floe_x \n";
  EXPECT_EQ(Call({"load", "m", "--token-file", file}).out, "m: loaded\n");
  inference::RepositoryModelLoadRequest load;
  ASSERT_TRUE(load.ParseFromString(asked_));
  EXPECT_EQ(load.model_name(), "m");
  EXPECT_THAT(server_.metadata, testing::Contains(Pair("authorization", "Bearer floe_x")));
  EXPECT_EQ(Call({"unload", "m"}).out, "m: unloaded\n");
  EXPECT_THAT(server_.metadata, Not(testing::Contains(testing::Key("authorization"))));
  std::ofstream(file) << "two words";
  EXPECT_THAT(Call({"unload", "m", "--token-file", file}).err, HasSubstr("holds no token"));
  std::filesystem::remove(file);
}

TEST_F(ModelsCommands, ReloadTellsTheGeneration) {
  floe::ReloadResponse response;
  response.set_generation(7);
  Answer("/floe.Admin/Reload", response);
  EXPECT_EQ(Call({"reload"}).out, "generation 7\n");
}

}  // namespace
}  // namespace floe::cli
