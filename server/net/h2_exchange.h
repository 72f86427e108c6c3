// H2Exchange: a plain HTTP request and its answer in a stream of HTTP/2.
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

class H2Session;

// The session holds it while its stream is open. A request with a body counts as a call until its
// stream is closed. One class: a request, as its session, its handler and other threads see it.
// Threading: HttpResponder on any thread, the rest on the session's loop.
class H2Exchange final : public HttpResponder,
                         public Loop::Task,
                         public std::enable_shared_from_this<H2Exchange> {
 public:
  H2Exchange(H2Session* session, int32_t stream);
  ~H2Exchange() override;

  // Opens its route, or is answered.
  void Open(HttpHead head, bool ends);
  void OnBody(std::string_view part);
  void OnEnd();
  // The stream is gone.
  void OnClosed();

  int32_t stream() const { return stream_; }
  bool is_head() const { return is_head_; }
  // What is to be sent; after Run, until the stream is closed.
  bool began_reply = false;  // the session's: its fields are submitted
  const HttpReply& reply() const { return reply_; }
  bool has_length() const { return has_length_; }
  size_t Available() const { return out_.size() - sent_; }
  bool IsEnding() const { return ended_; }
  size_t CopyOut(uint8_t* to, size_t most);

  // HttpResponder.
  void Send(HttpReply&& reply) override;
  void Begin(HttpReply&& head) override;
  void Write(std::string&& part) override;
  void End() override;
  size_t Unsent() const override { return unsent_.load(); }
  void Cut() override;
  // The server stops: a stream ends.
  void EndStream();
  // Task: what other threads wrote reaches the session.
  void Run() override;

 private:
  // What was said and has not reached the session.
  struct Said {
    bool began = false, has_length = false, ended = false, cut = false;
    HttpReply head;
    std::string body;
  };

  absl::Status Admit();
  void Refuse(CallRefusal cause, HttpReply reply);
  void Post() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  NetShared& shared_;
  const std::shared_ptr<Loop> loop_;
  H2Session* session_;  // null: the stream is gone
  const int32_t stream_;
  bool is_head_ = false, in_gate_ = false;
  std::shared_ptr<HttpHandler> handler_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  CallSeat seat_;
  int64_t body_bytes_ = 0, max_body_bytes_ = 0;

  HttpReply reply_;
  std::string peer_, path_;  // of the request
  std::string out_;
  size_t sent_ = 0;
  bool began_ = false, has_length_ = false, ended_ = false;
  std::atomic<size_t> unsent_{0};

  Mutex mutex_;
  Said said_ ABSL_GUARDED_BY(mutex_);
  bool posted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
