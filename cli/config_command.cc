// config check | show | apply | keys.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/rpc.h"
#include "config/config.h"
#include "config/config_rpcs.h"
#include "config/cpu_budget.h"
#include "config/files.h"
#include "config/key_table.h"
#include "config/text_proto.h"
#include "floe/admin.pb.h"
#include "nlohmann/json.hpp"
#include "tensorflow_serving/apis/model_management.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;

// The files sorted by what they hold. A second one of a kind is a mistake.
absl::Status SortFiles(const std::vector<std::string>& paths, ConfigFiles* files) {
  for (const std::string& path : paths) {
    const absl::StatusOr<std::string> text = ReadConfigText(path);
    FLOE_RETURN_IF_ERROR(text.status());
    const ConfigKind kind = KindOf(*text);
    std::string* const slot = kind == ConfigKind::kYaml          ? &files->yaml
                              : kind == ConfigKind::kModelConfig ? &files->model_config
                                                                 : &files->batching_parameters;
    if (!slot->empty())
      return absl::InvalidArgumentError(
          absl::StrCat("'", *slot, "' and '", path,
                       "' are files of the same kind; floed reads one "
                       "floe.yaml, one ModelServerConfig and one BatchingParameters"));
    *slot = path;
  }
  return absl::OkStatus();
}

struct CheckOptions {
  std::vector<std::string> files;
  bool skip_paths = false;
};

// Every mistake goes to `err` as it is; the status says how many.
absl::Status Report(const std::vector<absl::Status>& found, Context& context) {
  int count = 0;
  for (const absl::Status& status : found) {
    if (status.ok()) continue;
    const std::string lines(status.message());
    context.err << lines << "\n";
    count += 1 + static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
  }
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(count, count == 1 ? " mistake" : " mistakes", " in the configuration"));
}

absl::Status Check(const CheckOptions& options, Context& context) {
  ConfigFiles files;
  FLOE_RETURN_IF_ERROR(SortFiles(options.files, &files));
  ModelConfig defaults;
  const absl::StatusOr<ServerConfig> config = LoadConfigFiles(files, &defaults);
  if (!config.ok()) return Report({config.status()}, context);
  context.out << ConfigToYaml(*config);
  std::vector<std::string> notes = config->notes;
  const bool lists_models = !files.yaml.empty() || !files.model_config.empty();
  if (lists_models && config->models.empty())
    notes.emplace_back("there are no models: floed would serve none");
  for (const std::string& note : notes) context.err << note << "\n";
  for (const std::string& warning : CpuBudgetWarnings(config->models, FindUsableCpus()))
    context.err << "on this machine: " << warning << "\n";
  return Report(
      {ValidateConfig(*config), options.skip_paths ? absl::OkStatus() : CheckPaths(*config)},
      context);
}

struct ShowOptions {
  Target target;
  bool json = false;
};

absl::Status Show(const ShowOptions& options, Context& context) {
  const RpcClient client(options.target);
  floe::GetConfigResponse config;
  FLOE_RETURN_IF_ERROR(client.Call(kGetConfigMethod, floe::GetConfigRequest(), &config));
  const tfs::StatusProto& error = config.last_error();
  const std::string code =
      absl::StatusCodeToString(static_cast<absl::StatusCode>(error.error_code()));
  if (options.json) {
    const nlohmann::ordered_json json = {{"generation", config.generation()},
                                         {"last_error_code", static_cast<int>(error.error_code())},
                                         {"last_error_message", error.error_message()},
                                         {"yaml", config.yaml()}};
    context.out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                << "\n";
    return absl::OkStatus();
  }
  // Comments, so that what is printed is a floe.yaml.
  context.out << "# generation " << config.generation() << "\n";
  if (error.error_code() != 0) {
    std::string message = error.error_message();
    for (size_t at = 0; (at = message.find('\n', at)) != std::string::npos; at += 3)
      message.replace(at, 1, "\n# ");
    context.out << "# the last reload failed: " << code << ": " << message << "\n";
  }
  context.out << config.yaml();
  return absl::OkStatus();
}

struct ApplyOptions {
  Target target;
  std::string file;
  int64_t generation = 0;  // 0: whatever is active
};

std::string Absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// The file as a request, checked as far as can be done here.
absl::StatusOr<tfs::ModelServerConfig> ReadConfig(const std::string& path, Context& context) {
  ConfigFiles files;
  FLOE_RETURN_IF_ERROR(SortFiles({path}, &files));
  if (!files.batching_parameters.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("'", path,
                     "' holds batching parameters, which are read at start only; expected a "
                     "floe.yaml or a ModelServerConfig"));
  ModelConfig defaults;
  FLOE_ASSIGN_OR_RETURN(const ServerConfig config, LoadConfigFiles(files, &defaults));
  FLOE_ASSIGN_OR_RETURN(const std::string text, ReadConfigText(path));
  if (config.models.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("'", path,
                     "' names no models, and would take away all that the server has; expected at "
                     "least one"));
  tfs::ModelServerConfig request;
  if (files.yaml.empty()) {
    FLOE_RETURN_IF_ERROR(ParseTextProto(text, path, &request, nullptr));
    // The server does not know where the file is.
    for (int i = 0; i < request.model_config_list().config_size(); ++i)
      request.mutable_model_config_list()->mutable_config(i)->set_base_path(
          Absolute(config.models[static_cast<size_t>(i)].base_path));
    return request;
  }
  if (!ChangesForRestart(ServerConfig(), config).empty())
    context.err << "only the models of '" << path
                << "' are applied; its other sections are read when floed starts\n";
  floe::YamlModels yaml;
  yaml.set_yaml(text);
  yaml.set_file(path);
  yaml.set_directory(Absolute(DirectoryOf(path)));
  request.mutable_custom_model_config()->PackFrom(yaml);
  return request;
}

// Replaces the configuration of this generation; 0: whatever is active.
absl::Status Replace(const RpcClient& client, tfs::ModelServerConfig config, int64_t generation) {
  tfs::ReloadConfigRequest request;
  *request.mutable_config() = std::move(config);
  request.add_metric_names(kGenerationMetric);
  RpcClient::Metadata metadata;
  if (generation != 0) metadata.emplace_back(kGenerationKey, absl::StrCat(generation));
  tfs::ReloadConfigResponse response;
  FLOE_RETURN_IF_ERROR(client.Call(kReloadConfigMethod, request, &response, metadata));
  // Other servers may answer OK with the error inside.
  return absl::Status(static_cast<absl::StatusCode>(response.status().error_code()),
                      response.status().error_message());
}

absl::Status Apply(const ApplyOptions& options, Context& context) {
  FLOE_ASSIGN_OR_RETURN(tfs::ModelServerConfig config, ReadConfig(options.file, context));
  FLOE_RETURN_IF_ERROR(Replace(RpcClient(options.target), std::move(config), options.generation));
  context.out << "applied\n";
  return absl::OkStatus();
}

void AddCheck(CLI::App& app, Context& context) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* const command = app.add_subcommand(
      "check", "Check configuration files: print their mistakes, or the whole configuration");
  command
      ->add_option("FILE", options->files,
                   "floe.yaml, ModelServerConfig and BatchingParameters in text format, at most "
                   "one of each; "
                   "the first field shows which of them a file is")
      ->required();
  command->add_flag("--skip-paths", options->skip_paths,
                    "Do not check that the models' paths exist on this machine");
  command->footer(
      "Exits with 1 if there are mistakes, which are listed by file and line, or by key.\n"
      "Example:\n  floectl config check config/floe.yaml");
  command->callback([options, &context] {
    context.action = [options, &context] { return Check(*options, context); };
  });
}

void AddShow(CLI::App& app, Context& context) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* const command = app.add_subcommand(
      "show", "Print the active configuration of a server, and the last reload's result");
  AddOperatorTargetOptions(*command, options->target);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example:\n  floectl config show --target 127.0.0.1:8500");
  command->callback([options, &context] {
    context.action = [options, &context] { return Show(*options, context); };
  });
}

void AddApply(CLI::App& app, Context& context) {
  auto options = std::make_shared<ApplyOptions>();
  options->target.timeout_s = 120;
  CLI::App* const command = app.add_subcommand(
      "apply", "Replace a server's models with a file's: all of them, or none if one fails");
  AddOperatorTargetOptions(*command, options->target, "Seconds to wait for the models to load");
  command
      ->add_option(
          "FILE", options->file,
          "A floe.yaml, of which only the models count, or a ModelServerConfig in text format; "
          "relative paths start at its directory")
      ->required();
  command
      ->add_option("--if-generation", options->generation,
                   "Refuse if the active configuration has another generation (see show)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->footer(
      "The server's own files do not change. When they do, or at a restart, the server goes back "
      "to "
      "them.\n"
      "Example:\n  floectl config apply models.config --target 127.0.0.1:8500");
  command->callback([options, &context] {
    context.action = [options, &context] { return Apply(*options, context); };
  });
}

void AddKeys(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand(
      "keys", "Print every key of floe.yaml with default and meaning, as Markdown");
  command->footer("Example:\n  floectl config keys");
  command->callback([&context] {
    context.action = [&context] {
      context.out << KeysMarkdown();
      return absl::OkStatus();
    };
  });
}

}  // namespace

void AddConfigCommand(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand(
      "config", "Check configuration files, show and change a server's, list the keys");
  command->require_subcommand(1);
  AddCheck(*command, context);
  AddShow(*command, context);
  AddApply(*command, context);
  AddKeys(*command, context);
}

}  // namespace floe::cli
