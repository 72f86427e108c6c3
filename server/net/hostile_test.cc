// Clients that keep to no rule, over real sockets: what they get, and that others are served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/net/h2_client_for_test.h"
#include "server/net/net_transport.h"
#include "server/net/tls_context.h"
#include "server/net/tls_for_test.h"
#include "server/transport/tests/methods_for_test.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Says more than a window holds, and takes what comes.
class Talker : public CallHandler {
 public:
  explicit Talker(const std::shared_ptr<Responder>& to) {
    to->Write(std::string(size_t{200} << 10, 'x'));
  }
  void OnMessage(Message) override {}
};

class BodyHandler : public HttpHandler {
 public:
  explicit BodyHandler(std::shared_ptr<HttpResponder> to) : to_(std::move(to)) {}
  void OnEnd() override { to_->Send(HttpReply{.status = 200, .body = "read"}); }

 private:
  const std::shared_ptr<HttpResponder> to_;
};

class Hostile : public testing::Test {
 protected:
  Hostile() {
    (void)std::signal(SIGPIPE, SIG_IGN);  // as the server does: OpenSSL writes to what is closed
    options_.clock = &clock_;
    methods_.AddUnary("/t/Echo", [](const CallHead&, const Message& message, const auto& to) {
      to->Write(std::string(message.bytes));
      to->Finish(absl::OkStatus());
    });
    methods_.AddStream("/t/Talk", [](const CallHead&, const std::shared_ptr<Responder>& to) {
      return std::make_shared<Talker>(to);
    });
    routes_.Add({"POST", "/post", MethodRole::kHealth, 1000,
                 [](const HttpHead&, std::shared_ptr<HttpResponder> to) {
                   return std::make_shared<BodyHandler>(std::move(to));
                 }});
    routes_.Add(SimpleRoute("/secret", MethodRole::kHealth, [this](const HttpHead&) {
      ++told_;
      return HttpReply{.status = 200, .body = "secret"};
    }));
  }
  void Open(const TlsSpec& tls = {}) {
    server_ = MakeNetTransport(methods_, options_, {}, &routes_);
    ListenerSpec listener{"127.0.0.1:0"};
    listener.tls = tls;
    const absl::Status started = server_->Start({listener});
    ASSERT_TRUE(started.ok()) << started;
    address_ = server_->addresses().at(0);
  }
  void OpenTls() {
    const TlsConfig config{.certificate = folder_.Write("cert", identity_.CertificatePem()),
                           .key = folder_.Write("key", identity_.KeyPem())};
    auto made = TlsContext::Make(config);
    ASSERT_TRUE(made.ok()) << made.status();
    Open({[context = *made] { return context->Snapshot(); }});
  }
  // What a client says first.
  std::string Hello() {
    const std::shared_ptr<SSL> ssl(SSL_new(client_.get()), SSL_free);
    BIO* const out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), out);
    SSL_connect(ssl.get());
    char* bytes = nullptr;
    const auto size = BIO_get_mem_data(out, &bytes);
    return {bytes, static_cast<size_t>(size)};
  }
  // Whether a request over a connection of its own is answered.
  bool Shake() {
    const int fd = ConnectTo(address_);
    const std::shared_ptr<SSL> ssl(SSL_new(client_.get()), SSL_free);
    SSL_set_fd(ssl.get(), fd);
    const std::string request = "GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    bool answered = false;
    if (SSL_connect(ssl.get()) == 1) {
      SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
      char byte;
      while (SSL_read(ssl.get(), &byte, 1) == 1) answered = true;
    }
    close(fd);
    return answered;
  }
  // Calls of new clients, which are served, make each loop turn: there are two at most.
  void TurnLoops() {
    for (int i = 0; i < 2; ++i) {
      H2Client neighbour(address_);
      EXPECT_EQ(neighbour.Await(neighbour.Call("/t/Echo", Framed("x"))).code(), "0");
    }
  }
  void AwaitClosed() {
    while (server_->connections().open > 0) std::this_thread::yield();
  }

  FakeClock clock_;
  TestMethods methods_;
  HttpRoutes routes_;
  std::atomic<int> told_{0};
  TransportOptions options_;
  const tls_test::Identity identity_ = tls_test::Issue({});
  const std::shared_ptr<SSL_CTX> client_ = tls_test::ClientContext(identity_);
  const tls_test::Folder folder_;
  std::unique_ptr<NetTransport> server_;
  std::string address_;
};

TEST_F(Hostile, AStreamThatIsLeftUnreadEndsItsConnection) {
  options_.connections.send_timeout = std::chrono::seconds(60);
  Open();
  H2Client reads(address_), leaves(address_);
  const int32_t read = reads.Call("/t/Talk", "", {}, /*more=*/true);
  EXPECT_GT(reads.AwaitBody(read, size_t{200} << 10).body.size(), size_t{200} << 10);
  leaves.Call("/t/Talk", "", {}, /*more=*/true);
  TurnLoops();
  clock_.Advance(std::chrono::seconds(59));
  TurnLoops();
  EXPECT_EQ(server_->ends().count(EndReason::kUnread), 0);
  clock_.Advance(std::chrono::seconds(2));
  TurnLoops();
  leaves.AwaitEnd();
  EXPECT_EQ(server_->ends().count(EndReason::kUnread), 1);
  EXPECT_EQ(reads.Await(reads.Call("/t/Echo", Framed("x"))).code(), "0");
}

TEST_F(Hostile, HalfOpenHandshakesHaveTheirTime) {
  OpenTls();
  std::vector<std::unique_ptr<RawSocket>> halves;
  for (int i = 0; i < 50; ++i) {
    halves.push_back(std::make_unique<RawSocket>(address_));
    // The beginning of a record with a ClientHello; the rest does not come.
    if (i > 10) halves.back()->Send({"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11});
  }
  EXPECT_TRUE(Shake() && Shake()) << "others meanwhile";
  EXPECT_EQ(server_->ends().count(EndReason::kHandshake), 0);
  clock_.Advance(std::chrono::seconds(21));
  EXPECT_TRUE(Shake() && Shake());
  for (const auto& half : halves) EXPECT_EQ(half->ReadAll(), "");
  EXPECT_EQ(server_->ends().count(EndReason::kHandshake), 50);
  AwaitClosed();
}

TEST_F(Hostile, HandshakesWithoutEndLeaveNothingBehind) {
  OpenTls();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(Shake());
    RawSocket(address_).Send(Hello());
    RawSocket plain(address_);
    plain.Send("GET /secret HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(plain.ReadAll().find("secret"), std::string::npos);
  }
  EXPECT_TRUE(Shake());
  AwaitClosed();
  EXPECT_EQ(server_->connections().accepted, 151);
  EXPECT_EQ(server_->calls().calls, 0);
  EXPECT_EQ(told_, 0);
}

// Each is one request to some readers, and two to others. The second must not be answered.
TEST_F(Hostile, RequestsThatOthersReadAsTwoAreRefused) {
  Open();
  const std::string hidden = "GET /secret HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string in_chunk = absl::StrCat("0\r\n\r\n", hidden);
  int64_t refused = 0;
  for (const std::string& lines : {
           absl::StrCat("Content-Length: ", in_chunk.size(), "\r\nTransfer-Encoding: chunked\r\n"),
           absl::StrCat("Transfer-Encoding: chunked\r\nContent-Length: ", in_chunk.size(), "\r\n"),
           std::string("Content-Length: 5\r\nContent-Length: 0\r\n"),
           std::string("Content-Length: 5, 0\r\n"),
           std::string("Content-Length: +0\r\n"),
           std::string("Content-Length : 5\r\n"),
           std::string("Transfer-Encoding: xchunked\r\n"),
           std::string("Transfer-Encoding: gzip, chunked\r\n"),
           std::string("Transfer-Encoding: chunked, chunked\r\n"),
           std::string("Transfer-Encoding:\r\n chunked\r\n"),
           std::string("Transfer-Encoding\t: chunked\r\n"),
           std::string("X: a\nTransfer-Encoding: chunked\r\n"),
           std::string("X: a\rTransfer-Encoding: chunked\r\n"),
           std::string("X: a\0b\r\n", 8),
       }) {
    RawSocket client(address_);
    client.Send(absl::StrCat("POST /post HTTP/1.1\r\nHost: a\r\n", lines, "\r\n", in_chunk));
    const std::string said = client.ReadAll();
    EXPECT_TRUE(said.starts_with("HTTP/1.1 400 ") || said.starts_with("HTTP/1.1 501 ")) << said;
    EXPECT_EQ(said.rfind("HTTP/1.1 "), 0u) << lines << "\n" << said;
    EXPECT_EQ(server_->ends().count(EndReason::kStranger), ++refused) << lines;
  }
  for (const char* size : {"0x0", "+0", " 0", "0 ", "-0"}) {
    RawSocket client(address_);
    client.Send(absl::StrCat("POST /post HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                             size, "\r\n\r\n", hidden));
    client.StopSending();
    const std::string said = client.ReadAll();
    EXPECT_THAT(said, StartsWith("HTTP/1.1 400 ")) << size;
    EXPECT_EQ(said.rfind("HTTP/1.1 "), 0u) << size << "\n" << said;
    EXPECT_EQ(server_->ends().count(EndReason::kStranger), ++refused) << size;
  }
  EXPECT_EQ(told_, 0);
  // One that all read as two gets two answers.
  RawSocket honest(address_);
  honest.Send(absl::StrCat("POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
                           "GET /secret HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(honest.ReadAll(), HasSubstr("secret"));
  EXPECT_EQ(told_, 1);
}

TEST_F(Hostile, HeadsThatDoNotEndHaveTheirTime) {
  Open();
  RawSocket one(address_), other(address_);
  one.Send("GET /secret HTTP/1.1\r\nHost: a\r\nX: ");
  other.Send("POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
  TurnLoops();
  clock_.Advance(std::chrono::seconds(21));
  TurnLoops();
  EXPECT_EQ(one.ReadAll(), "");
  EXPECT_EQ(other.ReadAll(), "");
  EXPECT_EQ(server_->ends().count(EndReason::kHandshake), 2);
  AwaitClosed();
}

}  // namespace
}  // namespace floe::server
