// ReloadConfig and GetConfig: operators change and read the configuration.
#include "server/api/config_service.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
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
#include "tensorflow_serving/apis/model_management.pb.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;

// What a call may take: without a deadline of its own, and at most.
constexpr Duration kUsualReload = std::chrono::minutes(2);
constexpr Duration kLongestReload = std::chrono::minutes(10);
constexpr size_t kMaxYamlBytes = size_t{1} << 20;
// Messages travel as headers, of which clients take 8 KiB by default.
constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kMaxShownBytes = size_t{64} << 10;  // in a message of its own

absl::Status Shortened(const absl::Status& status) {
  if (status.ok() || status.message().size() <= kMaxMessageBytes) return status;
  const std::string shown(status.message().substr(0, kMaxMessageBytes));
  return absl::Status(status.code(), absl::StrCat(shown, " ... (shortened)"));
}

// A change, until it is active or refused.
class Change : public std::enable_shared_from_this<Change> {
 public:
  Change(ModelRegistry& registry, const CallHead& head, ModelsFor models, bool again,
         ReloadDone done)
      : registry_(registry),
        head_(head),
        models_(std::move(models)),
        again_(again),
        done_(std::move(done)) {
    const bool bounded = head.deadline != TimePoint::max();
    const TimePoint bound = Clock::Steady().Now() + (bounded ? kLongestReload : kUsualReload);
    deadline_ = std::min(head.deadline, bound);
  }

  void Try() {
    const ConfigState current = registry_.CurrentConfig();
    absl::StatusOr<std::vector<ModelConfig>> models = models_(current);
    if (!models.ok()) return done_(Shortened(models.status()));
    // What was made from this configuration is to replace no other one.
    registry_.StartReload(
        {*std::move(models), deadline_, current.generation, head_.cancel, CallerOf(head_)},
        [self = shared_from_this(), generation = current.generation](const absl::Status& status) {
          const bool overtaken =
              absl::IsAborted(status) && self->registry_.CurrentConfig().generation != generation;
          if (overtaken && self->again_) return self->Try();
          self->done_(Shortened(status));
        });
  }

 private:
  ModelRegistry& registry_;
  const CallHead head_;
  const ModelsFor models_;
  const bool again_;
  const ReloadDone done_;
  TimePoint deadline_;
};

// A call, until its configuration is active or refused.
class ReloadCall : public std::enable_shared_from_this<ReloadCall> {
 public:
  ReloadCall(const ApiContext& context, const CallHead& head, std::shared_ptr<Responder> responder)
      : registry_(context.registry),
        config_(context.config),
        head_(head),
        responder_(std::move(responder)),
        before_(registry_.CurrentConfig().generation) {}

  void Start(const Message& message) {
    if (const absl::Status status = Read(message); !status.ok()) return Finish(Shortened(status));
    ChangeConfig(
        registry_, head_,
        [self = shared_from_this()](const ConfigState& now) { return self->Wanted(now); },
        /*again=*/!wanted_,
        [self = shared_from_this()](const absl::Status& status) { self->Finish(status); });
  }

 private:
  absl::Status Read(const Message& message) {
    FLOE_RETURN_IF_ERROR(ParseMessage(message.bytes, &request_));
    const std::string* const wanted = head_.FindMetadata(kGenerationKey);
    if (wanted != nullptr && !absl::SimpleAtoi(*wanted, &wanted_.emplace()))
      return absl::InvalidArgumentError(
          absl::StrCat("metadata ", kGenerationKey, ": expected a number, got ", Quoted(*wanted)));
    floe::YamlModels yaml;
    if (!request_.config().has_custom_model_config() ||
        !request_.config().custom_model_config().UnpackTo(&yaml))
      return absl::OkStatus();
    FLOE_ASSIGN_OR_RETURN(yaml_models_, ModelsInYaml(yaml));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ModelConfig>> Wanted(const ConfigState& current) const {
    if (wanted_) FLOE_RETURN_IF_ERROR(CheckGeneration(*wanted_, current.generation));
    ServerConfig checked;
    if (yaml_models_) {
      checked.models = *yaml_models_;
    } else {
      ModelListContext context;
      context.known = &current.models;
      context.defaults = Defaults();
      std::vector<std::string> notes;
      FLOE_ASSIGN_OR_RETURN(checked.models, ModelsOf(request_.config(), context, &notes));
    }
    FLOE_RETURN_IF_ERROR(ValidateConfig(checked));
    return std::move(checked.models);
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

  void Finish(const absl::Status& status) {
    if (!status.ok()) return responder_->Finish(status);
    pb::ReloadConfigResponse response;
    *response.mutable_status() = ToProto(status);
    for (const std::string& name : request_.metric_names()) {
      pb::Metric* const metric = response.add_metric();
      metric->set_name(name);
      // As TensorFlow Serving, 0 for metrics that there are not.
      metric->set_int64_value_increase(
          name == kGenerationMetric ? registry_.CurrentConfig().generation - before_ : 0);
    }
    responder_->Write(response.SerializeAsString());
    responder_->Finish(absl::OkStatus());
  }

  ModelRegistry& registry_;
  const ServerConfig* const config_;
  const CallHead head_;
  const std::shared_ptr<Responder> responder_;
  const int64_t before_;  // the generation that was active
  pb::ReloadConfigRequest request_;
  std::optional<int64_t> wanted_;  // the generation that the caller wants to replace
  std::optional<std::vector<ModelConfig>> yaml_models_;
};

}  // namespace

pb::StatusProto ToProto(const absl::Status& status) {
  pb::StatusProto proto;
  proto.set_error_code(static_cast<tensorflow::error::Code>(status.code()));
  proto.set_error_message(
      Printable({status.message().data(), status.message().size()}, kMaxShownBytes));
  return proto;
}

std::string CallerOf(const CallHead& head) {
  if (head.peer.empty()) return "RPC from this process";
  if (head.caller.principal() == nullptr || head.caller.principal()->anonymous)
    return absl::StrCat("RPC from ", head.peer);
  return absl::StrCat("RPC from ", head.peer, " by ", std::string(head.caller.name()));
}

void ChangeConfig(ModelRegistry& registry, const CallHead& head, ModelsFor models, bool again,
                  ReloadDone done) {
  std::make_shared<Change>(registry, head, std::move(models), again, std::move(done))->Try();
}

Method ReloadConfigMethod(const ApiContext& context) {
  return UnaryMethod(MethodRole::kOperators,
                     [context](const CallHead& head, const Message& message,
                               const std::shared_ptr<Responder>& responder) {
                       std::make_shared<ReloadCall>(context, head, responder)->Start(message);
                     });
}

Method ReadAgainMethod(const ApiContext& context) {
  return UnaryMethod(
      MethodRole::kOperators,
      [&registry = context.registry, reload = context.server.reload](
          const CallHead&, const Message&, const std::shared_ptr<Responder>& responder) {
        if (!reload)
          return responder->Finish(absl::UnimplementedError("this server has no files to read"));
        reload([&registry, responder](const absl::Status& status) {
          floe::ReloadResponse response;
          response.set_generation(registry.CurrentConfig().generation);
          if (status.ok()) responder->Write(response.SerializeAsString());
          responder->Finish(Shortened(status));
        });
      },
      kMostRequestBytes);
}

Method GetConfigMethod(const ApiContext& context) {
  const ModelRegistry& registry = context.registry;
  return ProtoMethod<floe::GetConfigRequest, floe::GetConfigResponse>(
      MethodRole::kOperators,
      [&registry, config = context.config](const CallHead&, const auto&, auto* response) {
        ConfigState state = registry.CurrentConfig();
        ServerConfig merged = config == nullptr ? ServerConfig() : *config;
        merged.models = std::move(state.models);
        response->set_generation(state.generation);
        *response->mutable_last_error() = ToProto(state.last_error);
        response->set_yaml(ConfigToYaml(merged));
        return absl::OkStatus();
      });
}

}  // namespace floe::server
