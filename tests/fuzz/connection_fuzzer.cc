// Any bytes as what a client sends over a connection: HTTP/2 with gRPC calls and plain requests, or
// HTTP/1.1. The server answers what it can, ends the connection when the client has sent all, and
// goes on serving others.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/net/net_transport.h"
#include "server/transport/tests/methods_for_test.h"
#include "tests/fuzz/fuzzer.h"

namespace floe::fuzz {
namespace {

using namespace server;  // NOLINT(google-build-using-namespace): all of it is under test

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class EchoStream : public CallHandler {
 public:
  explicit EchoStream(std::shared_ptr<Responder> to) : to_(std::move(to)) {}
  void OnMessage(Message message) override { to_->Write(std::string(message.bytes)); }
  void OnHalfClose() override { to_->Finish(absl::OkStatus()); }

 private:
  const std::shared_ptr<Responder> to_;
};

class EchoBody : public HttpHandler {
 public:
  explicit EchoBody(std::shared_ptr<HttpResponder> to) : to_(std::move(to)) {}
  void OnBody(std::string_view part) override { body_ += part; }
  void OnEnd() override {
    HttpReply reply;
    reply.body = std::move(body_);
    to_->Send(std::move(reply));
  }

 private:
  const std::shared_ptr<HttpResponder> to_;
  std::string body_;
};

// The server of all units.
class Server {
 public:
  Server() : name_(absl::StrCat("floe_connection_fuzzer_", getpid())) {
    methods_.AddUnary("/t/Echo", [](const CallHead&, const Message& message, const auto& to) {
      to->Write(std::string(message.bytes));
      to->Finish(absl::OkStatus());
    });
    methods_.AddStream("/t/Chat", [](const CallHead&, std::shared_ptr<Responder> to) {
      return std::make_shared<EchoStream>(std::move(to));
    });
    routes_.Add(SimpleRoute("/hello", MethodRole::kHealth, [](const HttpHead&) {
      HttpReply reply;
      reply.body = "hello";
      return reply;
    }));
    routes_.Add({"POST", "/echo/{name}", MethodRole::kInference, 4096,
                 [](const HttpHead&, std::shared_ptr<HttpResponder> to) {
                   return std::make_shared<EchoBody>(std::move(to));
                 }});
    TransportOptions options;
    options.max_message_bytes = 1 << 20;
    options.compression = true;
    transport_ = MakeNetTransport(methods_, options, {}, &routes_);
    if (const absl::Status status = transport_->Start({{"unix-abstract:" + name_}}); !status.ok())
      Fail(std::string(status.message()));
  }

  // What comes back for `bytes`, to the end of the connection. The first `pause` of them are sent a
  // moment before the rest, which may be behind an answer then.
  std::string Ask(std::string_view bytes, size_t pause = 0) const {
    const int fd = Connect();
    std::string answer;
    std::array<char, 4096> part;
    if (pause > 0) {
      const ssize_t sent = send(fd, bytes.data(), pause, MSG_NOSIGNAL);
      bytes.remove_prefix(sent < 0 ? bytes.size() : static_cast<size_t>(sent));
      pollfd answered = {fd, POLLIN, 0};
      (void)poll(&answered, 1, 1);
    }
    if (bytes.empty()) shutdown(fd, SHUT_WR);
    for (;;) {
      pollfd ready = {fd, static_cast<short>(POLLIN | (bytes.empty() ? 0 : POLLOUT)), 0};
      constexpr int kPatienceMillis = 20'000;
      if (poll(&ready, 1, kPatienceMillis) <= 0) Fail("the connection does not end");
      if ((ready.revents & POLLOUT) != 0 && !bytes.empty()) {
        const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        bytes.remove_prefix(sent < 0 ? bytes.size() : static_cast<size_t>(sent));
        if (bytes.empty()) shutdown(fd, SHUT_WR);
      }
      if ((ready.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      const ssize_t size = recv(fd, part.data(), part.size(), MSG_DONTWAIT);
      if (size <= 0) break;
      answer.append(part.data(), static_cast<size_t>(size));
    }
    close(fd);
    return answer;
  }

 private:
  int Connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path + 1, name_.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0)
      Fail("the server accepts no more");
    return fd;
  }

  const std::string name_;
  TestMethods methods_;
  HttpRoutes routes_;
  std::unique_ptr<NetTransport> transport_;
};

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame + std::string(payload);
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) {
  static const auto& server = *new Server();
  static size_t units = 0;
  constexpr size_t kPlaces = 8;
  const size_t place = units % (2 * kPlaces);  // half of them are sent in two parts
  const std::string answer =
      server.Ask(bytes, place < kPlaces ? bytes.size() * place / kPlaces : 0);
  Touch(answer.data(), answer.size());
  if (units++ % 64 == 0 &&
      server.Ask("GET /hello HTTP/1.0\r\n\r\n").find("hello") == std::string::npos)
    Fail("others are not served");
  return answer.empty() ? absl::NotFoundError("no answer") : absl::OkStatus();
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  // Heads in HPACK: of a call, of a request, a reference to the table, an entry, trailers.
  static const std::string kHead = std::string(
                                       "\x83\x86\x04\x07/t/Echo\x01\x01"
                                       "a\x0f\x10\x10"
                                       "application/grpc") +
                                   std::string("\0\x02te\x08trailers", 13);
  static const std::string kPayloads[] = {"",
                                          std::string(5, '\0'),
                                          std::string("\0\0\0\0\3abc", 8),
                                          std::string("\1\0\0\0\3abc", 8),
                                          std::string("\0\7\xff\xff\xff", 5),
                                          kHead,
                                          "\x82\x86\x04\x06/hello\x01\x01\x61",
                                          "\xbe",
                                          std::string("\x40\x01x\x01y", 5),
                                          std::string("\0\0\0\0", 4),
                                          "\x7f\xff\xff\xff",
                                          "12345678",
                                          std::string("\0\3\0\0\0\1", 6),
                                          std::string("\0\4\x7f\xff\xff\xff", 6)};
  if (bytes.empty() || random.OneIn(3)) return MutateBytes(bytes, max_size);
  const std::string frame =
      Frame(static_cast<uint8_t>(random.Below(11)),
            static_cast<uint8_t>(random.OneIn(2) ? 5 : random.Below(64)),
            static_cast<uint32_t>(random.OneIn(4) ? random.Below(5) : 1 + 2 * random.Below(4)),
            random.Pick(kPayloads));
  std::string made = bytes;
  if (random.OneIn(8)) made = std::string(kPreface) + Frame(4, 0, 0, "");
  if (random.OneIn(2)) return made + frame;
  return made.insert(static_cast<size_t>(random.Below(made.size() + 1)), frame);
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return random.OneIn(2) ? one + other : SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
