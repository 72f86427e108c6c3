// The one place that decides who may call what.
#include "server/api/roles.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

OfferedTo Offered(const ListenerRoles& roles, MethodRole method) {
  switch (method) {
    case MethodRole::kInference:
      return roles.infer;
    case MethodRole::kOperators:
      return roles.admin;
    case MethodRole::kModels:
    case MethodRole::kHealth:
    case MethodRole::kReflection:
    case MethodRole::kOpen:
      break;
  }
  return roles.read;
}

std::string NameOf(MethodRole method) {
  switch (method) {
    case MethodRole::kInference:
      return "inference";
    case MethodRole::kOperators:
      return "RPCs for operators";
    case MethodRole::kModels:
    case MethodRole::kHealth:
    case MethodRole::kReflection:
    case MethodRole::kOpen:
      break;
  }
  return "reading of models and health";
}

absl::Status NotOffered(MethodRole method, bool to_local) {
  const bool operators = method == MethodRole::kOperators;
  const std::string name = NameOf(method);
  if (!to_local)
    return absl::PermissionDeniedError(absl::StrCat(
        name, operators ? " are" : " is", " not offered here; ",
        operators ? "call the listener for operators, if there is one (server.admin_socket_path); "
                    "server.enable_config_rpcs: local in floe.yaml offers them to processes of the "
                    "server's own machine"
                  : "call another listener of this server"));
  return absl::PermissionDeniedError(absl::StrCat(
      name, operators ? " are" : " is", " offered to processes of the server's own machine only",
      operators ? "; server.enable_config_rpcs: true, or --enable_config_rpcs=true, offers it to "
                  "everybody who can connect"
                : ""));
}

}  // namespace

absl::Status CheckRole(const ListenerRoles& roles, MethodRole method, bool local) {
  const OfferedTo offered = Offered(roles, method);
  if (offered == OfferedTo::kAll || (offered == OfferedTo::kLocal && local))
    return absl::OkStatus();
  return NotOffered(method, /*to_local=*/offered == OfferedTo::kLocal);
}

}  // namespace floe::server
