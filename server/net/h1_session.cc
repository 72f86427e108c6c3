// Requests are answered in order: the next one is read when the answer to the last one is sent.
#include "server/net/h1_session.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "server/api/call_watch.h"

namespace floe::server {

H1Session::H1Session(Connection* connection)
    : connection_(*connection), timer_([this] { connection_.Close(slow_); }) {
  SetTimer();
}

H1Session::~H1Session() { OnGone(); }

bool H1Session::Receive(std::string_view bytes) {
  if (lingers_) return true;
  if (waiting_.size() + bytes.size() > kMostWaiting && exchange_ != nullptr && whole_) {
    connection_.Close(EndReason::kFrames);  // it asks without reading
    return false;
  }
  waiting_.append(bytes);
  Step();
  SetTimer();
  connection_.WantFlush();
  return !closing_ || lingers_;
}

void H1Session::Step() {
  size_t taken = 0;
  while (!closing_ && !lingers_ && (exchange_ == nullptr || !whole_)) {
    const H1Parser::Step step = parser_.Next(std::string_view(waiting_).substr(taken));
    taken += step.taken;
    switch (step.event) {
      case H1Parser::Event::kMore:
        waiting_.erase(0, taken);
        return;
      case H1Parser::Event::kHead:
        Open();
        break;
      case H1Parser::Event::kBody:
        if (drops_body_) break;
        exchange_->OnBody(step.body);
        if (!exchange_->takes_body()) Linger();
        break;
      case H1Parser::Event::kEnd:
        whole_ = true;
        parser_.Reset();
        exchange_->OnEnd();
        break;
      case H1Parser::Event::kError:
        OnError(parser_.error());
        break;
    }
  }
  waiting_.erase(0, taken);
  if (lingers_) waiting_.clear();
}

// The parser refuses a head, or a body that is too long or broken.
void H1Session::OnError(const H1Parser::Error& error) {
  HttpReply reply;
  reply.status = error.status;
  reply.body = error.reason;
  const bool of_body = exchange_ != nullptr;
  constexpr int kTooLarge = 413;
  NoteRefused(*connection_.shared().routes,
              error.status == kTooLarge ? CallRefusal::kSize : CallRefusal::kHead,
              {connection_.who().peer,
               of_body ? std::string_view(parser_.head().path) : std::string_view()},
              reply);
  connection_.NoteReason(EndReason::kStranger);
  if (!of_body || !exchange_->began_reply) out_ += H1Response::Refusal(error);
  closing_ = true;
  if (!of_body) return;
  std::exchange(exchange_, nullptr)->OnClosed();
  Linger();
}

void H1Session::Open() {
  const H1Head& head = parser_.head();
  HttpHead asked;
  asked.method = head.method;
  asked.path = head.path;
  asked.query = head.query;
  asked.fields = head.fields;
  SetCaller(connection_.shared(), connection_.who(), TakeAuthorization(&asked.fields), &asked);
  if (!head.chunked) asked.content_length = head.content_length.value_or(0);
  whole_ = drops_body_ = answered_ = false;
  response_.emplace(head);
  exchange_ = std::make_shared<HttpExchange>(this, &connection_.shared(), connection_.loop());
  exchange_->Open(std::move(asked));
  if (exchange_->takes_body()) {
    parser_.LimitBody(exchange_->max_body_bytes());
    if (head.expects_continue) out_ += H1Response::Continue();
    return;
  }
  // A short body of a request that was refused is read, so that the connection goes on.
  drops_body_ =
      !head.chunked && !head.expects_continue && head.content_length.value_or(0) <= kMostDropped;
  if (!drops_body_) Linger();
}

void H1Session::Send(HttpExchange* exchange) {
  connection_.WantFlush();
  if (std::exchange(exchange->began_reply, true)) return;
  if (leaves_) response_->Leave();
  const HttpReply& reply = exchange->reply();
  H1Fields fields = reply.fields;
  if (!reply.content_type.empty()) fields.emplace_back("content-type", reply.content_type);
  std::optional<int64_t> length;
  if (exchange->has_length()) length = static_cast<int64_t>(exchange->length());
  absl::StatusOr<std::string> head =
      response_->Head(reply.status, fields, length, std::time(nullptr));
  // A field of the method's that no answer may have.
  if (!head.ok()) head = response_->Head(500, {}, length, std::time(nullptr));
  if (head.ok()) out_ += *head;
}

void H1Session::Reset(HttpExchange* /*exchange*/) { connection_.Close(EndReason::kUnread); }

void H1Session::Fill(std::string* out, size_t most) {
  size_t before;
  do {
    if (gone_) return;
    before = out->size();
    *out += out_;
    out_.clear();
    if (exchange_ != nullptr && exchange_->began_reply) FillBody(out, most);
  } while (out->size() < most && (out->size() > before || !out_.empty()));
}

void H1Session::FillBody(std::string* out, size_t most) {
  const std::string_view part = exchange_->Body().substr(0, most - std::min(most, out->size()));
  response_->AppendPart(part, out);
  exchange_->OnSent(part.size());
  SetTimer();
  if (!exchange_->IsEnding() || !exchange_->Body().empty()) return;
  if (!std::exchange(answered_, true)) *out += response_->End();
  if (whole_ || (!drops_body_ && parser_.head().has_body())) OnAnswered();
}

// The answer is sent. A request that still arrives then is not read to its end.
void H1Session::OnAnswered() {
  const bool stays = whole_ && response_->keeps_connection() && !leaves_;
  if (!whole_) Linger();
  std::exchange(exchange_, nullptr)->OnClosed();
  if (stays)
    Step();
  else
    closing_ = true;
  if (exchange_ != nullptr) connection_.WantTurn();
  SetTimer();
}

void H1Session::Linger() {
  lingers_ = true;
  lingers_until_ = connection_.loop()->now() + connection_.shared().limits.times.handshake;
}

bool H1Session::IsOver() const { return gone_ || (closing_ && out_.empty() && !lingers_); }

void H1Session::OnGone() {
  if (std::exchange(gone_, true)) return;
  timer_.Clear();
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->OnClosed();
}

void H1Session::AskToLeave() {
  leaves_ = true;
  if (exchange_ != nullptr) return;
  closing_ = true;
  connection_.NoteReason(EndReason::kDrain);
  connection_.WantFlush();
}

void H1Session::EndStreams() {
  if (exchange_ != nullptr) exchange_->EndStream();
}

void H1Session::SetTimer() {
  const ConnectionTimes& times = connection_.shared().limits.times;
  const TimePoint now = connection_.loop()->now();
  const bool reads_head = exchange_ == nullptr && !parser_.is_idle();
  if (!reads_head) head_began_ = TimePoint::max();
  if (reads_head && head_began_ == TimePoint::max()) head_began_ = now;
  TimePoint until = TimePoint::max();
  slow_ = EndReason::kHandshake;
  if (lingers_) {
    until = lingers_until_;
  } else if (reads_head) {
    until = head_began_ + times.handshake;
  } else if (exchange_ != nullptr && !whole_) {
    until = now + times.handshake;  // between parts of a body
  } else if (exchange_ == nullptr || exchange_->IsEnding()) {
    slow_ = EndReason::kIdle;
    if (times.idle > Duration::zero()) until = now + times.idle;
  }
  timer_.Set(connection_.loop()->timers(), until);
}

}  // namespace floe::server
