// floed's configuration: typed, with its defaults, and how to read it from YAML.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/on_device_error.h"
#include "base/precision.h"
#include "config/role.h"

namespace floe {

// The rows of config/key_table.cc say what each field means that has the name of a key.

// How many requests wait and how many run together.
struct BatchingConfig {
  int64_t max_batch_size = 0;
  int64_t batch_timeout_micros = 0;
  int64_t max_enqueued_batches = 0;
  int64_t max_enqueued_bytes = 0;
  int64_t max_enqueued_micros = 5'000'000;
  // Padded with copies of a batch's last row. The last is max_execution_rows() or max_batch_size.
  std::vector<int64_t> allowed_batch_sizes = {};
  bool pad_variable_length_inputs = false;
  std::map<std::string, double> padding_values = {};  // by input's key
  bool enable_large_batch_splitting = true;           // false: batches run whole
  int64_t max_execution_batch_size = 0;               // 0: max_batch_size

  // Rows of one run; 0 as for max_batch_size.
  int64_t max_execution_rows() const {
    return enable_large_batch_splitting && max_execution_batch_size != 0 ? max_execution_batch_size
                                                                         : max_batch_size;
  }
  friend bool operator==(const BatchingConfig&, const BatchingConfig&) = default;
};

// Which versions under base_path are to be served.
struct VersionPolicy {
  enum class Kind : uint8_t { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  int64_t latest = 1;             // of kLatest: how many of the highest
  std::vector<int64_t> specific;  // of kSpecific: ascending, at least one
  friend bool operator==(const VersionPolicy&, const VersionPolicy&) = default;
};

// A value for a placeholder that callers need not feed. A bare YAML scalar becomes bool, int32
// (int64 when it does not fit), float32 or string; `dtype` (NumPy's names), when not empty, says
// otherwise.
struct PlaceholderDefault {
  std::variant<bool, int64_t, double, std::string> value;
  std::string dtype;
  friend bool operator==(const PlaceholderDefault&, const PlaceholderDefault&) = default;
};

// Replaces the file's signature when not empty: alias -> tensor name ("node" or "node:1").
struct SignatureConfig {
  std::map<std::string, std::string> inputs, outputs;
  friend bool operator==(const SignatureConfig&, const SignatureConfig&) = default;
};

enum class ReplyFormat : uint8_t { kTyped, kContent };

// Which versions another process loads first. A load that crashes, hangs or takes all memory does
// not end the one that serves. All, those that come once the models of the start have
// settled, or none.
enum class TrialLoad : uint8_t { kAlways, kUpdates, kNever };

// What a caller hears when a model's queue is full.
enum class FullStatus : uint8_t { kResourceExhausted, kUnavailable };

// Where a model may be computed: `auto`, `cpu`, `cuda` or `cuda:N`.
struct DeviceChoice {
  enum class Kind : uint8_t { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  int index = -1;  // of kCuda: which device; -1: any

  static std::optional<DeviceChoice> Parse(const std::string& text);
};

struct ModelConfig {
  std::string name;
  std::string base_path;  // absolute, but in a list whose reader knows no directory
  std::string where;      // "floe.yaml:12", or the flag, for messages
  VersionPolicy versions;
  std::string completion_marker;  // empty: what is left alone is complete
  std::map<std::string, int64_t> version_labels;
  int64_t workers = 0;  // 0: its share of the CPUs
  int64_t intra_op_threads = 1;
  std::vector<int> cpu_set;  // ascending; empty: all usable ones
  int64_t cpu_shares = 1;
  BatchingConfig batching;
  FullStatus batching_full_status = FullStatus::kUnavailable;
  int64_t max_run_bytes = 0;
  int64_t max_run_seconds = 300;
  int64_t default_timeout_microseconds = 0;
  int64_t inline_below_us = 50;
  bool fft = true;  // convolutions may be computed by Fourier transforms
  Precision precision = Precision::kFloat32;
  std::map<std::string, std::string> routes;  // by node
  std::map<std::string, PlaceholderDefault> placeholder_defaults;
  SignatureConfig signature;
  std::string saved_model_tags;      // separated by commas; empty: serve, or the only graph
  std::optional<ReplyFormat> reply;  // unset: as the server's flag says
  std::string device = "auto";       // DeviceChoice::Parse
  std::optional<OnDeviceError> on_device_error = {};  // unset: as the server says
  int64_t device_shares = 1;
  int64_t log_one_in = 0;  // of its requests; 0: none

  // Whether a reload has nothing to do: everything but `where`.
  friend bool operator==(const ModelConfig& a, const ModelConfig& b);
};

// What models and requests may take together, of the host or of a device.
struct MemoryLimit {
  int64_t percent = 90;  // of the memory that can be used; 0: `bytes` says
  int64_t bytes = 0;     // 0: no limit

  // In bytes, where so many can be used; 0: no limit.
  int64_t In(int64_t usable) const { return percent == 0 ? bytes : usable / 100 * percent; }
  friend bool operator==(const MemoryLimit&, const MemoryLimit&) = default;
};

// Whether models may be computed by GPUs: where there is one, never, or always.
enum class Backend : uint8_t { kAuto, kCpu, kCuda };

// How models come and go while the server runs.
struct LifecycleConfig {
  int64_t file_system_poll_wait_seconds = 1;
  int64_t model_config_file_poll_wait_seconds = 0;
  int64_t max_num_load_retries = 5;
  int64_t load_retry_interval_micros = 60'000'000;
  int64_t num_load_threads = 0;
  TrialLoad trial_load = TrialLoad::kAlways;
  int64_t max_load_seconds = 120;
  bool allow_version_labels_for_unavailable_models = false;
  bool enable_model_warmup = true;
  int64_t num_request_iterations_for_warmup = 1;
  bool enable_per_model_batching_parameters = false;
  bool warmup_optional = false;
  bool strict_readiness = true;
  bool exit_on_error = false;
  MemoryLimit memory_limit;
  friend bool operator==(const LifecycleConfig&, const LifecycleConfig&) = default;
};

// Who may call the RPCs that read and change the configuration.
enum class ConfigRpcs : uint8_t { kLocal, kAll, kNobody };

// Whether clients are asked for a certificate: no; yes, but those without one are served too; yes.
enum class ClientCertificates : uint8_t { kNone, kOptional, kRequired };
enum class TlsVersion : uint8_t { k12, k13 };

// Paths of PEM files, or of TensorFlow Serving's one file. All empty: plain text.
struct TlsConfig {
  std::string certificate = {};
  std::string key = {};
  std::string client_ca = {};
  ClientCertificates client = ClientCertificates::kNone;
  TlsVersion min_version = TlsVersion::k12;
  std::string ssl_config_file = {};

  bool is_on() const { return !certificate.empty() || !key.empty() || !ssl_config_file.empty(); }
  friend bool operator==(const TlsConfig&, const TlsConfig&) = default;
};

// What a caller may do whose certificate, token or user has this name. One of the names is given.
struct PrincipalConfig {
  std::string certificate;  // a common name, or "DNS:a.b", "URI:...", "IP:...", "email:..."
  std::string token;        // of a line of the file of tokens, whose roles and models it replaces
  std::string uid;          // a number, or the name of a user
  Roles roles;
  std::vector<std::string> models;  // globs; empty: all
  friend bool operator==(const PrincipalConfig&, const PrincipalConfig&) = default;
};

struct AuthConfig {
  std::string tokens_file;
  std::vector<PrincipalConfig> principals;
  std::optional<std::vector<std::string>> anonymous;  // roles

  // Whether callers are asked who they are.
  bool is_on() const {
    return !tokens_file.empty() || !principals.empty() || anonymous.has_value();
  }
  friend bool operator==(const AuthConfig&, const AuthConfig&) = default;
};

struct ListenConfig {
  int64_t port = 8500;
  std::string bind_address = "127.0.0.1";
  std::string grpc_socket_path;
  std::string admin_socket_path;
  bool enable_reflection = false;
  bool enable_signature_method_name_check = false;
  int64_t max_message_bytes = int64_t{256} << 20;
  int64_t drain_timeout_seconds = 30;
  int64_t drain_lame_duck_seconds = 1;
  std::string grpc_channel_arguments;
  TlsConfig tls;
  AuthConfig auth;
  bool insecure_public = false;
  int64_t max_connections = 0;
  int64_t max_connections_per_address = 0;
  ConfigRpcs enable_config_rpcs = ConfigRpcs::kLocal;
  bool enable_health_watch = true;
  bool enable_compression = false;
  int64_t max_calls = 16384;
  int64_t max_calls_per_address = 8192;
  int64_t max_calls_per_connection = 1024;
  int64_t max_call_bytes = 0;
  int64_t max_call_bytes_per_address = 0;
  int64_t max_call_bytes_per_connection = 0;
  int64_t connection_idle_seconds = 3600;
  int64_t connection_age_seconds = 0;
  int64_t keepalive_seconds = 120;
  int64_t send_timeout_seconds = 60;
  int64_t http_port = 0;
  int64_t http_max_body_bytes = int64_t{64} << 20;
  int64_t http_timeout_ms = 30000;
  std::vector<std::string> cors_origins;   // "https://app.example", or "*"
  std::vector<std::string> metrics_names;  // of other servers: "tfserving", "triton", "kserve"
  std::string metrics_path = "/monitoring/prometheus/metrics";  // with TensorFlow Serving's names
  friend bool operator==(const ListenConfig&, const ListenConfig&) = default;
};

enum class LogFormat : uint8_t { kText, kJson };

struct LogConfig {
  std::string level = "info";
  LogFormat format = LogFormat::kText;
  int64_t slow_request_ms = 0;  // 0: no request is slow
  std::string access_path;      // "": no access log; "-": standard output
  int64_t access_one_in = 1;
  std::string requests_directory;  // "": no request log
  int64_t requests_file_bytes = int64_t{256} << 20;
  friend bool operator==(const LogConfig&, const LogConfig&) = default;
};

struct CpuConfig {
  std::string gemm = "auto";
  std::string blas_library;
  friend bool operator==(const CpuConfig&, const CpuConfig&) = default;
};

// Where a configuration came from, to read it again.
struct ConfigSource {
  std::vector<std::string> args;   // the command line, without the program's name
  std::vector<std::string> files;  // read for it, in order
  uint64_t content_hash = 0;       // of the files' bytes
};

struct ServerConfig {
  Backend backend = Backend::kAuto;
  MemoryLimit gpu_memory_limit;                          // of each device
  OnDeviceError on_device_error = OnDeviceError::kFail;  // of models that do not say
  std::string gpu_libraries = "none";                    // or cublaslt, cudnn, all
  ListenConfig server;
  LogConfig log;
  CpuConfig cpu;
  LifecycleConfig lifecycle;
  std::vector<ModelConfig> models;
  ModelConfig model_defaults;               // what models start from that do not say otherwise
  ReplyFormat reply = ReplyFormat::kTyped;  // of models that do not say
  // By key, for messages: where it is set and how it is called there, such as "floe.yaml:3:
  // server.port" or "--port". Keys that are not set have none.
  std::map<std::string, std::string> where;
  // What was asked for and has no effect here, a sentence each; to be said once at start.
  std::vector<std::string> notes;
  ConfigSource source;
};

// floe.yaml as text. INVALID_ARGUMENT lists every mistake, one per line, as "file:line: key.path:
// what is wrong, what was expected". `file` is what messages call it, `directory` where relative
// base_paths start ("" = leave them), `defaults` what models start from.
absl::StatusOr<ServerConfig> ParseConfig(const std::string& text, const std::string& file,
                                         const std::string& directory,
                                         const ModelConfig& defaults = {});

// The reverse, with every default spelt out. Parsing it gives the same configuration, but for
// `where`, notes, source, and bytes that are not UTF-8, which become U+FFFD.
std::string ConfigToYaml(const ServerConfig& config);

// Rules that hold whatever the source: models' names and paths given, names unique, ranges of what
// flags may set, keys of TLS that belong together, and plain text only on loopback unless
// `insecure_public`. INVALID_ARGUMENT with one line per mistake.
absl::Status ValidateConfig(const ServerConfig& config);

// Whether the files the configuration names exist. NOT_FOUND with one line per missing one.
absl::Status CheckPaths(const ServerConfig& config);

// True for 127.0.0.0/8, ::1 and localhost.
bool IsLoopback(const std::string& address);

// "key=value,key=value" as pairs, in order. INVALID_ARGUMENT names the part that has no '=' or no
// key.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseChannelArguments(
    const std::string& text);

}  // namespace floe
