// The daemon's parts and their order: signals, listeners, registry, configuration, probe; from the
// start to the end of the drain.
#include "server/daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "base/memory.h"
#include "base/status.h"
#include "config/cpu_budget.h"
#include "kernels/cpu/gemm/openblas.h"
#include "kernels/cpu/isa.h"
#include "server/api/api.h"
#include "server/api/call_watch.h"
#include "server/api/cors.h"
#include "server/api/refusal_log.h"
#include "server/daemon/config_watch.h"
#include "server/daemon/doors.h"
#include "server/daemon/listeners.h"
#include "server/daemon/log_buffer.h"
#include "server/daemon/logging.h"
#include "server/daemon/probe.h"
#include "server/daemon/request_files.h"
#include "server/daemon/secret_watch.h"
#include "server/daemon/signals.h"
#include "server/daemon/start_up.h"
#include "server/flags/flags.h"
#include "server/loading/trial_load.h"
#include "server/net/net_transport.h"
#include "server/registry/local_registry.h"

namespace floe::server {
namespace {

LocalRegistry::Options RegistryOptionsOf(const ServerConfig& config, TrialStarter* starter,
                                         std::shared_ptr<ModelDevices> devices,
                                         std::function<void()> on_change) {
  LocalRegistry::Options options;
  options.on_change = std::move(on_change);
  options.lifecycle = config.lifecycle;
  options.load = LoadOptionsOf(config);
  options.load.compile.weights = std::make_shared<WeightStore>();
  options.load.end_threads = std::make_shared<EndThreads>();
  options.load.devices = devices;
  options.trial = TryInProcess(config, starter, std::move(devices));
  // With drain_timeout_seconds: 0 the process ends at once, but a new version fails no calls.
  options.drain = std::chrono::seconds(std::max<int64_t>(1, config.server.drain_timeout_seconds));
  return options;
}

Duration Seconds(int64_t seconds) { return std::chrono::seconds(seconds); }

// A quarter of the memory for calls, and a quarter for messages that are arriving.
constexpr int64_t kCallShare = 4;

// The limits of calls. Bytes that the configuration leaves open follow from the memory.
CallLimits LimitsOf(const ListenConfig& listen, const MemoryLimit& memory) {
  const int64_t usable = UsableMemory();
  const int64_t limit = memory.In(usable);
  // Room for two messages: one that is being answered and one that comes.
  const int64_t least = 2 * listen.max_message_bytes;
  const auto given = [least](int64_t bytes, int64_t share) {
    return bytes > 0 ? bytes : std::max(least, share);
  };
  CallLimits limits;
  limits.all = {listen.max_calls,
                given(listen.max_call_bytes, (limit > 0 ? limit : usable) / kCallShare)};
  limits.address = {listen.max_calls_per_address,
                    given(listen.max_call_bytes_per_address, limits.all.bytes / 2)};
  limits.connection = {listen.max_calls_per_connection,
                       given(listen.max_call_bytes_per_connection, limits.all.bytes / 4)};
  limits.send_timeout = Seconds(listen.send_timeout_seconds);
  return limits;
}

TransportOptions TransportOptionsOf(const ServerConfig& config) {
  const ListenConfig& listen = config.server;
  TransportOptions options;
  options.max_message_bytes = listen.max_message_bytes;
  options.calls = LimitsOf(listen, config.lifecycle.memory_limit);
  options.times.idle = Seconds(listen.connection_idle_seconds);
  options.times.age = Seconds(listen.connection_age_seconds);
  options.times.keepalive = Seconds(listen.keepalive_seconds);
  options.compression = listen.enable_compression;
  options.connections = {listen.max_connections, listen.max_connections_per_address,
                         Seconds(listen.send_timeout_seconds)};
  return options;
}

// For systemd; outside of a service it does nothing.
void Notify(const std::string& message) { sd_notify(0, message.c_str()); }
void NotifyStopping() { Notify("STOPPING=1\nSTATUS=Finishing the calls in progress"); }

// One class: the phases of the process, each a method, from the first listener to the last call.
class Daemon {
 public:
  Daemon(const ServerConfig& config, std::vector<std::string> activated, TrialStarter* starter,
         std::shared_ptr<ModelDevices> devices)
      : config_(config),
        activated_(std::move(activated)),
        registry_(config.models,
                  RegistryOptionsOf(config, starter, std::move(devices),
                                    [this] { Wake(/*stop=*/false); }),
                  &health_),
        watch_(WatchOptions()),
        secrets_(config.server) {
    if (!config_.log.requests_directory.empty())
      request_files_.emplace(config_.log.requests_directory, config_.log.requests_file_bytes);
  }

  int Run() {
    SignalWatcher signals(
        [this] {
          Wake(/*stop=*/true);
          health_.Shutdown();
          return Clock::Steady().Now() + DrainTime() + kLastMoment + kTidying;
        },
        [this] {
          watch_.ReloadNow();
          secrets_.ReloadNow();
          if (LogBuffer* const lines = reopened_buffer_.load(); lines != nullptr)
            ReopenAccessLog(lines);
        });
    if (const absl::Status status = Open(); !status.ok()) {
      spdlog::error("{}", std::string(status.message()));
      if (transport_ != nullptr) transport_->Shutdown(Clock::Steady().Now());
      return 1;
    }
    if (transport_ == nullptr) return EndUnheard(&signals);
    if (const absl::Status status = watch_.Start(); !status.ok()) {
      spdlog::error("{}", std::string(status.message()));
      transport_->Shutdown(Clock::Steady().Now());
      return 1;
    }
    const int exit_code = Serve(&signals);
    watch_.Stop();
    return exit_code;
  }

 private:
  void Wake(bool stop) {
    {
      MutexLock lock(mutex_);
      stop_requested_ |= stop;
    }
    changed_.NotifyAll();
  }

  // Leaves transport_ null if the end was requested before.
  absl::Status Open() {
    FLOE_RETURN_IF_ERROR(secrets_.Start());
    // It listens before it loads: then health says NOT_SERVING, and a listener that cannot be
    // opened ends the process at once.
    if (activated_.empty()) {
      FLOE_RETURN_IF_ERROR(Listen());
      return registry_.StartLoading();
    }
    // The service manager listens already. Callers that come between two processes wait in its
    // queue until there are models, for a limited time.
    FLOE_RETURN_IF_ERROR(registry_.StartLoading());
    const TimePoint until = Clock::Steady().Now() + kQueueTimeout;
    {
      MutexLock lock(mutex_);
      while (!stop_requested_ && !registry_.Table()->CountModels().settled &&
             changed_.WaitUntil(mutex_, until)) {
      }
      // The queue is for the next process then.
      if (stop_requested_) return absl::OkStatus();
    }
    return Listen();
  }

  // For the next process, and for whoever rotates logs.
  static void ReopenAccessLog(LogBuffer* lines) {
    if (const absl::Status status = lines->Reopen(); !status.ok())
      spdlog::error("the access log goes on as it was: {}", std::string(status.message()));
  }

  absl::Status OpenAccessLog() {
    const std::string& path = config_.log.access_path;
    if (path.empty()) return absl::OkStatus();
    constexpr auto missing = [](int64_t lines) {
      return absl::StrCat(R"({"missing_lines":)", lines, "}\n");
    };
    LogBuffer* lines = nullptr;
    if (path == "-") {
      lines = new LogBuffer(STDOUT_FILENO, LogBuffer::kMostBytes, missing);
    } else {
      FLOE_ASSIGN_OR_RETURN(lines, LogBuffer::ForFile(path, missing));
    }
    FLOE_RETURN_IF_ERROR(lines->Start());
    access_buffer_ = lines;
    if (path != "-") reopened_buffer_ = lines;
    access_log_.emplace(config_.log.access_one_in,
                        [lines](std::string line) { lines->Add(std::move(line)); });
    return absl::OkStatus();
  }

  absl::Status Listen() {
    FLOE_RETURN_IF_ERROR(OpenAccessLog());
    ApiContext api{registry_, health_};
    if (access_log_.has_value()) api.access_log = &*access_log_;
    if (request_files_.has_value()) {
      FLOE_RETURN_IF_ERROR(request_files_->Check());
      api.request_log = &request_log_;
    }
    api.config = &config_;
    api.content_replies = config_.reply == ReplyFormat::kContent;
    api.check_method_names = config_.server.enable_signature_method_name_check;
    api.enable_reflection = config_.server.enable_reflection;
    api.enable_health_watch = config_.server.enable_health_watch;
    api.max_input_bytes = config_.server.max_message_bytes;
    api.memory = &registry_.memory();
    if (config_.log.slow_request_ms > 0)
      api.slow_request = std::chrono::milliseconds(config_.log.slow_request_ms);
    api.server = Info();
    api.refusals = &refusals_;
    api.watch = &watched_.emplace(api.access_log);
    TransportOptions options = TransportOptionsOf(config_);
    options.calls.memory = &registry_.memory();
    options.access = secrets_.access().get();
    FLOE_ASSIGN_OR_RETURN(const ChannelArguments arguments,
                          ParseChannelArguments(config_.server.grpc_channel_arguments));
    AddDoors(
        api, config_.server, [this] { return secrets_.Detail(); }, &methods_, &routes_);
    if (!config_.server.cors_origins.empty()) routes_.SetCors(&cors_);
    if (config_.server.enable_compression) routes_.PackReplies();
    transport_ = MakeNetTransport(methods_, options, arguments, &routes_);
    const bool own = activated_.empty();
    FLOE_RETURN_IF_ERROR(
        transport_->Start(ListenersOf(config_.server, activated_, secrets_.tls())));
    for (const std::string& line : own ? DescribeListeners(config_.server)
                                       : DescribeActivated(config_.server, transport_->addresses()))
      spdlog::info("{}", line);
    WarnOfPlainTokens(transport_->addresses());
    LogCapacity();
    return absl::OkStatus();
  }

  void WarnOfPlainTokens(const std::vector<std::string>& addresses) {
    if (config_.server.auth.tokens_file.empty() || config_.server.tls.is_on()) return;
    for (const std::string& address : addresses)
      if (address.rfind("unix", 0) != 0)
        spdlog::warn(
            "auth: tokens come to {} as plain text, for everybody on the way to read; set "
            "server.tls.certificate and server.tls.key",
            address);
  }

  ConnectionCounts CountConnections() const {
    const ListenerCounts counts = transport_->connections();
    ConnectionCounts all{counts.open,
                         transport_->max_connections(),
                         counts.refused(),
                         counts.accepted,
                         {{"limit", counts.refused_total},
                          {"address_limit", counts.refused_address},
                          {"no_file_descriptor", counts.refused_files},
                          {"displaced", counts.displaced}}};
    for (int i = 0; i < kEndReasons; ++i) {
      const auto reason = static_cast<EndReason>(i);
      all.ended_by.emplace_back(CauseOf(reason), transport_->ends().count(reason));
    }
    return all;
  }

  ServerInfo Info() {
    ServerInfo info;
    info.version = kVersion;
    info.instructions = kernels::IsaName();
    info.started = started_;
    info.connections = [this] { return CountConnections(); };
    info.calls = [this] {
      const CallLoad load = transport_->calls();
      const CallRefusals refused = transport_->refused_calls();
      return CallCounts{load.calls,
                        load.request_bytes + load.reply_bytes,
                        {{"limit", refused.all},
                         {"address_limit", refused.address},
                         {"connection_limit", refused.connection},
                         {"memory", refused.memory}}};
    };
    info.auth = [access = secrets_.access()] {
      const AccessState state = access->state();
      AuthInfo auth{state.tokens, std::string(state.status.message()), {}};
      for (int i = 0; i < kAccessRefusals; ++i) {
        const auto cause = static_cast<AccessRefusal>(i);
        auth.refused_by.emplace_back(CauseOf(cause), access->counts().of(cause));
      }
      return auth;
    };
    info.dropped_log_lines = [this] {
      return CountsByCause{{"access", access_buffer_ == nullptr ? 0 : access_buffer_->dropped()},
                           {"requests", request_files_ ? request_files_->dropped() : 0}};
    };
    if (secrets_.context() != nullptr)
      info.tls = [context = secrets_.context()] {
        const TlsState state = context->state();
        return TlsInfo{state.subject, state.not_after, std::string(state.status.message())};
      };
    info.reload = [this](const ReloadDone& done) {
      watch_.ReloadNow(done);
      secrets_.ReloadNow();
    };
    info.log_level = LogLevel;
    info.set_log_level = [](const std::string& level, const std::string& who) {
      FLOE_RETURN_IF_ERROR(SetLogLevel(level));
      spdlog::log(spdlog::get_level(), "the log level is {}, by {}", level, who);
      return absl::OkStatus();
    };
    return info;
  }

  // Limits that an operator may want to raise.
  void LogCapacity() {
    const UsableCpus cpus = FindUsableCpus();
    const int64_t limit = registry_.memory().limit();
    rlimit files = {};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    int64_t workers = 0;
    const CpuShares shares = CpuSharesOf(config_.models);
    for (const ModelConfig& model : config_.models) workers += WorkersOf(model, shares, cpus);
    spdlog::info(
        "capacity: {} CPUs, {} workers, {} MiB of memory{}, {} open files, at most {} connections",
        cpus.count(), workers, UsableMemory() >> 20,
        limit > 0 ? absl::StrCat(" (memory_limit ", limit >> 20, " MiB)") : "", files.rlim_cur,
        transport_->max_connections());
  }

  int EndUnheard(SignalWatcher* signals) {
    signals->ExitAt(Clock::Steady().Now() + kTidying, 0, registry_.Table()->UnderWay());
    NotifyStopping();
    registry_.StopReloading();
    registry_.Stop();
    spdlog::info("ending; no listener was open yet");
    return 0;
  }

  int Serve(SignalWatcher* signals) {
    // From here on the server answers, whatever its models do.
    Probe probe(ProbeOptions());
    const absl::Status started = probe.Start();
    if (!started.ok()) spdlog::error("{}", std::string(started.message()));
    const int code = started.ok() ? AwaitEnd() : 1;
    End(signals, &probe, code);
    return code;
  }

  // Returns 0 after a signal, and 1 when a model fails and exit_on_error is set.
  int AwaitEnd() {
    MutexLock lock(mutex_);
    StartUp start_up(StartUpOptions(), Clock::Steady().Now());
    while (!stop_requested_) {
      if (!start_up.Step(registry_.Table()->CountModels(), Clock::Steady().Now())) return 1;
      changed_.WaitUntil(mutex_, start_up.next());
    }
    return 0;
  }

  StartUp::Options StartUpOptions() {
    StartUp::Options options;
    options.exit_on_error = config_.lifecycle.exit_on_error;
    options.strict = config_.lifecycle.strict_readiness;

    options.polls = config_.lifecycle.file_system_poll_wait_seconds > 0;
    options.ready = [](const std::string& status) { Notify("READY=1\nSTATUS=" + status); };
    options.status = [](const std::string& status) { Notify("STATUS=" + status); };
    return options;
  }

  ConfigWatch::Options WatchOptions() {
    ConfigWatch::Options options;
    options.config = config_;
    options.poll = Seconds(config_.lifecycle.model_config_file_poll_wait_seconds);
    options.read = ReloadConfig;
    options.apply = [this](ReloadRequest request) { return registry_.Reload(std::move(request)); };
    options.generation = [this] { return registry_.CurrentConfig().generation; };
    options.note = [this](const absl::Status& status) { registry_.NoteReload(status); };
    return options;
  }

  Probe::Options ProbeOptions() {
    Probe::Options options;
    options.ask = [this](Duration timeout, CancelToken* cancel) {
      FLOE_RETURN_IF_ERROR(transport_->CheckTurning());
      return AskProbeModel(methods_, timeout, cancel);
    };
    options.feed = [] { Notify("WATCHDOG=1"); };
    options.on_change = [this](bool ok) { registry_.SetAnswering(ok); };
    options.watch_models = [this](TimePoint now) { registry_.CheckProgress(now); };
    if (uint64_t micros = 0; sd_watchdog_enabled(0, &micros) > 0)
      options.interval = std::chrono::microseconds(micros) /
                         4;  // leaves time for others when one answer does not come
    return options;
  }

  // Health says NOT_SERVING at once, and calls are still served for drain_lame_duck_seconds. Then
  // the listeners close and accepted calls are finished. After a failure it does not wait.
  void End(SignalWatcher* signals, Probe* probe, int code) {
    const bool drains = code == 0;
    const TimePoint now = Clock::Steady().Now();
    const TimePoint lame_duck_end =
        now + Seconds(drains ? config_.server.drain_lame_duck_seconds : 0);
    const TimePoint end = now + (drains ? DrainTime() : Duration::zero());
    signals->ExitAt(
        end + kLastMoment, code,
        drains ? "calls in progress: drain_timeout_seconds are over" : "calls in progress");
    NotifyStopping();
    health_.Shutdown();
    // A reload may take longer than draining, which would wait for its call.
    registry_.StopReloading();
    probe->Drain();
    AwaitTime(lame_duck_end);
    transport_->Shutdown(end);
    // No caller is left.
    signals->ExitAt(Clock::Steady().Now() + kTidying, code, registry_.Table()->UnderWay());
    registry_.Stop();
    probe->Stop();
    const TimePoint flushed = Clock::Steady().Now() + kTidying / 2;
    if (access_buffer_ != nullptr) access_buffer_->Flush(flushed);
    if (request_files_.has_value()) request_files_->Flush(flushed);
    spdlog::info(drains ? "drained; ending" : "ending");
  }

  Duration DrainTime() const {
    return Seconds(config_.server.drain_lame_duck_seconds) +
           Seconds(config_.server.drain_timeout_seconds);
  }

  void AwaitTime(TimePoint when) {
    MutexLock lock(mutex_);
    while (Clock::Steady().Now() < when) changed_.WaitUntil(mutex_, when);
  }

  // Between cancelling the last calls and leaving without them.
  static constexpr Duration kLastMoment = std::chrono::milliseconds(500);
  // For loads, scans and unloads in progress when all calls have ended.
  static constexpr Duration kTidying = std::chrono::seconds(1);

  // Less than the 20 seconds after which clients give up connecting.
  static constexpr Duration kQueueTimeout = std::chrono::seconds(10);

  const ServerConfig& config_;
  const std::vector<std::string> activated_;
  const TimePoint started_ = Clock::Steady().Now();
  Mutex mutex_;  // before the registry, which calls Wake while it is made
  CondVar changed_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  HealthState health_;
  LogBuffer* access_buffer_ = nullptr;                 // null: no access log
  std::atomic<LogBuffer*> reopened_buffer_ = nullptr;  // the same where it is a file
  std::optional<AccessLog> access_log_;  // before the registry, whose requests end in it
  std::optional<RequestFiles> request_files_;
  const RequestLog request_log_{[this](const std::string& model, std::string record) {
    request_files_->Add(model, std::move(record));
  }};
  LocalRegistry registry_;
  ConfigWatch watch_;
  SecretWatch secrets_;
  RefusalLog refusals_;
  std::optional<CallWatch> watched_;
  MethodTable methods_;
  const Cors cors_{config_.server.cors_origins};
  HttpRoutes routes_;
  std::unique_ptr<NetTransport> transport_;
};

}  // namespace

int RunDaemon(const ServerConfig& config, std::vector<std::string> activated,
              TrialStarter* starter) {
  spdlog::info("floed {} with {} models, gemm {}", kVersion, config.models.size(), config.cpu.gemm);
  for (const std::string& note : config.notes) spdlog::warn("{}", note);
  for (const std::string& warning : CpuBudgetWarnings(config.models, FindUsableCpus()))
    spdlog::warn("{}", warning);
  if (!config.cpu.blas_library.empty()) kernels::SetBlasLibrary(config.cpu.blas_library);
  const auto devices = std::make_shared<ModelDevices>(config);
  if (const absl::Status status = devices->Start(); !status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    return 1;
  }
  return Daemon(config, std::move(activated), starter, devices).Run();
}

}  // namespace floe::server
