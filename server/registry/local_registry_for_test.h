// A registry over model files in a directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/executor/test_models_for_test.h"
#include "server/registry/local_registry.h"

namespace floe::server {

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() {
    spdlog::set_level(spdlog::level::off);
    root_ = testing::TempDir() + "floe_registry_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~RegistryTest() override { std::filesystem::remove_all(root_); }

  std::string Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
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
  // Files are looked at once, and are taken for complete.
  static LocalRegistry::Options Once() {
    LocalRegistry::Options options;
    options.lifecycle.file_system_poll_wait_seconds = 0;
    return options;
  }
  std::string root_;
  HealthState health_;
};

// Waits for what threads will bring about. False after a minute.
inline bool Eventually(const std::function<bool()>& condition) {
  const TimePoint end = Clock::Steady().Now() + std::chrono::minutes(1);
  while (!condition()) {
    if (Clock::Steady().Now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Submits the call and waits for its answer.
inline void Answer(ServedModel* served, FloatCall* call) {
  std::atomic<bool> done{false};
  auto request = call->MakeRequest(served->model());
  request.complete = [&, inner = request.complete](const absl::StatusOr<Outputs>& outputs,
                                                   const Timings& timings) {
    inner(outputs, timings);
    done.store(true, std::memory_order_release);
  };
  served->Submit(std::move(request));
  while (!done.load(std::memory_order_acquire)) std::this_thread::yield();
}

// y = relu(`factor` x): which version answered can be read off the answer.
inline std::string TimesGraph(int factor) {
  return absl::StrReplaceAll(kTwiceGraph, {{"float_val: 2", absl::StrCat("float_val: ", factor)}});
}

}  // namespace floe::server
