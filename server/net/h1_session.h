// H1Session: HTTP/1.1 over a connection, one request after another.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "server/api/http.h"
#include "server/net/connection.h"
#include "server/net/h1_parser.h"

namespace floe::server {

// Threading: the connection's loop.
class H1Session final : public Protocol {
 public:
  explicit H1Session(Connection* connection);
  ~H1Session() override;

  bool Receive(std::string_view bytes) override;
  void Fill(std::string* out, size_t most) override;
  bool IsOver() const override;
  void OnGone() override;
  void AskToLeave() override;
  void EndStreams() override;
  void TakeNoMore() override { AskToLeave(); }

 private:
  class Exchange;
  // Of requests that came before the answer to the first one.
  static constexpr size_t kMostWaiting = size_t{64} << 10;

  static constexpr int64_t kMostDropped = int64_t{64} << 10;  // of the body of a refused request
  static constexpr size_t kMostKept = size_t{64} << 10;       // of the memory of an answer

  void Step();
  void Open();
  void TakeBody(std::string_view part);
  void NoteError(const H1Parser::Error& error) const;
  void RefuseBody(const absl::Status& status);
  void Answered(Exchange* exchange);
  void Linger();
  void SetTimer();

  Connection& connection_;
  H1Parser parser_;
  std::string waiting_;  // bytes that are not read yet
  std::string out_;
  size_t out_sent_ = 0;
  std::shared_ptr<Exchange> exchange_;  // the request that is being read or answered
  // Answered, and not wholly sent: they count among the calls in progress until then.
  std::vector<std::shared_ptr<Exchange>> sending_;
  Timer timer_;  // of a slow head or body, and of an idle connection
  TimePoint head_began_ = TimePoint::max();
  EndReason slow_ = EndReason::kIdle;  // what timer_ is for
  bool closing_ = false, gone_ = false;
  bool leaves_ = false;    // after the answer that is under way
  bool stepping_ = false;  // Step is at work: an answer may end a request inside it
  // The answer came before the request's end, whose rest is read and dropped until the client
  // closes the connection: closed by us, what it sends then would cost it the answer.
  bool lingers_ = false;
  TimePoint lingers_until_;
};

}  // namespace floe::server
