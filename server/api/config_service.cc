// ReloadConfig and GetConfig: operators change and read the configuration.
#include "server/api/config_service.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "config/config_rpcs.h"
#include "config/files.h"
#include "config/model_server_config.h"
#include "floe/admin.pb.h"
#include "server/api/proto_method.h"
#include "server/registry/task_thread_pool.h"
#include "tensorflow_serving/apis/model_management.pb.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;

// What a call may take: without a deadline of its own, and at most.
constexpr Duration kUsualReload = std::chrono::minutes(2);
constexpr Duration kLongestReload = std::chrono::minutes(10);
constexpr int kMaxWaiting = 8;
constexpr size_t kMaxYamlBytes = size_t{1} << 20;
// Messages travel as headers, of which clients take 8 KiB by default.
constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kMaxShownBytes = size_t{64} << 10;  // in a message of its own

absl::Status NotOffered() {
  return absl::PermissionDeniedError(
      "RPCs for operators are not offered here; server.enable_config_rpcs: local in "
      "floe.yaml offers it to processes of the server's own machine");
}

absl::Status Shortened(const absl::Status& status) {
  if (status.ok() || status.message().size() <= kMaxMessageBytes) return status;
  const std::string shown(status.message().substr(0, kMaxMessageBytes));
  return absl::Status(status.code(), absl::StrCat(shown, " ... (shortened)"));
}

// A call that waits for its turn, counted in `*waiting`. It makes room at once when its caller
// leaves. Where its turn never comes, because the server stops, it is answered so.
class WaitingCall {
 public:
  WaitingCall(std::shared_ptr<pb::ReloadConfigRequest> request, std::shared_ptr<CancelToken> cancel,
              std::shared_ptr<Responder> responder, std::atomic<int>* waiting)
      : request_(std::move(request)),
        cancel_(std::move(cancel)),
        responder_(std::move(responder)),
        waiting_(waiting) {
    if (cancel_ != nullptr) cancel_->SetListener(this, [this] { Leave(); });
  }
  ~WaitingCall() {
    Take();
    if (responder_ != nullptr) responder_->Finish(absl::UnavailableError("the server is stopping"));
  }
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

  // Its turn has come: from here on it does not wait. Null: the caller left.
  std::shared_ptr<pb::ReloadConfigRequest> Take() {
    if (cancel_ != nullptr) cancel_->ClearListener(this);
    std::shared_ptr<pb::ReloadConfigRequest> request = std::move(request_);
    Leave();
    return request;
  }
  // After Take(): whoever has it answers.
  std::shared_ptr<Responder> TakeResponder() { return std::exchange(responder_, nullptr); }

 private:
  void Leave() {
    request_ = nullptr;
    if (std::exchange(counted_, false)) --*waiting_;
  }

  // Of the listener until that is cleared.
  std::shared_ptr<pb::ReloadConfigRequest> request_;
  bool counted_ = true;
  const std::shared_ptr<CancelToken> cancel_;
  std::shared_ptr<Responder> responder_;
  std::atomic<int>* const waiting_;
};

class Reloader {
 public:
  explicit Reloader(const ApiContext& context)
      : registry_(context.registry),
        config_(context.config),
        thread_(1, {"reload", 0, {}}),
        started_(thread_.Start()) {}

  void Start(const CallHead& call, const Message& message,
             const std::shared_ptr<Responder>& responder) {
    if (!started_.ok()) return responder->Finish(started_);
    auto request = std::make_shared<pb::ReloadConfigRequest>();
    const absl::Status parsed = ParseMessage(message.bytes, request.get());
    if (!parsed.ok()) return responder->Finish(parsed);
    if (waiting_.fetch_add(1) >= kMaxWaiting) {
      --waiting_;
      return responder->Finish(absl::ResourceExhaustedError(
          absl::StrCat(kMaxWaiting, " reloads wait already; try again when they are through")));
    }
    const bool bounded = call.deadline != TimePoint::max();
    const TimePoint bound = Clock::Steady().Now() + (bounded ? kLongestReload : kUsualReload);
    const std::string* const generation = call.FindMetadata(kGenerationKey);
    auto waiting =
        std::make_shared<WaitingCall>(std::move(request), call.cancel, responder, &waiting_);
    thread_.Post([this, waiting = std::move(waiting), deadline = std::min(call.deadline, bound),
                  cancel = call.cancel,
                  who = absl::StrCat("RPC from ", call.peer.empty() ? "this process" : call.peer),
                  wanted = generation == nullptr ? std::string() : *generation] {
      const auto taken = waiting->Take();
      const std::shared_ptr<Responder> responder = waiting->TakeResponder();
      if (taken == nullptr) return responder->Finish(absl::CancelledError("the caller left"));
      Answer(*taken, wanted, deadline, cancel.get(), who, *responder);
    });
  }

 private:
  void Answer(const pb::ReloadConfigRequest& request, const std::string& wanted, TimePoint deadline,
              CancelToken* cancel, const std::string& who, Responder& responder) {
    const int64_t before = registry_.CurrentConfig().generation;
    const absl::Status status = Shortened(Reload(request.config(), wanted, deadline, cancel, who));
    if (!status.ok()) return responder.Finish(status);
    pb::ReloadConfigResponse response;
    *response.mutable_status() = ToProto(status);
    for (const std::string& name : request.metric_names()) {
      pb::Metric* const metric = response.add_metric();
      metric->set_name(name);
      // As TensorFlow Serving, 0 for metrics that there are not.
      metric->set_int64_value_increase(
          name == kGenerationMetric ? registry_.CurrentConfig().generation - before : 0);
    }
    responder.Write(response.SerializeAsString());
    responder.Finish(absl::OkStatus());
  }

  absl::Status Reload(const pb::ModelServerConfig& config, const std::string& wanted,
                      TimePoint deadline, CancelToken* cancel, const std::string& who) {
    int64_t generation = 0;
    if (!wanted.empty() && !absl::SimpleAtoi(wanted, &generation))
      return absl::InvalidArgumentError(
          absl::StrCat("metadata ", kGenerationKey, ": expected a number, got ", Quoted(wanted)));
    while (true) {
      const ConfigState current = registry_.CurrentConfig();
      if (!wanted.empty()) FLOE_RETURN_IF_ERROR(CheckGeneration(generation, current.generation));
      ServerConfig checked;
      FLOE_ASSIGN_OR_RETURN(checked.models, ModelsIn(config, current));
      FLOE_RETURN_IF_ERROR(ValidateConfig(checked));
      // What was made from this configuration is to replace no other one.
      absl::Status status =
          registry_.Reload({std::move(checked.models), deadline, current.generation, cancel, who});
      const bool overtaken =
          absl::IsAborted(status) && registry_.CurrentConfig().generation != current.generation;
      if (!overtaken || !wanted.empty()) return status;
    }
  }

  absl::StatusOr<std::vector<ModelConfig>> ModelsIn(const pb::ModelServerConfig& config,
                                                    const ConfigState& current) const {
    floe::YamlModels yaml;
    if (config.has_custom_model_config() && config.custom_model_config().UnpackTo(&yaml))
      return ModelsInYaml(yaml);
    ModelListContext context;
    context.known = &current.models;
    context.defaults = Defaults();
    std::vector<std::string> notes;
    return ModelsOf(config, context, &notes);
  }

  absl::StatusOr<std::vector<ModelConfig>> ModelsInYaml(const floe::YamlModels& from) const {
    if (from.yaml().size() > kMaxYamlBytes)
      return absl::InvalidArgumentError(absl::StrCat("the YAML has ", from.yaml().size(),
                                                     " bytes; expected at most ", kMaxYamlBytes));
    const std::string file = from.file().empty() ? "yaml" : from.file();
    FLOE_ASSIGN_OR_RETURN(ServerConfig config,
                          ParseConfig(from.yaml(), file, from.directory(), Defaults()));
    FLOE_RETURN_IF_ERROR(CheckListsModels(from.yaml(), file));
    for (const ModelConfig& model : config.models)
      if (model.base_path[0] != '/')
        return absl::InvalidArgumentError(absl::StrCat(
            model.where, ": model ", Quoted(model.name), ": base_path ", Quoted(model.base_path),
            " is relative, which a call cannot be; expected an absolute path on the "
            "server"));
    return std::move(config.models);
  }

  ModelConfig Defaults() const {
    return config_ == nullptr ? ModelConfig() : config_->model_defaults;
  }

  ModelRegistry& registry_;
  const ServerConfig* const config_;
  std::atomic<int> waiting_{0};  // calls
  TaskThreadPool thread_;        // ends before what its tasks read
  const absl::Status started_;   // its first thread
};

}  // namespace

absl::Status CheckOffered(const ServerConfig* config, const CallHead& call) {
  const ConfigRpcs offered =
      config == nullptr ? ConfigRpcs::kLocal : config->server.enable_config_rpcs;
  if (offered == ConfigRpcs::kNobody) return NotOffered();
  if (offered == ConfigRpcs::kAll || call.local) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "RPCs for operators are offered to processes of the server's own machine only; "
      "server.enable_config_rpcs: true, or --enable_config_rpcs=true, offers it to everybody who "
      "can connect");
}

pb::StatusProto ToProto(const absl::Status& status) {
  pb::StatusProto proto;
  proto.set_error_code(static_cast<tensorflow::error::Code>(status.code()));
  proto.set_error_message(
      Printable({status.message().data(), status.message().size()}, kMaxShownBytes));
  return proto;
}

OpenCall OfferedOnly(const ServerConfig* config, OpenCall open) {
  return [config, open = std::move(open)](
             const CallHead& head,
             std::shared_ptr<Responder> responder) -> absl::StatusOr<std::shared_ptr<CallHandler>> {
    FLOE_RETURN_IF_ERROR(CheckOffered(config, head));
    return open(head, std::move(responder));
  };
}

Method ReloadConfigMethod(const ApiContext& context) {
  Method method =
      UnaryMethod(MethodRole::kOperators, [reloader = std::make_shared<Reloader>(context)](
                                              const CallHead& head, const Message& message,
                                              const std::shared_ptr<Responder>& responder) {
        reloader->Start(head, message, responder);
      });
  method.open = OfferedOnly(context.config, std::move(method.open));
  return method;
}

Method GetConfigMethod(const ApiContext& context) {
  const ModelRegistry& registry = context.registry;
  Method method = ProtoMethod<floe::GetConfigRequest, floe::GetConfigResponse>(
      MethodRole::kOperators, [&registry, config = context.config](const auto&, auto* response) {
        ConfigState state = registry.CurrentConfig();
        ServerConfig merged = config == nullptr ? ServerConfig() : *config;
        merged.models = std::move(state.models);
        response->set_generation(state.generation);
        *response->mutable_last_error() = ToProto(state.last_error);
        response->set_yaml(ConfigToYaml(merged));
        return absl::OkStatus();
      });
  method.open = OfferedOnly(context.config, std::move(method.open));
  return method;
}

}  // namespace floe::server
