// TensorFlow Serving's flags that have no effect here, and flags of its kinds of values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace floe::server {

enum class FlagKind { kSwitch, kInteger, kNumber, kText };

// An option whose value is checked and passed to `set` as text. A switch may be "--name",
// "--name=true" or "--name true", and `set` gets "true" or "false". Integers are decimal, also with
// leading zeros, which CLI11 by itself takes for octal.
CLI::Option* AddFlag(CLI::App& app, const std::string& name, FlagKind kind,
                     std::function<void(const std::string&)> set, const std::string& help);

// Adds the flags without effect to `app`. Each one that is given appends a line to `*notes`, such
// as "--saved_model_tags=serve has no effect here: ...". `notes` outlives the parsing.
void AddFlagsWithoutEffect(CLI::App& app, std::vector<std::string>* notes);

}  // namespace floe::server
