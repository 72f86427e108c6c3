// What a client reads, byte by byte, while the server drains.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "server/net/net_transport.h"
#include "server/transport/tests/methods_for_test.h"

namespace floe::server {
namespace {

constexpr size_t kReplyBytes = size_t{8} << 20;
constexpr uint32_t kMostFrameBytes = (1 << 24) - 1;
enum FrameType : uint8_t { kData = 0, kHeaders = 1, kSettings = 4, kGoAway = 7, kWindowUpdate = 8 };
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes));
  return text;
}
uint32_t Number(const std::string& bytes) {
  uint32_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

struct Frame {
  uint32_t size = 0;
  uint8_t type = 0, flags = 0;
  uint32_t stream = 0;
};

// A client of HTTP/2 (RFC 9113) that looks at every frame.
class RawClient {
 public:
  explicit RawClient(const std::string& server) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port =
        htons(static_cast<uint16_t>(std::stoi(server.substr(server.rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    constexpr uint32_t kInitialWindow = 4, kFrameSize = 5;
    SendFrame(kSettings, 0, 0,
              BigEndian(kInitialWindow, 2) + BigEndian(INT32_MAX, 4) + BigEndian(kFrameSize, 2) +
                  BigEndian(kMostFrameBytes, 4));
    SendFrame(kWindowUpdate, 0, 0, BigEndian(INT32_MAX - 65535, 4));
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { close(fd_); }

  void Call(uint32_t stream, const std::string& path) {
    const auto text = [](const std::string& t) { return static_cast<char>(t.size()) + t; };
    // POST, http, path, authority, content-type and te (RFC 7541, literal without indexing).
    const std::string headers = std::string("\x83\x86\x04") + text(path) + "\x01" + text("a") +
                                "\x0f\x10" + text("application/grpc") + std::string(1, '\0') +
                                text("te") + text("trailers");
    SendFrame(kHeaders, kEndHeaders, stream, headers);
    SendFrame(kData, kEndStream, stream, std::string(5, '\0'));  // an empty message
  }

  // False at the end of the connection. What a frame holds is skipped.
  bool Next(Frame* frame) {
    std::string head(9, '\0');
    if (!Read(head.data(), head.size())) return false;
    *frame = {Number(head.substr(0, 3)), static_cast<uint8_t>(head[3]),
              static_cast<uint8_t>(head[4]), Number(head.substr(5))};
    for (size_t left = frame->size; left > 0;) {
      const size_t part = std::min(left, buffer_.size());
      if (!Read(buffer_.data(), part)) return false;
      left -= part;
    }
    return true;
  }

 private:
  void Send(const std::string& bytes) {
    ASSERT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void SendFrame(FrameType type, uint8_t flags, uint32_t stream, const std::string& payload) {
    Send(BigEndian(static_cast<uint32_t>(payload.size()), 3) + static_cast<char>(type) +
         static_cast<char>(flags) + BigEndian(stream, 4) + payload);
  }
  bool Read(char* to, size_t bytes) {
    return recv(fd_, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  }

  const int fd_;
  std::vector<char> buffer_ = std::vector<char>(size_t{1} << 20);
};

using Drain = testing::Test;

TEST_F(Drain, AskingToLeaveLeavesLargeRepliesWhole) {
  TestMethods methods;
  methods.AddUnary("/test/Large", [](const CallHead&, const Message&, const auto& responder) {
    responder->Write(std::string(kReplyBytes, '\xee'));
    responder->Finish(absl::OkStatus());
  });
  TransportOptions options;
  options.time_to_leave = std::chrono::minutes(1);  // enough for all the calls, on any machine
  const auto server = MakeNetTransport(methods, options);
  ASSERT_TRUE(server->Start({{"127.0.0.1:0"}}).ok());
  RawClient client(server->addresses().at(0));
  constexpr uint32_t kCalls = 64;
  const auto stream_of = [](uint32_t call) { return 2 * call + 1; };
  std::array<size_t, kCalls> got = {};
  std::thread shutting;
  client.Call(stream_of(0), "/test/Large");
  uint32_t begun = 1, ended = 0, asked = 0;
  Frame frame;
  while (ended < kCalls && client.Next(&frame)) {
    const bool sound = frame.type <= 9 && frame.stream <= stream_of(begun - 1);
    EXPECT_TRUE(sound) << "no frame of HTTP/2: type " << int{frame.type};
    if (!sound) break;
    if (frame.type == kGoAway) ++asked;
    if (frame.stream == 0) continue;
    if (frame.type == kData) got.at(frame.stream / 2) += frame.size;
    if (frame.type != kHeaders || (frame.flags & kEndStream) == 0) continue;
    EXPECT_EQ(got.at(frame.stream / 2), 5 + kReplyBytes) << "call " << frame.stream / 2;
    ++ended;
    // Beyond the time in which a new connection is not asked.
    if (ended == 8) shutting = std::thread([&] { server->Shutdown(TimePoint::max()); });
    // Calls that were on their way are served: there is one under way at any time.
    while (begun < kCalls && begun < ended + 2) client.Call(stream_of(begun++), "/test/Large");
  }
  EXPECT_EQ(ended, kCalls);
  EXPECT_LE(asked, 2u);
  if (shutting.joinable()) {
    while (client.Next(&frame)) {
    }
    shutting.join();
  }
}

}  // namespace
}  // namespace floe::server
