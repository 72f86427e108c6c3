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
#include "base/nearest.h"
#include "base/status.h"
#include "config/files.h"
#include "config/limits.h"
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
  Given<int64_t> port, max_message_bytes;
  Given<std::string> model_name, model_base_path, bind_address, socket_path, gemm,
      channel_arguments, log_level, log_format, full_status, memory_limit, trial_load;
  Given<std::string> config_rpcs;
  Given<bool> health_watch;
  Given<bool> reflection, content, insecure_public, enable_batching, labels_for_unavailable,
      model_warmup, per_model_batching, warmup_optional, strict_readiness, exit_on_error;
  Given<int64_t> config_poll_seconds, file_system_poll_seconds, load_threads, load_retries,
      retry_micros, warmup_iterations, load_seconds;
  Given<int64_t> session_parallelism, intra_op_parallelism, inter_op_parallelism;
  Given<std::string> ssl_config;
  Given<bool> alts;
  std::vector<std::string> notes;  // of flags without effect
};

void AddSwitch(CLI::App& app, const std::string& name, Given<bool>& value,
               const std::string& help) {
  server::AddSwitch(
      app, name, [&value](bool given) { value = given; }, help);
}

void AddInt(CLI::App& app, const std::string& name, Given<int64_t>& value, const IntRange& range,
            const std::string& help) {
  const auto set = [&value](int64_t given) { value = given; };
  const std::string bounds = absl::StrCat("from ", range.low, " to ", range.high);
  server::AddInteger(app, name, set, help)
      ->check(
          [range, bounds](const std::string& text) {
            const int64_t given = ParseInteger(text).value_or(range.low);
            return given >= range.low && given <= range.high
                       ? ""
                       : absl::StrCat("expected a whole number ", bounds, ", got '", text, "'");
          },
          bounds);
}

// One of TensorFlow Serving's, which takes any number: those that floed cannot do as they are mean
// the nearest that it can.
void AddTfsInt(CLI::App& app, Flags& f, const std::string& name, Given<int64_t>& value,
               const IntRange& range, const std::string& help) {
  const auto set = [&f, &value, name, range](int64_t given) {
    value = std::clamp(given, range.low, range.high);
    if (*value != given)
      f.notes.push_back(absl::StrCat(name, "=", given, " means ", *value, " here"));
  };
  server::AddInteger(app, name, set, help);
}

void AddText(CLI::App& app, const std::string& name, Given<std::string>& value,
             const std::string& type, const std::string& help) {
  app.add_option(name, value, help)->type_name(type);
}

void AddChoice(CLI::App& app, const std::string& name, Given<std::string>& value,
               const std::vector<std::string>& names, const std::string& help) {
  app.add_option(name, value, help)->type_name("NAME")->check(CLI::IsMember(names));
}

void AddServingFlags(CLI::App& app, Flags& f) {
  AddInt(app, "--port", f.port, kPortRange, "TCP port of the gRPC service; 0: no TCP [8500]");
  AddText(app, "--bind_address", f.bind_address, "ADDRESS",
          "Address to listen on; other than loopback needs --insecure_public [127.0.0.1]");
  AddSwitch(app, "--insecure_public", f.insecure_public,
            "Accept plain, unauthenticated connections from other machines; for trusted networks");
  AddText(app, "--ssl_config_file", f.ssl_config, "FILE",
          "Refused: connections are not encrypted here; leave that to a proxy in front of floed");
  AddSwitch(app, "--use_alts_credentials", f.alts, "Refused, as --ssl_config_file");
  AddText(app, "--grpc_socket_path", f.socket_path, "PATH", "Unix socket to listen on as well");
  AddInt(app, "--grpc_max_message_bytes", f.max_message_bytes, kMessageBytesRange,
         "Largest message accepted [268435456]");
  AddText(app, "--grpc_channel_arguments", f.channel_arguments, "KEY=VALUE,...",
          "gRPC server arguments, e.g. "
          "grpc.max_connection_age_ms=60000,grpc.keepalive_time_ms=20000");
  AddSwitch(app, "--enable_reflection", f.reflection,
            "Answer gRPC reflection, which grpcurl and the like use");
  AddSwitch(app, "--enable_health_watch", f.health_watch,
            "Answer Watch of the health service; Check is always answered [true]");
  AddChoice(app, "--enable_config_rpcs", f.config_rpcs, ConfigRpcsNames(),
            "Who may read and change the configuration by RPC: processes of this machine, "
            "everybody, nobody [local]");
  AddSwitch(
      app, "--enable_serialization_as_tensor_content", f.content,
      "Reply with tensor_content instead of typed values, for models that do not say otherwise");
  AddChoice(app, "--log_level", f.log_level, LogLevels(), "What to log [info]");
  AddChoice(app, "--log_format", f.log_format, LogFormatNames(), "How to log, on stderr [text]");
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
  AddChoice(app, "--batching_full_status", f.full_status, FullStatusNames(),
            "The answer of a full queue, of models that do not say otherwise; TensorFlow Serving's "
            "is unavailable [unavailable]");
  const auto add_threads = [&](const char* name, Given<int64_t>& value, const char* help) {
    AddTfsInt(app, f, name, value, kParallelismRange, help);
  };
  add_threads("--tensorflow_inter_op_parallelism", f.inter_op_parallelism,
              "Workers of models that do not say otherwise; 0: the default [0]");
  add_threads("--tensorflow_intra_op_parallelism", f.intra_op_parallelism,
              "Threads inside one run of models that do not say otherwise; 0: the default [0]");
  add_threads("--tensorflow_session_parallelism", f.session_parallelism,
              "As --tensorflow_inter_op_parallelism, when neither of the two is given [0]");
  AddChoice(app, "--cpu_gemm", f.gemm, GemmNames(), "Matrix multiplication of every model [auto]");
}

void AddLifecycleFlags(CLI::App& app, Flags& f) {
  AddTfsInt(
      app, f, "--model_config_file_poll_wait_seconds", f.config_poll_seconds, kPollSecondsRange,
      "Seconds between looks whether the configuration's files changed; 0 or less: never [0]");
  AddTfsInt(app, f, "--file_system_poll_wait_seconds", f.file_system_poll_seconds,
            kPollSecondsRange,
            "Seconds between looks for new versions; 0 or less: at start and on reload only [1]");
  AddTfsInt(app, f, "--num_load_threads", f.load_threads, kLoadThreadsRange,
            "Models loaded at the same time; 0: as many as CPUs [0]");
  AddChoice(app, "--trial_load", f.trial_load, TrialLoadNames(),
            "Load a version in another process first: always, updates only after the start, never "
            "[always]");
  AddInt(app, "--max_load_seconds", f.load_seconds, kLoadSecondsRange,
         "Longest time of such a load [120]");
  AddTfsInt(app, f, "--max_num_load_retries", f.load_retries, kLoadRetriesRange,
            "Further tries where a load may succeed later [5]");
  AddTfsInt(app, f, "--load_retry_interval_micros", f.retry_micros, kRetryMicrosRange,
            "Microseconds between tries; negative: none [60000000]");
  AddSwitch(app, "--allow_version_labels_for_unavailable_models", f.labels_for_unavailable,
            "Accept labels of versions that are not available yet [false]");
  AddSwitch(app, "--enable_model_warmup", f.model_warmup,
            "Run a version's recorded requests before it serves; zeros run in any case [true]");
  AddTfsInt(app, f, "--num_request_iterations_for_warmup", f.warmup_iterations,
            {std::numeric_limits<int32_t>::min(), kWarmupIterationsRange.high},
            "How often each recorded warm-up request runs [1]");
  AddSwitch(app, "--warmup_optional", f.warmup_optional,
            "Serve a version though a recorded request failed [false]");
  AddSwitch(app, "--strict_readiness", f.strict_readiness,
            "Ready when every model is; false: when one is [true]");
  AddSwitch(app, "--exit_on_error", f.exit_on_error,
            "End when a model cannot be served at start [false]");
  app.add_option(
         "--memory_limit", f.memory_limit,
         "What models and requests may take: bytes, such as 2GiB, or a share of what the control "
         "group, the machine and ulimit -v leave; 0: no limit [90%]")
      ->type_name("BYTES|PERCENT")
      ->check([](const std::string& text) {
        return std::string(ParseMemoryLimit(text).status().message());
      });
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

template <typename T>
void Set(const Given<T>& flag, T* value) {
  if (flag) *value = *flag;
}

void OverlayLifecycle(const Flags& f, LifecycleConfig* out) {
  Set(f.config_poll_seconds, &out->model_config_file_poll_wait_seconds);
  Set(f.file_system_poll_seconds, &out->file_system_poll_wait_seconds);
  Set(f.load_threads, &out->num_load_threads);
  const auto& trials = TrialLoadNames();
  if (f.trial_load)
    out->trial_load = static_cast<TrialLoad>(
        std::find(trials.begin(), trials.end(), *f.trial_load) - trials.begin());
  Set(f.load_seconds, &out->max_load_seconds);
  Set(f.load_retries, &out->max_num_load_retries);
  Set(f.retry_micros, &out->load_retry_interval_micros);
  Set(f.labels_for_unavailable, &out->allow_version_labels_for_unavailable_models);
  Set(f.model_warmup, &out->enable_model_warmup);
  // As TensorFlow Serving: used only where it is a number of runs.
  if (f.warmup_iterations.value_or(0) > 0)
    out->num_request_iterations_for_warmup = *f.warmup_iterations;
  if (f.per_model_batching)
    out->enable_per_model_batching_parameters =
        *f.per_model_batching && f.enable_batching.value_or(false);
  Set(f.warmup_optional, &out->warmup_optional);
  Set(f.strict_readiness, &out->strict_readiness);
  Set(f.exit_on_error, &out->exit_on_error);
  if (f.memory_limit)
    out->memory_limit = ParseMemoryLimit(*f.memory_limit).value_or(out->memory_limit);
}

// `name` is one of ConfigRpcsNames().
ConfigRpcs ConfigRpcsOf(const std::string& name) {
  const std::vector<std::string>& names = ConfigRpcsNames();
  return static_cast<ConfigRpcs>(std::find(names.begin(), names.end(), name) - names.begin());
}

void Overlay(const Flags& f, ServerConfig* config) {
  Set(f.port, &config->server.port);
  Set(f.bind_address, &config->server.bind_address);
  Set(f.insecure_public, &config->server.insecure_public);
  Set(f.socket_path, &config->server.grpc_socket_path);
  Set(f.max_message_bytes, &config->server.max_message_bytes);
  Set(f.channel_arguments, &config->server.grpc_channel_arguments);
  Set(f.reflection, &config->server.enable_reflection);
  Set(f.health_watch, &config->server.enable_health_watch);
  if (f.config_rpcs) config->server.enable_config_rpcs = ConfigRpcsOf(*f.config_rpcs);
  Set(f.gemm, &config->cpu.gemm);
  Set(f.log_level, &config->log.level);
  if (f.log_format)
    config->log.format = *f.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  if (f.content) config->reply = *f.content ? ReplyFormat::kContent : ReplyFormat::kTyped;
  OverlayLifecycle(f, &config->lifecycle);
}

// What models start from.
ModelConfig ModelDefaults(const Flags& f) {
  ModelConfig model;
  const bool apart =
      f.inter_op_parallelism.value_or(0) > 0 || f.intra_op_parallelism.value_or(0) > 0;
  const int64_t workers = (apart ? f.inter_op_parallelism : f.session_parallelism).value_or(0);
  if (workers > 0) model.workers = workers;
  if (f.intra_op_parallelism.value_or(0) > 0) model.intra_op_threads = *f.intra_op_parallelism;
  if (f.full_status && *f.full_status == FullStatusNames()[0])
    model.batching_full_status = FullStatus::kResourceExhausted;
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
