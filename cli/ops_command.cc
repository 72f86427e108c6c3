// `floectl ops`: the ops, as a table or as docs/ops.md.
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/ops_report.h"
#include "cli/table.h"
#include "model/refused_ops.h"

namespace floe::cli {
namespace {

struct OpsOptions {
  std::string filter;
  bool markdown = false;
};

absl::Status Run(const OpsOptions& options, Context& context) {
  if (options.markdown) {
    PrintOpsMarkdown(context.out);
    return absl::OkStatus();
  }
  Table table({"op", "dtypes", "notes"});
  bool found = false;
  const std::string filter = absl::AsciiStrToLower(options.filter);
  for (const SupportedOp& op : SupportedOps()) {
    if (absl::AsciiStrToLower(op.names).find(filter) == std::string::npos) continue;
    table.Add({op.names, op.dtypes, op.notes});
    found = true;
  }
  const RefusedOps* const refused = found ? nullptr : FindRefusedOp(options.filter);
  if (refused != nullptr)
    return absl::NotFoundError("'" + options.filter + "' is refused: " + refused->why);
  if (!found) return absl::NotFoundError("no op has '" + options.filter + "' in its name");
  table.Print(context.out);
  return absl::OkStatus();
}

}  // namespace

void AddOpsCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* const command = app.add_subcommand("ops", "List the ops that graphs may use");
  command->add_option("TEXT", options->filter, "Only ops with this in their name");
  command->add_flag("--markdown", options->markdown, "Print docs/ops.md");
  command->footer("Example:\n  floectl ops conv");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
