#include "base/printable_stream.h"

#include <gtest/gtest.h>

#include <sstream>

namespace floe {
namespace {

TEST(PrintableStream, EscapesWhatNamesMayHold) {
  std::ostringstream to;
  {
    PrintableStream out(to);
    out << "a\x1b[31m " << 1 << "\n" << std::string("b\0c", 3) << "\xe2\x80\xae" << '\a';
    EXPECT_EQ(to.str(), "a\\x1b[31m 1\n") << "up to the end of a line";
    out.flush();
    EXPECT_EQ(to.str(), "a\\x1b[31m 1\nb\\x00c\\u202e\\x07");
    out << "end";
  }
  EXPECT_EQ(to.str().substr(to.str().size() - 3), "end");
}

TEST(PrintableStream, CharactersMayComeInPieces) {
  std::ostringstream to;
  PrintableStream out(to);
  for (const char c : std::string("\xe2\x82\xac\n")) out << c;
  EXPECT_EQ(to.str(), "\xe2\x82\xac\n");
}

TEST(PrintableStream, FailsWithTheStreamBehindIt) {
  std::ostringstream to;
  PrintableStream out(to);
  to.setstate(std::ios::badbit);
  out << "a\n" << std::flush;
  EXPECT_FALSE(out.good());
}

}  // namespace
}  // namespace floe
