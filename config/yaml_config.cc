// floe.yaml -> ServerConfig. The shape of the file is this file: one function per section.
#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "config/config.h"
#include "config/files.h"
#include "config/limits.h"
#include "config/yaml_section.h"

namespace floe {
namespace {

// The index of a choice among names, as the enumerator.
template <typename Enum>
void ReadEnum(YamlSection& s, const std::string& key, const std::vector<std::string>& names,
              Enum* out) {
  int index = -1;
  s.Choice(key, names, &index);
  if (index >= 0) *out = static_cast<Enum>(index);
}

void ReadListen(YamlSection& s, ServerConfig* config) {
  ListenConfig* const out = &config->server;
  s.Int("port", kPortRange, &out->port);
  s.String("bind_address", &out->bind_address);
  s.String("grpc_socket_path", &out->grpc_socket_path);
  s.Bool("enable_reflection", &out->enable_reflection);
  s.Int("max_message_bytes", kMessageBytesRange, &out->max_message_bytes);
  s.Int("drain_timeout_seconds", kDrainSecondsRange, &out->drain_timeout_seconds);
  s.Int("drain_lame_duck_seconds", kDrainSecondsRange, &out->drain_lame_duck_seconds);
  s.String("grpc_channel_arguments", &out->grpc_channel_arguments);
  s.Bool("insecure_public", &out->insecure_public);
  s.Int("max_connections", kConnectionsRange, &out->max_connections);
  s.Int("max_connections_per_address", kConnectionsRange, &out->max_connections_per_address);
  ReadEnum(s, "enable_config_rpcs", ConfigRpcsNames(), &out->enable_config_rpcs);
  s.Bool("enable_health_watch", &out->enable_health_watch);
  s.Bool("enable_compression", &out->enable_compression);
  s.Int("max_calls", kCallsRange, &out->max_calls);
  s.Int("max_calls_per_address", kCallsRange, &out->max_calls_per_address);
  s.Int("max_calls_per_connection", kCallsRange, &out->max_calls_per_connection);
  s.Bytes("max_call_bytes", &out->max_call_bytes);
  s.Bytes("max_call_bytes_per_address", &out->max_call_bytes_per_address);
  s.Bytes("max_call_bytes_per_connection", &out->max_call_bytes_per_connection);
  s.Int("connection_idle_seconds", kConnectionSecondsRange, &out->connection_idle_seconds);
  s.Int("connection_age_seconds", kConnectionSecondsRange, &out->connection_age_seconds);
  s.Int("keepalive_seconds", kConnectionSecondsRange, &out->keepalive_seconds);
  s.Int("send_timeout_seconds", kConnectionSecondsRange, &out->send_timeout_seconds);
  ReadEnum(s, "reply", ReplyFormatNames(), &config->reply);
}

// `90%`, `2GiB` or `0`.
void ReadMemoryLimit(YamlSection& s, MemoryLimit* out) {
  std::string text = MemoryLimitText(*out);
  s.String("memory_limit", &text);
  const absl::StatusOr<MemoryLimit> limit = ParseMemoryLimit(text);
  if (!limit.ok())
    return s.Fail(s.Take("memory_limit"), "memory_limit", std::string(limit.status().message()));
  *out = *limit;
}

void ReadLifecycle(YamlSection& s, LifecycleConfig* out) {
  s.Int("file_system_poll_wait_seconds", kPollSecondsRange, &out->file_system_poll_wait_seconds);
  s.Int("model_config_file_poll_wait_seconds", kPollSecondsRange,
        &out->model_config_file_poll_wait_seconds);
  s.Int("max_num_load_retries", kLoadRetriesRange, &out->max_num_load_retries);
  s.Int("load_retry_interval_micros", kRetryMicrosRange, &out->load_retry_interval_micros);
  s.Int("num_load_threads", kLoadThreadsRange, &out->num_load_threads);
  ReadEnum(s, "trial_load", TrialLoadNames(), &out->trial_load);
  s.Int("max_load_seconds", kLoadSecondsRange, &out->max_load_seconds);
  s.Bool("allow_version_labels_for_unavailable_models",
         &out->allow_version_labels_for_unavailable_models);
  s.Bool("enable_model_warmup", &out->enable_model_warmup);
  s.Int("num_request_iterations_for_warmup", kWarmupIterationsRange,
        &out->num_request_iterations_for_warmup);
  s.Bool("enable_per_model_batching_parameters", &out->enable_per_model_batching_parameters);
  s.Bool("warmup_optional", &out->warmup_optional);
  s.Bool("strict_readiness", &out->strict_readiness);
  s.Bool("exit_on_error", &out->exit_on_error);
  ReadMemoryLimit(s, &out->memory_limit);
}

void ReadLog(YamlSection& s, LogConfig* out) {
  int level = -1;
  s.Choice("level", LogLevels(), &level);
  if (level >= 0) out->level = LogLevels()[level];
  ReadEnum(s, "format", LogFormatNames(), &out->format);
}

void ReadCpu(YamlSection& s, CpuConfig* out) {
  int gemm = -1;
  s.Choice("gemm", GemmNames(), &gemm);
  if (gemm >= 0) out->gemm = GemmNames()[gemm];
  s.String("blas_library", &out->blas_library);
}

void ReadBatching(YamlSection& s, BatchingConfig* out) {
  const bool max_is_set = s.IntOrAuto("max_batch_size", kMaxBatchSizeRange, &out->max_batch_size);
  s.Int("batch_timeout_micros", kBatchTimeoutRange, &out->batch_timeout_micros);
  s.Int("max_enqueued_batches", kMaxEnqueuedBatchesRange, &out->max_enqueued_batches);
  s.Bytes("max_enqueued_bytes", &out->max_enqueued_bytes);
  s.Int("max_enqueued_micros", kMaxEnqueuedMicrosRange, &out->max_enqueued_micros);
  s.IntList("allowed_batch_sizes", kMaxBatchSizeRange, &out->allowed_batch_sizes);
  s.Bool("pad_variable_length_inputs", &out->pad_variable_length_inputs);
  s.NumberMap("padding_values", &out->padding_values);
  s.Bool("enable_large_batch_splitting", &out->enable_large_batch_splitting);
  s.Int("max_execution_batch_size", kMaxBatchSizeRange, &out->max_execution_batch_size);
  FillBatching(max_is_set, out);
  for (const std::string& mistake : BatchingMistakes(*out)) s.Fail(mistake);
}

// `latest`, `all`, `{latest: 2}` or `{specific: [3, 5]}`.
void ReadVersions(YamlSection& s, VersionPolicy* out) {
  const YAML::Node node = s.Take("versions");
  if (!node.IsDefined()) return;
  using Kind = VersionPolicy::Kind;
  if (node.IsScalar() && (node.Scalar() == "latest" || node.Scalar() == "all")) {
    *out = {node.Scalar() == "all" ? Kind::kAll : Kind::kLatest, 1, {}};
    return;
  }
  if (!node.IsMap() || node.size() != 1)
    return s.Fail(node, "versions",
                  absl::StrCat("expected latest, all, {latest: NUMBER} or {specific: [VERSION, "
                               "...]}, got ",
                               DescribeYaml(node)));
  YamlSection choice(node, s.PathOf("versions"), s.errors());
  *out = {};
  choice.Int("latest", kLatestRange, &out->latest);
  choice.IntList("specific", kVersionRange, &out->specific);
  if (node["specific"].IsDefined()) {
    out->kind = Kind::kSpecific;
    std::sort(out->specific.begin(), out->specific.end());
    out->specific.erase(std::unique(out->specific.begin(), out->specific.end()),
                        out->specific.end());
    if (node["specific"].IsSequence() && node["specific"].size() == 0)
      choice.Fail("specific names no version; expected specific: [VERSION, ...]");
  }
  choice.Finish();
}

// The name of a file in a directory that is known.
void ReadFileName(YamlSection& s, const char* key, std::string* out) {
  const YAML::Node node = s.Take(key);
  if (!node.IsDefined()) return;
  if (!node.IsScalar() || node.Scalar().find('/') != std::string::npos || node.Scalar() == "." ||
      node.Scalar() == "..")
    return s.Fail(
        node, key,
        absl::StrCat("expected the name of a file, without directories, got ", DescribeYaml(node)));
  *out = node.Scalar();
}

// `"0-3,8"`, `2` or `[0, 2]`.
void ReadCpuSet(YamlSection& s, std::vector<int>* out) {
  const YAML::Node node = s.Take("cpu_set");
  if (!node.IsDefined()) return;
  if (node.IsSequence()) {
    std::vector<int64_t> cpus;
    s.IntList("cpu_set", {0, kMaxCpus - 1}, &cpus);
    out->assign(cpus.begin(), cpus.end());
    std::sort(out->begin(), out->end());
    out->erase(std::unique(out->begin(), out->end()), out->end());
    return;
  }
  if (!node.IsScalar())
    return s.Fail(node, "cpu_set",
                  absl::StrCat("expected CPUs such as \"0-3,8\", got ", DescribeYaml(node)));
  const auto cpus = ParseCpuSet(node.Scalar());
  if (!cpus.ok()) return s.Fail(node, "cpu_set", std::string(cpus.status().message()));
  *out = *cpus;
}

// An unquoted scalar as what it looks like.
std::variant<bool, int64_t, double, std::string> ScalarValue(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  int64_t integer = 0;
  double real = 0;
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  // What is not equal to itself would be a change at every reload.
  if (absl::SimpleAtod(text, &real) && !std::isnan(real)) return real;
  return text;
}

// `name: false`, or `name: {value: 3, dtype: int64}`.
void ReadDefault(YamlSection& s, const std::string& name, const YAML::Node& node,
                 ModelConfig* out) {
  PlaceholderDefault result;
  if (node.IsScalar()) {
    result.value = ScalarValue(node);
  } else if (node.IsMap() && node["value"].IsDefined() && node["value"].IsScalar()) {
    YamlSection detail(node, s.PathOf(name), s.errors());
    result.value = ScalarValue(detail.Take("value"));
    detail.String("dtype", &result.dtype);
    detail.Finish();
  } else {
    return s.Fail(
        node, name,
        absl::StrCat("expected a value such as false or 0.5, or {value: 3, dtype: int64}, got ",
                     DescribeYaml(node)));
  }
  out->placeholder_defaults[name] = std::move(result);
}

// What a model may say besides its name and path.
void ReadModelSettings(YamlSection& s, ModelConfig* model) {
  ReadVersions(s, &model->versions);
  ReadFileName(s, "completion_marker", &model->completion_marker);
  s.IntMap("version_labels", kVersionRange, &model->version_labels);
  s.IntOrAuto("workers", kWorkersRange, &model->workers);
  s.Int("intra_op_threads", kIntraOpThreadsRange, &model->intra_op_threads);
  ReadCpuSet(s, &model->cpu_set);
  s.Int("weight", kWeightRange, &model->weight);
  s.Map("batching", [&](YamlSection& b) { ReadBatching(b, &model->batching); });
  ReadEnum(s, "batching_full_status", FullStatusNames(), &model->batching_full_status);
  s.Bytes("max_run_bytes", &model->max_run_bytes);
  s.Int("max_run_seconds", kRunSecondsRange, &model->max_run_seconds);
  s.Int("default_timeout_microseconds", kTimeoutMicrosRange, &model->default_timeout_microseconds);
  s.Int("inline_below_us", kInlineBelowRange, &model->inline_below_us);
  s.Map("placeholder_defaults", [&](YamlSection& defaults) {
    defaults.Each([&](const std::string& name, const YAML::Node& value) {
      ReadDefault(defaults, name, value, model);
    });
  });
  s.Map("signature", [&](YamlSection& signature) {
    signature.StringMap("inputs", &model->signature.inputs);
    signature.StringMap("outputs", &model->signature.outputs);
  });
  int reply = -1;
  s.Choice("reply", ReplyFormatNames(), &reply);
  if (reply >= 0) model->reply = static_cast<ReplyFormat>(reply);
}

void ReadModel(YamlSection& s, const std::string& directory, const ModelConfig& defaults,
               std::vector<ModelConfig>* models) {
  ModelConfig model = defaults;
  s.String("name", &model.name);
  s.String("base_path", &model.base_path);
  ReadModelSettings(s, &model);

  if (model.name.empty()) s.Fail("expected 'name: NAME', what clients call the model");
  if (model.base_path.empty())
    s.Fail(
        "expected 'base_path: PATH', the directory that holds <version>/ directories, or the model "
        "file");
  model.where = s.WhereIs("base_path");
  for (const ModelConfig& other : *models)
    if (!model.name.empty() && other.name == model.name)
      s.errors().Add(s.MarkOf("name"), s.PathOf("name"),
                     absl::StrCat("the model name '", model.name, "' is taken (", other.where,
                                  "); names must differ"));
  if (!model.base_path.empty() && model.base_path[0] != '/' && !directory.empty())
    model.base_path = absl::StrCat(directory, "/", model.base_path);
  models->push_back(std::move(model));
}

// May throw what yaml-cpp throws.
absl::StatusOr<ServerConfig> Parse(const std::string& text, const std::string& file,
                                   const std::string& directory, const ModelConfig& defaults) {
  ServerConfig config;
  YamlErrors errors(file);
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  for (size_t i = 1; i < documents.size(); ++i)
    if (!documents[i].IsNull())
      errors.Add(documents[i].Mark(), "",
                 "another document begins behind '---'; put all into one, or into a file each");
  YamlSection root(documents.empty() ? YAML::Node() : documents[0], "", errors);
  root.Map("server", [&](YamlSection& s) { ReadListen(s, &config); });
  root.Map("log", [&](YamlSection& s) { ReadLog(s, &config.log); });
  root.Map("cpu", [&](YamlSection& s) { ReadCpu(s, &config.cpu); });
  root.Map("lifecycle", [&](YamlSection& s) { ReadLifecycle(s, &config.lifecycle); });
  root.List("models", [&](YamlSection& s) { ReadModel(s, directory, defaults, &config.models); });
  root.Finish();
  if (!errors.empty()) return absl::InvalidArgumentError(errors.Joined());
  return config;
}

// The one boundary where yaml-cpp's exceptions stop.
template <typename Read>
auto WithoutExceptions(const std::string& file, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ":", e.mark.line + 1, ": not valid YAML (column ", e.mark.column + 1, "): ", e.msg));
  }
}

}  // namespace

absl::StatusOr<ServerConfig> ParseConfig(const std::string& text, const std::string& file,
                                         const std::string& directory,
                                         const ModelConfig& defaults) {
  return WithoutExceptions(file, [&] { return Parse(text, file, directory, defaults); });
}

absl::Status CheckListsModels(const std::string& yaml, const std::string& file) {
  return WithoutExceptions(file, [&]() -> absl::Status {
    const YAML::Node root = YAML::Load(yaml);
    if (root.IsMap() && root["models"].IsDefined() && root["models"].IsSequence())
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": there is no list 'models', as in a file that was cut short; 'models: []' says "
        "that there are to be none"));
  });
}

}  // namespace floe
