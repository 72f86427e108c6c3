// ServerConfig -> floe.yaml.
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <map>
#include <string>
#include <type_traits>
#include <variant>

#include "config/config.h"
#include "config/limits.h"

namespace floe {
namespace {

// yaml-cpp throws only for what the code below does not do: keys without values, wrong nesting.
template <typename T>
void Put(YAML::Emitter& out, const char* key, const T& value) {
  out << YAML::Key << key << YAML::Value << value;
}

void PutOrAuto(YAML::Emitter& out, const char* key, int64_t value) {
  if (value == 0) return Put(out, key, "auto");
  Put(out, key, value);
}

// Quoted, since bare text may look like a number or a truth value.
void PutText(YAML::Emitter& out, const char* key, const std::string& value) {
  out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
}

// Reads back as the same number, and never as a whole one.
std::string RealText(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  const std::string shortest(text, end.ptr);
  return shortest.find_first_not_of("-0123456789") == std::string::npos ? shortest + ".0"
                                                                        : shortest;
}

template <typename T>
void PutMap(YAML::Emitter& out, const char* key, const std::map<std::string, T>& map) {
  if (map.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginMap;
  for (const auto& [name, value] : map) {
    out << YAML::Key << YAML::DoubleQuoted << name << YAML::Value;
    if constexpr (std::is_same_v<T, std::string>)
      out << YAML::DoubleQuoted << value;
    else if constexpr (std::is_same_v<T, double>)
      out << RealText(value);
    else
      out << value;
  }
  out << YAML::EndMap;
}

void PutListen(YAML::Emitter& out, const ServerConfig& config) {
  const ListenConfig& s = config.server;
  out << YAML::Key << "server" << YAML::Value << YAML::BeginMap;
  Put(out, "port", s.port);
  PutText(out, "bind_address", s.bind_address);
  PutText(out, "grpc_socket_path", s.grpc_socket_path);
  Put(out, "enable_reflection", s.enable_reflection);
  Put(out, "max_message_bytes", s.max_message_bytes);
  Put(out, "drain_timeout_seconds", s.drain_timeout_seconds);
  Put(out, "drain_lame_duck_seconds", s.drain_lame_duck_seconds);
  PutText(out, "grpc_channel_arguments", s.grpc_channel_arguments);
  Put(out, "insecure_public", s.insecure_public);
  Put(out, "max_connections", s.max_connections);
  Put(out, "max_connections_per_address", s.max_connections_per_address);
  Put(out, "enable_config_rpcs", s.enable_config_rpcs);
  Put(out, "reply", ReplyFormatNames()[static_cast<size_t>(config.reply)]);
  out << YAML::EndMap;
}

void PutLifecycle(YAML::Emitter& out, const LifecycleConfig& l) {
  out << YAML::Key << "lifecycle" << YAML::Value << YAML::BeginMap;
  Put(out, "file_system_poll_wait_seconds", l.file_system_poll_wait_seconds);
  Put(out, "model_config_file_poll_wait_seconds", l.model_config_file_poll_wait_seconds);
  Put(out, "max_num_load_retries", l.max_num_load_retries);
  Put(out, "load_retry_interval_micros", l.load_retry_interval_micros);
  Put(out, "num_load_threads", l.num_load_threads);
  Put(out, "allow_version_labels_for_unavailable_models",
      l.allow_version_labels_for_unavailable_models);
  Put(out, "enable_model_warmup", l.enable_model_warmup);
  Put(out, "num_request_iterations_for_warmup", l.num_request_iterations_for_warmup);
  Put(out, "enable_per_model_batching_parameters", l.enable_per_model_batching_parameters);
  Put(out, "warmup_optional", l.warmup_optional);
  Put(out, "strict_readiness", l.strict_readiness);
  Put(out, "exit_on_error", l.exit_on_error);
  Put(out, "memory_limit", l.memory_limit_bytes);
  out << YAML::EndMap;
}

void PutBatching(YAML::Emitter& out, const BatchingConfig& b) {
  out << YAML::Key << "batching" << YAML::Value << YAML::BeginMap;
  PutOrAuto(out, "max_batch_size", b.max_batch_size);
  Put(out, "batch_timeout_micros", b.batch_timeout_micros);
  Put(out, "max_enqueued_batches", b.max_enqueued_batches);
  Put(out, "max_enqueued_bytes", b.max_enqueued_bytes);
  if (!b.allowed_batch_sizes.empty())
    out << YAML::Key << "allowed_batch_sizes" << YAML::Value << YAML::Flow << b.allowed_batch_sizes;
  Put(out, "pad_variable_length_inputs", b.pad_variable_length_inputs);
  PutMap(out, "padding_values", b.padding_values);
  Put(out, "enable_large_batch_splitting", b.enable_large_batch_splitting);
  if (b.max_execution_batch_size != 0)
    Put(out, "max_execution_batch_size", b.max_execution_batch_size);
  out << YAML::EndMap;
}

void PutVersions(YAML::Emitter& out, const VersionPolicy& policy) {
  out << YAML::Key << "versions" << YAML::Value;
  if (policy.kind == VersionPolicy::Kind::kAll) {
    out << "all";
    return;
  }
  out << YAML::Flow << YAML::BeginMap;
  if (policy.kind == VersionPolicy::Kind::kSpecific)
    Put(out, "specific", policy.specific);
  else
    Put(out, "latest", policy.latest);
  out << YAML::EndMap;
}

void PutDefaults(YAML::Emitter& out, const ModelConfig& model) {
  if (model.placeholder_defaults.empty()) return;
  out << YAML::Key << "placeholder_defaults" << YAML::Value << YAML::BeginMap;
  for (const auto& [name, def] : model.placeholder_defaults) {
    out << YAML::Key << YAML::DoubleQuoted << name << YAML::Value;
    if (!def.dtype.empty())
      out << YAML::Flow << YAML::BeginMap << YAML::Key << "value" << YAML::Value;
    if (const auto* text = std::get_if<std::string>(&def.value))
      out << YAML::DoubleQuoted << *text;
    else if (const auto* real = std::get_if<double>(&def.value))
      out << RealText(*real);
    else if (const auto* integer = std::get_if<int64_t>(&def.value))
      out << *integer;
    else
      out << std::get<bool>(def.value);
    if (!def.dtype.empty()) {
      PutText(out, "dtype", def.dtype);
      out << YAML::EndMap;
    }
  }
  out << YAML::EndMap;
}

void PutModel(YAML::Emitter& out, const ModelConfig& model) {
  out << YAML::BeginMap;
  PutText(out, "name", model.name);
  PutText(out, "base_path", model.base_path);
  PutVersions(out, model.versions);
  PutMap(out, "version_labels", model.version_labels);
  Put(out, "version_transition", VersionTransitionNames()[static_cast<size_t>(model.transition)]);
  PutOrAuto(out, "workers", model.workers);
  Put(out, "intra_op_threads", model.intra_op_threads);
  if (!model.cpu_set.empty()) PutText(out, "cpu_set", CpuSetText(model.cpu_set));
  Put(out, "weight", model.weight);
  PutBatching(out, model.batching);
  Put(out, "inline_below_us", model.inline_below_us);
  PutDefaults(out, model);
  if (!model.signature.inputs.empty() || !model.signature.outputs.empty()) {
    out << YAML::Key << "signature" << YAML::Value << YAML::BeginMap;
    PutMap(out, "inputs", model.signature.inputs);
    PutMap(out, "outputs", model.signature.outputs);
    out << YAML::EndMap;
  }
  if (model.reply) Put(out, "reply", ReplyFormatNames()[static_cast<size_t>(*model.reply)]);
  out << YAML::EndMap;
}

}  // namespace

std::string ConfigToYaml(const ServerConfig& config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  PutListen(out, config);
  out << YAML::Key << "log" << YAML::Value << YAML::BeginMap;
  Put(out, "level", config.log.level);
  Put(out, "format", config.log.format == LogFormat::kJson ? "json" : "text");
  out << YAML::EndMap << YAML::Key << "cpu" << YAML::Value << YAML::BeginMap;
  Put(out, "gemm", config.cpu.gemm);
  PutText(out, "blas_library", config.cpu.blas_library);
  out << YAML::EndMap;
  PutLifecycle(out, config.lifecycle);
  out << YAML::Key << "models" << YAML::Value << YAML::BeginSeq;
  for (const ModelConfig& model : config.models) PutModel(out, model);
  out << YAML::EndSeq << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace floe
