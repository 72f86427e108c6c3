#include "server/flags/flags.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace floe::server {
namespace {

constexpr char kDescription[] =
    "floed serves frozen models over gRPC (tensorflow.serving.PredictionService and ModelService,\n"
    "grpc.health.v1.Health). Models come from a configuration file, or one model from flags:\n"
    "\n"
    "  floed --config /etc/floe/floe.yaml\n"
    "  floed --model_name=digits --model_base_path=/srv/models/digits --port=8500\n"
    "\n"
    "Flags win over the file. SIGTERM finishes what was accepted and ends with 0; a second one "
    "ends at once.\n";

// A flag's value, unset when it was not given.
template <typename T>
using Given = std::optional<T>;

struct Flags {
  std::string config_file;
  bool check_config = false;
  Given<int64_t> port, max_message_bytes;
  Given<std::string> model_name, model_base_path, bind_address, socket_path, gemm,
      channel_arguments, log_level, log_format;
  Given<bool> reflection, content, insecure_public;
};

// CLI11 sets what a plain flag is bound to even when it was not given; a callback comes only when
// it was.
void AddSwitch(CLI::App& app, const std::string& name, Given<bool>& value,
               const std::string& help) {
  app.add_flag_function(
      name, [&value](int64_t count) { value = count > 0; }, help);
}

void AddServingFlags(CLI::App& app, Flags& f) {
  app.add_option("--port", f.port, "TCP port of the gRPC service; 0: no TCP [8500]")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535));
  app.add_option("--bind_address", f.bind_address,
                 "Address to listen on; other than loopback needs --insecure_public [127.0.0.1]")
      ->type_name("ADDRESS");
  app.add_flag(
      "--insecure_public", f.insecure_public,
      "Accept plain, unauthenticated connections from other machines; for trusted networks");
  app.add_option("--grpc_socket_path", f.socket_path, "Unix socket to listen on as well")
      ->type_name("PATH");
  app.add_option("--grpc_max_message_bytes", f.max_message_bytes,
                 "Largest message accepted [268435456]")
      ->type_name("BYTES")
      ->check(CLI::Range(int64_t{1024}, int64_t{std::numeric_limits<int32_t>::max()}));
  app.add_option("--grpc_channel_arguments", f.channel_arguments,
                 "gRPC server arguments, e.g. "
                 "grpc.max_connection_age_ms=60000,grpc.keepalive_time_ms=20000")
      ->type_name("KEY=VALUE,...");
  AddSwitch(app, "--enable_reflection", f.reflection,
            "Answer gRPC reflection, which grpcurl and the like use");
  app.add_flag(
      "--enable_serialization_as_tensor_content", f.content,
      "Reply with tensor_content instead of typed values, for models that do not say otherwise");
}

void AddModelFlags(CLI::App& app, Flags& f) {
  app.add_option("--model_name", f.model_name,
                 "Name of the one model to serve, instead of the file's [default]")
      ->type_name("NAME");
  app.add_option("--model_base_path", f.model_base_path,
                 "Its place: a directory with <version>/ directories, or with the model file, or "
                 "the file itself")
      ->type_name("PATH");
  app.add_option("--cpu_gemm", f.gemm, "Matrix multiplication of every model [auto]")
      ->type_name("NAME")
      ->check(CLI::IsMember(GemmNames()));
}

void AddFlags(CLI::App& app, Flags& f) {
  app.set_version_flag("--version", absl::StrCat("floed ", kVersion), "Print the version and end");
  app.add_option("--config", f.config_file,
                 "Configuration file (YAML); docs/config.md explains its keys")
      ->type_name("FILE");
  app.add_flag("--check-config", f.check_config,
               "Say whether the configuration is right, and end: 0 if so, else 1");
  AddModelFlags(app, f);
  AddServingFlags(app, f);
  app.add_option("--log_level", f.log_level, "What to log [info]")
      ->type_name("LEVEL")
      ->check(CLI::IsMember(LogLevels()));
  app.add_option("--log_format", f.log_format, "How to log, on stderr [text]")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(std::vector<std::string>{"text", "json"}));
}

template <typename T>
void Set(const Given<T>& flag, T* value) {
  if (flag) *value = *flag;
}

void Overlay(const Flags& f, ServerConfig* config) {
  Set(f.port, &config->server.port);
  Set(f.bind_address, &config->server.bind_address);
  Set(f.insecure_public, &config->server.insecure_public);
  Set(f.socket_path, &config->server.grpc_socket_path);
  Set(f.max_message_bytes, &config->server.max_message_bytes);
  Set(f.channel_arguments, &config->server.grpc_channel_arguments);
  Set(f.reflection, &config->server.enable_reflection);
  Set(f.gemm, &config->cpu.gemm);
  Set(f.log_level, &config->log.level);
  if (f.log_format)
    config->log.format = *f.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  if (f.content) config->reply = *f.content ? ReplyFormat::kContent : ReplyFormat::kTyped;
  if (f.model_name || f.model_base_path) {
    ModelConfig model;
    model.name = f.model_name.value_or("default");
    model.base_path = f.model_base_path.value_or("");
    model.where = f.model_base_path ? "--model_base_path" : "--model_name";
    config->models = {std::move(model)};
  }
}

absl::StatusOr<ServerConfig> Assemble(const Flags& f) {
  ServerConfig config;
  if (!f.config_file.empty()) {
    FLOE_ASSIGN_OR_RETURN(config, LoadConfigFile(f.config_file));
  } else if (!f.model_name && !f.model_base_path) {
    return absl::InvalidArgumentError(
        "nothing to serve; give --config FILE, or --model_name and --model_base_path");
  }
  Overlay(f, &config);
  FLOE_RETURN_IF_ERROR(ValidateConfig(config));
  if (f.check_config) FLOE_RETURN_IF_ERROR(CheckPaths(config));
  return config;
}

}  // namespace

std::optional<Command> ParseCommandLine(int argc, const char* const* argv, std::ostream& out,
                                        std::ostream& err, int* exit_code) {
  Flags flags;
  CLI::App app(kDescription, "floed");
  AddFlags(app, flags);
  // The one boundary where CLI11's exceptions stop.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    *exit_code = app.exit(e, out, err) == 0 ? 0 : 2;
    return std::nullopt;
  }
  auto config = Assemble(flags);
  if (!config.ok()) {
    err << std::string(config.status().message()) << "\n";
    *exit_code = 1;
    return std::nullopt;
  }
  return Command{*std::move(config), flags.check_config};
}

}  // namespace floe::server
