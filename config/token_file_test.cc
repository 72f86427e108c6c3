#include "config/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TokenLine Line(const std::string& name) {
  TokenLine line;
  line.name = name;
  line.roles.Add(Role::kInfer);
  return line;
}

const std::string kSecrets =
    absl::StrCat("salt=", std::string(32, 'a'), " sha256=", std::string(64, 'b'));

std::string MistakesIn(const std::string& text) {
  return std::string(ParseTokens(text, "f").status().message());
}

TEST(TokenFile, WhatIsWrittenIsReadBack) {
  TokenLine line = Line("ci");
  line.roles.Add(Role::kAdmin);
  line.models = {"mnist_*", "b"};
  line.expires = 1'800'000'000;
  ASSERT_TRUE(MakeToken(&line).ok());
  TokenLine bare;
  bare.name = "a.b@c-d_e";
  ASSERT_TRUE(MakeToken(&bare).ok());
  const auto read = ParseTokens(
      absl::StrCat("# tokens\n\n", TokenLineText(line), "\r\n  ", TokenLineText(bare)), "f");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(line, bare));
  EXPECT_THAT(TokenLineText(line), HasSubstr("expires=2027-01-15T08:00:00Z"));
}

TEST(TokenFile, ATokenIsThatOfItsLineAlone) {
  TokenLine line = Line("a"), other = Line("a");
  const std::string token = MakeToken(&line).value(), second = MakeToken(&other).value();
  EXPECT_EQ(token.size(), 78u);
  EXPECT_EQ(TokenId(token), line.id);
  EXPECT_TRUE(IsTokenOf(token, line));
  EXPECT_FALSE(IsTokenOf(second, line));
  EXPECT_THAT(TokenLineText(line), Not(HasSubstr(token.substr(14))));
  for (size_t at = 0; at < token.size(); ++at) {
    std::string changed = token;
    changed[at] = changed[at] == '0' ? '1' : '0';
    EXPECT_FALSE(IsTokenOf(changed, line)) << at;
  }
  for (const std::string& text : {std::string(), token + "0", token.substr(1), " " + token,
                                  std::string(78, 'a'), "floe_" + std::string(73, '_')}) {
    EXPECT_EQ(TokenId(text), "") << text;
    EXPECT_FALSE(IsTokenOf(text, line)) << text;
  }
  TokenLine salted = line;
  salted.salt[0] ^= 1;
  EXPECT_FALSE(IsTokenOf(token, salted));
}

TEST(TokenFile, TokensAreNotLikeEachOther) {
  std::set<std::string> tokens, salts;
  for (int i = 0; i < 100; ++i) {
    TokenLine line = Line("a");
    tokens.insert(MakeToken(&line).value());
    salts.insert(line.salt);
  }
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ(salts.size(), 100u);
}

TEST(TokenFile, MistakesNameLineAndWayOut) {
  const std::string good = absl::StrCat("name=a id=00000001 ", kSecrets);
  EXPECT_TRUE(ParseTokens(good, "f").ok());
  EXPECT_THAT(MistakesIn("\nname=a b\n"),
              AllOf(HasSubstr("f:2: 'b' is no field"), HasSubstr("floectl token new")));
  EXPECT_THAT(MistakesIn("name=a"), HasSubstr("has no id="));
  EXPECT_THAT(MistakesIn(good + " name=a"), HasSubstr("'name' is given twice"));
  EXPECT_THAT(MistakesIn(good + " roles=infer,root"), HasSubstr("infer, read, admin and health"));
  EXPECT_THAT(MistakesIn(good + " models=a,,b"), HasSubstr("names of models"));
  for (const char* time : {"tomorrow", "2027-13-01T00:00:00Z", "2027-01-01", "1970-01-01T00:00:00Z",
                           "2027-02-30T00:00:00Z", " ", "2027-01-01T00:00:00Zx"})
    EXPECT_THAT(MistakesIn(absl::StrCat(good, " expires=", time)),
                HasSubstr("2027-01-31T00:00:00Z"))
        << time;
  EXPECT_THAT(MistakesIn(absl::StrCat("name=a id=0000000g ", kSecrets)), HasSubstr("8 hexa"));
  EXPECT_THAT(MistakesIn(absl::StrCat("name=a/b id=00000001 ", kSecrets)), HasSubstr("letters"));
  EXPECT_THAT(MistakesIn("name=a id=00000001 salt=aa sha256=bb"), HasSubstr("32 hexa"));
  EXPECT_THAT(MistakesIn(absl::StrCat(good, "\n", good)),
              AllOf(HasSubstr("f:2: the id 00000001"), Not(HasSubstr("bbbb"))));
  EXPECT_THAT(MistakesIn("x\ny\n"), AllOf(HasSubstr("f:1:"), HasSubstr("f:2:")));
}

}  // namespace
}  // namespace floe
