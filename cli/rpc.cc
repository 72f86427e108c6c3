// One blocking call over a generic stub, with the errors that a user needs.
#include "cli/rpc.h"

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::cli {

namespace {

// What is wrong with an address, or "". gRPC would look up the whole as a name.
std::string AddressMistake(const std::string& address) {
  const size_t at = address.find("://");
  if (at == std::string::npos) return "";
  const std::string scheme = address.substr(0, at);
  if (scheme != "http" && scheme != "https" && scheme != "grpc" && scheme != "grpcs" &&
      scheme != "tcp")
    return "";  // one of gRPC's, such as dns:///HOST
  const std::string rest = address.substr(at + 3);
  return absl::StrCat(Quoted(address), " is a URL; expected HOST:PORT or unix:PATH, such as ",
                      Escaped(rest.substr(0, rest.find('/'))));
}

void AddTlsOptions(CLI::App& app, ClientTls& tls) {
  CLI::Option* const ca =
      app.add_option("--tls-ca", tls.ca, "PEM file: who signs the server's certificate; TLS is on");
  CLI::Option* const cert = app.add_option("--tls-cert", tls.cert,
                                           "PEM file with this client's certificate, if asked for");
  CLI::Option* const key = app.add_option("--tls-key", tls.key, "PEM file with its private key");
  cert->needs(key);
  key->needs(cert);
  for (CLI::Option* const option : {ca, cert, key})
    option->type_name("FILE")->check(CLI::ExistingFile);
  app.add_option("--tls-name", tls.name,
                 "The server's name, if its certificate has another than --target says")
      ->type_name("NAME");
}

std::string TextOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ClientTls& tls,
                                                        grpc::ChannelArguments* arguments) {
  if (!tls.is_on()) return grpc::InsecureChannelCredentials();
  if (!tls.name.empty()) arguments->SetSslTargetNameOverride(tls.name);
  grpc::SslCredentialsOptions options;
  if (!tls.ca.empty()) options.pem_root_certs = TextOf(tls.ca);
  if (!tls.cert.empty()) {
    options.pem_cert_chain = TextOf(tls.cert);
    options.pem_private_key = TextOf(tls.key);
  }
  return grpc::SslCredentials(options);
}

// Behind a failed connection: what it may be with TLS; "" where nothing points to it.
std::string TlsHint(const ClientTls& tls, const std::string& message) {
  if (!tls.is_on())
    return absl::StrContains(message, "connection closed") ||
                   absl::StrContains(message, "Connection reset") ||
                   absl::StrContains(message, "Socket closed")
               ? "; if the server speaks TLS, name who signs its certificate with --tls-ca"
               : "";
  if (absl::StrContains(message, "certificate verify failed") ||
      absl::StrContains(message, "CERTIFICATE_VERIFY_FAILED"))
    return "; the server's certificate is not signed by one in --tls-ca, or has expired";
  if (absl::StrContains(message, "Peer name") || absl::StrContains(message, "Hostname"))
    return "; the server's certificate has another name: give it with --tls-name";
  return absl::StrContains(message, "andshake") ? "; is it a server with TLS?" : "";
}

}  // namespace

std::string WithPort(const std::string& address) {
  constexpr char kPort[] = ":8500";
  for (const char* scheme : {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:"})
    if (absl::StartsWith(address, scheme)) return address;
  const auto colons = std::count(address.begin(), address.end(), ':');
  if (absl::EndsWith(address, "]") || colons == 0) return absl::StrCat(address, kPort);
  if (colons == 1 || absl::StartsWith(address, "[") || absl::StrContains(address, "://"))
    return address;
  return absl::StrCat("[", address, "]", kPort);
}

void AddTargetOptions(CLI::App& app, Target& target, const char* timeout_help) {
  app.add_option("--target", target.address,
                 "The server: HOST:PORT, HOST for port 8500, or unix:PATH")
      ->transform(WithPort)
      ->type_name("ADDRESS")
      ->check(AddressMistake)
      ->each([&target](const std::string&) { target.is_given = true; })
      ->capture_default_str();
  app.add_option("--timeout", target.timeout_s, timeout_help)
      ->type_name("S")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  AddTlsOptions(app, target.tls);
  app.add_option("--token-file", target.token_file,
                 "File with the token that says who calls (floectl token new), if asked for")
      ->type_name("FILE")
      ->envname("FLOE_TOKEN_FILE")
      ->check(CLI::ExistingFile);
}

void AddOperatorTargetOptions(CLI::App& app, Target& target, const char* timeout_help) {
  target.for_operators = true;
  AddTargetOptions(app, target, timeout_help);
  CLI::Option* const address = app.get_option("--target");
  address->description(absl::StrCat(address->get_description(), "; before this, unix:",
                                    kAdminSocket, " where this user may open it"));
}

Target Resolved(const Target& target, const char* path) {
  struct stat info = {};
  const bool here = stat(path, &info) == 0 && S_ISSOCK(info.st_mode) && access(path, W_OK) == 0;
  Target resolved = target;
  if (here && target.for_operators && !target.is_given && !target.tls.is_on())
    resolved.address = absl::StrCat("unix:", path);
  return resolved;
}

absl::StatusOr<RpcClient::Metadata> TokenMetadata(const Target& target) {
  if (target.token_file.empty()) return RpcClient::Metadata();
  const std::string token(absl::StripAsciiWhitespace(TextOf(target.token_file)));
  const bool good = !token.empty() && std::all_of(token.begin(), token.end(), [](unsigned char c) {
    return absl::ascii_isgraph(c);
  });
  if (!good)
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(target.token_file),
                     " (--token-file) holds no token; expected one line, as floectl token new "
                     "prints it"));
  return RpcClient::Metadata{{"authorization", absl::StrCat("Bearer ", token)}};
}

std::shared_ptr<grpc::Channel> ChannelTo(const Target& target, bool own_connection) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY,
                   0);  // a proxy from the environment knows no local server
  if (own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto credentials = CredentialsOf(target.tls, &arguments);
  return grpc::CreateCustomChannel(target.address, credentials, arguments);
}

RpcClient::RpcClient(const Target& target)
    : target_(Resolved(target)),
      channel_(ChannelTo(target_, /*own_connection=*/false)),
      token_(TokenMetadata(target)) {}

absl::Status RpcClient::Call(const std::string& method,
                             const google::protobuf::MessageLite& request,
                             google::protobuf::MessageLite* response,
                             const Metadata& metadata) const {
  using Message = google::protobuf::MessageLite;
  FLOE_RETURN_IF_ERROR(token_.status());
  grpc::TemplatedGenericStub<Message, Message> stub(channel_);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::microseconds(static_cast<int64_t>(target_.timeout_s * 1e6)));
  for (const auto& [key, value] : *token_) context.AddMetadata(key, value);
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  // Not by callbacks: for those gRPC starts threads, which would take the events of other queues.
  grpc::CompletionQueue queue;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  queue.Next(&tag, &ok);
  if (status.ok()) return absl::OkStatus();
  std::string message = status.error_message();
  // gRPC's own words when nobody listens; a server that answers UNAVAILABLE speaks for itself.
  const bool unreachable =
      status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      (absl::StrContains(message, "failed to connect") || absl::StrContains(message, "resolution"));
  if (unreachable && absl::StrContains(message, "Permission denied")) {
    message = absl::StrCat("this user may not open the socket ", target_.address,
                           ", as its owner and mode say (ls -l); call as its owner or a member of "
                           "its group");
  } else if (unreachable) {
    message = absl::StrCat("no server answers at ", target_.address,
                           " (--target names another): ", message, TlsHint(target_.tls, message));
  } else if (message.empty()) {
    message = absl::StrCat(method, " failed");
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), message);
}

}  // namespace floe::cli
