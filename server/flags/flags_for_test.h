// For the tests beside it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "server/flags/flags.h"

namespace floe::server {

// What a command line comes to.
struct Parsed {
  std::optional<Command> command;
  int exit_code = -1;
  std::string out, err;
};

inline Parsed Parse(const std::vector<std::string>& args) {
  std::vector<const char*> argv = {"floed"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  std::ostringstream out, err;
  Parsed parsed;
  parsed.command =
      ParseCommandLine(static_cast<int>(argv.size()), argv.data(), out, err, &parsed.exit_code);
  parsed.out = out.str();
  parsed.err = err.str();
  return parsed;
}

// A folder with a floe.yaml of one model, and an environment that names none.
class FlagsTest : public testing::Test {
 protected:
  FlagsTest() {
    unsetenv("MODEL_NAME");
    unsetenv("MODEL_BASE_PATH");
    unsetenv("FLOE_INSECURE_PUBLIC");
    directory_ = testing::TempDir() + "floe_flags";
    std::filesystem::create_directories(directory_ + "/model");
    file_ = directory_ + "/f.yaml";
    std::ofstream(file_) << "server: {port: 1234, enable_reflection: true}\n"
                            "models: [{name: a, base_path: model}]\n";
  }
  ~FlagsTest() override { std::filesystem::remove_all(directory_); }
  std::string Write(const std::string& name, const std::string& text) {
    std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string directory_, file_;
};

}  // namespace floe::server
