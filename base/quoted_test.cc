#include "base/quoted.h"

#include <gtest/gtest.h>

namespace floe {
namespace {

TEST(Quoted, IsPrintableAndBounded) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("a b"), "'a b'");
  EXPECT_EQ(Quoted("a\n\xff"), "'a\\n\\xff'");
  EXPECT_EQ(Quoted(std::string(256, 'x')), "'" + std::string(256, 'x') + "'");
  EXPECT_EQ(Quoted(std::string(257, 'x')), "'" + std::string(256, 'x') + "...'");
  EXPECT_EQ(Quoted("'"), "'\\''");
  EXPECT_EQ(Escaped("a\tb: 'x' \\"), "a\\tb: 'x' \\\\");
}

TEST(Printable, KeepsTextAndEscapesTheRest) {
  EXPECT_EQ(Printable("a 'b' \\ \"c\"\nd", 100), "a 'b' \\ \"c\"\nd");
  EXPECT_EQ(Printable("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 100),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("a\x1b[2J\r\x7f", 100), "a\\x1b[2J\\r\\u007f");
  EXPECT_EQ(Printable("\xc2\x9b", 100), "\\u009b") << "a control code of two bytes";
  EXPECT_EQ(Printable("\xe2\x80\xae"
                      "gnp.exe \xd8\x9c\xe2\x81\xa6",
                      100),
            "\\u202egnp.exe \\u061c\\u2066")
      << "marks of direction";
  // Cut short, too long a form, half of a pair, beyond the last character, a byte alone.
  for (const char* const bad : {"\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xf0\x8f\xbf\xbf", "\x80", "\xff"})
    EXPECT_EQ(Printable(bad, 100).substr(0, 2), "\\x") << Printable(bad, 100);
  EXPECT_EQ(Printable("abc", 3), "abc");
  EXPECT_EQ(Printable("abcd", 3), "abc...");
  EXPECT_EQ(Printable("ab\xc3\xa9", 3), "ab...") << "no half characters";
  EXPECT_EQ(Printable(std::string(1 << 20, '\1'), 256).size(), 256u + 3);
}

}  // namespace
}  // namespace floe
