// floectl's command line: all subcommands, the options that they share, and exit codes.
#include "cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable_stream.h"
#include "cli/usage.h"
#include "cli/version.h"
#include "config/config.h"
#include "kernels/kernel.h"
#include "runtime/passes/passes.h"

namespace floe::cli {
namespace {

int RunAction(const std::string& name, const Context& context) {
  absl::Status status;
  try {
    status = context.action();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& e) {  // of libraries; nothing of floe's throws
    status = absl::InternalError(e.what());
  }
  context.out.flush();
  if (status.ok()) return kExitOk;
  context.err << "floectl " << name << ": " << absl::StatusCodeToString(status.code()) << ": "
              << std::string(status.message()) << "\n";
  return kExitFailed;
}

// Flags of other tools.
const char* InsteadOfFlagHere(const std::string& name) {
  static constexpr char kTarget[] =
      "the server is named by --target HOST:PORT or --target unix:PATH";
  for (const char* const other :
       {"p", "port", "host", "H", "address", "addr", "server", "url", "endpoint", "socket"})
    if (name == other) return kTarget;
  return nullptr;
}

}  // namespace

CLI::Option* AddDeviceOption(CLI::App& app, std::string& value, const std::string& help) {
  return app.add_option("--device", value, help)
      ->type_name("DEVICE")
      ->check([](const std::string& text) {
        const auto choice = DeviceChoice::Parse(text);
        return choice && choice->kind != DeviceChoice::Kind::kAuto
                   ? std::string()
                   : absl::StrCat("'", text, "' is none of cpu, cuda, cuda:N");
      })
      ->capture_default_str();
}

CLI::Option* AddGemmOption(CLI::App& app, std::string& value) {
  return app
      .add_option("--gemm", value, "Matrix multiplication: auto, native, openblas or reference")
      ->check([](const std::string& name) {
        const auto backend = GemmBackendFromName(name);
        return backend.ok() ? std::string() : std::string(backend.status().message());
      })
      ->type_name("BACKEND")
      ->capture_default_str();
}

CLI::Option* AddPrecisionOption(CLI::App& app, Precision& precision) {
  const std::map<std::string, Precision> names = {
      {"float32", Precision::kFloat32}, {"bf16", Precision::kBf16}, {"tf32", Precision::kTf32}};
  return app
      .add_option("--precision", precision,
                  "Of matrix products: float32 (default), bf16, or tf32 (GPUs alone)")
      ->transform(CLI::CheckedTransformer(names).description(""))
      ->type_name("NAME");
}

CLI::Option* AddTagsOption(CLI::App& app, std::vector<std::string>& tags) {
  return app
      .add_option("--tags", tags, "Of the SavedModel's graph (default serve, or the only graph)")
      ->type_name("TAG,TAG")
      ->delimiter(',')
      ->allow_extra_args(false);
}

CLI::Option* AddDisablePassOption(CLI::App& app, std::vector<std::string>& names) {
  return app
      .add_option("--disable-pass", names,
                  absl::StrCat("A pass over the graph to omit; can be repeated: ",
                               absl::StrJoin(PassNames(), ", "), ", or all"))
      ->check([](const std::string& name) { return std::string(CheckPassNames({name}).message()); })
      ->type_name("NAME")
      ->allow_extra_args(false);
}

CLI::Option* AddRouteOption(CLI::App& app, std::map<std::string, std::string>& routes) {
  const auto equals = [](const std::string& text) {
    const size_t at = text.rfind('=');
    return at == 0 || at + 1 == text.size() ? std::string::npos : at;
  };
  return app
      .add_option_function<std::vector<std::string>>(
          "--route",
          [&routes, equals](const std::vector<std::string>& texts) {
            for (const std::string& text : texts)
              routes[text.substr(0, equals(text))] = text.substr(equals(text) + 1);
          },
          "How to compute a step that inspect --plan shows with several routes; can be repeated")
      ->check([equals](const std::string& text) {
        return equals(text) == std::string::npos ? "'" + text + "' is not NODE=NAME"
                                                 : std::string();
      })
      ->type_name("NODE=NAME")
      ->allow_extra_args(false);
}

int Main(const std::vector<std::string>& args, std::ostream& to_out, std::ostream& to_err) {
  PrintableStream out(to_out), err(to_err);
  CLI::App app("floectl inspects and runs model files, and shows and configures floe servers.",
               "floectl");
  app.set_version_flag("--version", std::string("floectl ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success, 1 the operation failed, 2 wrong usage.\n"
      "floectl COMMAND --help shows a command's options and an example.");
  Context context{out, err};
  if (&to_err == &std::cerr && isatty(STDERR_FILENO) != 0) context.terminal = &to_err;
  AddStatusCommand(app, context);
  AddLogLevelCommand(app, context);
  AddPredictCommand(app, context);
  AddInspectCommand(app, context);
  AddRunCommand(app, context);
  AddBenchCommand(app, context);
  AddReplayCommand(app, context);
  AddProfileCommand(app, context);
  AddFreezeCommand(app, context);
  AddOpsCommand(app, context);
  AddConfigCommand(app, context);
  AddTokenCommand(app, context);
  AddModelsCommands(app, context);
  try {
    std::vector<std::string> reversed(args.rbegin(),
                                      args.rend());  // CLI11 takes them from the back
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& e) {
    return ExplainUsage(app, e, InsteadOfFlagHere, out, err) ? kExitOk : kExitUsage;
  }
  return RunAction(app.get_subcommands().front()->get_name(), context);
}

}  // namespace floe::cli
