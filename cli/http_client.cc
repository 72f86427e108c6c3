// Blocking sockets and OpenSSL; Boost.Beast reads the answer.
#include "cli/http_client.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::cli {
namespace {

namespace http = boost::beast::http;

struct Place {
  std::string host, port;  // empty: a unix socket
  std::string socket;
  bool abstract = false;
};

absl::StatusOr<Place> PlaceOf(const std::string& address) {
  Place place;
  if (absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:")) {
    place.abstract = address[4] == '-';
    place.socket = address.substr(address.find(':') + 1);
    if (absl::StartsWith(place.socket, "//")) place.socket.erase(0, 2);  // unix:///run/s
    return place;
  }
  const size_t colon = address.rfind(':');
  place.host = address.substr(0, colon);
  place.port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (place.host.size() > 1 && place.host.front() == '[' && place.host.back() == ']')
    place.host = place.host.substr(1, place.host.size() - 2);
  else if (absl::StrContains(place.host, ':'))
    place.host.clear();
  const bool number =
      !place.port.empty() && place.port.find_first_not_of("0123456789") == std::string::npos;
  if (place.host.empty() || !number)
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(address), " is no address for --http; expected HOST:PORT or unix:PATH"));
  return place;
}

// A socket, with TLS where the target says so.
class Stream {
 public:
  explicit Stream(const Target& target) : target_(target) {}
  ~Stream() {
    ssl_.reset();
    if (fd_ >= 0) close(fd_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  absl::Status Open(const Place& place) {
    FLOE_RETURN_IF_ERROR(place.host.empty() ? ConnectUnix(place) : ConnectTcp(place));
    return target_.tls.is_on() ? StartTls(place) : absl::OkStatus();
  }

  absl::Status Write(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const int part = static_cast<int>(std::min<size_t>(bytes.size() - sent, 1 << 20));
      const ssize_t size =
          ssl_ != nullptr ? SSL_write(ssl_.get(), bytes.data() + sent, part)
                          : send(fd_, bytes.data() + sent, static_cast<size_t>(part), MSG_NOSIGNAL);
      if (size <= 0) return Broken();
      sent += static_cast<size_t>(size);
    }
    return absl::OkStatus();
  }

  // 0: no more will come.
  absl::StatusOr<size_t> Read(char* to, int room) {
    const ssize_t size = ssl_ != nullptr ? SSL_read(ssl_.get(), to, room)
                                         : recv(fd_, to, static_cast<size_t>(room), 0);
    if (size > 0) return static_cast<size_t>(size);
    if (ssl_ != nullptr &&
        SSL_get_error(ssl_.get(), static_cast<int>(size)) == SSL_ERROR_ZERO_RETURN)
      return 0;
    if (size == 0) return 0;
    return Broken();
  }

 private:
  absl::Status Broken() const {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS)
      return absl::DeadlineExceededError(
          absl::StrCat("no answer from ", target_.address, " in time (--timeout)"));
    return absl::UnavailableError(
        absl::StrCat("the connection to ", target_.address,
                     " broke: ", errno == 0 ? "it was closed" : std::strerror(errno)));
  }
  absl::Status NoServer(const char* why) const {
    return absl::UnavailableError(
        absl::StrCat("no server answers at ", target_.address, " (--target names another): ", why));
  }

  bool Connect(int family, const sockaddr* address, socklen_t size) {
    if (fd_ >= 0) close(fd_);
    fd_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return false;
    const auto micros = static_cast<int64_t>(target_.timeout_s * 1e6);
    timeval limit = {};
    limit.tv_sec = micros / 1'000'000;
    limit.tv_usec = micros % 1'000'000;
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return connect(fd_, address, size) == 0;
  }

  absl::Status ConnectUnix(const Place& place) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (place.socket.empty() || place.socket.size() + 1 > sizeof address.sun_path)
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(target_.address), " is no path of a socket"));
    place.socket.copy(address.sun_path + (place.abstract ? 1 : 0), place.socket.size());
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + place.socket.size() + 1);
    if (Connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), size))
      return absl::OkStatus();
    return NoServer(std::strerror(errno));
  }

  absl::Status ConnectTcp(const Place& place) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &found);
        error != 0)
      return NoServer(gai_strerror(error));
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next)
      if (Connect(a->ai_family, a->ai_addr, a->ai_addrlen)) return absl::OkStatus();
    return NoServer(std::strerror(errno));
  }

  absl::Status StartTls(const Place& place) {
    const ClientTls& tls = target_.tls;
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                               SSL_CTX_free);
    const bool trusts =
        tls.ca.empty() ? SSL_CTX_set_default_verify_paths(context.get()) == 1
                       : SSL_CTX_load_verify_locations(context.get(), tls.ca.c_str(), nullptr) == 1;
    if (!trusts) return TlsError("the file of --tls-ca holds no certificate");
    if (!tls.cert.empty() &&
        (SSL_CTX_use_certificate_chain_file(context.get(), tls.cert.c_str()) != 1 ||
         SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1))
      return TlsError("the files of --tls-cert and --tls-key do not belong together");
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    ssl_.reset(SSL_new(context.get()));
    const std::string name = tls.name.empty() ? place.host : tls.name;
    in6_addr number = {};
    const bool is_address = inet_pton(AF_INET, name.c_str(), &number) == 1 ||
                            inet_pton(AF_INET6, name.c_str(), &number) == 1;
    if (is_address) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), name.c_str());
    } else {
      SSL_set1_host(ssl_.get(), name.c_str());
      SSL_set_tlsext_host_name(ssl_.get(), name.c_str());
    }
    SSL_set_fd(ssl_.get(), fd_);
    errno = 0;
    if (SSL_connect(ssl_.get()) == 1) return absl::OkStatus();
    const int64_t verified = SSL_get_verify_result(ssl_.get());
    if (verified != X509_V_OK)
      return TlsError(absl::StrCat(X509_verify_cert_error_string(verified),
                                   "; --tls-ca says whom to trust, --tls-name how it is called"));
    if (errno == EAGAIN) return Broken();
    return TlsError("the handshake failed; is it a server with TLS?");
  }
  absl::Status TlsError(const std::string& why) const {
    ERR_clear_error();
    return absl::UnavailableError(absl::StrCat("no TLS with ", target_.address, ": ", why));
  }

  const Target& target_;
  int fd_ = -1;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
};

absl::StatusOr<HttpAnswer> ReadAnswer(Stream* stream) {
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.body_limit(std::numeric_limits<int32_t>::max());
  std::string waiting;
  char buffer[size_t{64} << 10];
  boost::system::error_code error;
  while (!parser.is_done()) {
    FLOE_ASSIGN_OR_RETURN(const size_t size, stream->Read(buffer, sizeof buffer));
    waiting.append(buffer, size);
    if (size == 0) {
      parser.put_eof(error);
      if (!error && parser.is_done()) break;
      return absl::UnavailableError("the server closed the connection before its answer was whole");
    }
    while (!waiting.empty() && !parser.is_done()) {
      const size_t taken =
          parser.put(boost::asio::const_buffer(waiting.data(), waiting.size()), error);
      waiting.erase(0, taken);
      if (error == http::error::need_more) break;
      if (error)
        return absl::UnavailableError(
            absl::StrCat("the answer is not HTTP: ", error.message(), "; is it a floed?"));
    }
  }
  HttpAnswer answer;
  answer.status = static_cast<int>(parser.get().result_int());
  answer.body = std::move(parser.get().body());
  return answer;
}

}  // namespace

absl::StatusOr<HttpAnswer> PostJson(const Target& target, const std::string& path,
                                    const std::string& body) {
  FLOE_ASSIGN_OR_RETURN(const Place place, PlaceOf(target.address));
  FLOE_ASSIGN_OR_RETURN(const RpcClient::Metadata token, TokenMetadata(target));
  std::string request = absl::StrCat(
      "POST ", path, " HTTP/1.1\r\nHost: ", place.host.empty() ? "localhost" : place.host,
      "\r\nUser-Agent: floectl\r\nConnection: close\r\nContent-Type: application/json\r\n"
      "Content-Length: ",
      body.size(), "\r\n");
  for (const auto& [key, value] : token) absl::StrAppend(&request, key, ": ", value, "\r\n");
  absl::StrAppend(&request, "\r\n", body);
  Stream stream(target);
  errno = 0;
  FLOE_RETURN_IF_ERROR(stream.Open(place));
  // A server that refuses a request may answer before it has read it.
  const absl::Status sent = stream.Write(request);
  absl::StatusOr<HttpAnswer> answer = ReadAnswer(&stream);
  return answer.ok() || sent.ok() ? answer : sent;
}

}  // namespace floe::cli
