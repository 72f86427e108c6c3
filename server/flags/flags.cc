// floed's flags: table by table, their meaning for the configuration, and what may not be combined.
#include "server/flags/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "cli/usage.h"
#include "config/base_path.h"
#include "config/files.h"
#include "config/key_table.h"
#include "config/monitoring_config.h"
#include "kernels/cuda/device/devices.h"
#include "server/flags/tfs_flags.h"

namespace floe::server {
namespace {

constexpr char kDescription[] =
    "floed serves frozen models over gRPC (tensorflow.serving.PredictionService and ModelService,\n"
    "grpc.health.v1.Health). A configuration file names the models, or flags name one model:\n"
    "\n"
    "  floed --config /etc/floe/floe.yaml\n"
    "  floed --model_config_file=/etc/floe/models.config --port=8500\n"
    "  floed --model_name=digits --model_base_path=/srv/models/digits --port=8500\n"
    "\n"
    "All flags of TensorFlow Serving's model server are accepted, as --flag=value or --flag "
    "value.\n"
    "Flags override floe.yaml. A model's own entry in floe.yaml overrides flags for all models.\n"
    "Without --config, --model_config_file, --model_name and --model_base_path, the environment\n"
    "names the model: MODEL_NAME is a directory in MODEL_BASE_PATH. FLOE_INSECURE_PUBLIC=true "
    "there\n"
    "is like --bind_address=0.0.0.0 --insecure_public, but keeps another address that is given.\n"
    "SIGHUP reads the files again. SIGTERM ends floed with 0 once accepted calls are finished. A\n"
    "second SIGTERM ends it at once.\n";

// A flag's value, unset when it was not given.
template <typename T>
using Given = std::optional<T>;

struct Flags {
  ConfigFiles files;
  bool check_config = false;
  // Keys of floe.yaml that flags set, each with the value's text and the flag's name.
  struct Setting {
    const Key<ServerConfig>* key;
    std::string text, flag;
  };
  std::vector<Setting> keys;
  Given<std::string> model_name, model_base_path, full_status, saved_model_tags;
  Given<std::string> monitoring;
  Given<bool> content, enable_batching, per_model_batching, alts, cors;
  Given<int64_t> session_parallelism, intra_op_parallelism, inter_op_parallelism;
  std::vector<std::string> notes;  // of flags without effect
};

// A flag that sets a key of floe.yaml.
struct KeyFlag {
  const char* name;
  const char* key;
  const char* type = "TEXT";
  // For flags of TensorFlow Serving, which accepts any number: out of range means the nearest end.
  bool nearest = false;
};

constexpr KeyFlag kKeyFlags[] = {
    {"--port", "server.port"},
    {"--bind_address", "server.bind_address", "ADDRESS"},
    {"--tls_certificate", "server.tls.certificate", "FILE"},
    {"--tls_key", "server.tls.key", "FILE"},
    {"--tls_client_ca", "server.tls.client_ca", "FILE"},
    {"--tls_client", "server.tls.client"},
    {"--tls_min_version", "server.tls.min_version"},
    {"--ssl_config_file", "server.tls.ssl_config_file", "FILE"},
    {"--insecure_public", "server.insecure_public"},
    {"--grpc_socket_path", "server.grpc_socket_path", "PATH"},
    {"--admin_socket_path", "server.admin_socket_path", "PATH"},
    {"--auth_tokens_file", "server.auth.tokens_file", "FILE"},
    {"--grpc_max_message_bytes", "server.max_message_bytes", "BYTES"},
    {"--rest_api_port", "server.http_port", "", true},
    {"--http_max_body_bytes", "server.http_max_body_bytes", "BYTES"},
    {"--rest_api_timeout_in_ms", "server.http_timeout_ms", "", true},
    {"--grpc_channel_arguments", "server.grpc_channel_arguments", "KEY=VALUE,..."},
    {"--enable_reflection", "server.enable_reflection"},
    {"--enable_signature_method_name_check", "server.enable_signature_method_name_check"},
    {"--enable_health_watch", "server.enable_health_watch"},
    {"--enable_config_rpcs", "server.enable_config_rpcs"},
    {"--log_level", "log.level"},
    {"--log_format", "log.format"},
    {"--backend", "backend"},
    {"--cpu_gemm", "cpu.gemm"},
    {"--gpu_memory_limit", "gpu_memory_limit", "BYTES|PERCENT"},
    {"--on_device_error", "on_device_error"},
    {"--gpu_libraries", "gpu_libraries"},
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

// Flags that are not the same as one key.
template <typename T>
struct ValueFlag {
  const char* name;
  Given<T> Flags::*value;
  const char* help;
};

constexpr ValueFlag<bool> kSwitches[] = {
    {"--enable_per_model_batching_parameters", &Flags::per_model_batching,
     "Read batching_params.pbtxt of a version; needs --enable_batching [false]"},
    {"--enable_batching", &Flags::enable_batching,
     "Needed for --batching_parameters_file; waiting requests are batched in any case"},
    {"--rest_api_enable_cors_support", &Flags::cors,
     "Pages of all sites may call REST, as server.cors_origins: ['*'] says [false]"},
    {"--use_alts_credentials", &Flags::alts, "Refused: floed does not speak ALTS; use TLS"},
    {"--enable_serialization_as_tensor_content", &Flags::content,
     "Reply with tensor_content instead of typed values, unless the model's entry says otherwise"},
};

constexpr ValueFlag<int64_t> kThreadFlags[] = {
    {"--tensorflow_inter_op_parallelism", &Flags::inter_op_parallelism,
     "Default of the models' workers; 0: auto [0]"},
    {"--tensorflow_intra_op_parallelism", &Flags::intra_op_parallelism,
     "Default of the models' intra_op_threads; 0: 1 thread [0]"},
    {"--tensorflow_session_parallelism", &Flags::session_parallelism,
     "Like --tensorflow_inter_op_parallelism, if neither of the other two is given [0]"},
};

struct TextFlag : ValueFlag<std::string> {
  const char* type;
};

constexpr TextFlag kTexts[] = {
    {{"--model_name", &Flags::model_name,
      "Name of a single model, which replaces the models of floe.yaml [default]"},
     "NAME"},
    {{"--model_base_path", &Flags::model_base_path,
      "Path of the single model: its file, a directory with its file, or a directory of <version>/ "
      "directories"},
     "PATH"},
    {{"--monitoring_config_file", &Flags::monitoring,
      "MonitoringConfig in text format: server.metrics_path"},
     "FILE"},
    {{"--saved_model_tags", &Flags::saved_model_tags,
      "Default of the models' saved_model_tags [serve, or the only graph]"},
     "TAG,TAG"},
};

// `given`, or the nearest number in `range` with a note.
int64_t Nearest(Flags& f, const std::string& name, int64_t given, const IntRange& range) {
  const int64_t nearest = std::clamp(given, range.low, range.high);
  if (nearest != given)
    f.notes.push_back(absl::StrCat(name, "=", given, " means ", nearest, " here"));
  return nearest;
}

// An integer that becomes the nearest one in `range`.
void AddNearest(CLI::App& app, Flags& f, const std::string& name, const IntRange& range,
                std::function<void(int64_t)> set, const std::string& help) {
  const auto read = [&f, name, range, set = std::move(set)](const std::string& text) {
    int64_t given = 0;
    if (absl::SimpleAtoi(text, &given)) set(Nearest(f, name, given, range));
  };
  AddFlag(app, name, FlagKind::kInteger, read, help);
}

void AddKeyFlag(CLI::App& app, Flags& f, const KeyFlag& flag) {
  const Key<ServerConfig>& key = ServerKey(flag.key);
  const std::string usual = key.text(ServerConfig());
  // docs/config.md marks code with `; a terminal needs no marks.
  const std::string help = absl::StrCat(absl::StrReplaceAll(key.help, {{"`", ""}}),
                                        usual.empty() ? "" : absl::StrCat(" [", usual, "]"));
  const auto set = [&f, &key, name = flag.name](const std::string& text) {
    f.keys.push_back({&key, text, name});
  };
  if (flag.nearest) {
    const auto set_number = [set](int64_t number) { set(absl::StrCat(number)); };
    return AddNearest(app, f, flag.name, *key.range, set_number, help);
  }
  const FlagKind kind = key.is_switch ? FlagKind::kSwitch
                        : key.range   ? FlagKind::kInteger
                                      : FlagKind::kText;
  CLI::Option* const option = AddFlag(app, flag.name, kind, set, help);
  if (kind == FlagKind::kSwitch) return;
  const auto check = [&key](const std::string& text) {
    ServerConfig unused;
    return key.parse(text, &unused);
  };
  if (key.range)
    option->check(check, absl::StrCat("from ", key.range->low, " to ", key.range->high));
  else
    option->type_name(key.choices.empty() ? flag.type : "NAME")->check(check);
}

void AddFiles(CLI::App& app, Flags& f) {
  app.add_option("--config", f.files.yaml,
                 "Configuration file (YAML); docs/config.md explains its keys")
      ->type_name("FILE");
  app.add_option("--model_config_file", f.files.model_config,
                 "ModelServerConfig in text format: the models to serve. A model of floe.yaml with "
                 "the same name lends its other settings")
      ->type_name("FILE");
  app.add_option("--batching_parameters_file", f.files.batching_parameters,
                 "BatchingParameters in text format: the default of the models' batching")
      ->type_name("FILE");
}

void AddFlags(CLI::App& app, Flags& f) {
  // Containers append the user's flags to their own.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  const auto versions = [] {
    return absl::StrCat("floed ", kVersion, "\n", cuda::DescribeLibrary());
  };
  app.set_version_flag("--version", versions, "Print the versions of floed and of CUDA and end");
  app.add_flag("--check-config", f.check_config,
               "Check the configuration and end: with 0 if it is valid, otherwise with 1");
  AddFiles(app, f);
  for (const TextFlag& flag : kTexts)
    app.add_option(flag.name, f.*flag.value, flag.help)->type_name(flag.type);
  app.add_option("--batching_full_status", f.full_status,
                 "Default of the models' batching_full_status [unavailable]")
      ->type_name("NAME")
      ->check(CLI::IsMember(ModelKey("batching_full_status").choices));
  for (const ValueFlag<bool>& flag : kSwitches)
    AddFlag(
        app, flag.name, FlagKind::kSwitch,
        [&f, flag](const std::string& text) { f.*flag.value = text == "true"; }, flag.help);
  for (const ValueFlag<int64_t>& flag : kThreadFlags)
    AddNearest(
        app, f, flag.name, {0, ModelKey("intra_op_threads").range->high},
        [&f, flag](int64_t number) { f.*flag.value = number; }, flag.help);
  for (const KeyFlag& flag : kKeyFlags) AddKeyFlag(app, f, flag);
  // TensorFlow Serving ignores a number of runs below 1.
  static constexpr char kIterations[] = "--num_request_iterations_for_warmup";
  const Key<ServerConfig>& iterations = ServerKey("lifecycle.num_request_iterations_for_warmup");
  AddNearest(
      app, f, kIterations, {std::numeric_limits<int32_t>::min(), iterations.range->high},
      [&f, &iterations](int64_t runs) {
        if (runs > 0) f.keys.push_back({&iterations, absl::StrCat(runs), kIterations});
      },
      "How often each recorded warm-up request runs [1]");
  AddFlagsWithoutEffect(app, &f.notes);
}

absl::Status Overlay(const Flags& f, ServerConfig* config) {
  for (const auto& [key, text, flag] : f.keys) {
    key->parse(text, config);
    config->where[key->path] = flag;
  }
  if (f.content) config->reply = *f.content ? ReplyFormat::kContent : ReplyFormat::kTyped;
  if (f.per_model_batching)
    config->lifecycle.enable_per_model_batching_parameters =
        *f.per_model_batching && f.enable_batching.value_or(false);
  if (f.cors.value_or(false)) config->server.cors_origins = {"*"};
  const std::string monitoring = f.monitoring.value_or("");
  if (monitoring.empty()) return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const std::string text, ReadConfigText(monitoring));
  FLOE_ASSIGN_OR_RETURN(config->server.metrics_path, ParseMonitoringConfig(text, monitoring));
  config->where["server.metrics_path"] = monitoring;
  return absl::OkStatus();
}

// What opens an image, which has no file and no flags, to others: unencrypted, so by a word only.
absl::Status ListenAsEnvironmentSays(ServerConfig* config) {
  const char* const value = std::getenv("FLOE_INSECURE_PUBLIC");
  const std::string text = value == nullptr ? "" : value;
  if (text.empty() || text == "false") return absl::OkStatus();
  if (text != "true")
    return absl::InvalidArgumentError(absl::StrCat("the environment's FLOE_INSECURE_PUBLIC is '",
                                                   text, "'; set it to true or false"));
  if (config->server.bind_address == ServerConfig().server.bind_address)
    config->server.bind_address = "0.0.0.0";
  config->server.insecure_public = true;
  return absl::OkStatus();
}

// The defaults of all models.
ModelConfig ModelDefaults(const Flags& f) {
  ModelConfig model;
  const bool separate =
      f.inter_op_parallelism.value_or(0) > 0 || f.intra_op_parallelism.value_or(0) > 0;
  const int64_t workers = (separate ? f.inter_op_parallelism : f.session_parallelism).value_or(0);
  if (workers > 0) model.workers = workers;
  if (f.intra_op_parallelism.value_or(0) > 0) model.intra_op_threads = *f.intra_op_parallelism;
  if (f.saved_model_tags) model.saved_model_tags = *f.saved_model_tags;
  if (f.full_status) ModelKey("batching_full_status").parse(*f.full_status, &model);
  return model;
}

// Name, path and origin of one model.
struct SingleModel {
  std::string name, base_path, where;
};

// The single model that the flags name, or the environment, read as TensorFlow Serving's container
// does. Unset: neither names one.
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
absl::Status ServeOnly(const SingleModel& single, const ModelConfig& defaults,
                       ServerConfig* config) {
  const auto known =
      std::find_if(config->models.begin(), config->models.end(),
                   [&](const ModelConfig& model) { return model.name == single.name; });
  ModelConfig model = known == config->models.end() ? defaults : *known;
  model.name = single.name;
  if (!single.base_path.empty() || known == config->models.end()) {
    const absl::StatusOr<std::string> path = LocalPath(single.base_path, /*directory=*/"");
    if (!path.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(single.where, ": ", std::string(path.status().message())));
    model.base_path = AbsolutePath(*path);
    model.where = single.where;
  }
  config->models = {std::move(model)};
  return absl::OkStatus();
}

absl::Status CheckTogether(const Flags& f) {
  // Plain connections are no answer to somebody who asked for encryption.
  if (f.alts.value_or(false))
    return absl::InvalidArgumentError(
        "--use_alts_credentials: floed does not speak ALTS; leave the flag out and use TLS: "
        "--tls_certificate and --tls_key, or --ssl_config_file");
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
  FLOE_RETURN_IF_ERROR(ListenAsEnvironmentSays(&config));
  FLOE_RETURN_IF_ERROR(Overlay(f, &config));
  config.model_defaults = defaults;
  config.notes.insert(config.notes.begin(), f.notes.begin(), f.notes.end());
  if (single && f.files.model_config.empty())
    FLOE_RETURN_IF_ERROR(ServeOnly(*single, defaults, &config));
  else if (single)
    config.notes.push_back(absl::StrCat(
        single->where, " has no effect here: the models come from --model_config_file"));
  if (f.per_model_batching.value_or(false) && !f.enable_batching.value_or(false))
    config.notes.push_back(
        "--enable_per_model_batching_parameters has no effect without --enable_batching");
  if (f.enable_batching.has_value() && !*f.enable_batching)
    config.notes.push_back(
        "--enable_batching=false has no effect here: waiting requests are batched, which changes "
        "no answer");
  FLOE_RETURN_IF_ERROR(ValidateConfig(config));
  if (f.check_config) FLOE_RETURN_IF_ERROR(CheckPaths(config));
  return config;
}

// "--name=" as two arguments; CLI11 would take the next argument for its value.
std::vector<std::string> WithEmptyValues(const std::vector<std::string>& args) {
  std::vector<std::string> split;
  for (const std::string& arg : args) {
    const bool empty = arg.rfind("--", 0) == 0 && arg.find('=') == arg.size() - 1;
    split.push_back(empty ? arg.substr(0, arg.size() - 1) : arg);
    if (empty) split.emplace_back();
  }
  return split;
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
  } catch (const CLI::ParseError& e) {
    *exit_code = cli::ExplainUsage(app, e, InsteadOf, out, err) ? 0 : 2;
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
  // When flags name the model, floe.yaml may have none.
  flags->files.empty_list_is_mistake = !flags->files.model_config.empty() || !SingleModelOf(*flags);
  return AssembleFrom(*flags, current.source.args);
}

}  // namespace floe::server
