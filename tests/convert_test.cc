// Whole models written in floe's own form: the same bits as from the original.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/local_model.h"
#include "cli/made_up_inputs.h"

namespace floe::cli {
namespace {

namespace fs = std::filesystem;

std::vector<Tensor> Answers(const std::string& path) {
  const auto model = LoadLocal(path, {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  constexpr int64_t kRows = 3, kUnknownDim = 32;
  const auto made = MakeUpInputs(*model->signature, {{kRows}, kUnknownDim});
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  ExecContext context;
  const absl::Status run = RunCall(made->call, context);
  EXPECT_TRUE(run.ok()) << run;
  std::vector<Tensor> answers;
  for (size_t k = 0; run.ok() && k < model->def().outputs.size(); ++k)
    answers.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
  return answers;
}

void ExpectSameAfterConversion(const fs::path& original) {
  SCOPED_TRACE(original.string());
  const std::string form = testing::TempDir() + "floe_convert_test.floe";
  std::ostringstream out, err;
  ASSERT_EQ(Main({"convert", original.string(), form}, out, err), kExitOk) << err.str();
  const std::vector<Tensor> want = Answers(original.string()), got = Answers(form);
  fs::remove(form);
  ASSERT_FALSE(want.empty());
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].dtype(), want[k].dtype());
    ASSERT_EQ(got[k].shape(), want[k].shape());
    EXPECT_EQ(std::memcmp(got[k].data(), want[k].data(), want[k].bytes()), 0) << "output " << k;
  }
}

TEST(Convert, Examples) {
  int models = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(FLOE_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() != ".pb") continue;
    ExpectSameAfterConversion(entry.path());
    ++models;
  }
  EXPECT_GT(models, 1);
}

TEST(Convert, ReferenceModels) {
  const fs::path models = fs::path(FLOE_SOURCE_DIR) / ".." / "shared" / "models";
  if (!fs::exists(models)) GTEST_SKIP() << "needs ../shared";
  for (const char* name : {"tiny_dense", "small_140", "dqn", "mobilenet_v2"})
    ExpectSameAfterConversion(models / name / "graph.pb");
}

}  // namespace
}  // namespace floe::cli
