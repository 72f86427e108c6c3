// The rows: one per key, in the order of floe.yaml, with range or choices and help.
#include "config/key_table.h"

#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/key_forms.h"
#include "config/monitoring_config.h"

namespace floe {
namespace {

// A field of a configuration, and the key whose name is the field's path.
#define FLOE_FIELD(path) \
  [](auto& config) -> auto& { return config.path; }
#define FLOE_KEY(path) #path, FLOE_FIELD(path)

using ServerKeyList = std::vector<Key<ServerConfig>>;
using ModelKeyList = std::vector<Key<ModelConfig>>;

constexpr IntRange kMany{0, 10'000'000};
constexpr IntRange kDaySeconds{0, 86'400};
constexpr IntRange kDayMicros{0, int64_t{86'400} * 1'000'000};
constexpr IntRange kConnectionSeconds{0, 1'000'000};
constexpr IntRange kRows{1, 65536};

bool IsFileName(const std::string& text) {
  return !absl::StrContains(text, '/') && text != "." && text != "..";
}
bool IsName(const std::string& text) { return !text.empty(); }

// As browsers write it: in lower case, without a path.
bool IsOrigin(const std::string& text) {
  const size_t mark = text.find("://");
  if (text == "*") return true;
  if (mark == std::string::npos ||
      (text.substr(0, mark) != "http" && text.substr(0, mark) != "https"))
    return false;
  const std::string host = text.substr(mark + 3);
  return !host.empty() &&
         host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-:[]") == std::string::npos;
}

bool IsDevice(const std::string& text) { return DeviceChoice::Parse(text).has_value(); }

ServerKeyList DeviceKeys() {
  return {
      {FLOE_KEY(backend), OneOf{{"auto", "cpu", "cuda"}},
       "What computes models: GPUs where there are any, the CPU alone, or GPUs, which must be "
       "there"},
      {FLOE_KEY(gpu_memory_limit), PercentOrBytes(),
       "Memory of each GPU for models: a share of all that it has, or e.g. `8GiB`; 0: no limit"},
      {FLOE_KEY(on_device_error), OneOf{{"fail", "cpu"}},
       "When a GPU fails: the requests fail with UNAVAILABLE, or the CPU computes them"},
      {FLOE_KEY(gpu_libraries), OneOf{{"none", "cublaslt", "cudnn", "all"}},
       "NVIDIA's libraries that may compute products (cuBLASLt) and convolutions (cuDNN) on GPUs, "
       "where they are proven to keep a row's bits in every batch"},
  };
}

ServerKeyList ListenKeys() {
  return {
      {FLOE_KEY(server.port), Whole{{0, 65535}}, "TCP port for gRPC and HTTP; 0: no TCP"},
      {FLOE_KEY(server.bind_address), AnyText(),
       "Address to listen on; beyond loopback it needs `insecure_public`"},
      {FLOE_KEY(server.grpc_socket_path), AnyText(),
       "Unix socket to listen on, as well or instead; `@name` is an abstract one"},
      {FLOE_KEY(server.admin_socket_path), AnyText(),
       "Another unix socket, for operators: their RPCs are offered there and nowhere else then"},
      {FLOE_KEY(server.enable_reflection), YesNo(),
       "Offers gRPC reflection, which grpcurl and other tools use"},
      {FLOE_KEY(server.enable_signature_method_name_check), YesNo(),
       "Classify and Regress take only signatures whose method is theirs"},
      {FLOE_KEY(server.max_message_bytes), Bytes{{1024, std::numeric_limits<int32_t>::max()}},
       "Largest message accepted, e.g. `64MiB`; larger ones end in RESOURCE_EXHAUSTED"},
      {FLOE_KEY(server.drain_timeout_seconds), Whole{{0, 3600}},
       "Time for accepted calls after SIGTERM, and for the runs of a version that is unloaded"},
      {FLOE_KEY(server.drain_lame_duck_seconds), Whole{{0, 3600}},
       "Time after SIGTERM in which new calls are still served while health says NOT_SERVING"},
      {FLOE_KEY(server.grpc_channel_arguments), AnyText(),
       "`key=value,key=value`, as gRPC's servers name them, e.g. `grpc.keepalive_time_ms=20000`"},
      {FLOE_KEY(server.insecure_public), YesNo(),
       "Accepts plain connections from other machines; for trusted networks only"},
      {FLOE_KEY(server.max_connections), Whole{kMany},
       "Most open connections; 0, or too many: what the limit of open files allows"},
      {FLOE_KEY(server.max_connections_per_address), Whole{kMany},
       "Most open connections from one TCP address; 0: no limit"},
      {FLOE_KEY(server.enable_config_rpcs), OneOf{{"local", "true", "false"}},
       "Who may call the RPCs for operators: processes of this machine, everybody, nobody"},
      {FLOE_KEY(server.enable_health_watch), YesNo(),
       "Offers the health service's `Watch`, one stream for each caller, beside `Check`"},
      {FLOE_KEY(server.enable_compression), YesNo(),
       "Accepts gzip requests of up to `max_message_bytes` unpacked, else UNIMPLEMENTED, and packs "
       "the replies of clients that take them so"},
      {FLOE_KEY(server.max_calls), Whole{kMany},
       "Calls in progress; more end in RESOURCE_EXHAUSTED. 0: no limit"},
      {FLOE_KEY(server.max_calls_per_address), Whole{kMany},
       "Calls in progress from one TCP address; 0: no limit"},
      {FLOE_KEY(server.max_calls_per_connection), Whole{kMany},
       "Calls in progress on one TCP connection; clients queue the rest. 0: no limit"},
      {FLOE_KEY(server.max_call_bytes), Bytes(),
       "Bytes of requests and unsent replies, e.g. `2GiB`; 0: a quarter of `memory_limit`"},
      {FLOE_KEY(server.max_call_bytes_per_address), Bytes(),
       "The same for one TCP address; 0: half of `max_call_bytes`"},
      {FLOE_KEY(server.max_call_bytes_per_connection), Bytes(),
       "The same for one TCP connection; 0: a quarter of `max_call_bytes`"},
      {FLOE_KEY(server.connection_idle_seconds), Whole{kConnectionSeconds},
       "A connection without a call is closed after this time; 0: never"},
      {FLOE_KEY(server.connection_age_seconds), Whole{kConnectionSeconds},
       "Any connection is closed after this time; its calls then have a minute. 0: never"},
      {FLOE_KEY(server.keepalive_seconds), Whole{kConnectionSeconds},
       "A quiet client is pinged after this time and has 20 seconds to answer; 0: never"},
      {FLOE_KEY(server.send_timeout_seconds), Whole{kConnectionSeconds},
       "A connection is closed when its client reads nothing for this time; 0: never"},
      {"server.reply", FLOE_FIELD(reply), OneOf{{"typed", "content"}},
       "How replies carry numbers unless the model says: typed values or `tensor_content`"},
  };
}

ServerKeyList HttpKeys() {
  return {
      {FLOE_KEY(server.http_port), Whole{{0, 65535}},
       "Another TCP port for the same, as clients of REST expect one; 0: none"},
      {FLOE_KEY(server.http_max_body_bytes), Bytes{{1024, std::numeric_limits<int32_t>::max()}},
       "Largest body of a REST request, packed or not; larger ones end in 413"},
      {FLOE_KEY(server.http_timeout_ms), Whole{{1, 86'400'000}},
       "Time for a REST request's answer, which ends in 504 otherwise"},
      {FLOE_KEY(server.cors_origins),
       ListOf<AnyText>{{"a site, such as https://app.example, or '*'", IsOrigin},
                       "a list of sites, such as [https://app.example]"},
       "Sites whose pages may call REST from a browser; `*`: all (docs/rest.md)"},
      {FLOE_KEY(server.metrics_names), NameList{{"tfserving", "triton", "kserve"}},
       "Other servers' names that `/metrics` has too, e.g. `[tfserving]` (docs/metrics.md)"},
      {FLOE_KEY(server.metrics_path), AnyText{"a path such as /metrics, or ''", IsMetricsPath},
       "Where the metrics are with TensorFlow Serving's names; empty: nowhere"},
  };
}

ServerKeyList TlsKeys() {
  return {
      {FLOE_KEY(server.tls.certificate), AnyText(),
       "PEM file with the server's certificate and those between it and the root; TLS is on then"},
      {FLOE_KEY(server.tls.key), AnyText(), "PEM file with the certificate's private key"},
      {FLOE_KEY(server.tls.client_ca), AnyText(),
       "PEM file with the certificates that sign those of clients"},
      {FLOE_KEY(server.tls.client), OneOf{{"none", "optional", "required"}},
       "Whether clients are asked for a certificate; optional: those without one are served too"},
      {FLOE_KEY(server.tls.min_version), OneOf{{"1.2", "1.3"}}, "Oldest version of TLS accepted"},
      {FLOE_KEY(server.tls.ssl_config_file), AnyText(),
       "TensorFlow Serving's file with the PEM inside, instead of the other files"},
  };
}

ServerKeyList AuthKeys() {
  return {
      {FLOE_KEY(server.auth.tokens_file), AnyText(),
       "File of tokens, which `floectl token new` writes (docs/auth.md)"},
      {FLOE_KEY(server.auth.principals), Principals(),
       "`[{uid: ops, roles: [admin]}, {certificate: web, roles: [infer], models: [mnist_*]}]`: "
       "what callers may do, by `certificate`, `token` or `uid`"},
      {FLOE_KEY(server.auth.anonymous), NameList{{"infer", "read", "admin", "health"}},
       "Roles of callers who say nothing; unset: all, or with tokens or principals `[health]`"},
  };
}

ServerKeyList LogAndCpuKeys() {
  return {
      {FLOE_KEY(log.level),
       OneOf{{"trace", "debug", "info", "warn", "error", "off"}, {{"warning", "warn"}}},
       "Lowest level that is logged, on standard error"},
      {FLOE_KEY(log.format), OneOf{{"text", "json"}},
       "Format of the log; json: one object per line"},
      {FLOE_KEY(log.slow_request_ms), Whole{{0, 86'400'000}},
       "Requests that take this long are logged, with their id and times; 0: none"},
      {FLOE_KEY(log.access_path), AnyText(),
       "File that gets a line of JSON for each inference; `-`: standard output; empty: none"},
      {FLOE_KEY(log.access_one_in), Whole{{1, 1'000'000'000}},
       "One of so many inferences that succeed has a line there; those that fail all have"},
      {FLOE_KEY(log.requests_directory), AnyText(),
       "Directory for requests of models that have `log_one_in`; empty: none are written"},
      {FLOE_KEY(log.requests_file_bytes), Bytes{{4096, std::numeric_limits<int64_t>::max()}},
       "A model's file of requests is kept as `.1` before it would be larger, and a new one "
       "begins"},
      {FLOE_KEY(cpu.gemm), OneOf{{"auto", "native", "openblas", "reference"}},
       "Matrix multiplication: floe's best, floe's own, OpenBLAS, plain loops"},
      {FLOE_KEY(cpu.blas_library), AnyText(),
       "A library with the CBLAS interface, for `gemm: openblas`; empty: the system's OpenBLAS"},
  };
}

ServerKeyList LifecycleKeys() {
  return {
      {FLOE_KEY(lifecycle.file_system_poll_wait_seconds), Whole{kDaySeconds},
       "Time between checks for new versions; 0: at the start and at reloads only"},
      {FLOE_KEY(lifecycle.model_config_file_poll_wait_seconds), Whole{kDaySeconds},
       "Time between checks of the configuration's files for changes; 0: never"},
      {FLOE_KEY(lifecycle.max_num_load_retries), Whole{{0, 1'000'000}},
       "Retries of a load that may succeed later; an invalid file is not retried"},
      {FLOE_KEY(lifecycle.load_retry_interval_micros), Whole{kDayMicros}, "Time between retries"},
      {FLOE_KEY(lifecycle.num_load_threads), Whole{{0, 1024}},
       "Models loaded at the same time; 0: as many as usable CPUs"},
      {FLOE_KEY(lifecycle.trial_load), OneOf{{"always", "updates", "never"}},
       "Which versions are loaded in another process first; updates: all but those of the start"},
      {FLOE_KEY(lifecycle.max_load_seconds), Whole{{1, 86'400}}, "How long a trial load may take"},
      {FLOE_KEY(lifecycle.allow_version_labels_for_unavailable_models), YesNo(),
       "Accepts labels of versions that are not available yet"},
      {FLOE_KEY(lifecycle.enable_model_warmup), YesNo(),
       "Runs a version's recorded requests before it serves; zeros are run in any case"},
      {FLOE_KEY(lifecycle.num_request_iterations_for_warmup), Whole{{1, 10'000}},
       "How often each recorded request runs"},
      {FLOE_KEY(lifecycle.enable_per_model_batching_parameters), YesNo(),
       "Reads `batching_params.pbtxt` beside a version's file; as a flag it needs "
       "`--enable_batching`"},
      {FLOE_KEY(lifecycle.warmup_optional), YesNo(),
       "Serves a version even if one of its recorded requests fails"},
      {FLOE_KEY(lifecycle.strict_readiness), YesNo(),
       "The server is ready when every model is; false: when one is"},
      {FLOE_KEY(lifecycle.exit_on_error), YesNo(),
       "Ends with exit status 1 when a model cannot be served at the start"},
      {FLOE_KEY(lifecycle.memory_limit), PercentOrBytes(),
       "Memory for models and requests: a share of the usable memory, or e.g. `2GiB`; 0: no limit"},
  };
}

ModelKeyList BatchingKeys() {
  return {
      {FLOE_KEY(batching.max_batch_size), Whole{kRows, true},
       "Rows of one batch; auto: chosen from costs estimated at load"},
      {FLOE_KEY(batching.batch_timeout_micros), Whole{{0, 60'000'000}},
       "How long an idle worker waits for a fuller batch; 0: not at all"},
      {FLOE_KEY(batching.max_enqueued_batches), Whole{{0, 1'000'000}},
       "The queue holds this times `max_batch_size` rows (auto: at least 64); 0: 4,096 requests"},
      {FLOE_KEY(batching.max_enqueued_bytes), Bytes(),
       "Bytes of waiting requests, e.g. `512MiB`; 0: 1 GiB"},
      {FLOE_KEY(batching.max_enqueued_micros), Whole{kDayMicros},
       "The queue is full when its expected run time is longer; 0: no bound"},
      {FLOE_KEY(batching.allowed_batch_sizes), WholeList{{kRows}},
       "Ascending sizes that batches are padded to; empty: no padding"},
      {FLOE_KEY(batching.pad_variable_length_inputs), YesNo(),
       "Requests with different non-batch dimensions share a batch, padded at the ends"},
      {FLOE_KEY(batching.padding_values), MapOf<Real>(),
       "`{input: value}`: the value to pad an input with; others: 0"},
      {FLOE_KEY(batching.enable_large_batch_splitting), YesNo(),
       "Splits requests that are larger than a batch; false: they are refused"},
      {FLOE_KEY(batching.max_execution_batch_size), Whole{kRows},
       "Rows of one run, if fewer than those of a batch; unset: `max_batch_size`"},
  };
}

ModelKeyList KeysBeforeBatching() {
  return {
      {FLOE_KEY(name), AnyText(), "The model's name in requests, at most 256 bytes; required"},
      {FLOE_KEY(base_path), AnyText(),
       "Where the model's files are; required. Relative paths start at floe.yaml"},
      {FLOE_KEY(versions), Versions(),
       "Versions to serve: `latest`, the highest; `{latest: N}`; `all`; `{specific: [3, 5]}`"},
      {FLOE_KEY(completion_marker), AnyText{"the name of a file, without directories", IsFileName},
       "A file name, e.g. `.complete`; a version is loaded once it has this file"},
      {FLOE_KEY(version_labels), MapOf<Whole>{{kVersionRange}},
       "`{stable: 3, canary: 5}`: names that clients may use instead of versions"},
      {FLOE_KEY(workers), Whole{{1, 1024}, true},
       "Threads that run batches, one batch each; auto: the model's share of the CPUs, at most 16"},
      {FLOE_KEY(intra_op_threads), Whole{{1, 256}}, "Threads inside one run"},
      {FLOE_KEY(cpu_set), CpuSet(),
       "CPUs that its threads may use: `\"0-3,8\"` or `[0, 1]`; unset: all usable"},
      {FLOE_KEY(cpu_shares), Whole{{1, 1000}},
       "The model's part of the CPUs when models compete, relative to the other models'"},
  };
}

ModelKeyList KeysAfterBatching() {
  return {
      {FLOE_KEY(batching_full_status), OneOf{{"resource_exhausted", "unavailable"}},
       "Status when the queue is full; clients retry on unavailable, as with TensorFlow Serving"},
      {FLOE_KEY(max_run_bytes), Bytes(),
       "Memory for the values of one run, e.g. `1GiB`; 0: a share of `memory_limit`"},
      {FLOE_KEY(max_run_seconds), Whole{kDaySeconds},
       "A run that takes longer is stopped; 0: no limit"},
      {FLOE_KEY(default_timeout_microseconds), Whole{kDayMicros},
       "Deadline of a call that has none, counted from its arrival; 0: no deadline"},
      {FLOE_KEY(inline_below_us), Whole{{0, 1'000'000}},
       "A shorter run may happen inline, on the thread that read the request; 0: never"},
      {FLOE_KEY(fft), YesNo(),
       "Long convolutions may be computed by Fourier transforms; off: they never are"},
      {FLOE_KEY(precision), OneOf{{"float32", "bf16", "tf32"}},
       "Of matrix products: bf16 rounds weights, on GPUs both factors; tf32 those on GPUs"},
      {FLOE_KEY(routes), MapOf<AnyText>{{"the name of a route", IsName}},
       "`{node: route}`: how to compute a step that `floectl inspect --plan` shows with several"},
      {FLOE_KEY(placeholder_defaults), MapOf<DefaultValue>(),
       "Default values of placeholders: `{a: 1, b: {value: 3, dtype: int64}}`"},
      {FLOE_KEY(signature.inputs), MapOf<AnyText>{{"a tensor's name", IsName}},
       "`{key: tensor}`: replaces the inputs of the signature made from the file"},
      {FLOE_KEY(signature.outputs), MapOf<AnyText>{{"a tensor's name", IsName}},
       "`{key: tensor}`: replaces the outputs"},
      {FLOE_KEY(saved_model_tags), AnyText(),
       "Which graph of a SavedModel, e.g. `serve,gpu`; unset: `serve`, or the only one"},
      {FLOE_KEY(reply), OneOf{{"typed", "content"}},
       "How replies carry numbers; unset: the value of `server.reply`"},
      {FLOE_KEY(device), AnyText{"auto, cpu, cuda or cuda:N", IsDevice},
       "What computes it: `auto`, as `backend` says; `cpu`; `cuda`, any GPU; `cuda:1`, this one"},
      {FLOE_KEY(on_device_error), OneOf{{"fail", "cpu"}},
       "When its GPU fails; unset: the server's `on_device_error`"},
      {FLOE_KEY(device_shares), Whole{{1, 1000}},
       "The model's part of its GPU when models compete, relative to the other models'"},
      {FLOE_KEY(log_one_in), Whole{{0, 1'000'000'000}},
       "One of so many requests is written to `log.requests_directory`; 0: none"},
  };
}

#undef FLOE_KEY
#undef FLOE_FIELD

template <typename S>
std::vector<Key<S>> Joined(const std::vector<std::vector<Key<S>>>& lists) {
  std::vector<Key<S>> keys;
  for (const auto& list : lists) keys.insert(keys.end(), list.begin(), list.end());
  return keys;
}

template <typename S>
const Key<S>& Find(const std::vector<Key<S>>& keys, const std::string& path) {
  return *std::find_if(keys.begin(), keys.end(),
                       [&](const Key<S>& key) { return key.path == path; });
}

constexpr char kNoTls[] =
    "the keys of TLS are server.tls.certificate, server.tls.key and server.tls.client_ca "
    "(docs/security.md)";
constexpr char kNoAuth[] =
    "the keys are server.auth.tokens_file, server.auth.principals and server.auth.anonymous "
    "(docs/auth.md)";
constexpr char kNoMetrics[] =
    "metrics need no key: every listener has them at /metrics; server.metrics_names adds names "
    "of other servers (docs/metrics.md)";
constexpr char kRest[] =
    "the REST API is served at server.port, and at server.http_port if that is set (docs/rest.md)";
constexpr char kAddress[] = "the address is server.bind_address, as a flag --bind_address";
constexpr char kPort[] = "the port is server.port, as a flag --port";

// Names that are no keys, though other servers or older versions have them.
std::map<std::string, const char*> NotKeys() {
  return {
      {"preferred_batch_size",
       "was removed: max_batch_size and batch_timeout_micros decide when a batch runs"},
      {"version_transition",
       "was removed: new versions always load before old ones are unloaded; memory_limit bounds "
       "the memory"},
      {"weight", "was removed: use cpu_shares"},
      {"tls", kNoTls},
      {"ssl", kNoTls},
      {"https", kNoTls},
      {"auth", kNoAuth},
      {"authentication", kNoAuth},
      {"tokens", kNoAuth},
      {"api_key", kNoAuth},
      {"token", kNoAuth},
      {"metrics", kNoMetrics},
      {"metrics_port", kNoMetrics},
      {"prometheus", kNoMetrics},
      {"monitoring", kNoMetrics},
      {"rest", kRest},
      {"rest_port", kRest},
      {"rest_api_port", kRest},
      {"http", kRest},
      {"host", kAddress},
      {"address", kAddress},
      {"bind", kAddress},
      {"p", kPort},
      {"grpc_port", kPort},
  };
}

// A row of a table, in which the key has this name.
template <typename S>
std::string MarkdownRow(const Key<S>& key, const std::string& name) {
  const S defaults = {};
  const std::string value = key.is_set(defaults) ? key.text(defaults) : "";
  const std::string choices =
      key.choices.empty() ? "" : absl::StrCat(" (", absl::StrJoin(key.choices, ", "), ")");
  return absl::StrCat("| `", name, "` | ", value, value.empty() ? "| " : " | ", key.help, choices,
                      " |\n");
}

std::string MarkdownHead(const std::string& section) {
  return absl::StrCat("\n## ", section, "\n\n| Key | Default | Meaning |\n| --- | --- | --- |\n");
}

}  // namespace

const ServerKeyList& ServerKeys() {
  static const auto* keys =
      new ServerKeyList(Joined<ServerConfig>({DeviceKeys(), ListenKeys(), HttpKeys(), TlsKeys(),
                                              AuthKeys(), LogAndCpuKeys(), LifecycleKeys()}));
  return *keys;
}

const ModelKeyList& ModelKeys() {
  static const auto* keys = new ModelKeyList(
      Joined<ModelConfig>({KeysBeforeBatching(), BatchingKeys(), KeysAfterBatching()}));
  return *keys;
}

const Key<ServerConfig>& ServerKey(const std::string& path) { return Find(ServerKeys(), path); }
const Key<ModelConfig>& ModelKey(const std::string& path) { return Find(ModelKeys(), path); }

std::optional<DeviceChoice> DeviceChoice::Parse(const std::string& text) {
  if (text == "auto") return DeviceChoice{};
  if (text == "cpu") return DeviceChoice{Kind::kCpu};
  if (text == "cuda") return DeviceChoice{Kind::kCuda};
  constexpr size_t kPrefix = 5;
  constexpr int kMostDevices = 1024;
  int index = 0;
  if (text.rfind("cuda:", 0) != 0 || text.size() == kPrefix ||
      text.find_first_not_of("0123456789", kPrefix) != std::string::npos ||
      !absl::SimpleAtoi(text.substr(kPrefix), &index) || index >= kMostDevices)
    return std::nullopt;
  return DeviceChoice{Kind::kCuda, index};
}

// `where` does not count.
bool operator==(const ModelConfig& a, const ModelConfig& b) {
  return std::all_of(ModelKeys().begin(), ModelKeys().end(),
                     [&](const Key<ModelConfig>& key) { return key.same(a, b); });
}

const char* InsteadOf(const std::string& name) {
  static const auto* const names = new std::map<std::string, const char*>(NotKeys());
  const auto found = names->find(name);
  return found == names->end() ? nullptr : found->second;
}

std::string KeysMarkdown() {
  std::string text = MarkdownHead("top level"), section;
  for (const Key<ServerConfig>& key : ServerKeys()) {
    if (key.section != section) text += MarkdownHead(key.section);
    section = key.section;
    text += MarkdownRow(key, key.name);
  }
  text += MarkdownHead("models");
  for (const Key<ModelConfig>& key : ModelKeys()) text += MarkdownRow(key, key.path);
  return text;
}

}  // namespace floe
