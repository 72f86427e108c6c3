// floe.yaml -> ServerConfig. The shape of the file is this file: one function per section.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/status.h"
#include "config/config.h"
#include "config/yaml_section.h"

namespace floe {
namespace {

void ReadListen(YamlSection& s, ListenConfig* out) {
  s.Int("port", 0, 65535, &out->port);
  s.String("bind_address", &out->bind_address);
  s.String("grpc_socket_path", &out->grpc_socket_path);
  s.Bool("enable_reflection", &out->enable_reflection);
  s.Int("max_message_bytes", 1024, std::numeric_limits<int32_t>::max(), &out->max_message_bytes);
  s.Int("drain_timeout_seconds", 0, 3600, &out->drain_timeout_seconds);
  s.Int("drain_lame_duck_seconds", 0, 3600, &out->drain_lame_duck_seconds);
  s.String("grpc_channel_arguments", &out->grpc_channel_arguments);
  s.Bool("insecure_public", &out->insecure_public);
}

void ReadLog(YamlSection& s, LogConfig* out) {
  int level = -1, format = -1;
  s.Choice("level", LogLevels(), &level);
  s.Choice("format", {"text", "json"}, &format);
  if (level >= 0) out->level = LogLevels()[level];
  if (format >= 0) out->format = static_cast<LogFormat>(format);
}

void ReadCpu(YamlSection& s, CpuConfig* out) {
  int gemm = -1;
  s.Choice("gemm", GemmNames(), &gemm);
  if (gemm >= 0) out->gemm = GemmNames()[gemm];
  s.String("blas_library", &out->blas_library);
}

void ReadBatching(YamlSection& s, BatchingConfig* out) {
  s.Int("max_batch_size", 1, 65536, &out->max_batch_size);
  s.Int("batch_timeout_micros", 0, 60'000'000, &out->batch_timeout_micros);
  s.Int("max_enqueued_batches", 1, 1'000'000, &out->max_enqueued_batches);
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
  if (absl::SimpleAtod(text, &real)) return real;
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
    std::string text;
    detail.String("value", &text);
    result.value = ScalarValue(node["value"]);
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

void ReadModel(YamlSection& s, const std::string& directory, std::vector<ModelConfig>* models) {
  ModelConfig model;
  s.String("name", &model.name);
  s.String("base_path", &model.base_path);
  s.Int("workers", 1, 1024, &model.workers);
  s.Int("intra_op_threads", 1, 256, &model.intra_op_threads);
  s.Map("batching", [&](YamlSection& b) { ReadBatching(b, &model.batching); });
  s.Int("inline_below_us", 0, 1'000'000, &model.inline_below_us);
  s.Map("placeholder_defaults", [&](YamlSection& defaults) {
    defaults.Each([&](const std::string& name, const YAML::Node& value) {
      ReadDefault(defaults, name, value, &model);
    });
  });
  s.Map("signature", [&](YamlSection& signature) {
    signature.StringMap("inputs", &model.signature.inputs);
    signature.StringMap("outputs", &model.signature.outputs);
  });
  int reply = -1;
  s.Choice("reply", {"typed", "content"}, &reply);
  if (reply >= 0) model.reply = static_cast<ReplyFormat>(reply);

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
                                   const std::string& directory) {
  ServerConfig config;
  YamlErrors errors(file);
  YamlSection root(YAML::Load(text), "", errors);
  root.Map("server", [&](YamlSection& s) { ReadListen(s, &config.server); });
  root.Map("log", [&](YamlSection& s) { ReadLog(s, &config.log); });
  root.Map("cpu", [&](YamlSection& s) { ReadCpu(s, &config.cpu); });
  root.List("models", [&](YamlSection& s) { ReadModel(s, directory, &config.models); });
  root.Finish();
  if (!errors.empty()) return absl::InvalidArgumentError(errors.Joined());
  return config;
}

}  // namespace

absl::StatusOr<ServerConfig> ParseConfig(const std::string& text, const std::string& file,
                                         const std::string& directory) {
  // The one boundary where yaml-cpp's exceptions stop.
  try {
    return Parse(text, file, directory);
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ":", e.mark.line + 1, ": not valid YAML (column ", e.mark.column + 1, "): ", e.msg));
  }
}

absl::StatusOr<ServerConfig> LoadConfigFile(const std::string& path) {
  std::error_code ignored;
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open() || std::filesystem::is_directory(path, ignored)) {
    return absl::NotFoundError(
        absl::StrCat("config file '", path, "' cannot be read; --config expects a YAML file"));
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : path.substr(0, slash);
  return ParseConfig(text, path, directory);
}

}  // namespace floe
