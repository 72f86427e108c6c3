#include "server/registry/local_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "model/form/form.h"
#include "model/import/import.h"
#include "server/batching/test_models.h"
#include "server/registry/model_path.h"
#include "server/registry/placeholder_default.h"

namespace floe::server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() {
    spdlog::set_level(spdlog::level::off);
    root_ = testing::TempDir() + "floe_registry_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~RegistryTest() override { fs::remove_all(root_); }

  std::string Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
    return root_ + "/" + path;
  }
  ModelConfig Config(const std::string& name, const std::string& path) {
    ModelConfig config;
    config.name = name;
    config.base_path = root_ + "/" + path;
    config.where = "f.yaml:1";
    return config;
  }
  std::string root_;
  HealthState health_;
};

using ModelPath = RegistryTest;

TEST_F(ModelPath, Layouts) {
  Write("file.pb", "");
  Write("flat/anything.pb", "");
  Write("named/other.pb", "");
  Write("named/graph.pb", "");
  Write("named/frozen.pb", "");
  Write("versions/2/graph.pb", "");
  Write("versions/10/model.pb", "");
  Write("versions/notes/readme.pb", "");
  Write("versions/11x/frozen.pb", "");
  Write("converted/frozen.pb", "");
  Write("converted/model.floe", "");
  Write("form/some.floe", "");
  Write("form/old.pb", "");
  const auto find = [this](const std::string& path) {
    const auto found = FindNewestVersion(root_ + path);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? absl::StrCat(found->version, " ", found->file.substr(root_.size())) : "";
  };
  EXPECT_EQ(find("/file.pb"), "1 /file.pb");
  EXPECT_EQ(find("/flat"), "1 /flat/anything.pb");
  EXPECT_EQ(find("/named"), "1 /named/frozen.pb");
  EXPECT_EQ(find("/converted"), "1 /converted/model.floe");
  EXPECT_EQ(find("/form"), "1 /form/some.floe");
  EXPECT_EQ(find("/versions"), "10 /versions/10/model.pb");
}

TEST_F(ModelPath, ErrorsNameWhatWasFound) {
  const auto error = [this](const std::string& path, absl::StatusCode code) {
    const absl::Status status = FindNewestVersion(root_ + path).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error("/none", absl::StatusCode::kNotFound),
              AllOf(HasSubstr(root_ + "/none"), HasSubstr("No such file")));
  fs::create_directories(root_ + "/empty");
  EXPECT_THAT(error("/empty", absl::StatusCode::kInvalidArgument),
              HasSubstr("holds nothing; expected directories"));
  Write("two/a.pb", "");
  Write("two/b.pb", "");
  EXPECT_THAT(error("/two", absl::StatusCode::kInvalidArgument),
              HasSubstr("several models ('a.pb', 'b.pb')"));
  Write("bad/1/frozen.pb", "");
  Write("bad/3/variables/x", "");
  EXPECT_THAT(error("/bad", absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("newest version"), HasSubstr("/bad/3'"), HasSubstr("'variables/'"),
                    HasSubstr("frozen.pb")));
  // A path that is hidden from services says so.
  EXPECT_THAT(std::string(FindNewestVersion("/home/nobody/floe-model").status().message()),
              AllOf(HasSubstr("ProtectHome"), HasSubstr("BindReadOnlyPaths")));
}

TEST(PlaceholderDefault, Values) {
  EXPECT_EQ(DefaultTensor("p", {false, ""})->dtype(), DType::kBool);
  EXPECT_EQ(*DefaultTensor("p", {int64_t{3}, ""})->as<int32_t>(), 3);
  EXPECT_EQ(DefaultTensor("p", {int64_t{1} << 40, ""})->dtype(), DType::kInt64);
  EXPECT_EQ(*DefaultTensor("p", {0.5, ""})->as<float>(), 0.5f);
  EXPECT_EQ(*DefaultTensor("p", {int64_t{3}, "float64"})->as<double>(), 3.0);
  EXPECT_EQ(*DefaultTensor("p", {std::string("a"), ""})->as<std::string>(), "a");
  for (const PlaceholderDefault& bad : {PlaceholderDefault{int64_t{300}, "uint8"},
                                        {int64_t{-1}, "uint64"},
                                        {0.5, "int32"},
                                        {false, "float32"},
                                        {false, "flot"}})
    EXPECT_THAT(std::string(DefaultTensor("p", bad).status().message()),
                HasSubstr("placeholder_defaults.p"));
}

TEST_F(RegistryTest, LoadsTheNewestVersionAndServesIt) {
  Write("m/1/graph.pb", kCentredGraph);
  Write("m/2/frozen.pb", kTwiceGraph);
  LocalRegistry registry({Config("m", "m")}, {}, &health_);
  EXPECT_EQ(health_.Get("model/m"), ServingStatus::kNotServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kNotServing);
  EXPECT_EQ(registry.Acquire("m", {}).status().code(), absl::StatusCode::kUnavailable);
  registry.StartLoading();
  registry.WaitUntilLoaded();
  EXPECT_TRUE(registry.AllAvailable());
  EXPECT_EQ(health_.Get("model/m"), ServingStatus::kServing);
  for (const char* name : {"", "tensorflow.serving.PredictionService",
                           "tensorflow.serving.ModelService", "PredictionService", "ModelService"})
    EXPECT_EQ(health_.Get(name), ServingStatus::kServing) << name;
  EXPECT_THAT(registry.ModelNames(), ElementsAre("m"));
  const auto status = registry.Status("m", {2, ""});
  ASSERT_TRUE(status.ok()) << status.status();
  ASSERT_EQ(status->size(), 1u);
  EXPECT_EQ((*status)[0].version, 2);
  EXPECT_EQ((*status)[0].state, VersionState::kAvailable);

  const auto served = registry.Acquire("m", {});
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ((*served)->model()->info().version, 2);
  FloatCall call({{Shape({1, 2}), {3, -4}}});
  (*served)->Submit(call.Request((*served)->model()));
  registry.Stop();  // finishes what was taken
  EXPECT_THAT(call.result, ElementsAre(6, 0));
  EXPECT_EQ(registry.Acquire("m", {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RegistryTest, ServesAConvertedModel) {
  auto imported = ImportBytes(kTwiceGraph, {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto form =
      SerializeForm({std::move(imported->graph), std::move(imported->signatures), {}});
  ASSERT_TRUE(form.ok()) << form.status();
  Write("m/3/model.floe", *form);
  LocalRegistry registry({Config("m", "m")}, {}, &health_);
  registry.StartLoading();
  registry.WaitUntilLoaded();
  const auto served = registry.Acquire("m", {3, ""});
  ASSERT_TRUE(served.ok()) << served.status();
  FloatCall call({{Shape({1, 2}), {3, -4}}});
  (*served)->Submit(call.Request((*served)->model()));
  registry.Stop();
  EXPECT_THAT(call.result, ElementsAre(6, 0));
}

TEST_F(RegistryTest, UnknownNamesAndVersions) {
  Write("m/7/frozen.pb", kTwiceGraph);
  LocalRegistry registry({Config("digits", "m")}, {}, &health_);
  registry.StartLoading();
  registry.WaitUntilLoaded();
  const absl::Status name = registry.Acquire("digit", {}).status();
  EXPECT_EQ(name.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(name.message()),
      AllOf(HasSubstr("'digit'"), HasSubstr("nearest: 'digits'"), Not(HasSubstr("floe.probe"))));
  const absl::Status version = registry.Status("digits", {8, ""}).status();
  EXPECT_EQ(version.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(version.message()), AllOf(HasSubstr("version 8"), HasSubstr("it has 7")));
}

TEST_F(RegistryTest, ABadModelDoesNotStopTheOthers) {
  Write("good/frozen.pb", kTwiceGraph);
  Write("bad/1/frozen.pb", "node { name: \"a\" op: \"NoSuchOp\" }");
  LocalRegistry registry({Config("good", "good"), Config("bad", "bad"), Config("gone", "gone")}, {},
                         &health_);
  registry.StartLoading();
  registry.WaitUntilLoaded();
  EXPECT_FALSE(registry.AllAvailable());
  EXPECT_EQ(health_.Get("model/good"), ServingStatus::kServing);
  EXPECT_EQ(health_.Get("model/bad"), ServingStatus::kNotServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kNotServing);
  EXPECT_TRUE(registry.Acquire("good", {}).ok());
  const absl::Status bad = registry.Acquire("bad", {}).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(bad.message()), HasSubstr("NoSuchOp"));
  const absl::Status gone = registry.Acquire("gone", {}).status();
  EXPECT_THAT(std::string(gone.message()), AllOf(HasSubstr("<base_path>"), Not(HasSubstr(root_))));
  const auto status = registry.Status("bad", {});
  ASSERT_TRUE(status.ok());
  EXPECT_EQ((*status)[0].version, 1);
  EXPECT_EQ((*status)[0].state, VersionState::kEnd);
  EXPECT_FALSE((*status)[0].error.ok());
}

TEST_F(RegistryTest, TheProbeModelAnswersOnAWorker) {
  LocalRegistry registry({}, {}, &health_);
  registry.StartLoading();
  registry.WaitUntilLoaded();
  EXPECT_EQ(health_.Get(""), ServingStatus::kServing) << "no models: nothing to wait for";
  EXPECT_THAT(registry.ModelNames(), ElementsAre());
  const auto served = registry.Acquire(kProbeModel, {});
  ASSERT_TRUE(served.ok()) << served.status();
  FloatCall call({{Shape({1, 1}), {21}}});
  (*served)->Submit(call.Request((*served)->model()));
  registry.Stop();
  EXPECT_THAT(call.result, ElementsAre(42));
}

// A model whose work stands still is not serving; its neighbour is, and so is it once it moves
// again.
TEST_F(RegistryTest, AStuckModelIsNotServing) {
  Write("m/frozen.pb", kTwiceGraph);
  ModelConfig stuck = Config("stuck", "m"), fine = Config("fine", "m");
  stuck.inline_below_us = 0;
  LocalRegistry registry({stuck, fine}, {}, &health_);
  registry.StartLoading();
  registry.WaitUntilLoaded();
  const auto served = registry.Acquire("stuck", {});
  ASSERT_TRUE(served.ok());
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  std::atomic<bool> entered{false}, go{false};
  auto request = call.Request((*served)->model());
  request->done = [&](const absl::Status&, absl::Span<const TensorView>) {
    entered = true;
    while (!go) std::this_thread::yield();
  };
  (*served)->Submit(std::move(request));
  while (!entered) std::this_thread::yield();
  const TimePoint now = Clock::Steady().Now();
  registry.CheckProgress(now);
  EXPECT_EQ(health_.Get("model/stuck"), ServingStatus::kServing);
  registry.CheckProgress(now + std::chrono::minutes(10));
  EXPECT_EQ(health_.Get("model/stuck"), ServingStatus::kNotServing);
  EXPECT_EQ(health_.Get("model/fine"), ServingStatus::kServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kServing);
  go = true;
  FloatCall next({{Shape({1, 2}), {1, 2}}});
  (*served)->Submit(next.Request((*served)->model()));
  registry.Stop();
  registry.CheckProgress(now + std::chrono::minutes(20));
}

// Real threads through a real model, batched, inline and alone, with different numbers of rows.
TEST_F(RegistryTest, ManyCallers) {
  Write("m/frozen.pb", kTwiceGraph);
  ModelConfig queued = Config("queued", "m"), direct = Config("direct", "m");
  queued.workers = 2;
  queued.inline_below_us = 0;
  direct.inline_below_us = 1'000'000;
  queued.batching.max_batch_size = direct.batching.max_batch_size = 8;
  LocalRegistry registry({queued, direct}, {}, &health_);
  registry.StartLoading();
  std::vector<std::thread> threads;
  registry.WaitUntilLoaded();
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto served = registry.Acquire(i % 2 == 0 ? "queued" : "direct", {});
        ASSERT_TRUE(served.ok()) << served.status();
        const int64_t rows = 1 + (i + t) % 10;
        std::vector<float> values(2 * rows);
        for (size_t k = 0; k < values.size(); ++k)
          values[k] = static_cast<float>(1000 * t + i + static_cast<int>(k));
        FloatCall call({{Shape({rows, 2}), values}});
        std::atomic<bool> done{false};
        auto request = call.Request((*served)->model());
        request->done = [&, inner = request->done](const absl::Status& s,
                                                   absl::Span<const TensorView> outputs) {
          inner(s, outputs);
          done.store(true, std::memory_order_release);
        };
        (*served)->Submit(std::move(request));
        while (!done.load(std::memory_order_acquire)) std::this_thread::yield();
        ASSERT_TRUE(call.status.ok()) << call.status;
        for (float& value : values) value *= 2;
        ASSERT_EQ(call.result, values);
        ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  registry.Stop();
  EXPECT_EQ(right, 1200);
}

}  // namespace
}  // namespace floe::server
