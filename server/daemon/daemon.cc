#include "server/daemon/daemon.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/openblas.h"
#include "server/api/api.h"
#include "server/api/warm_up_requests.h"
#include "server/daemon/config_watch.h"
#include "server/daemon/listeners.h"
#include "server/daemon/probe.h"
#include "server/daemon/service_manager.h"
#include "server/daemon/signals.h"
#include "server/flags/flags.h"
#include "server/registry/local_registry.h"
#include "server/transport/grpcpp/grpcpp_transport.h"

namespace floe::server {
namespace {

LocalRegistry::Options RegistryOptions(const ServerConfig& config) {
  LocalRegistry::Options options;
  options.lifecycle = config.lifecycle;
  // The name is one of GemmNames(), which are the backends' names.
  options.load.compile.kernels.gemm =
      GemmBackendFromName(config.cpu.gemm).value_or(GemmBackend::kAuto);
  options.load.default_reply = config.reply;
  options.load.prepare.own_batching_parameters =
      config.lifecycle.enable_per_model_batching_parameters;
  if (config.lifecycle.enable_model_warmup) options.load.prepare.replay = ReplayWarmUpRequests;
  options.load.prepare.replays = config.lifecycle.num_request_iterations_for_warmup;
  options.load.prepare.warm_up_optional = config.lifecycle.warmup_optional;
  return options;
}

Duration Seconds(int64_t seconds) { return std::chrono::seconds(seconds); }

class Daemon {
 public:
  Daemon(const ServerConfig& config, std::vector<std::string> activated)
      : config_(config),
        activated_(std::move(activated)),
        registry_(config.models, RegistryOptions(config), &health_),
        watch_(WatchOptions()) {}

  int Run() {
    SignalWatcher signals(
        [this] {
          health_.Shutdown();
          Raise(&stop_requested_);
        },
        [this] { watch_.ReloadNow(); });
    // Before anything is loaded: the server is alive, its health says not serving yet, and when it
    // cannot listen it ends at once.
    if (const absl::Status status = Listen(); !status.ok()) {
      spdlog::error("{}", std::string(status.message()));
      return 1;
    }
    registry_.StartLoading();
    std::thread loading([this] {
      registry_.WaitUntilLoaded();
      Raise(&loaded_);
    });
    watch_.Start();
    const int exit_code = Serve(&signals);
    loading.join();
    watch_.Stop();
    return exit_code;
  }

 private:
  void Raise(bool* flag) {
    {
      MutexLock lock(mutex_);
      *flag = true;
    }
    changed_.NotifyAll();
  }

  absl::Status Listen() {
    ApiContext api{registry_, health_};
    api.config = &config_;
    api.content_replies = config_.reply == ReplyFormat::kContent;
    api.enable_reflection = config_.server.enable_reflection;
    api.max_input_bytes = config_.server.max_message_bytes;
    RegisterApi(api, &methods_);
    TransportOptions options;
    options.max_message_bytes = config_.server.max_message_bytes;
    FLOE_ASSIGN_OR_RETURN(options.channel_args,
                          ParseChannelArguments(config_.server.grpc_channel_arguments));
    options.connections = {config_.server.max_connections,
                           config_.server.max_connections_per_address};
    transport_ = MakeGrpcppTransport(methods_, std::move(options));
    const bool own = activated_.empty();
    FLOE_RETURN_IF_ERROR(transport_->Start(own ? ListenAddresses(config_.server) : activated_));
    for (const std::string& line :
         own ? DescribeListeners(config_.server) : DescribeActivated(transport_->addresses()))
      spdlog::info("{}", line);
    return absl::OkStatus();
  }

  int Serve(SignalWatcher* signals) {
    {
      MutexLock lock(mutex_);
      while (!loaded_ && !stop_requested_) changed_.Wait(mutex_);
      if (stop_requested_) return Drain(signals, nullptr);
    }
    const size_t available = registry_.AvailableCount();
    const size_t configured = registry_.ModelNames().size();
    if (available == 0 && configured > 0) {
      spdlog::error("none of the {} configured models can be served; ending", configured);
      Close(Clock::Steady().Now());
      return 1;
    }
    if (available < configured && config_.lifecycle.exit_on_error) {
      spdlog::error("{} of {} models cannot be served, and exit_on_error is set; ending",
                    configured - available, configured);
      Close(Clock::Steady().Now());
      return 1;
    }
    Probe probe(ProbeOptions());
    probe.Start();
    const std::string status = absl::StrCat("Serving ", available, " of ", configured, " models");
    manager_.Ready(status);
    spdlog::info("ready: {}", status);
    MutexLock lock(mutex_);
    while (!stop_requested_) changed_.Wait(mutex_);
    return Drain(signals, &probe);
  }

  ConfigWatch::Options WatchOptions() {
    ConfigWatch::Options options;
    options.config = config_;
    options.poll = Seconds(config_.lifecycle.model_config_file_poll_wait_seconds);
    options.read = ReloadConfig;
    options.apply = [this](std::vector<ModelConfig> models, TimePoint deadline) {
      return registry_.Reload(std::move(models), deadline, std::nullopt);
    };
    options.failed = [this](const absl::Status& status) { registry_.NoteFailedReload(status); };
    return options;
  }

  Probe::Options ProbeOptions() {
    Probe::Options options;
    const std::string address = ProbeAddress(transport_->addresses().front());
    options.ask = [address](Duration timeout) { return AskProbeModel(address, timeout); };
    options.refused = [this] { return transport_->connections_refused(); };
    options.feed = [this] { manager_.FeedWatchdog(); };
    options.on_change = [this](bool ok) { registry_.SetAnswering(ok); };
    options.watch_models = [this](TimePoint now) { registry_.CheckProgress(now); };
    if (const auto watchdog = manager_.WatchdogInterval(); watchdog.count() > 0)
      options.interval = watchdog / 4;  // an answer that fails to come leaves time for others
    return options;
  }

  // Health says no already. Clients get `lame duck` seconds to hear of it while calls are still
  // taken; then the listeners close and what was accepted is finished.
  int Drain(SignalWatcher* signals, Probe* probe) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    manager_.Stopping();
    // A reload may take longer than draining, which would wait for its call.
    registry_.StopReloading();
    if (probe != nullptr) probe->Drain();
    const TimePoint lame_duck_end =
        Clock::Steady().Now() + Seconds(config_.server.drain_lame_duck_seconds);
    const TimePoint end = lame_duck_end + Seconds(config_.server.drain_timeout_seconds);
    signals->ExitAt(end + kLastMoment);
    while (Clock::Steady().Now() < lame_duck_end) changed_.WaitUntil(mutex_, lame_duck_end);
    mutex_.Unlock();
    Close(end);
    if (probe != nullptr) probe->Stop();
    spdlog::info("drained; ending");
    mutex_.Lock();
    return 0;
  }

  void Close(TimePoint deadline) {
    transport_->Shutdown(deadline);
    registry_.Stop();
  }

  // Between cancelling what is left and leaving without it.
  static constexpr Duration kLastMoment = std::chrono::milliseconds(500);

  const ServerConfig& config_;
  const std::vector<std::string> activated_;
  ServiceManager manager_;
  HealthState health_;
  LocalRegistry registry_;
  ConfigWatch watch_;
  MethodTable methods_;
  std::unique_ptr<Transport> transport_;
  Mutex mutex_;
  CondVar changed_;
  bool loaded_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

int RunDaemon(const ServerConfig& config, std::vector<std::string> activated) {
  spdlog::info("floed {} with {} models, gemm {}", kVersion, config.models.size(), config.cpu.gemm);
  for (const std::string& note : config.notes) spdlog::warn("{}", note);
  for (const std::string& warning : CpuBudgetWarnings(config.models, FindUsableCpus()))
    spdlog::warn("{}", warning);
  if (!config.cpu.blas_library.empty()) kernels::SetBlasLibrary(config.cpu.blas_library);
  return Daemon(config, std::move(activated)).Run();
}

}  // namespace floe::server
