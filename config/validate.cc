// The rules between keys, and the check that paths exist.
#include <arpa/inet.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"
#include "config/config.h"
#include "config/key_table.h"
#include "config/limits.h"

namespace floe {
namespace {

// "floe.yaml:3: server.port: ", or "--port: ".
std::string At(const ServerConfig& config, const std::string& key) {
  const auto found = config.where.find(key);
  return absl::StrCat(found == config.where.end() ? key : found->second, ": ");
}

// "[::1]:8500", "localhost:8500" and the like.
bool HasPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return false;
  const bool one = address.find(':') == colon;  // several belong to an address of IPv6
  return one || address[colon - 1] == ']';
}

void CheckListen(const ServerConfig& config, std::vector<std::string>* errors) {
  const ListenConfig& listen = config.server;
  const bool tcp = listen.port != 0 || listen.http_port != 0;
  if (!tcp && listen.grpc_socket_path.empty())
    errors->push_back(absl::StrCat(At(config, "server.port"),
                                   "nothing to listen on; set port, or grpc_socket_path, or both"));
  const std::string address = Quoted(listen.bind_address);
  if (HasPort(listen.bind_address))
    errors->push_back(absl::StrCat(At(config, "server.bind_address"), address,
                                   " has a port, which belongs to server.port (--port)"));
  else if (tcp && !IsLoopback(listen.bind_address) && !listen.insecure_public &&
           !listen.tls.is_on())
    errors->push_back(
        absl::StrCat(At(config, "server.bind_address"), address,
                     " is reachable from other machines and the connection is not encrypted; set "
                     "server.tls.certificate and server.tls.key, or add --insecure_public (or "
                     "insecure_public: true) if the network is trusted, or keep 127.0.0.1"));
  for (const auto& [key, path] : {std::pair("server.grpc_socket_path", &listen.grpc_socket_path),
                                  std::pair("server.admin_socket_path", &listen.admin_socket_path)})
    if (path->size() > 107)  // sun_path, less its final zero
      errors->push_back(absl::StrCat(At(config, key), Quoted(*path), " has ", path->size(),
                                     " characters; the system's limit is 107"));
  if (!listen.admin_socket_path.empty() && listen.admin_socket_path == listen.grpc_socket_path)
    errors->push_back(absl::StrCat(At(config, "server.admin_socket_path"),
                                   "is the same as server.grpc_socket_path; give another path"));
  if (const auto args = ParseChannelArguments(listen.grpc_channel_arguments); !args.ok())
    errors->push_back(absl::StrCat(At(config, "server.grpc_channel_arguments"),
                                   std::string(args.status().message())));
}

void CheckTls(const ServerConfig& config, std::vector<std::string>* errors) {
  const TlsConfig& tls = config.server.tls;
  const auto fail = [&](const char* key, const std::string& message) {
    errors->push_back(absl::StrCat(At(config, key), message));
  };
  if (!tls.ssl_config_file.empty() &&
      !(tls.certificate.empty() && tls.key.empty() && tls.client_ca.empty()))
    fail("server.tls.ssl_config_file",
         "holds certificate, key and CA itself; give it alone, or give server.tls.certificate and "
         "server.tls.key instead");
  else if (tls.certificate.empty() != tls.key.empty())
    fail(tls.key.empty() ? "server.tls.certificate" : "server.tls.key",
         absl::StrCat("is given without server.tls.", tls.key.empty() ? "key" : "certificate",
                      "; TLS needs both"));
  if (!tls.is_on() && !tls.client_ca.empty())
    fail("server.tls.client_ca", "has no effect without server.tls.certificate and server.tls.key");
  if (tls.client != ClientCertificates::kNone && tls.client_ca.empty())
    fail("server.tls.client", tls.ssl_config_file.empty()
                                  ? "asks clients for certificates; give server.tls.client_ca, "
                                    "which signs them"
                                  : "is said by client_verify in server.tls.ssl_config_file; leave "
                                    "it out");
  if (tls.client == ClientCertificates::kNone && !tls.client_ca.empty() && tls.is_on())
    fail("server.tls.client_ca",
         "is given, but no client is asked for a certificate; set server.tls.client to required "
         "or optional");
}

void CheckAuth(const ServerConfig& config, std::vector<std::string>* errors) {
  const AuthConfig& auth = config.server.auth;
  const auto fail = [&](const std::string& message) {
    errors->push_back(absl::StrCat(At(config, "server.auth.principals"), message));
  };
  std::set<std::string> names;
  for (const PrincipalConfig& one : auth.principals) {
    if (!one.token.empty() && auth.tokens_file.empty())
      fail(absl::StrCat("the token ", Quoted(one.token),
                        " is named, but there is no server.auth.tokens_file"));
    if (!one.certificate.empty() && config.server.tls.client == ClientCertificates::kNone &&
        config.server.tls.ssl_config_file.empty())
      fail(absl::StrCat("the certificate ", Quoted(one.certificate),
                        " is named, but no client is asked for one; set server.tls.client to "
                        "required or optional"));
    const std::string name = absl::StrCat(one.certificate, "\n", one.token, "\n", one.uid);
    if (!names.insert(name).second)
      fail(absl::StrCat(Quoted(absl::StrCat(one.certificate, one.token, one.uid)),
                        " is named twice; keep one"));
  }
}

void CheckModel(const ModelConfig& model, std::vector<std::string>* errors) {
  if (model.name.empty())
    errors->push_back("a model has no name; give --model_name or models[].name");
  // It is in every status, line of the log and metric of the model.
  if (model.name.size() > kMostQuotedBytes)
    errors->push_back(absl::StrCat("the model name ", Quoted(model.name), " has ",
                                   model.name.size(), " bytes; give it at most ",
                                   kMostQuotedBytes));
  if (model.base_path.empty())
    errors->push_back(
        absl::StrCat("model '", model.name, "' has no path; give --model_base_path or base_path"));
  for (const std::string& mistake : BatchingMistakes(model.batching))
    errors->push_back(absl::StrCat(model.where, ": model '", model.name, "': ", mistake));
  // With listed versions it is known what a label can mean; otherwise the directory decides.
  const VersionPolicy& versions = model.versions;
  if (versions.kind != VersionPolicy::Kind::kSpecific) return;
  for (const auto& [label, version] : model.version_labels)
    if (std::find(versions.specific.begin(), versions.specific.end(), version) ==
        versions.specific.end())
      errors->push_back(absl::StrCat(
          model.where, ": model '", model.name, "': label '", label, "' names version ", version,
          ", which is not among the specific versions ", absl::StrJoin(versions.specific, ", "),
          "; add the version or change the label"));
}

}  // namespace

bool IsLoopback(const std::string& address) {
  if (address == "localhost" || address == "::1" || address == "[::1]") return true;
  in_addr v4;
  return inet_pton(AF_INET, address.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseChannelArguments(
    const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (text.empty()) return pairs;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == absl::string_view::npos || equals == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is not key=value (the whole is '", text, "')"));
    pairs.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return pairs;
}

absl::Status ValidateConfig(const ServerConfig& config) {
  std::vector<std::string> errors;
  CheckListen(config, &errors);
  CheckTls(config, &errors);
  CheckAuth(config, &errors);
  for (const Key<ServerConfig>& key : ServerKeys()) {
    if (!key.parse) continue;  // a list, whose members were checked as it was read
    ServerConfig read;
    const std::string mistake = key.parse(key.text(config), &read);
    if (!mistake.empty()) errors.push_back(absl::StrCat(At(config, key.path), mistake));
  }
  std::map<std::string_view, std::vector<const ModelConfig*>> named;
  for (const ModelConfig& model : config.models) {
    CheckModel(model, &errors);
    for (const ModelConfig* other : named[model.name])
      errors.push_back(absl::StrCat("model name '", model.name, "' is given twice (", other->where,
                                    " and ", model.where, ")"));
    named[model.name].push_back(&model);
  }
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  return absl::OkStatus();
}

absl::Status CheckPaths(const ServerConfig& config) {
  std::vector<std::string> errors;
  struct stat info;
  for (const ModelConfig& model : config.models)
    if (stat(model.base_path.c_str(), &info) != 0)
      errors.push_back(absl::StrCat(model.where, ": model '", model.name, "': base_path '",
                                    model.base_path, "': ", std::strerror(errno),
                                    "; expected a directory or a model file"));
  const std::string& blas = config.cpu.blas_library;
  // Without a slash it is a name for the dynamic linker, which searches on its own.
  if (blas.find('/') != std::string::npos && stat(blas.c_str(), &info) != 0)
    errors.push_back(absl::StrCat("cpu.blas_library '", blas, "': ", std::strerror(errno),
                                  "; expected a shared library with the CBLAS interface"));
  if (!errors.empty()) return absl::NotFoundError(absl::StrJoin(errors, "\n"));
  return absl::OkStatus();
}

}  // namespace floe
