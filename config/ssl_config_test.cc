#include "config/ssl_config.h"

#include "config/mistakes_for_test.h"

namespace floe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(SslConfigFile, EveryFieldIsRead) {
  const auto read = ParseSslConfig(
      "server_key: 'KEY\\n' server_cert: 'CERT\\n'\ncustom_ca: 'CA' client_verify: true", "s");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->key, "KEY\n");
  EXPECT_EQ(read->certificate, "CERT\n");
  EXPECT_EQ(read->client_ca, "CA");
  EXPECT_TRUE(read->client_verify);
}

TEST(SslConfigFile, MistakesNameFileAndFieldAndNoValue) {
  EXPECT_THAT(
      MistakesOf(ParseSslConfig("", "s").status()),
      ElementsAre(StartsWith("s: expected server_key"), StartsWith("s: expected server_cert")));
  EXPECT_THAT(MistakesOf(ParseSslConfig("server_kex: 'a'", "s").status()),
              ElementsAre(HasSubstr("nearest: 'server_key'")));
  EXPECT_THAT(ParseSslConfig("server_key: 'SECRET' server_key: 'SECRET'", "s").status().ToString(),
              Not(HasSubstr("SECRET")));
}

// Text of a key that stands where text format expects something else.
TEST(SslConfigFile, NoMistakeShowsAKey) {
  const std::string key = "MIGHAgEAMBMGByqGSM49AgEGCCqG\nSM49AwEHBG0wawIBAQQg\n";
  for (const std::string& text :
       {"server_key: \"-----BEGIN PRIVATE KEY-----\n" + key + "\"\nserver_cert: \"a\"",
        "server_key: " + key, key, "server_key: <<END\n" + key, "server_key { " + key + " }",
        "[" + key + "]: 1", "server_cert: 'a' server_key: 'b' " + key}) {
    const std::string message(ParseSslConfig(text, "s").status().message());
    EXPECT_THAT(message, StartsWith("s:"));
    EXPECT_THAT(message, Not(HasSubstr("MIGH"))) << text;
    EXPECT_THAT(message, Not(HasSubstr("SM49"))) << text;
  }
  EXPECT_THAT(MistakesOf(ParseSslConfig("server_key: \"a\nb\"", "s").status()),
              testing::Contains(HasSubstr("cannot cross line boundaries")));
}

}  // namespace
}  // namespace floe
