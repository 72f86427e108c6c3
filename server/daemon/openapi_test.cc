// /openapi.json names the routes of a server, all and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/api/fakes_for_test.h"
#include "server/api/page/assets.h"
#include "server/daemon/doors.h"

namespace floe::server {
namespace {

// The file has a path in each line that begins so, and its methods in the lines behind it.
std::set<std::string> Described() {
  const std::regex line(R"re(^ {2}"(/[^"]*)": \{$|^ {4}"(get|post)": )re");
  std::set<std::string> found;
  std::istringstream lines{std::string(PageFile("openapi.json"))};
  std::string path, text;
  while (std::getline(lines, text)) {
    std::smatch match;
    if (!std::regex_search(text, match, line)) continue;
    if (match[1].matched)
      path = match[1];
    else
      found.insert(absl::StrCat(absl::AsciiStrToUpper(match[2].str()), " ", path));
  }
  return found;
}

TEST(OpenApi, DescribesAllRoutes) {
  FakeRegistry registry;
  HealthState health;
  MethodTable methods;
  HttpRoutes routes;
  AddDoors({registry, health}, {}, nullptr, &methods, &routes);
  const std::vector<std::string> patterns = routes.Patterns();
  EXPECT_EQ(Described(), std::set<std::string>(patterns.begin(), patterns.end()));
}

}  // namespace
}  // namespace floe::server
