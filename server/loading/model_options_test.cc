#include "server/loading/model_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ModelOptions, TheImporterGetsWhatTheConfigurationSays) {
  ModelConfig config;
  config.placeholder_defaults["p"] = {int64_t{3}, "float64"};
  config.signature.inputs["x"] = "in:0";
  config.signature.outputs["y"] = "out:1";
  config.saved_model_tags = "serve, gpu";
  const FileIdentity identity{.device = 1, .inode = 2};
  const auto options = ImportOptionsOf(config, identity);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(*options->placeholder_defaults.at("p").as<double>(), 3);
  EXPECT_THAT(options->input_aliases, ElementsAre(Pair("x", "in:0")));
  EXPECT_THAT(options->output_aliases, ElementsAre(Pair("y", "out:1")));
  ASSERT_EQ(options->tags.size(), 2u);
  EXPECT_EQ(options->tags[0], "serve");
  EXPECT_EQ(options->identity, identity);
  config.placeholder_defaults["p"] = {int64_t{300}, "uint8"};
  EXPECT_THAT(std::string(ImportOptionsOf(config).status().message()),
              HasSubstr("placeholder_defaults.p"));
}

TEST(ModelOptions, TheCompilerKeepsWhatTheModelDoesNotSay) {
  CompileOptions given;
  given.kernels.gemm = GemmBackend::kReference;
  given.kernels.routes = {{"a", "gemm"}};
  ModelConfig config;
  config.fft = false;
  config.precision = Precision::kBf16;
  config.routes = {{"a", "fft"}, {"b", "fft"}};
  const KernelOptions kernels = CompileOptionsOf(config, given).kernels;
  EXPECT_EQ(kernels.gemm, GemmBackend::kReference);
  EXPECT_FALSE(kernels.conv.fft);
  EXPECT_EQ(kernels.precision, Precision::kBf16);
  EXPECT_THAT(kernels.routes, ElementsAre(Pair("a", "gemm"), Pair("b", "fft")));
}

}  // namespace
}  // namespace floe::server
