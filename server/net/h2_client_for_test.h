// A client of HTTP/2 for tests: nghttp2's session over a blocking socket. It knows no gRPC library,
// so that its tests run where races are looked for.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace floe::server {

inline std::string Framed(const std::string& message, char flag = 0) {
  std::string framed(1, flag);
  for (int shift = 24; shift >= 0; shift -= 8) framed += static_cast<char>(message.size() >> shift);
  return framed + message;
}

inline int ConnectTo(const std::string& server) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(server.substr(server.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

// Bytes out and in.
class RawSocket {
 public:
  explicit RawSocket(const std::string& server) : fd_(ConnectTo(server)) {}
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  ~RawSocket() { close(fd_); }
  void Send(std::string_view bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void StopSending() const { shutdown(fd_, SHUT_WR); }
  // Up to the first `text`, or to the end of the connection.
  std::string ReadUntil(std::string_view text) const {
    std::string all;
    for (char c; all.find(text) == std::string::npos && recv(fd_, &c, 1, 0) > 0;) all.push_back(c);
    return all;
  }
  // To the end of the connection.
  std::string ReadAll() const {
    std::string all;
    char buffer[4096];
    for (ssize_t size; (size = recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<size_t>(size));
    return all;
  }

 private:
  const int fd_;
};

class H2Client {
 public:
  struct Answer {
    std::map<std::string, std::string> fields;  // of heads and trailers
    std::string body;
    bool over = false;
    uint32_t reset = 0;  // the code of RST_STREAM
    std::string code() const {
      const auto found = fields.find("grpc-status");
      return found == fields.end() ? "none" : found->second;
    }
    std::string message() const { return body.size() < 5 ? "none" : body.substr(5); }
  };
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // To "127.0.0.1:port".
  explicit H2Client(const std::string& server) : fd_(ConnectTo(server)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  H2Client(const H2Client&) = delete;
  H2Client& operator=(const H2Client&) = delete;
  ~H2Client() {
    nghttp2_session_del(session_);
    close(fd_);
  }

  // Begins a call; `body` is framed, and ends it unless `more`.
  int32_t Call(const std::string& path, const std::string& body, const Fields& extra = {},
               bool more = false) {
    Fields fields = {{":method", "POST"}, {":scheme", "http"},
                     {":path", path},     {":authority", "test"},
                     {"te", "trailers"},  {"content-type", "application/grpc"}};
    fields.insert(fields.end(), extra.begin(), extra.end());
    return Ask(fields, body, more);
  }
  int32_t Ask(const Fields& fields, const std::string& body, bool more = false) {
    std::vector<nghttp2_nv> list;
    for (const auto& [name, value] : fields)
      list.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(),
                      value.size(), NGHTTP2_NV_FLAG_NONE});
    nghttp2_data_provider data;
    data.read_callback = Read;
    const int32_t stream =
        nghttp2_submit_request(session_, nullptr, list.data(), list.size(), &data, nullptr);
    sent_[stream] = {body, more};
    Flush();
    return stream;
  }
  void SendMore(int32_t stream, const std::string& bytes, bool more) {
    sent_[stream].bytes += bytes;
    sent_[stream].more = more;
    nghttp2_session_resume_data(session_, stream);
    Flush();
  }
  void Reset(int32_t stream) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    Flush();
  }
  void Ping() {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    Flush();
  }
  // Bytes past the session.
  bool SendRaw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(size));
    }
    return true;
  }
  void StopSending() { shutdown(fd_, SHUT_WR); }

  // Reads until the call is over, or the connection.
  const Answer& Await(int32_t stream) {
    while (!answers_[stream].over && Turn()) {
    }
    return answers_[stream];
  }
  // Reads until so many bytes of its body are there.
  const Answer& AwaitBody(int32_t stream, size_t bytes) {
    while (answers_[stream].body.size() < bytes && !answers_[stream].over && Turn()) {
    }
    return answers_[stream];
  }
  // Reads to the end of the connection.
  void AwaitEnd() {
    while (Turn()) {
    }
  }
  bool Turn() {
    char buffer[65536];
    const ssize_t size = recv(fd_, buffer, sizeof buffer, 0);
    if (size <= 0) return false;
    if (nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(buffer),
                                 static_cast<size_t>(size)) < 0)
      return false;
    Flush();
    return true;
  }
  // What the server would take now of the call's bytes.
  int32_t Window(int32_t stream) const {
    return nghttp2_session_get_stream_remote_window_size(session_, stream);
  }
  const Answer& answer(int32_t stream) { return answers_[stream]; }
  int goaways = 0;
  std::string goaway_text;

 private:
  struct Sent {
    std::string bytes;
    bool more = false;
  };

  static H2Client& Of(void* user) { return *static_cast<H2Client*>(user); }
  static ssize_t Read(nghttp2_session*, int32_t stream, uint8_t* to, size_t most, uint32_t* flags,
                      nghttp2_data_source*, void* user) {
    Sent& sent = Of(user).sent_[stream];
    const size_t part = std::min(most, sent.bytes.size());
    if (part == 0 && sent.more) return NGHTTP2_ERR_DEFERRED;
    sent.bytes.copy(reinterpret_cast<char*>(to), part);
    sent.bytes.erase(0, part);
    if (sent.bytes.empty() && !sent.more) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(part);
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Of(user)
        .answers_[frame->hd.stream_id]
        .fields[{reinterpret_cast<const char*>(name), name_size}] = {
        reinterpret_cast<const char*>(value), value_size};
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size,
                    void* user) {
    Of(user).answers_[stream].body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t stream, uint32_t code, void* user) {
    Of(user).answers_[stream].over = true;
    Of(user).answers_[stream].reset = code;
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    ++Of(user).goaways;
    Of(user).goaway_text = {reinterpret_cast<const char*>(frame->goaway.opaque_data),
                            frame->goaway.opaque_data_len};
    return 0;
  }
  void Flush() {
    const uint8_t* bytes = nullptr;
    ssize_t size;
    while ((size = nghttp2_session_mem_send(session_, &bytes)) > 0)
      SendRaw({reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)});
  }

  const int fd_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Sent> sent_;
  std::map<int32_t, Answer> answers_;
};

}  // namespace floe::server
