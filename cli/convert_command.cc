#include <memory>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/table.h"
#include "model/form/form.h"
#include "model/import/import.h"

namespace floe::cli {
namespace {

struct Options {
  std::string in, out;
  std::vector<std::string> fetches;
};

// Reads back what was written, weights included: a disk that lies is found out here and not by the
// server.
absl::StatusOr<size_t> CheckWritten(const std::string& path, int64_t max_bytes) {
  FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path, max_bytes));
  const auto* data = reinterpret_cast<const uint8_t*>(file->data());
  const auto read = ReadForm({data, file->size()}, file, FormCheck::kAll);
  if (!read.ok()) return Annotate(read.status(), path);
  return file->size();
}

absl::Status Run(const Options& options, Context& context) {
  ImportOptions import;
  import.fetches = options.fetches;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportFile(options.in, import));
  FormModel form;
  form.graph = std::move(imported.graph);
  form.signatures = std::move(imported.signatures);
  FLOE_RETURN_IF_ERROR(Annotate(WriteForm(form, options.out), options.in));
  FLOE_ASSIGN_OR_RETURN(const size_t bytes, CheckWritten(options.out, INT64_MAX));
  context.out << options.out << ": " << form.graph.size() << " nodes, " << HumanBytes(bytes)
              << ", from " << imported.format << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddConvertCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "convert", "Write a model in floe's own form, which is mapped, not parsed");
  command->add_option("IN", options->in, "The model, in any form that floe reads")->required();
  command->add_option("OUT", options->out, "The file to write; replaced when it exists")
      ->required();
  command
      ->add_option("--fetch", options->fetches,
                   "A tensor that becomes an output instead of the signature's; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->footer("Example:\n  floectl convert frozen.pb model.floe");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
