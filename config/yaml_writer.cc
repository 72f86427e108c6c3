// ServerConfig -> floe.yaml.
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <map>
#include <string>
#include <type_traits>
#include <variant>

#include "config/config.h"
#include "config/keys.h"
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

void PutSection(YAML::Emitter& out, const KeySection& section) {
  out << YAML::Key << section.name << YAML::Value << YAML::BeginMap;
  for (const KeyValue& entry : section.keys) {
    if (const auto* text = std::get_if<std::string>(&entry.value))
      PutText(out, entry.key, *text);
    else if (const auto* number = std::get_if<int64_t>(&entry.value))
      Put(out, entry.key, *number);
    else
      Put(out, entry.key, std::get<bool>(entry.value));
  }
  out << YAML::EndMap;
}

void PutSizes(YAML::Emitter& out, const char* key, const std::vector<int64_t>& sizes) {
  if (!sizes.empty()) out << YAML::Key << key << YAML::Value << YAML::Flow << sizes;
}

void PutBatching(YAML::Emitter& out, const BatchingConfig& b) {
  out << YAML::Key << "batching" << YAML::Value << YAML::BeginMap;
  PutOrAuto(out, "max_batch_size", b.max_batch_size);
  Put(out, "batch_timeout_micros", b.batch_timeout_micros);
  Put(out, "max_enqueued_batches", b.max_enqueued_batches);
  Put(out, "max_enqueued_bytes", b.max_enqueued_bytes);
  Put(out, "max_enqueued_micros", b.max_enqueued_micros);
  PutSizes(out, "allowed_batch_sizes", b.allowed_batch_sizes);
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
  if (!model.completion_marker.empty()) PutText(out, "completion_marker", model.completion_marker);
  PutMap(out, "version_labels", model.version_labels);
  PutOrAuto(out, "workers", model.workers);
  Put(out, "intra_op_threads", model.intra_op_threads);
  if (!model.cpu_set.empty()) PutText(out, "cpu_set", CpuSetText(model.cpu_set));
  Put(out, "weight", model.weight);
  PutBatching(out, model.batching);
  Put(out, "batching_full_status",
      FullStatusNames()[static_cast<size_t>(model.batching_full_status)]);
  Put(out, "max_run_bytes", model.max_run_bytes);
  Put(out, "max_run_seconds", model.max_run_seconds);
  Put(out, "default_timeout_microseconds", model.default_timeout_microseconds);
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
  for (const KeySection& section : StartSections(config)) PutSection(out, section);
  PutSection(out, LifecycleSection(config.lifecycle));
  out << YAML::Key << "models" << YAML::Value << YAML::BeginSeq;
  for (const ModelConfig& model : config.models) PutModel(out, model);
  out << YAML::EndSeq << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace floe
