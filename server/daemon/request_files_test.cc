#include "server/daemon/request_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace floe::server {
namespace {

namespace fs = std::filesystem;

TEST(RequestFiles, NamesOfModelsAreNamesOfFiles) {
  EXPECT_EQ(RequestFiles::FileOf("mnist-2_a.b"), "mnist-2_a.b.tfrecord");
  EXPECT_EQ(RequestFiles::FileOf("../a b%"), "%2E.%2Fa%20b%25.tfrecord");
}

TEST(RequestFiles, EachModelHasAFile) {
  const std::string folder = testing::TempDir() + "floe_request_files";
  fs::remove_all(folder);
  static auto* const files = new RequestFiles(folder, 100);  // its threads stay
  EXPECT_THAT(files->Check().ToString(), testing::HasSubstr(folder));
  fs::create_directories(folder);
  ASSERT_TRUE(files->Check().ok());
  files->Add("a", "one");
  files->Add("b", "two");
  files->Add("a", "three");
  files->Flush(Clock::Steady().Now() + std::chrono::seconds(60));
  const auto text = [&](const char* name) {
    std::ifstream file(folder + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(text("a.tfrecord"), "onethree");
  EXPECT_EQ(text("b.tfrecord"), "two");
  EXPECT_EQ(files->dropped(), 0);
}

}  // namespace
}  // namespace floe::server
