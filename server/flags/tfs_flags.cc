// The table of flags without effect, and how one flag of each kind is read.
#include "server/flags/tfs_flags.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

struct Flag {
  const char* name;
  FlagKind kind;
  const char* why;
};

constexpr char kNoRest[] = "the REST API needs no threads of its own";
constexpr char kNoLite[] = "TensorFlow Lite models are not served";
constexpr char kNoGpu[] = "floed has its own kernels; see --backend and --gpu_memory_limit";
constexpr char kOwnCode[] = "models run on floe's own code, not TensorFlow's";
constexpr char kOwnGraph[] = "only the graph of a model is kept in memory";

constexpr Flag kFlags[] = {
    {"rest_api_num_threads", FlagKind::kInteger, kNoRest},
    {"num_unload_threads", FlagKind::kInteger, "unloading never blocks serving"},
    {"flush_filesystem_caches", FlagKind::kSwitch, "the operating system caches model files"},
    {"grpc_max_threads", FlagKind::kInteger, "gRPC's threads never wait for a model"},
    {"enable_grpc_healthcheck_service", FlagKind::kSwitch, "health is always offered"},
    {"enable_profiler", FlagKind::kSwitch, "there is no profiler service"},
    {"platform_config_file", FlagKind::kText, kOwnCode},
    {"tensorflow_session_config_file", FlagKind::kText, kOwnCode},
    {"thread_pool_factory_config_file", FlagKind::kText, kOwnCode},
    {"xla_cpu_compilation_enabled", FlagKind::kSwitch, kOwnCode},
    {"xla_gpu_compilation_enabled", FlagKind::kSwitch, kNoGpu},
    {"per_process_gpu_memory_fraction", FlagKind::kNumber, kNoGpu},
    {"skip_initialize_tpu", FlagKind::kSwitch, kNoGpu},
    {"mixed_precision", FlagKind::kText, "models run with the dtypes of their graphs"},
    {"use_saved_model", FlagKind::kSwitch, "the format is detected from the file"},
    {"remove_unused_fields_from_bundle_metagraph", FlagKind::kSwitch, kOwnGraph},
    {"prefer_tflite_model", FlagKind::kSwitch, kNoLite},
    {"use_tflite_model", FlagKind::kSwitch, kNoLite},
    {"num_tflite_pools", FlagKind::kInteger, kNoLite},
    {"num_tflite_interpreters", FlagKind::kInteger, kNoLite},
    {"num_tflite_interpreters_per_pool", FlagKind::kInteger, kNoLite},
};

// Whether `text` is a switch's value. CLI11 gives a bare flag as an empty text or its empty list.
bool ReadSwitch(const std::string& text, bool* value) {
  *value = true;
  return text.empty() || text == "{}" || absl::SimpleAtob(text, value);
}

// What is wrong with the value; empty: nothing.
std::string Mistake(FlagKind kind, const std::string& text) {
  bool is_true = false;
  int64_t integer = 0;
  double number = 0;
  const char* expected = nullptr;
  if (kind == FlagKind::kSwitch && !ReadSwitch(text, &is_true)) expected = "true or false";
  if (kind == FlagKind::kInteger && !absl::SimpleAtoi(text, &integer)) expected = "a whole number";
  if (kind == FlagKind::kNumber && !absl::SimpleAtod(text, &number)) expected = "a number";
  return expected == nullptr ? "" : absl::StrCat("expected ", expected, ", got '", text, "'");
}

}  // namespace

CLI::Option* AddFlag(CLI::App& app, const std::string& name, FlagKind kind,
                     std::function<void(const std::string&)> set, const std::string& help) {
  static constexpr const char* kTypes[] = {"BOOL", "INT", "NUMBER", "TEXT"};
  const auto read = [kind, set = std::move(set)](const std::string& text) {
    bool value = true;
    if (kind != FlagKind::kSwitch) return set(text);
    ReadSwitch(text, &value);
    set(value ? "true" : "false");
  };
  CLI::Option* const option =
      app.add_option_function<std::string>(name, read, help)
          ->type_name(kTypes[static_cast<int>(kind)])
          ->check([kind](const std::string& text) { return Mistake(kind, text); });
  return kind == FlagKind::kSwitch ? option->expected(0, 1) : option;
}

void AddFlagsWithoutEffect(CLI::App& app, std::vector<std::string>* notes) {
  for (const Flag& flag : kFlags) {
    const auto note = [notes, flag](const std::string& value) {
      notes->push_back(
          absl::StrCat("--", flag.name, "=", value, " has no effect here: ", flag.why));
    };
    AddFlag(app, absl::StrCat("--", flag.name), flag.kind, note, flag.why)
        ->group("Flags of TensorFlow Serving without effect here");
  }
}

}  // namespace floe::server
