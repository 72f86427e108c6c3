// RepositoryModelLoad and RepositoryModelUnload: models of the configuration come and go by name.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/config_service.h"
#include "server/api/kserve.h"
#include "server/api/proto_method.h"

namespace floe::server {
namespace {

namespace kserve_pb = inference;
using Models = std::vector<ModelConfig>;

// Names as configurations have them; anything else might be meant as a path.
absl::Status CheckNameOnly(const std::string& name) {
  const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model_name is ", Quoted(name),
                   "; expected a model's name, of letters, digits, '.', '_' and '-'"));
}

auto ModelNamed(const Models& models, const std::string& name) {
  return std::find_if(models.begin(), models.end(),
                      [&name](const ModelConfig& model) { return model.name == name; });
}

std::vector<std::string> NamesOf(const Models& models) {
  std::vector<std::string> names;
  for (const ModelConfig& model : models) names.push_back(model.name);
  return names;
}

// The active models with that one, as the configuration of the start has it. Where it is active
// already, its versions are scanned for again.
absl::StatusOr<Models> With(const std::string& name, const ServerConfig* config,
                            const ConfigState& current) {
  Models models = current.models;
  if (ModelNamed(models, name) != models.end()) return models;
  const Models known = config == nullptr ? Models() : config->models;
  const auto found = ModelNamed(known, name);
  if (found == known.end())
    return absl::NotFoundError(absl::StrCat(
        "the configuration that the server began with has no model ", Quoted(name), "; it has ",
        QuotedList(NamesOf(known)), "; others come by HandleReloadConfigRequest"));
  models.push_back(*found);
  return models;
}

absl::StatusOr<Models> Without(const std::string& name, const ServerConfig*,
                               const ConfigState& current) {
  Models models = current.models;
  const auto found = ModelNamed(models, name);
  if (found == models.end())
    return absl::NotFoundError(absl::StrCat("there is no model ", Quoted(name),
                                            "; models: ", QuotedList(NamesOf(models))));
  models.erase(found);
  return models;
}

template <typename Request>
absl::Status CheckRepositoryRequest(const Request& request) {
  FLOE_RETURN_IF_ERROR(CheckRepository(request.repository_name()));
  FLOE_RETURN_IF_ERROR(CheckNameOnly(request.model_name()));
  for (const auto& [key, value] : request.parameters()) {
    if (key == "unload_dependents") continue;  // no model has any
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter ", Quoted(key), " is not offered: models are loaded as the configuration says"));
  }
  return absl::OkStatus();
}

template <typename Request, typename Response, typename Change>
Method RepositoryMethod(const ApiContext& context, Change change) {
  return UnaryMethod(
      MethodRole::kOperators,
      [context, change](const CallHead& head, const Message& message,
                        const std::shared_ptr<Responder>& responder) {
        Request request;
        absl::Status status = ParseMessage(message.bytes, &request);
        if (status.ok()) status = CheckRepositoryRequest(request);
        if (status.ok()) status = head.caller.CheckModel(request.model_name());
        if (!status.ok()) return responder->Finish(status);
        ChangeConfig(
            context.registry, head,
            [name = request.model_name(), config = context.config,
             change](const ConfigState& current) { return change(name, config, current); },
            /*again=*/true,
            [responder](const absl::Status& changed) {
              if (changed.ok()) responder->Write(Response().SerializeAsString());
              responder->Finish(changed);
            });
      },
      kMostRequestBytes);
}

}  // namespace

absl::Status CheckRepository(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("repository_name is ", Quoted(name),
                   "; there is one repository, the configuration's: leave it empty"));
}

Method RepositoryModelLoadMethod(const ApiContext& context) {
  return RepositoryMethod<kserve_pb::RepositoryModelLoadRequest,
                          kserve_pb::RepositoryModelLoadResponse>(context, With);
}

Method RepositoryModelUnloadMethod(const ApiContext& context) {
  return RepositoryMethod<kserve_pb::RepositoryModelUnloadRequest,
                          kserve_pb::RepositoryModelUnloadResponse>(context, Without);
}

}  // namespace floe::server
