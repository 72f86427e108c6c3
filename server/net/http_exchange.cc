// The request on its loop, and the ways of its answer from other threads.
#include "server/net/http_exchange.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/call_watch.h"
#include "server/transport/call_text.h"

namespace floe::server {

HttpExchange::HttpExchange(Carrier* carrier, NetShared* shared, std::shared_ptr<Loop> loop,
                           int32_t stream)
    : shared_(*shared), loop_(std::move(loop)), carrier_(carrier), stream_(stream) {}

HttpExchange::~HttpExchange() {
  seat_.Leave();
  if (in_gate_) shared_.gate.Leave();
}

absl::Status HttpExchange::Admit() {
  if (!shared_.gate.Enter()) return ShuttingDownError();
  in_gate_ = true;
  return shared_.book.Take(peer_, 0, &seat_);
}

void HttpExchange::Open(HttpHead head) {
  is_head_ = head.method == "HEAD";
  head.cancel = cancel_;
  peer_ = head.peer;
  path_ = head.path;
  handler_ = shared_.routes->Open(std::move(head), shared_from_this(), &max_body_bytes_);
  if (handler_ == nullptr || max_body_bytes_ == 0) return;
  if (const absl::Status status = Admit(); !status.ok())
    Refuse(CallRefusal::kLimit, ErrorReply(status));
}

// The answer takes the place of the handler's.
void HttpExchange::Refuse(CallRefusal cause, HttpReply reply) {
  NoteRefused(*shared_.routes, cause, {peer_, path_}, reply);
  Send(std::move(reply));
  std::exchange(handler_, nullptr)->OnDone();
}

void HttpExchange::OnBody(std::string_view part) {
  if (handler_ == nullptr) return;
  body_bytes_ += static_cast<int64_t>(part.size());
  if (body_bytes_ > max_body_bytes_) {
    HttpReply reply = JsonReply(
        413, absl::StrCat("{\"error\":\"the body has more than ", max_body_bytes_, " bytes\"}"));
    return Refuse(CallRefusal::kSize, std::move(reply));
  }
  if (const absl::Status paid = seat_.AddRequest(static_cast<int64_t>(part.size())); !paid.ok())
    return Refuse(CallRefusal::kLimit, ErrorReply(paid));
  handler_->OnBody(part);
}

void HttpExchange::OnEnd() {
  if (handler_ != nullptr) handler_->OnEnd();
}

void HttpExchange::OnClosed() {
  carrier_ = nullptr;
  cancel_->Cancel();
  if (handler_ != nullptr) std::exchange(handler_, nullptr)->OnDone();
}

void HttpExchange::OnSent(size_t bytes) {
  sent_ += bytes;
  if (!has_length_) unsent_ -= bytes;
  if (sent_ < out_.size()) return;
  std::string().swap(out_);
  sent_ = 0;
}

void HttpExchange::Send(HttpReply&& reply) {
  if (in_gate_)
    if (const absl::Status paid = seat_.AddReply(static_cast<int64_t>(reply.body.size()));
        !paid.ok())
      reply = ErrorReply(paid);
  MutexLock lock(mutex_);
  if (said_.ended) return;
  said_.began = said_.has_length = said_.ended = true;
  said_.body = std::move(reply.body);
  said_.head = std::move(reply);
  Post();
}

void HttpExchange::Begin(HttpReply&& head) {
  MutexLock lock(mutex_);
  if (said_.ended) return;
  said_.began = true;
  unsent_ += head.body.size();
  said_.body = std::move(head.body);
  said_.head = std::move(head);
  Post();
}

void HttpExchange::Write(std::string&& part) {
  MutexLock lock(mutex_);
  if (said_.ended || !said_.began) return;
  unsent_ += part.size();
  said_.body += part;
  Post();
}

void HttpExchange::End() {
  MutexLock lock(mutex_);
  said_.ended = true;
  Post();
}

void HttpExchange::Cut() {
  MutexLock lock(mutex_);
  said_.ended = said_.cut = true;
  Post();
}

void HttpExchange::EndStream() {
  MutexLock lock(mutex_);
  if (!said_.began || said_.has_length) return;
  said_.ended = true;
  Post();
}

void HttpExchange::Post() {
  if (!std::exchange(posted_, true)) loop_->Post(shared_from_this());
}

void HttpExchange::Run() {
  bool cut;
  {
    MutexLock lock(mutex_);
    posted_ = false;
    cut = said_.cut;
    if (carrier_ == nullptr || (ended_ && !cut)) return;
    if (!cut) TakeSaid();
  }
  if (cut)
    carrier_->Reset(this);
  else if (began_)
    carrier_->Send(this);
}

void HttpExchange::TakeSaid() {
  if (said_.began && !std::exchange(began_, true)) {
    reply_ = std::move(said_.head);
    has_length_ = said_.has_length;
    length_ = said_.body.size();
  }
  said_.ended |= is_head_ && began_;
  ended_ = said_.ended;
  if (is_head_ || !HasBody(reply_.status)) {
    if (!has_length_) unsent_ -= said_.body.size();
    said_.body.clear();
  }
  if (out_.empty())
    out_.swap(said_.body);
  else
    out_ += said_.body;
  said_.body.clear();
}

}  // namespace floe::server
