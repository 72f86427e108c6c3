#include "server/flags/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/nearest.h"
#include "base/status.h"
#include "config/files.h"
#include "config/key_table.h"
#include "server/flags/tfs_flags.h"

namespace floe::server {
namespace {

constexpr char kDescription[] =
    "floed serves frozen models over gRPC (tensorflow.serving.PredictionService and ModelService,\n"
    "grpc.health.v1.Health). Models come from a configuration file, or one model from flags:\n"
    "\n"
    "  floed --config /etc/floe/floe.yaml\n"
    "  floed --model_config_file=/etc/floe/models.config --port=8500\n"
    "  floed --model_name=digits --model_base_path=/srv/models/digits --port=8500\n"
    "\n"
    "Every flag of TensorFlow Serving's model server is taken, as --flag=value or --flag value.\n"
    "Flags win over floe.yaml, but what a model's own entry says wins over flags for all models.\n"
    "Without --config, --model_config_file, --model_name and --model_base_path the environment's\n"
    "MODEL_NAME and MODEL_BASE_PATH (which holds a directory MODEL_NAME) say the model.\n"
    "SIGHUP reads the files again. SIGTERM finishes what was accepted and ends with 0; a second\n"
    "one ends at once.\n";

// A flag's value, unset when it was not given.
template <typename T>
using Given = std::optional<T>;

struct Flags {
  ConfigFiles files;
  bool check_config = false;
  // Of flags that say what a key of floe.yaml says: the value as the key's text.
  std::vector<std::pair<const Key<ServerConfig>*, std::string>> keys;
  Given<std::string> model_name, model_base_path, full_status, ssl_config;
  Given<bool> content, enable_batching, per_model_batching, alts;
  Given<int64_t> session_parallelism, intra_op_parallelism, inter_op_parallelism;
  std::vector<std::string> notes;  // of flags without effect
};

// A flag that says what a key of floe.yaml says.
struct KeyFlag {
  const char* name;
  const char* key;
  const char* type = "TEXT";
  // One of TensorFlow Serving's, which takes any number: one that floed cannot do as it is means
  // the nearest that it can.
  bool nearest = false;
};

constexpr KeyFlag kServingFlags[] = {
    {"--port", "server.port"},
    {"--bind_address", "server.bind_address", "ADDRESS"},
    {"--insecure_public", "server.insecure_public"},
    {"--grpc_socket_path", "server.grpc_socket_path", "PATH"},
    {"--grpc_max_message_bytes", "server.max_message_bytes"},
    {"--grpc_channel_arguments", "server.grpc_channel_arguments", "KEY=VALUE,..."},
    {"--enable_reflection", "server.enable_reflection"},
    {"--enable_health_watch", "server.enable_health_watch"},
    {"--enable_config_rpcs", "server.enable_config_rpcs"},
    {"--log_level", "log.level"},
    {"--log_format", "log.format"},
    {"--cpu_gemm", "cpu.gemm"},
};

constexpr KeyFlag kLifecycleFlags[] = {
    {"--model_config_file_poll_wait_seconds", "lifecycle.model_config_file_poll_wait_seconds", "",
     true},
    {"--file_system_poll_wait_seconds", "lifecycle.file_system_poll_wait_seconds", "", true},
    {"--num_load_threads", "lifecycle.num_load_threads", "", true},
    {"--trial_load", "lifecycle.trial_load"},
    {"--max_load_seconds", "lifecycle.max_load_seconds"},
    {"--max_num_load_retries", "lifecycle.max_num_load_retries", "", true},
    {"--load_retry_interval_micros", "lifecycle.load_retry_interval_micros", "", true},
    {"--allow_version_labels_for_unavailable_models",
     "lifecycle.allow_version_labels_for_unavailable_models"},
    {"--enable_model_warmup", "lifecycle.enable_model_warmup"},
    {"--warmup_optional", "lifecycle.warmup_optional"},
    {"--strict_readiness", "lifecycle.strict_readiness"},
    {"--exit_on_error", "lifecycle.exit_on_error"},
    {"--memory_limit", "lifecycle.memory_limit", "BYTES|PERCENT"},
};

void AddSwitch(CLI::App& app, const std::string& name, Given<bool>& value,
               const std::string& help) {
  server::AddSwitch(
      app, name, [&value](bool given) { value = given; }, help);
}

// `given` in `range`, which a note says where it differs.
int64_t Nearest(Flags& f, const std::string& name, int64_t given, const IntRange& range) {
  const int64_t nearest = std::clamp(given, range.low, range.high);
  if (nearest != given)
    f.notes.push_back(absl::StrCat(name, "=", given, " means ", nearest, " here"));
  return nearest;
}

void AddKeyFlag(CLI::App& app, Flags& f, const KeyFlag& flag) {
  const Key<ServerConfig>& key = ServerKey(flag.key);
  const std::string usual = key.text(ServerConfig());
  // What docs/config.md has as code stands bare on a terminal.
  const std::string help = absl::StrCat(absl::StrReplaceAll(key.help, {{"`", ""}}),
                                        usual.empty() ? "" : absl::StrCat(" [", usual, "]"));
  const auto set = [&f, &key](const std::string& text) { f.keys.emplace_back(&key, text); };
  const auto check = [&key](const std::string& text) {
    ServerConfig unused;
    return key.parse(text, &unused);
  };
  if (key.is_switch) {
    server::AddSwitch(
        app, flag.name, [set](bool given) { set(given ? "true" : "false"); }, help);
  } else if (key.range) {
    const auto set_number = [&f, &key, flag, set](int64_t given) {
      set(absl::StrCat(flag.nearest ? Nearest(f, flag.name, given, *key.range) : given));
    };
    CLI::Option* const option = server::AddInteger(app, flag.name, set_number, help);
    if (!flag.nearest)
      option->check(check, absl::StrCat("from ", key.range->low, " to ", key.range->high));
  } else if (!key.choices.empty()) {
    app.add_option_function<std::string>(flag.name, set, help)
        ->type_name("NAME")
        ->check(CLI::IsMember(key.choices));
  } else {
    app.add_option_function<std::string>(flag.name, set, help)->type_name(flag.type)->check(check);
  }
}

CLI::Option* AddText(CLI::App& app, const std::string& name, Given<std::string>& value,
                     const std::string& type, const std::string& help) {
  return app.add_option(name, value, help)->type_name(type);
}

void AddServingFlags(CLI::App& app, Flags& f) {
  for (const KeyFlag& flag : kServingFlags) AddKeyFlag(app, f, flag);
  AddText(app, "--ssl_config_file", f.ssl_config, "FILE",
          "Refused: connections are not encrypted here; leave that to a proxy in front of floed");
  AddSwitch(app, "--use_alts_credentials", f.alts, "Refused, as --ssl_config_file");
  AddSwitch(
      app, "--enable_serialization_as_tensor_content", f.content,
      "Reply with tensor_content instead of typed values, for models that do not say otherwise");
}

void AddModelFlags(CLI::App& app, Flags& f) {
  AddText(app, "--model_name", f.model_name, "NAME",
          "Name of the one model to serve, instead of floe.yaml's [default]");
  AddText(app, "--model_base_path", f.model_base_path, "PATH",
          "Its place: a directory with <version>/ directories, or with the model file, or the file "
          "itself");
  app.add_option(
         "--model_config_file", f.files.model_config,
         "ModelServerConfig in text format: the models to serve, instead of floe.yaml's, of "
         "which those of the same name lend their other settings")
      ->type_name("FILE");
  AddSwitch(app, "--enable_per_model_batching_parameters", f.per_model_batching,
            "Read batching_params.pbtxt of a version; needs --enable_batching [false]");
  AddSwitch(app, "--enable_batching", f.enable_batching,
            "Needed for --batching_parameters_file; requests that wait are batched in any case");
  app.add_option("--batching_parameters_file", f.files.batching_parameters,
                 "BatchingParameters in text format, for models that do not say otherwise")
      ->type_name("FILE");
  AddText(app, "--batching_full_status", f.full_status, "NAME",
          "The answer of a full queue, of models that do not say otherwise; TensorFlow Serving's "
          "is unavailable [unavailable]")
      ->check(CLI::IsMember(ModelKey("batching_full_status").choices));
  const auto add_threads = [&](const char* name, Given<int64_t>& value, const char* help) {
    const IntRange range{0, ModelKey("intra_op_threads").range->high};
    const auto set = [&f, &value, name, range](int64_t given) {
      value = Nearest(f, name, given, range);
    };
    server::AddInteger(app, name, set, help);
  };
  add_threads("--tensorflow_inter_op_parallelism", f.inter_op_parallelism,
              "Workers of models that do not say otherwise; 0: the default [0]");
  add_threads("--tensorflow_intra_op_parallelism", f.intra_op_parallelism,
              "Threads inside one run of models that do not say otherwise; 0: the default [0]");
  add_threads("--tensorflow_session_parallelism", f.session_parallelism,
              "As --tensorflow_inter_op_parallelism, when neither of the two is given [0]");
}

void AddLifecycleFlags(CLI::App& app, Flags& f) {
  for (const KeyFlag& flag : kLifecycleFlags) AddKeyFlag(app, f, flag);
  // As TensorFlow Serving: used only where it is a number of runs.
  const Key<ServerConfig>& iterations = ServerKey("lifecycle.num_request_iterations_for_warmup");
  const char* const name = "--num_request_iterations_for_warmup";
  const auto set = [&f, &iterations, name](int64_t given) {
    const IntRange range{std::numeric_limits<int32_t>::min(), iterations.range->high};
    const int64_t runs = Nearest(f, name, given, range);
    if (runs > 0) f.keys.emplace_back(&iterations, absl::StrCat(runs));
  };
  server::AddInteger(app, name, set, "How often each recorded warm-up request runs [1]");
}

void AddFlags(CLI::App& app, Flags& f) {
  // Containers append the user's flags to their own.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_version_flag("--version", absl::StrCat("floed ", kVersion), "Print the version and end");
  app.add_option("--config", f.files.yaml,
                 "Configuration file (YAML); docs/config.md explains its keys")
      ->type_name("FILE");
  app.add_flag("--check-config", f.check_config,
               "Say whether the configuration is right, and end: 0 if so, else 1");
  AddModelFlags(app, f);
  AddServingFlags(app, f);
  AddLifecycleFlags(app, f);
  AddFlagsWithoutEffect(app, &f.notes);
}

void Overlay(const Flags& f, ServerConfig* config) {
  for (const auto& [key, text] : f.keys) key->parse(text, config);
  if (f.content) config->reply = *f.content ? ReplyFormat::kContent : ReplyFormat::kTyped;
  if (f.per_model_batching)
    config->lifecycle.enable_per_model_batching_parameters =
        *f.per_model_batching && f.enable_batching.value_or(false);
}

// What models start from.
ModelConfig ModelDefaults(const Flags& f) {
  ModelConfig model;
  const bool apart =
      f.inter_op_parallelism.value_or(0) > 0 || f.intra_op_parallelism.value_or(0) > 0;
  const int64_t workers = (apart ? f.inter_op_parallelism : f.session_parallelism).value_or(0);
  if (workers > 0) model.workers = workers;
  if (f.intra_op_parallelism.value_or(0) > 0) model.intra_op_threads = *f.intra_op_parallelism;
  if (f.full_status) ModelKey("batching_full_status").parse(*f.full_status, &model);
  return model;
}

// Name, path and origin of one model.
struct SingleModel {
  std::string name, base_path, where;
};

// The one model of the flags, or of the environment as TensorFlow Serving's container image reads
// it. Unset: neither names one.
std::optional<SingleModel> SingleModelOf(const Flags& f) {
  if (f.model_name || f.model_base_path)
    return SingleModel{f.model_name.value_or("default"), f.model_base_path.value_or(""),
                       f.model_base_path ? "--model_base_path" : "--model_name"};
  const char* const name = std::getenv("MODEL_NAME");
  const char* const base_path = std::getenv("MODEL_BASE_PATH");
  const bool files = !f.files.yaml.empty() || !f.files.model_config.empty();
  if (files || (name == nullptr && base_path == nullptr)) return std::nullopt;
  const std::string used = name != nullptr ? name : "model";
  return SingleModel{used, absl::StrCat(base_path != nullptr ? base_path : "/models", "/", used),
                     "the environment's MODEL_NAME and MODEL_BASE_PATH"};
}

// Replaces the models; one of the same name lends its other settings.
void ServeOnly(const SingleModel& single, const ModelConfig& defaults, ServerConfig* config) {
  const auto known =
      std::find_if(config->models.begin(), config->models.end(),
                   [&](const ModelConfig& model) { return model.name == single.name; });
  ModelConfig model = known == config->models.end() ? defaults : *known;
  model.name = single.name;
  if (!single.base_path.empty() || known == config->models.end()) {
    model.base_path = AbsolutePath(single.base_path);
    model.where = single.where;
  }
  config->models = {std::move(model)};
}

// Whoever asks for encryption must not be served without it.
absl::Status CheckEncryption(const Flags& f) {
  const bool ssl = !f.ssl_config.value_or("").empty();
  if (!ssl && !f.alts.value_or(false)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      ssl ? absl::StrCat("--ssl_config_file=", *f.ssl_config) : "--use_alts_credentials",
      ": floed does not encrypt connections; leave the flag out, keep floed on loopback or a unix "
      "socket, and let a proxy in front of it (Envoy, nginx) end TLS"));
}

absl::Status CheckTogether(const Flags& f) {
  FLOE_RETURN_IF_ERROR(CheckEncryption(f));
  if (!f.files.batching_parameters.empty() && !f.enable_batching.value_or(false))
    return absl::InvalidArgumentError(
        "--batching_parameters_file is given without --enable_batching; add --enable_batching");
  if (f.session_parallelism.value_or(0) > 0 && f.intra_op_parallelism.value_or(0) > 0 &&
      f.inter_op_parallelism.value_or(0) > 0)
    return absl::InvalidArgumentError(
        "--tensorflow_session_parallelism is given together with both "
        "--tensorflow_intra_op_parallelism and --tensorflow_inter_op_parallelism; leave it out");
  return absl::OkStatus();
}

absl::StatusOr<ServerConfig> Assemble(const Flags& f) {
  FLOE_RETURN_IF_ERROR(CheckTogether(f));
  const std::optional<SingleModel> single = SingleModelOf(f);
  if (f.files.yaml.empty() && f.files.model_config.empty() && !single)
    return absl::InvalidArgumentError(
        "nothing to serve; give --config FILE, or --model_config_file FILE, or --model_name and "
        "--model_base_path");
  ModelConfig defaults = ModelDefaults(f);
  FLOE_ASSIGN_OR_RETURN(ServerConfig config, LoadConfigFiles(f.files, &defaults));
  Overlay(f, &config);
  config.model_defaults = defaults;
  config.notes.insert(config.notes.begin(), f.notes.begin(), f.notes.end());
  if (single && f.files.model_config.empty())
    ServeOnly(*single, defaults, &config);
  else if (single)
    config.notes.push_back(absl::StrCat(
        single->where, " has no effect here: the models come from --model_config_file"));
  if (f.per_model_batching.value_or(false) && !f.enable_batching.value_or(false))
    config.notes.push_back(
        "--enable_per_model_batching_parameters has no effect without --enable_batching");
  if (f.enable_batching.has_value() && !*f.enable_batching)
    config.notes.push_back(
        "--enable_batching=false has no effect here: requests that wait run together, which "
        "changes no answer");
  FLOE_RETURN_IF_ERROR(ValidateConfig(config));
  if (f.check_config) FLOE_RETURN_IF_ERROR(CheckPaths(config));
  return config;
}

// "; nearest: '--port'" for the first argument that was not understood.
std::string NearestFlag(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  for (const std::string& extra : app.remaining())
    if (extra.rfind("--", 0) == 0) {
      const auto near = NearestNames(extra.substr(0, extra.find('=')), names, 1);
      return near.empty() ? "" : absl::StrCat("; nearest: '", near[0], "'");
    }
  return "";
}

// CLI11 takes the next argument for the value of "--name=": the empty text becomes one of its own.
std::vector<std::string> WithEmptyValues(const std::vector<std::string>& args) {
  std::vector<std::string> apart;
  for (const std::string& arg : args) {
    const bool empty = arg.rfind("--", 0) == 0 && arg.find('=') == arg.size() - 1;
    apart.push_back(empty ? arg.substr(0, arg.size() - 1) : arg);
    if (empty) apart.emplace_back();
  }
  return apart;
}

// Unset: the process is to end with `*exit_code`.
std::optional<Flags> ParseFlags(const std::vector<std::string>& given, std::ostream& out,
                                std::ostream& err, int* exit_code) {
  Flags flags;
  CLI::App app(kDescription, "floed");
  AddFlags(app, flags);
  // The one boundary where CLI11's exceptions stop.
  try {
    std::vector<std::string> args = WithEmptyValues(given);
    std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
    app.parse(std::move(args));
  } catch (const CLI::ExtrasError& e) {
    err << e.what() << NearestFlag(app) << "\n";
    *exit_code = 2;
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    *exit_code = app.exit(e, out, err) == 0 ? 0 : 2;
    return std::nullopt;
  }
  return flags;
}

absl::StatusOr<ServerConfig> AssembleFrom(const Flags& flags, std::vector<std::string> args) {
  FLOE_ASSIGN_OR_RETURN(ServerConfig config, Assemble(flags));
  config.source.args = std::move(args);
  return config;
}

}  // namespace

std::optional<Command> ParseCommandLine(int argc, const char* const* argv, std::ostream& out,
                                        std::ostream& err, int* exit_code) {
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  const std::optional<Flags> flags = ParseFlags(args, out, err, exit_code);
  if (!flags) return std::nullopt;
  auto config = AssembleFrom(*flags, std::move(args));
  if (!config.ok()) {
    err << std::string(config.status().message()) << "\n";
    *exit_code = 1;
    return std::nullopt;
  }
  return Command{*std::move(config), flags->check_config};
}

absl::StatusOr<ServerConfig> ReloadConfig(const ServerConfig& current) {
  std::ostringstream out, err;
  int exit_code = 0;
  std::optional<Flags> flags = ParseFlags(current.source.args, out, err, &exit_code);
  if (!flags)
    return absl::InternalError(absl::StrCat("the command line cannot be read again: ", err.str()));
  // Where flags say the model, floe.yaml need not.
  flags->files.empty_list_is_mistake = !flags->files.model_config.empty() || !SingleModelOf(*flags);
  return AssembleFrom(*flags, current.source.args);
}

}  // namespace floe::server
