#include "server/api/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::time_t kNow = 1'800'000'000;

// A file of tokens, and what is asked with them.
class AccessTest : public testing::Test {
 protected:
  ~AccessTest() override { unlink(config_.tokens_file.c_str()); }

  std::string Add(const std::string& name, std::initializer_list<Role> roles,
                  const std::vector<std::string>& models = {}, int64_t expires = 0) {
    TokenLine line;
    line.name = name;
    for (const Role role : roles) line.roles.Add(role);
    line.models = models;
    line.expires = expires;
    std::string token = MakeToken(&line).value();
    text_ += TokenLineText(line) + "\n";
    Write(text_);
    return "Bearer " + token;
  }
  void Write(const std::string& text) { std::ofstream(config_.tokens_file) << text; }
  void Make() {
    auto made = Access::Make(config_, [this] { return now_; });
    ASSERT_TRUE(made.ok()) << made.status();
    access_ = *made;
  }
  Caller With(const std::string& authorization, const ConnectionFacts& facts = {}) {
    return access_->OfCall(access_->OfConnection(facts), authorization);
  }

  AuthConfig config_{testing::TempDir() + "floe_tokens_" + std::to_string(getpid()), {}, {}};
  std::string text_;
  std::time_t now_ = kNow;
  std::shared_ptr<Access> access_;
};

TEST_F(AccessTest, WithoutConfigurationEverybodyHasEveryRole) {
  config_ = {};
  Make();
  for (const char* sent : {"", "Bearer x", "Basic y"})
    for (const Role role : {Role::kInfer, Role::kRead, Role::kAdmin, Role::kHealth})
      EXPECT_TRUE(With(sent).CheckRole(role).ok());
  EXPECT_TRUE(With("").CheckModel("any").ok());
}

TEST_F(AccessTest, ATokenGivesItsRolesAndTheAnonymousOnes) {
  const std::string token = Add("ci", {Role::kInfer});
  Make();
  const Caller caller = With(token);
  EXPECT_EQ(caller.name(), "token 'ci'");
  EXPECT_TRUE(caller.CheckRole(Role::kInfer).ok());
  EXPECT_TRUE(caller.CheckRole(Role::kHealth).ok());
  const absl::Status refused = caller.CheckRole(Role::kAdmin);
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(refused.ToString(), AllOf(HasSubstr("token 'ci' does not have the role admin"),
                                        HasSubstr("infer"), Not(HasSubstr(token.substr(7)))));
  EXPECT_TRUE(With(absl::StrCat("bEARER  ", token.substr(7))).CheckRole(Role::kInfer).ok());
}

TEST_F(AccessTest, WhoSaysNothingMayAskForHealthAlone) {
  Add("ci", {Role::kInfer});
  Make();
  EXPECT_TRUE(With("").CheckRole(Role::kHealth).ok());
  const absl::Status refused = With("").CheckRole(Role::kInfer);
  EXPECT_TRUE(absl::IsUnauthenticated(refused));
  EXPECT_THAT(refused.ToString(), AllOf(HasSubstr("role infer"), HasSubstr("Bearer TOKEN")));
  config_.anonymous.emplace();
  Make();
  EXPECT_TRUE(absl::IsUnauthenticated(With("").CheckRole(Role::kHealth)));
}

TEST_F(AccessTest, WrongTokensAreRefusedWhateverTheRole) {
  const std::string token = Add("ci", {Role::kInfer});
  config_.anonymous = {"infer", "health"};
  Make();
  std::string last_digit = token;
  last_digit.back() = last_digit.back() == '0' ? '1' : '0';
  for (const std::string& sent :
       {last_digit, token + "0", std::string("Bearer x"), std::string("Basic dTpw"),
        token.substr(7), std::string("Bearer "), std::string("Bearer"),
        absl::StrCat(token, ", ", token)}) {
    const absl::Status refused = With(sent).CheckRole(Role::kHealth);
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << sent;
    EXPECT_THAT(refused.ToString(), Not(HasSubstr(token.substr(20)))) << sent;
  }
  EXPECT_EQ(access_->counts().of(AccessRefusal::kToken), 8);
  EXPECT_TRUE(With("").CheckRole(Role::kInfer).ok());
}

TEST_F(AccessTest, TokensExpireWhileCallsAreOpen) {
  const std::string token = Add("ci", {Role::kInfer}, {}, kNow + 1);
  Make();
  const Caller caller = With(token);
  EXPECT_TRUE(caller.CheckRole(Role::kInfer).ok());
  EXPECT_EQ(access_->state().tokens, 1);
  ++now_;
  const absl::Status refused = caller.CheckRole(Role::kInfer);
  EXPECT_TRUE(absl::IsUnauthenticated(refused));
  EXPECT_THAT(refused.ToString(), HasSubstr("expired at 2027-01-15T08:00:01Z"));
  EXPECT_EQ(access_->state().tokens, 0);
  EXPECT_EQ(access_->counts().of(AccessRefusal::kExpired), 1);
}

TEST_F(AccessTest, ModelsAreThoseOfTheirGlobs) {
  const std::string token = Add("ci", {Role::kInfer}, {"mnist_*", "b"});
  Make();
  for (const char* model : {"mnist_", "mnist_conv", "b"})
    EXPECT_TRUE(With(token).CheckModel(model).ok()) << model;
  for (const char* model : {"mnist", "", "bb", "B"}) {
    const absl::Status refused = With(token).CheckModel(model);
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << model;
    EXPECT_THAT(refused.ToString(), HasSubstr("its models: mnist_*, b"));
  }
  EXPECT_EQ(access_->counts().of(AccessRefusal::kModel), 4);
}

TEST_F(AccessTest, CertificatesUsersAndTokensArePrincipals) {
  const std::string token = Add("ci", {Role::kAdmin});
  const auto grant = [](Role role) {
    Roles roles;
    roles.Add(role);
    return roles;
  };
  config_.principals = {{"web", "", "", grant(Role::kInfer), {"m"}},
                        {"DNS:a.b", "", "", grant(Role::kRead), {}},
                        {"", "ci", "", grant(Role::kRead), {}},
                        {"", "", std::to_string(getuid()), grant(Role::kAdmin), {}}};
  Make();
  const auto may = [&](const ConnectionFacts& facts, Role role, const std::string& sent = "") {
    return With(sent, facts).CheckRole(role).ok();
  };
  EXPECT_TRUE(may({"web"}, Role::kInfer));
  EXPECT_FALSE(may({"web"}, Role::kRead));
  EXPECT_FALSE(With("", {"web"}).Sees("n"));
  EXPECT_FALSE(may({"web2"}, Role::kInfer));
  EXPECT_FALSE(may({"", {"DNS:web"}}, Role::kInfer)) << "no common name";
  EXPECT_TRUE(may({"x", {"IP:::1", "DNS:a.b"}}, Role::kRead));
  EXPECT_FALSE(may({"DNS:a.b"}, Role::kRead)) << "a common name is no other kind of name";
  EXPECT_FALSE(may({"a.b"}, Role::kRead));
  EXPECT_TRUE(may({"", {}, getuid()}, Role::kAdmin));
  EXPECT_FALSE(may({"", {}, getuid() + 1}, Role::kAdmin));
  EXPECT_TRUE(may({"web"}, Role::kRead, token)) << "the token says more than the connection";
  EXPECT_FALSE(may({"web"}, Role::kInfer, token));
  EXPECT_FALSE(may({}, Role::kAdmin, token)) << "the configuration replaces the token's line";
}

TEST_F(AccessTest, TheServersUserAndRootHaveAllRolesAtTheListenerForOperators) {
  config_.tokens_file.clear();
  config_.anonymous.emplace();
  Make();
  for (const uid_t uid : {geteuid(), uid_t{0}}) {
    EXPECT_TRUE(With("", {"", {}, uid, true}).CheckRole(Role::kAdmin).ok());
    EXPECT_FALSE(With("", {"", {}, uid, false}).CheckRole(Role::kAdmin).ok());
  }
  EXPECT_FALSE(With("", {"", {}, 4'000'000, true}).CheckRole(Role::kAdmin).ok());
  config_.principals = {{"", "", "no such user", {}, {}}};
  EXPECT_THAT(Access::Make(config_).status().ToString(), HasSubstr("no user 'no such user'"));
}

TEST_F(AccessTest, NewTokensAreReadOnceTheyAreSettled) {
  const std::string first = Add("a", {Role::kInfer});
  Make();
  access_->Poll();
  const std::string second = Add("b", {Role::kInfer});
  access_->Poll();
  EXPECT_FALSE(With(second).CheckRole(Role::kInfer).ok()) << "seen once";
  access_->Poll();
  EXPECT_TRUE(With(second).CheckRole(Role::kInfer).ok());
  Write("");
  EXPECT_TRUE(access_->Reload().ok()) << "at once when asked";
  EXPECT_FALSE(With(first).CheckRole(Role::kInfer).ok());
}

TEST_F(AccessTest, ABadFileKeepsTheTokensFromBefore) {
  const std::string token = Add("a", {Role::kInfer});
  Make();
  Write("nonsense\n");
  access_->Poll();
  EXPECT_TRUE(access_->state().status.ok()) << "seen once";
  access_->Poll();
  EXPECT_THAT(access_->state().status.ToString(),
              AllOf(HasSubstr(":1: 'nonsense' is no field"), HasSubstr("stay in use")));
  EXPECT_TRUE(With(token).CheckRole(Role::kInfer).ok());
  Write(text_);
  access_->Poll();
  access_->Poll();
  EXPECT_TRUE(access_->state().status.ok());
  unlink(config_.tokens_file.c_str());
  EXPECT_TRUE(absl::IsNotFound(access_->Reload()));
  EXPECT_TRUE(With(token).CheckRole(Role::kInfer).ok());
  EXPECT_TRUE(absl::IsNotFound(Access::Make(config_).status())) << "at the start there must be one";
}

TEST(TakeAuthorization, SeveralAreNone) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"a", "1"}, {"authorization", "x"}, {"b", "2"}, {"authorization", "y"}};
  EXPECT_EQ(TakeAuthorization(&fields), "x, y");
  EXPECT_EQ(fields.size(), 2u);
  EXPECT_EQ(TakeAuthorization(&fields), "");
}

TEST_F(AccessTest, ABrowserHasItsTokensRolesButAdmin) {
  const std::string token =
      Add("ops", {Role::kInfer, Role::kRead, Role::kAdmin}, {"mnist_*"}).substr(7);
  Make();
  const auto cookie = access_->LogIn(token, "10.0.0.1:5");
  ASSERT_TRUE(cookie.ok()) << cookie.status();
  EXPECT_EQ(cookie->find(token.substr(16)), std::string::npos) << "it has nothing of the token";
  const Caller caller = access_->OfLogin(With(""), *cookie);
  EXPECT_EQ(caller.name(), "a browser with token 'ops'");
  for (const Role role : {Role::kInfer, Role::kRead, Role::kHealth})
    EXPECT_TRUE(caller.CheckRole(role).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(caller.CheckRole(Role::kAdmin)));
  EXPECT_TRUE(caller.Sees("mnist_conv"));
  EXPECT_FALSE(caller.Sees("other"));
  // A token of the call's own says more, be it wrong.
  EXPECT_TRUE(
      absl::IsUnauthenticated(access_->OfLogin(With("Bearer x"), *cookie).CheckRole(Role::kRead)));
  EXPECT_EQ(access_->OfLogin(With("Bearer " + token), *cookie).name(), "token 'ops'");
  std::string other = *cookie;
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& wrong : {std::string(), std::string("x"), other, token})
    EXPECT_EQ(access_->OfLogin(With(""), wrong).name(), "anonymous") << wrong;
  access_->LogOut(*cookie);
  EXPECT_EQ(access_->OfLogin(With(""), *cookie).name(), "anonymous");
}

TEST_F(AccessTest, ALoginEndsWithItsTimeAndItsToken) {
  const std::string days = Add("days", {Role::kRead}).substr(7);
  const std::string hour = Add("hour", {Role::kRead}, {}, kNow + 3600).substr(7);
  Make();
  const std::string of_days = access_->LogIn(days, "unix").value();
  const std::string of_hour = access_->LogIn(hour, "unix").value();
  const Caller held = access_->OfLogin(With(""), of_days);
  now_ = kNow + 3600;
  EXPECT_EQ(access_->OfLogin(With(""), of_hour).name(), "anonymous");
  EXPECT_TRUE(access_->OfLogin(With(""), of_days).CheckRole(Role::kRead).ok());
  now_ = kNow + Logins::kSeconds;
  EXPECT_EQ(access_->OfLogin(With(""), of_days).name(), "anonymous");
  EXPECT_TRUE(absl::IsUnauthenticated(held.CheckRole(Role::kRead))) << "of a page that is open";
  now_ = kNow;
  EXPECT_TRUE(held.Holds());
  TokenLine another = ParseTokens(text_, "tokens").value().front();
  another.hash[0] = static_cast<char>(another.hash[0] ^ 1);
  Write(TokenLineText(another) + "\n");
  ASSERT_TRUE(access_->Reload().ok());
  EXPECT_EQ(access_->OfLogin(With(""), of_days).name(), "anonymous") << "another token's id";
  Write(text_);
  ASSERT_TRUE(access_->Reload().ok());
  EXPECT_TRUE(held.Holds());
  Write("# none\n");
  ASSERT_TRUE(access_->Reload().ok());
  EXPECT_EQ(access_->OfLogin(With(""), of_days).name(), "anonymous");
  EXPECT_FALSE(held.Holds());
}

TEST_F(AccessTest, FailedLoginsAreCountedAndSlowed) {
  const std::string token = Add("a", {Role::kRead}).substr(7);
  const std::string no_reader = Add("b", {Role::kInfer}).substr(7);
  const std::string expired = Add("c", {Role::kRead}, {}, kNow - 1).substr(7);
  Make();
  EXPECT_TRUE(absl::IsPermissionDenied(access_->LogIn(no_reader, "10.0.0.1:4").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(access_->LogIn(expired, "10.0.0.1:4").status()));
  for (int i = 1; i < Logins::kMostFailures; ++i)
    EXPECT_TRUE(absl::IsUnauthenticated(access_->LogIn("", "10.0.0.1:5").status()));
  const absl::Status slowed = access_->LogIn(token, "10.0.0.1:6").status();
  EXPECT_TRUE(absl::IsResourceExhausted(slowed)) << slowed;
  EXPECT_TRUE(access_->LogIn(token, "10.0.0.2:6").ok()) << "another host";
  EXPECT_EQ(access_->counts().of(AccessRefusal::kToken), Logins::kMostFailures - 1);
  EXPECT_EQ(access_->counts().of(AccessRefusal::kExpired), 1);
  now_ += Logins::kFailureSeconds;
  EXPECT_TRUE(access_->LogIn(token, "10.0.0.1:6").ok());
}

}  // namespace
}  // namespace floe::server
