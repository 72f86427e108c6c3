#include "server/daemon/listeners.h"

#include <systemd/sd-daemon.h>

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

std::vector<std::string> DescribeActivated(const std::vector<std::string>& bound) {
  std::vector<std::string> lines;
  for (const std::string& address : bound)
    lines.push_back(absl::StrCat("listening on ", address,
                                 " (gRPC, plain text), a socket of the service manager; port, "
                                 "bind_address and grpc_socket_path have no effect"));
  return lines;
}

std::vector<std::string> ActivatedListeners() {
  std::vector<std::string> listeners;
  const int count = sd_listen_fds(/*unset_environment=*/1);
  for (int i = 0; i < count; ++i) listeners.push_back(absl::StrCat("fd:", SD_LISTEN_FDS_START + i));
  return listeners;
}

std::string ProbeAddress(const std::string& bound) {
  const size_t colon = bound.rfind(':');
  const std::string host = bound.substr(0, colon);
  if (host == "0.0.0.0") return absl::StrCat("127.0.0.1", bound.substr(colon));
  if (host == "[::]") return absl::StrCat("[::1]", bound.substr(colon));
  return bound;
}

}  // namespace floe::server
