#include "server/daemon/listeners.h"

#include "absl/strings/str_cat.h"

namespace floe::server {

std::string HostPort(const std::string& host, int64_t port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host[0] != '[';
  return bare_v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

std::vector<std::string> ListenAddresses(const ListenConfig& config) {
  std::vector<std::string> addresses;
  if (config.port != 0) addresses.push_back(HostPort(config.bind_address, config.port));
  if (!config.grpc_socket_path.empty()) addresses.push_back("unix:" + config.grpc_socket_path);
  return addresses;
}

std::vector<std::string> DescribeListeners(const ListenConfig& config) {
  std::vector<std::string> lines;
  if (config.port != 0) {
    const bool loopback = IsLoopback(config.bind_address);
    lines.push_back(absl::StrCat(
        "listening on ", HostPort(config.bind_address, config.port), " (gRPC, plain text",
        loopback
            ? "; this machine only: --bind_address=0.0.0.0 --insecure_public opens it to others)"
            : "; open to other machines)"));
  }
  if (!config.grpc_socket_path.empty())
    lines.push_back(absl::StrCat("listening on unix socket ", config.grpc_socket_path, " (gRPC)"));
  return lines;
}

std::string ProbeAddress(const ListenConfig& config) {
  if (config.port == 0) return "unix:" + config.grpc_socket_path;
  if (config.bind_address == "0.0.0.0") return HostPort("127.0.0.1", config.port);
  if (config.bind_address == "::" || config.bind_address == "[::]")
    return HostPort("::1", config.port);
  return HostPort(config.bind_address, config.port);
}

}  // namespace floe::server
