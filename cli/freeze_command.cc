#include <google/protobuf/text_format.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/atomic_file.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/model_path.h"
#include "cli/signature_report.h"
#include "model/import/savedmodel/freeze.h"

namespace floe::cli {
namespace {

struct FreezeOptions {
  std::string saved_model, graph, meta, checkpoint, signature, output;
  std::vector<std::string> outputs, tags;
  bool text = false;
};

absl::Status CheckUsage(const FreezeOptions& options) {
  const bool road = !options.graph.empty() || !options.meta.empty() ||
                    !options.checkpoint.empty() || !options.outputs.empty();
  if (options.saved_model.empty() != road)
    return absl::InvalidArgumentError(
        "give a SavedModel, or a graph with its checkpoint: --graph FILE or --meta FILE, "
        "--checkpoint PREFIX and --outputs NAME,NAME");
  if (!road) return absl::OkStatus();
  if (options.graph.empty() == options.meta.empty())
    return absl::InvalidArgumentError("give one of --graph and --meta");
  if (options.checkpoint.empty())
    return absl::InvalidArgumentError(
        "--checkpoint is missing: the prefix of the files PREFIX.index and PREFIX.data-...");
  if (options.outputs.empty())
    return absl::InvalidArgumentError("--outputs is missing: the tensors that the graph is for");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Written(const FreezeOptions& options,
                                    const tensorflow::GraphDef& graph) {
  std::string bytes;
  const bool done = options.text ? google::protobuf::TextFormat::PrintToString(graph, &bytes)
                                 : graph.SerializeToString(&bytes);
  if (done) return bytes;
  return absl::InvalidArgumentError("the frozen graph is past protobuf's limit of 2 GiB");
}

absl::StatusOr<Frozen> FreezeWhatIsMeant(const FreezeOptions& options, std::ostream& notes) {
  const std::string& file = options.meta.empty() ? options.graph : options.meta;
  if (options.saved_model.empty())
    return FreezeCheckpoint(file, options.checkpoint, options.outputs);
  FLOE_ASSIGN_OR_RETURN(const std::string model, FindModelFile(options.saved_model, notes));
  return FreezeSavedModel(model, options.tags, options.signature);
}

absl::Status Run(const FreezeOptions& options, Context& context) {
  FLOE_RETURN_IF_ERROR(CheckUsage(options));
  FLOE_ASSIGN_OR_RETURN(const Frozen frozen, FreezeWhatIsMeant(options, context.err));
  FLOE_ASSIGN_OR_RETURN(const std::string bytes, Written(options, frozen.graph));
  FLOE_ASSIGN_OR_RETURN(AtomicFile out, AtomicFile::Create(options.output));
  FLOE_RETURN_IF_ERROR(out.Write(bytes.data(), bytes.size()));
  FLOE_RETURN_IF_ERROR(out.Commit());
  context.out << options.output << ": " << frozen.graph.node_size() << " nodes, " << bytes.size()
              << " bytes\n";
  for (const SignatureTensor& tensor : frozen.signature.inputs)
    context.out << "input " << Escaped(tensor.key) << ": " << tensor.tensor_name << " "
                << TypeText(tensor.type) << "\n";
  for (const SignatureTensor& tensor : frozen.signature.outputs)
    context.out << "output " << Escaped(tensor.key) << ": " << tensor.tensor_name << "\n";
  for (const std::string& node : frozen.initialisers)
    context.out << "run before the first request, to fill tables: " << node << "\n";
  return absl::OkStatus();
}

std::vector<std::string> SplitNames(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    for (const auto& name : absl::StrSplit(text, ',', absl::SkipEmpty())) names.emplace_back(name);
  }
  return names;
}

}  // namespace

void AddFreezeCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<FreezeOptions>();
  CLI::App* const command = app.add_subcommand(
      "freeze", "Write a graph whose variables are constants, for TensorFlow and floe");
  command->add_option(
      "SAVED_MODEL", options->saved_model,
      "A SavedModel's directory, or a directory of numbered versions, of which the newest counts");
  command
      ->add_option("--signature", options->signature,
                   "Of the SavedModel (default serving_default, or the only one)")
      ->type_name("NAME");
  AddTagsOption(*command, options->tags);
  command->add_option("--graph", options->graph, "A GraphDef, binary or text")->type_name("FILE");
  command->add_option("--meta", options->meta, "A MetaGraphDef, the .meta file of a checkpoint")
      ->type_name("FILE");
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "The graph's variables: PREFIX.index and PREFIX.data-...")
      ->type_name("PREFIX");
  command->add_option("--outputs", options->outputs, "Tensors to keep, with what they need")
      ->type_name("NAME,NAME")
      ->allow_extra_args(false);
  command->add_option("-o,--output", options->output, "Where to write the graph")
      ->type_name("FROZEN.pb")
      ->required();
  command->add_flag("--text", options->text, "Write protobuf's text form");
  command->footer(
      "Examples:\n  floectl freeze exported/1 -o frozen.pb\n"
      "  floectl freeze --meta model.ckpt-100.meta --checkpoint model.ckpt-100 --outputs y -o "
      "frozen.pb");
  command->callback([options, &context] {
    options->outputs = SplitNames(options->outputs);
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
