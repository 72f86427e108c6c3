// server.auth in floe.yaml.
#include "config/config.h"
#include "config/mistakes_for_test.h"

namespace floe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AuthConfig, PrincipalsAreNamedInOneWay) {
  const auto config = ParseConfig(
      "server: {tls: {client: required}, auth: {tokens_file: t, anonymous: [], principals: [{uid: "
      "7, roles: [admin, read]}, {certificate: \"DNS:a\", roles: [infer], models: [\"a*\", b]}]}}",
      "f.yaml", "/d");
  ASSERT_TRUE(config.ok()) << config.status();
  const AuthConfig& auth = config->server.auth;
  EXPECT_EQ(auth.tokens_file, "/d/t");
  EXPECT_THAT(auth.anonymous, ::testing::Optional(ElementsAre()));
  ASSERT_EQ(auth.principals.size(), 2u);
  EXPECT_EQ(auth.principals[0].uid, "7");
  EXPECT_THAT(auth.principals[0].roles.Names(), ElementsAre("read", "admin"));
  EXPECT_THAT(auth.principals[1].models, ElementsAre("a*", "b"));
  const auto again = ParseConfig(ConfigToYaml(*config), "f.yaml", "");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->server.auth, auth);
  const std::string wrong =
      "server:\n auth:\n  principals:\n  - {uid: 7, token: a, roles: [root]}\n  - {uid: \"\", "
      "models: a}\n  - x\n";
  EXPECT_THAT(
      MistakesOf(ParseConfig(wrong, "f.yaml", "").status()),
      ElementsAre(HasSubstr("roles[0]: expected one of 'infer'"),
                  HasSubstr("expected one of certificate, token and uid"),
                  HasSubstr("uid: expected a name"), HasSubstr("a list of models"),
                  HasSubstr("expected 'roles: [ROLE, ...]'"), HasSubstr("expected a mapping")));
}

TEST(AuthConfig, PrincipalsNeedWhatNamesThem) {
  const auto mistake = [](const std::string& server) {
    const auto config = ParseConfig(server, "f.yaml", "");
    return config.ok() ? ValidateConfig(*config).ToString() : config.status().ToString();
  };
  EXPECT_THAT(mistake("server: {auth: {principals: [{token: a, roles: []}]}}"),
              HasSubstr("there is no server.auth.tokens_file"));
  EXPECT_THAT(mistake("server: {auth: {principals: [{certificate: a, roles: []}]}}"),
              HasSubstr("set server.tls.client"));
  EXPECT_THAT(mistake("server: {auth: {principals: [{uid: a, roles: []}, {uid: a, roles: []}]}}"),
              HasSubstr("'a' is named twice"));
}

}  // namespace
}  // namespace floe
