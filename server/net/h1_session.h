// H1Session: HTTP/1.1 over a connection, one request after another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/net/connection.h"
#include "server/net/h1_parser.h"
#include "server/net/http_exchange.h"

namespace floe::server {

// One class: reading and answering decide together when the next request is read.
// Threading: the connection's loop.
class H1Session final : public Protocol, public HttpExchange::Carrier {
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

  // For requests: writes the answer's head once, and lets its body go on.
  void Send(HttpExchange* exchange) override;
  void Reset(HttpExchange* exchange) override;

 private:
  // Of requests that came before the answer to the first one.
  static constexpr size_t kMostWaiting = size_t{64} << 10;
  static constexpr int64_t kMostDropped = int64_t{64} << 10;  // of the body of a refused request

  void Step();
  void Open();
  void OnError(const H1Parser::Error& error);
  void FillBody(std::string* out, size_t most);
  void OnAnswered();
  void Linger();
  void SetTimer();

  Connection& connection_;
  H1Parser parser_;
  std::string waiting_;                     // bytes that are not read yet
  std::string out_;                         // heads, to be sent before the body
  std::shared_ptr<HttpExchange> exchange_;  // the request that is being read or answered
  std::optional<H1Response> response_;      // to it
  bool whole_ = false;                      // it has been read to its end
  bool drops_body_ = false;                 // nobody takes its body
  bool answered_ = false;                   // and the whole answer is sent
  Timer timer_;                             // of a slow head or body, and of an idle connection
  TimePoint head_began_ = TimePoint::max();
  EndReason slow_ = EndReason::kIdle;  // what timer_ is for
  bool closing_ = false, gone_ = false;
  bool leaves_ = false;  // after the answer that is under way
  // The answer came before the request's end, whose rest is read and dropped until the client
  // closes the connection: closed by us, what it sends then would cost it the answer.
  bool lingers_ = false;
  TimePoint lingers_until_;
};

}  // namespace floe::server
