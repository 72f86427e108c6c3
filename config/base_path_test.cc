#include "config/base_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Refused(const std::string& path) {
  const auto local = LocalPath(path, "/etc/floe");
  EXPECT_EQ(local.status().code(), absl::StatusCode::kInvalidArgument) << path;
  return std::string(local.status().message());
}

TEST(LocalPath, FilesOfThisMachine) {
  EXPECT_EQ(*LocalPath("/srv/m", "/etc/floe"), "/srv/m");
  EXPECT_EQ(*LocalPath("m", "/etc/floe"), "/etc/floe/m");
  EXPECT_EQ(*LocalPath("m", ""), "m");
  EXPECT_EQ(*LocalPath("", "/etc/floe"), "");
  EXPECT_EQ(*LocalPath("file:///srv/m", "/etc/floe"), "/srv/m");
  EXPECT_EQ(*LocalPath("file://localhost/srv/m", ""), "/srv/m");
  // Names that only look like others.
  for (const char* path : {"/srv/s3://b", "/srv/~/m", "/~"})
    EXPECT_EQ(*LocalPath(path, "/etc/floe"), path);
  EXPECT_EQ(*LocalPath("a/b://c", "/d"), "/d/a/b://c");
}

TEST(LocalPath, UrlsSayWhatToDo) {
  EXPECT_THAT(Refused("s3://bucket/m"), AllOf(HasSubstr("'s3://bucket/m' is a URL"),
                                              HasSubstr("mounted or copied to (`aws s3 sync`")));
  EXPECT_THAT(Refused("gs://bucket/m"), HasSubstr("gcsfuse"));
  EXPECT_THAT(Refused("hdfs://host/m"), HasSubstr("hdfs dfs -get"));
  EXPECT_THAT(Refused("https://host/m"), HasSubstr("curl"));
  EXPECT_THAT(Refused("abc://x"), HasSubstr("mounted or copied to"));
  EXPECT_THAT(Refused("file://host/m"), HasSubstr("names another host"));
}

TEST(LocalPath, TheHomeDirectoryIsTheShells) {
  EXPECT_THAT(Refused("~/models"),
              AllOf(HasSubstr("only shells know"), HasSubstr("/home/me/models")));
  EXPECT_THAT(Refused("~"), HasSubstr("only shells know"));
}

TEST(LocalPath, FloeYamlNamesTheLine) {
  EXPECT_EQ(ParseConfig("models:\n- {name: a, base_path: 'file:///m'}\n", "f.yaml", "")
                ->models[0]
                .base_path,
            "/m");
  EXPECT_THAT(ParseConfig("models:\n- name: a\n  base_path: s3://b/m\n", "f.yaml", "/d")
                  .status()
                  .ToString(),
              HasSubstr("f.yaml:3: models[0].base_path: 's3://b/m' is a URL"));
}

}  // namespace
}  // namespace floe
