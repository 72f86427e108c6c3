// TensorFlow Serving's flags that mean nothing to floed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace floe::server {

// Adds them to `app`, each with its kind of value checked. When one is given, a line such as
// "--saved_model_tags=serve has no effect here: ..." is appended to `*notes`, which outlives the
// parsing.
void AddFlagsWithoutEffect(CLI::App& app, std::vector<std::string>* notes);

// An option that takes "--name", "--name=true" and "--name true" alike.
CLI::Option* AddSwitch(CLI::App& app, const std::string& name, std::function<void(bool)> set,
                       const std::string& help);

// The whole text as a decimal number, zeros in front of it or not; CLI11 takes those for octal.
std::optional<int64_t> ParseInteger(const std::string& text);

// An option of such a number.
CLI::Option* AddInteger(CLI::App& app, const std::string& name, std::function<void(int64_t)> set,
                        const std::string& help);

}  // namespace floe::server
