// Calls to a server, without generated stubs.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace google::protobuf {
class MessageLite;
}
namespace grpc {
class Channel;
}

namespace floe::cli {

// PEM files. All empty: plain text.
struct ClientTls {
  std::string ca;    // whom to trust; empty: whom gRPC trusts
  std::string cert;  // the client's own certificate, with its key
  std::string key;
  std::string name;  // the server's name, where its certificate has another than the address

  bool is_on() const { return !(ca.empty() && cert.empty() && name.empty()); }
};

struct Target {
  std::string address = "127.0.0.1:8500";  // HOST:PORT, unix:PATH or any name gRPC resolves
  ClientTls tls;
  std::string token_file;  // of floectl token new; empty: none
  double timeout_s = 10;   // of each call, connecting included
  bool is_given = false;   // the address, by --target
  bool for_operators = false;
};
// Where the package's floed takes the calls of operators.
inline constexpr char kAdminSocket[] = "/run/floe/admin.sock";
// Of calls of operators that name no address: the socket at `path`, where this user may open it.
Target Resolved(const Target& target, const char* path = kAdminSocket);

// "host" -> "host:8500", "::1" -> "[::1]:8500"; what has a port or names a resolver stays.
std::string WithPort(const std::string& address);
// --target, completed by WithPort, --timeout, --tls-... and --token-file.
void AddTargetOptions(CLI::App& app, Target& target,
                      const char* timeout_help = "Seconds to wait for each answer");
// The same of commands for operators, which look for kAdminSocket first.
void AddOperatorTargetOptions(CLI::App& app, Target& target,
                              const char* timeout_help = "Seconds to wait for each answer");

// A channel to the target for messages of any size. With `own_connection` it shares none with other
// channels. Files of TLS that cannot be read make it fail as a wrong certificate does.
std::shared_ptr<grpc::Channel> ChannelTo(const Target& target, bool own_connection);

// The metadata that the target's token makes of a call; none without a token. NOT_FOUND or
// INVALID_ARGUMENT names the file.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> TokenMetadata(
    const Target& target);

// Threading: any thread. Messages may be as large as protobuf allows.
class RpcClient {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  explicit RpcClient(const Target& target);

  // Blocks until the answer or the timeout. `method`: "/package.Service/Method". The server's code
  // and message; an unreachable server is UNAVAILABLE naming the address.
  absl::Status Call(const std::string& method, const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* response, const Metadata& metadata = {}) const;

 private:
  Target target_;
  std::shared_ptr<grpc::Channel> channel_;
  absl::StatusOr<Metadata> token_;
};

}  // namespace floe::cli
