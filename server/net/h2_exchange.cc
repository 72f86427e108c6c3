#include "server/net/h2_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/call_watch.h"
#include "server/net/h2_session.h"
#include "server/transport/call_text.h"

namespace floe::server {

H2Exchange::H2Exchange(H2Session* session, int32_t stream)
    : shared_(session->shared()), loop_(session->loop()), session_(session), stream_(stream) {}

H2Exchange::~H2Exchange() {
  seat_.Leave();
  if (in_gate_) shared_.gate.Leave();
}

absl::Status H2Exchange::Admit() {
  if (!shared_.gate.Enter()) return ShuttingDownError();
  in_gate_ = true;
  return shared_.book.Take(peer_, 0, &seat_);
}

void H2Exchange::Open(HttpHead head, bool ends) {
  is_head_ = head.method == "HEAD";
  head.cancel = cancel_;
  if (ends) head.content_length = 0;
  peer_ = head.peer;
  path_ = head.path;
  handler_ = shared_.routes->Open(std::move(head), shared_from_this(), &max_body_bytes_);
  if (handler_ == nullptr) return;
  if (max_body_bytes_ > 0)
    if (const absl::Status status = Admit(); !status.ok())
      return Refuse(CallRefusal::kLimit, ErrorReply(status));
  if (ends) OnEnd();
}

// The answer takes the place of the handler's.
void H2Exchange::Refuse(CallRefusal cause, HttpReply reply) {
  NoteRefused(*shared_.routes, cause, {peer_, path_}, reply);
  Send(std::move(reply));
  std::exchange(handler_, nullptr)->OnDone();
}

void H2Exchange::OnBody(std::string_view part) {
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

void H2Exchange::OnEnd() {
  if (handler_ != nullptr) handler_->OnEnd();
}

void H2Exchange::OnClosed() {
  session_ = nullptr;
  cancel_->Cancel();
  if (handler_ != nullptr) std::exchange(handler_, nullptr)->OnDone();
}

size_t H2Exchange::CopyOut(uint8_t* to, size_t most) {
  const size_t part = std::min(most, Available());
  std::memcpy(to, out_.data() + sent_, part);
  sent_ += part;
  if (!has_length_) unsent_ -= part;
  if (sent_ == out_.size()) {
    std::string().swap(out_);
    sent_ = 0;
  }
  return part;
}

void H2Exchange::Send(HttpReply&& reply) {
  if (in_gate_)
    if (const absl::Status paid = seat_.AddReply(static_cast<int64_t>(reply.body.size()));
        !paid.ok())
      reply = ErrorReply(paid);
  MutexLock lock(mutex_);
  said_.has_length = true;
  said_.ended = true;
  said_.began = true;
  said_.body = std::move(reply.body);
  said_.head = std::move(reply);
  Post();
}

void H2Exchange::Begin(HttpReply&& head) {
  MutexLock lock(mutex_);
  if (said_.ended) return;
  said_.began = true;
  unsent_ += head.body.size();
  said_.body = std::move(head.body);
  said_.head = std::move(head);
  Post();
}

void H2Exchange::Write(std::string&& part) {
  MutexLock lock(mutex_);
  if (said_.ended) return;
  unsent_ += part.size();
  said_.body += part;
  Post();
}

void H2Exchange::End() {
  MutexLock lock(mutex_);
  said_.ended = true;
  Post();
}

void H2Exchange::Cut() {
  MutexLock lock(mutex_);
  said_.ended = said_.cut = true;
  Post();
}

void H2Exchange::EndStream() {
  MutexLock lock(mutex_);
  if (!said_.began || said_.has_length) return;
  said_.ended = true;
  Post();
}

void H2Exchange::Post() {
  if (!std::exchange(posted_, true)) loop_->Post(shared_from_this());
}

void H2Exchange::Run() {
  {
    MutexLock lock(mutex_);
    posted_ = false;
    if (session_ == nullptr) return;
    if (said_.cut) return session_->Reset(this);
    if (ended_) return;
    if (said_.began && !std::exchange(began_, true)) {
      reply_ = std::move(said_.head);
      has_length_ = said_.has_length;
    }
    if (out_.empty())
      out_.swap(said_.body);
    else
      out_ += said_.body;
    said_.body.clear();
    ended_ = said_.ended;
  }
  if (began_) session_->Send(this);
}

}  // namespace floe::server
