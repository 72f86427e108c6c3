// What floectl's commands take for a model: all that a server's base_path may be.
#include "cli/model_path.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "cli/floectl_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class ModelPath : public testing::Test {
 protected:
  ModelPath() { fs::remove_all(root_); }
  ~ModelPath() override { fs::remove_all(root_); }

  std::string Put(const std::string& path, const std::string& text = kGraph) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
    return root_ + path;
  }
  // What it leads to, beneath the root, or the error.
  std::string Find(const std::string& path) {
    notes_.str("");
    const auto found = FindModelFile(root_ + path, notes_);
    return found.ok() ? found->substr(root_.size()) : std::string(found.status().message());
  }

  const std::string root_ = testing::TempDir() + "model_path";
  std::ostringstream notes_;
};

TEST_F(ModelPath, IsWhatAServerWouldLoad) {
  Put("/file.pbtxt");
  Put("/flat/any.pb");
  Put("/flat/README.md");
  Put("/saved/saved_model.pb");
  Put("/saved/fingerprint.pb");
  Put("/keras/5/m.keras");
  for (const char* same : {"/file.pbtxt", "/none", "/saved"}) EXPECT_EQ(Find(same), same);
  EXPECT_EQ(Find("/flat"), "/flat/any.pb");
  EXPECT_EQ(Find("/keras/5"), "/keras/5/m.keras");
  EXPECT_EQ(Find("/keras/5/"), "/keras/5//m.keras");
  EXPECT_EQ(notes_.str(), "") << "nothing was chosen";
  fs::create_directories(root_ + "/empty");
  EXPECT_EQ(Find("/empty"), "/empty") << "whoever reads it says more";
}

TEST_F(ModelPath, OfVersionsTheNewestCountsAndIsNamed) {
  Put("/m/2/frozen.pb");
  Put("/m/10/saved_model.pb");
  EXPECT_EQ(Find("/m"), "/m/10");
  EXPECT_EQ(notes_.str(), absl::StrCat("version 10: ", root_, "/m/10\n"));
  Put("/m/11/a.pb");
  Put("/m/11/b.h5");
  Put("/m/12/notes.txt");
  EXPECT_EQ(Find("/m"), "/m/10") << "as a server goes on to the next older one";
  EXPECT_THAT(notes_.str(), AllOf(HasSubstr("version 12 is left out: "),
                                  HasSubstr("version 11 is left out: "), HasSubstr("'b.h5'")));
}

TEST_F(ModelPath, TwoModelsAreAnError) {
  Put("/two/a.pb");
  Put("/two/b.keras");
  EXPECT_THAT(Find("/two"), HasSubstr("holds several models ('a.pb', 'b.keras')"));
  fs::rename(root_ + "/two", root_ + "/1");
  EXPECT_THAT(Find("/"), HasSubstr("holds several models")) << "of the only version";
}

TEST_F(ModelPath, EveryCommandTakesIt) {
  const std::string file = Put("/m/3/any.pbtxt");
  Put("/m/1/frozen.pb", "an older one, which is not read");
  const std::string note = absl::StrCat("version 3: ", file, "\n");
  const std::string out = root_ + "/out";
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "--json"}, {"bench", "--seconds", "0.01", "--json"}, {"profile", "--runs", "1"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin() + 1, root_ + "/m");
    const Outcome outcome = Floectl(command);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_EQ(outcome.err, note) << command[0];
    EXPECT_THAT(outcome.out, HasSubstr(file));
    command[1] = root_ + "/m/3";
    EXPECT_EQ(Floectl(command).err, "");
  }
  const Outcome run = Floectl({"run", root_ + "/m", "--outputs", out});
  EXPECT_THAT(run.err, HasSubstr(note));
  EXPECT_THAT(run.err, HasSubstr("input")) << "it is loaded, and its input is missing";
  const Outcome freeze = Floectl({"freeze", root_ + "/m", "-o", out});
  EXPECT_THAT(freeze.err, AllOf(HasSubstr(note), HasSubstr("is no SavedModel")));
}

}  // namespace
}  // namespace floe::cli
