#include "cli/served_model.h"

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "floe/admin.pb.h"

namespace floe::cli {

absl::StatusOr<ServedModel> FindServed(const Target& target, const std::string& model) {
  const RpcClient client(target);
  ServedModel served;
  GetStatsRequest ask;
  ask.set_model(model);
  GetStatsResponse stats;
  FLOE_RETURN_IF_ERROR(client.Call("/floe.Admin/GetStats", ask, &stats));
  for (const ModelStats& one : stats.models()) {
    for (const VersionStats& version : one.versions()) {
      if (one.name() != model || !served.file.empty()) continue;
      if (version.state() == tensorflow::serving::ModelVersionStatus::AVAILABLE)
        served.file = version.file();
    }
  }
  if (served.file.empty())
    return absl::NotFoundError(absl::StrCat("the server at ", target.address,
                                            " names no file of an available version of model ",
                                            Quoted(model)));
  GetConfigResponse active;
  FLOE_RETURN_IF_ERROR(client.Call("/floe.Admin/GetConfig", GetConfigRequest(), &active));
  FLOE_ASSIGN_OR_RETURN(const ServerConfig config,
                        ParseConfig(active.yaml(), target.address, /*directory=*/""));
  for (const ModelConfig& one : config.models)
    if (one.name == model) served.config = one;
  return served;
}

}  // namespace floe::cli
