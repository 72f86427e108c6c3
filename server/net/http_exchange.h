// HttpExchange: a plain HTTP request and its answer, by whichever HTTP they come and go.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/mutex.h"
#include "server/api/http.h"
#include "server/net/loop.h"
#include "server/net/net_rules.h"

namespace floe::server {

// Its carrier holds it while its stream is open. A request with a body counts as a call until then.
// One class: a request, as its carrier, its handler and other threads see it.
// Threading: HttpResponder on any thread, the rest on the loop.
class HttpExchange final : public HttpResponder,
                           public Loop::Task,
                           public std::enable_shared_from_this<HttpExchange> {
 public:
  // The session that the request came by.
  class Carrier {
   public:
    virtual ~Carrier() = default;
    // There is more of the answer: its head at first, bytes of its body, or its end.
    virtual void Send(HttpExchange* exchange) = 0;
    // The answer ends where it is, as a broken one.
    virtual void Reset(HttpExchange* exchange) = 0;
  };

  // `stream`: what the carrier knows it by.
  HttpExchange(Carrier* carrier, NetShared* shared, std::shared_ptr<Loop> loop, int32_t stream = 0);
  ~HttpExchange() override;

  // Opens its route, or is answered.
  void Open(HttpHead head);
  // No body is taken where this is false, after Open or OnBody: the request is answered already.
  bool takes_body() const { return handler_ != nullptr; }
  int64_t max_body_bytes() const { return max_body_bytes_; }
  void OnBody(std::string_view part);
  void OnEnd();
  // The stream is gone: the answer is sent, or nobody waits for it.
  void OnClosed();

  int32_t stream() const { return stream_; }
  // What is to be sent; from the carrier's first Send until OnClosed.
  bool began_reply = false;                          // the carrier's: its head is sent
  const HttpReply& reply() const { return reply_; }  // without its body
  bool has_length() const { return has_length_; }
  size_t length() const { return length_; }
  std::string_view Body() const { return std::string_view(out_).substr(sent_); }  // so far
  void OnSent(size_t bytes);                                                      // of Body
  bool IsEnding() const { return ended_; }  // Body is the last of it

  // HttpResponder.
  void Send(HttpReply&& reply) override;
  void Begin(HttpReply&& head) override;
  void Write(std::string&& part) override;
  void End() override;
  size_t Unsent() const override { return unsent_.load(); }
  void Cut() override;
  // The server stops: a stream ends.
  void EndStream();
  // Task: what other threads wrote reaches the carrier.
  void Run() override;

 private:
  // What was said and has not reached the carrier.
  struct Said {
    bool began = false, has_length = false, ended = false, cut = false;
    HttpReply head;
    std::string body;
  };

  absl::Status Admit();
  void Refuse(CallRefusal cause, HttpReply reply);
  void Post() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeSaid() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  NetShared& shared_;
  const std::shared_ptr<Loop> loop_;
  Carrier* carrier_;  // null: the stream is gone
  const int32_t stream_;
  bool is_head_ = false, in_gate_ = false;
  std::shared_ptr<HttpHandler> handler_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  CallSeat seat_;
  int64_t body_bytes_ = 0, max_body_bytes_ = 0;

  HttpReply reply_;
  std::string peer_, path_;  // of the request
  std::string out_;
  size_t sent_ = 0, length_ = 0;
  bool began_ = false, has_length_ = false, ended_ = false;
  std::atomic<size_t> unsent_{0};

  Mutex mutex_;
  Said said_ ABSL_GUARDED_BY(mutex_);
  bool posted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
