// `floectl log-level`: shows or sets a server's log level.
#include <memory>

#include "base/status.h"
#include "cli/command.h"
#include "cli/rpc.h"
#include "floe/admin.pb.h"

namespace floe::cli {
namespace {

struct LogLevelOptions {
  Target target;
  std::string level;
};

absl::Status Run(const LogLevelOptions& options, Context& context) {
  SetLogLevelRequest request;
  SetLogLevelResponse response;
  request.set_level(options.level);
  FLOE_RETURN_IF_ERROR(
      RpcClient(options.target).Call("/floe.Admin/SetLogLevel", request, &response));
  context.out << response.level() << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddLogLevelCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<LogLevelOptions>();
  CLI::App* const command =
      app.add_subcommand("log-level", "Show a server's log level, or change it until it restarts");
  AddOperatorTargetOptions(*command, options->target);
  command
      ->add_option("LEVEL", options->level,
                   "trace, debug, info, warn, error or off; without it the level is only shown")
      ->type_name("");
  command->footer("Example:\n  floectl log-level debug");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
