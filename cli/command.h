// What the subcommands of floectl share: registration, exit codes, options that several of them
// have.
#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "base/precision.h"

namespace floe::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the operation failed
inline constexpr int kExitUsage = 2;   // the command line is wrong

// Results go to `out`; `err` carries warnings (Main prints errors).
struct Context {
  std::ostream& out;
  std::ostream& err;
  // Where progress is shown: standard error, if that is a terminal; otherwise null.
  std::ostream* terminal = nullptr;
  // Set by the chosen subcommand while the line is parsed, run afterwards.
  std::function<absl::Status()> action = {};
};

// Each adds one subcommand.
void AddStatusCommand(CLI::App& app, Context& context);
void AddLogLevelCommand(CLI::App& app, Context& context);
void AddPredictCommand(CLI::App& app, Context& context);
void AddInspectCommand(CLI::App& app, Context& context);
void AddRunCommand(CLI::App& app, Context& context);
void AddFreezeCommand(CLI::App& app, Context& context);
void AddBenchCommand(CLI::App& app, Context& context);
void AddReplayCommand(CLI::App& app, Context& context);
void AddProfileCommand(CLI::App& app, Context& context);
void AddOpsCommand(CLI::App& app, Context& context);
void AddConfigCommand(CLI::App& app, Context& context);
void AddTokenCommand(CLI::App& app, Context& context);
void AddModelsCommands(CLI::App& app, Context& context);  // load, unload, reload

// The whole tool: parses `args` (without the program's name), runs, reports. Returns the exit code.
// Never throws. Names in what it writes cannot steer a terminal (base/printable_stream.h).
int Main(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

// --gemm NAME, checked while parsing.
CLI::Option* AddGemmOption(CLI::App& app, std::string& value);
// --device: cpu, cuda or cuda:N.
inline constexpr char kDeviceHelp[] =
    "What computes it: cpu; cuda, the first GPU; or cuda:1 and the like";
CLI::Option* AddDeviceOption(CLI::App& app, std::string& value, const std::string& help);
// --precision float32 or bf16, checked while parsing.
CLI::Option* AddPrecisionOption(CLI::App& app, Precision& precision);
// --disable-pass NAME, repeatable, checked while parsing.
CLI::Option* AddDisablePassOption(CLI::App& app, std::vector<std::string>& names);
// --route NODE=NAME, repeatable, checked while parsing.
CLI::Option* AddRouteOption(CLI::App& app, std::map<std::string, std::string>& routes);
// --tags TAG,TAG of a SavedModel's graph.
CLI::Option* AddTagsOption(CLI::App& app, std::vector<std::string>& tags);

}  // namespace floe::cli
