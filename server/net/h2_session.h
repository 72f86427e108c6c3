// H2Session: HTTP/2 over a connection, and the gRPC calls and plain requests in its streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/net/connection.h"
#include "server/net/flood_guard.h"
#include "server/net/grpc_call.h"
#include "server/net/http_exchange.h"

struct nghttp2_session;

namespace floe::server {

// One class: the callbacks of one nghttp2 session. Threading: the connection's loop.
class H2Session final : public Protocol, public HttpExchange::Carrier {
 public:
  // Sends its settings first.
  explicit H2Session(Connection* connection);
  ~H2Session() override;

  bool Receive(std::string_view bytes) override;
  std::span<char> Room() override;
  void Fill(std::string* out, size_t most) override;
  bool IsOver() const override;
  bool IsSuspect() const override { return guard_.IsSuspect(); }
  void OnGone() override;
  void AskToLeave() override;
  void EndStreams() override;
  void TakeNoMore() override;

  // For calls. What the call has to say is submitted; it is sent with the turn.
  void Send(GrpcCall* call);
  // Ends the call without an answer. Not counted as a reset that the client provoked.
  void Reset(GrpcCall* call) { ResetStream(call->stream()); }
  // The client leaves a stream's messages unread: ends the connection.
  void CloseUnread() { connection_.Close(EndReason::kUnread); }
  void ConsumeStream(int32_t stream, size_t bytes);
  // For plain requests: submits the answer's fields once, and lets its body go on.
  void Send(HttpExchange* exchange) override;
  void Reset(HttpExchange* exchange) override { ResetStream(exchange->stream()); }
  void SetWindow(int32_t stream, size_t bytes);
  NetShared& shared() { return connection_.shared(); }
  const std::shared_ptr<Loop>& loop() const { return connection_.loop(); }

 private:
  friend struct H2Callbacks;
  // Of the request whose header block is arriving; one at a time on a connection.
  struct Head {
    int32_t stream = 0;  // 0: none arrives
    TimePoint since;
    size_t bytes = 0;  // of all fields
    bool too_large = false, is_grpc = false, bad_timeout = false;
    bool has_fields = false,
         is_plain = false;  // after the fields of HTTP/2 itself: no method has its path
    std::string method, authority, path, encoding, accepts, authorization;
    HttpFields fields;  // of plain requests
    TimePoint deadline = TimePoint::max();
    CallHead call;
  };

  void Start();
  // False: the connection ends.
  bool OnField(std::string_view name, std::string_view value);
  void OnRegularField(std::string_view name, std::string_view value);
  void OnHead(bool ends);
  void OnRequestEnd(int32_t stream);
  absl::Status NoteRefused(CallRefusal cause, absl::Status status);
  absl::Status OpenCall(int32_t stream, std::shared_ptr<GrpcCall>* opened);
  void RefuseCall(int32_t stream, const std::string& id, const absl::Status& status);
  void OpenPlain(int32_t stream, bool ends);
  void ResetStream(int32_t stream);
  void AnswerPlainly(int32_t stream, const char* code);
  GrpcCall* Find(int32_t stream);
  std::shared_ptr<HttpExchange> FindPlain(int32_t stream) const;
  bool HasCalls() const { return !calls_.empty() || !exchanges_.empty(); }
  void OnStreamClosed(int32_t stream, bool whole);
  bool OnPing();
  // Ends the connection with GOAWAY. False.
  bool EndFor(EndReason reason, uint32_t code, std::string_view why);
  void OnTimer();
  void SetTimer();

  Connection& connection_;
  nghttp2_session* session_ = nullptr;
  Head head_;
  int32_t data_stream_ = 0;  // of the DATA frame that arrives
  size_t data_left_ = 0;     // of its bytes
  absl::flat_hash_map<int32_t, std::shared_ptr<GrpcCall>> calls_;
  absl::flat_hash_map<int32_t, std::shared_ptr<HttpExchange>> exchanges_;  // plain requests
  std::string* out_ = nullptr;                                             // within Fill
  size_t out_most_ = 0;
  FloodGuard guard_;

  Timer timer_;  // of all that follows
  const TimePoint began_;
  TimePoint idle_since_;
  TimePoint end_at_ = TimePoint::max();     // of the grace that calls have
  TimePoint ask_at_ = TimePoint::max();     // max connection age
  TimePoint pinged_ = TimePoint::max();     // when it was asked for a sign of life
  TimePoint last_ping_ = TimePoint::min();  // of the client's
  int ping_strikes_ = 0;
  bool settled_ = false;                // the client's settings have come
  bool asked_ = false, final_ = false;  // the two steps of GOAWAY
  bool broken_ = false, gone_ = false;
};

}  // namespace floe::server
