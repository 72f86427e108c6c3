#include "server/flags/tfs_flags.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

enum class Kind { kSwitch, kInteger, kNumber, kText };

struct Flag {
  const char* name;
  Kind kind;
  const char* why;
};

constexpr char kNoRest[] = "there is no REST API";
constexpr char kNoLite[] = "TensorFlow Lite models are not served";
constexpr char kNoGpu[] = "models run on the CPU";
constexpr char kOwnCode[] = "models run on floe's own code, not TensorFlow's";
constexpr char kOwnGraph[] = "of a model only its graph is kept in memory";

constexpr Flag kFlags[] = {
    {"rest_api_port", Kind::kInteger, kNoRest},
    {"rest_api_num_threads", Kind::kInteger, kNoRest},
    {"rest_api_timeout_in_ms", Kind::kInteger, kNoRest},
    {"rest_api_enable_cors_support", Kind::kSwitch, kNoRest},
    {"num_unload_threads", Kind::kInteger, "versions are unloaded beside serving in any case"},
    {"flush_filesystem_caches", Kind::kSwitch, "the system keeps or drops pages of model files"},
    {"grpc_max_threads", Kind::kInteger, "gRPC's threads never wait for a model"},
    {"enable_grpc_healthcheck_service", Kind::kSwitch, "health is always offered"},
    {"monitoring_config_file", Kind::kText, "there is no endpoint for metrics"},
    {"enable_profiler", Kind::kSwitch, "there is no profiler service"},
    {"platform_config_file", Kind::kText, kOwnCode},
    {"tensorflow_session_config_file", Kind::kText, kOwnCode},
    {"thread_pool_factory_config_file", Kind::kText, kOwnCode},
    {"xla_cpu_compilation_enabled", Kind::kSwitch, kOwnCode},
    {"xla_gpu_compilation_enabled", Kind::kSwitch, kNoGpu},
    {"per_process_gpu_memory_fraction", Kind::kNumber, kNoGpu},
    {"skip_initialize_tpu", Kind::kSwitch, kNoGpu},
    {"mixed_precision", Kind::kText, "models run in the types of their graphs"},
    {"saved_model_tags", Kind::kText, "a model's saved_model_tags in floe.yaml choose its graph"},
    {"use_saved_model", Kind::kSwitch, "the format is told from the file"},
    {"remove_unused_fields_from_bundle_metagraph", Kind::kSwitch, kOwnGraph},
    {"enable_signature_method_name_check", Kind::kSwitch, "only Predict is offered"},
    {"prefer_tflite_model", Kind::kSwitch, kNoLite},
    {"use_tflite_model", Kind::kSwitch, kNoLite},
    {"num_tflite_pools", Kind::kInteger, kNoLite},
    {"num_tflite_interpreters", Kind::kInteger, kNoLite},
    {"num_tflite_interpreters_per_pool", Kind::kInteger, kNoLite},
};

// What is wrong with the value, or nothing.
std::string CheckValue(Kind kind, const std::string& text) {
  double number = 0;
  if (kind == Kind::kInteger && !ParseInteger(text))
    return absl::StrCat("expected a whole number, got '", text, "'");
  if (kind == Kind::kNumber && !absl::SimpleAtod(text, &number))
    return absl::StrCat("expected a number, got '", text, "'");
  return "";
}

const char* TypeName(Kind kind) {
  return kind == Kind::kInteger ? "INT" : kind == Kind::kNumber ? "NUMBER" : "TEXT";
}

}  // namespace

CLI::Option* AddSwitch(CLI::App& app, const std::string& name, std::function<void(bool)> set,
                       const std::string& help) {
  // CLI11 gives a bare flag as an empty text or as its empty list.
  const auto read = [](const std::string& text, bool* value) {
    *value = true;
    return text.empty() || text == "{}" || absl::SimpleAtob(text, value);
  };
  return app
      .add_option_function<std::string>(
          name,
          [read, set = std::move(set)](const std::string& text) {
            bool value = true;
            read(text, &value);
            set(value);
          },
          help)
      ->expected(0, 1)
      ->type_name("BOOL")
      ->check([read](const std::string& text) {
        bool value = false;
        return read(text, &value) ? "" : absl::StrCat("expected true or false, got '", text, "'");
      });
}

std::optional<int64_t> ParseInteger(const std::string& text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? std::optional(value) : std::nullopt;
}

CLI::Option* AddInteger(CLI::App& app, const std::string& name, std::function<void(int64_t)> set,
                        const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [set = std::move(set)](const std::string& text) { set(ParseInteger(text).value()); },
          help)
      ->type_name(TypeName(Kind::kInteger))
      ->check([](const std::string& text) { return CheckValue(Kind::kInteger, text); });
}

void AddFlagsWithoutEffect(CLI::App& app, std::vector<std::string>* notes) {
  for (const Flag& flag : kFlags) {
    const auto note = [notes, flag](const std::string& value) {
      notes->push_back(
          absl::StrCat("--", flag.name, "=", value, " has no effect here: ", flag.why));
    };
    const std::string name = absl::StrCat("--", flag.name);
    CLI::Option* option = nullptr;
    if (flag.kind == Kind::kSwitch) {
      option = AddSwitch(
          app, name, [note](bool value) { note(value ? "true" : "false"); }, flag.why);
    } else {
      option = app.add_option_function<std::string>(name, note, flag.why)
                   ->type_name(TypeName(flag.kind))
                   ->check([kind = flag.kind](const std::string& text) {
                     return CheckValue(kind, text);
                   });
    }
    option->group("Flags of TensorFlow Serving without effect here");
  }
}

}  // namespace floe::server
