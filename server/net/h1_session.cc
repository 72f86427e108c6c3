// Requests are answered in order: the next one is read when the answer to the last one is complete.
#include "server/net/h1_session.h"

#include <atomic>
#include <ctime>
#include <utility>

#include "server/api/call_watch.h"
#include "server/transport/call_text.h"

namespace floe::server {

// A request and its answer. Held by the session until both are complete.
// Threading: HttpResponder on any thread, the rest on the loop.
class H1Session::Exchange final : public HttpResponder,
                                  public Loop::Task,
                                  public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(H1Session* session, const H1Head& head)
      : shared_(session->connection_.shared()),
        loop_(session->connection_.loop()),
        session_(session),
        response_(head) {}
  ~Exchange() override {
    seat_.Leave();
    if (in_gate_) shared_.gate.Leave();
  }

  // A request with a body counts as a call, until its answer is sent.
  absl::Status Admit(const std::string& peer) {
    if (!shared_.gate.Enter()) return ShuttingDownError();
    in_gate_ = true;
    return shared_.book.Take(peer, 0, &seat_);
  }
  absl::Status PayBody(size_t bytes) { return seat_.AddRequest(static_cast<int64_t>(bytes)); }

  void Send(HttpReply&& reply) override {
    if (in_gate_)
      if (const absl::Status paid = seat_.AddReply(static_cast<int64_t>(reply.body.size()));
          !paid.ok())
        reply = ErrorReply(paid);
    const auto size = static_cast<int64_t>(reply.body.size());
    MutexLock lock(mutex_);
    AddHead(reply, size);
    if (response_.sends_body()) out_ += reply.body;
    Post(/*ended=*/true);
  }
  void Begin(HttpReply&& head) override {
    MutexLock lock(mutex_);
    if (ended_) return;
    streams_ = true;
    AddHead(head, std::nullopt);
    AddPart(head.body);
  }
  void Write(std::string&& part) override {
    MutexLock lock(mutex_);
    if (!ended_) AddPart(part);
  }
  void End() override {
    MutexLock lock(mutex_);
    if (ended_) return;
    out_ += response_.End();
    Post(/*ended=*/true);
  }
  size_t Unsent() const override { return unsent_.load(); }
  void Cut() override {
    MutexLock lock(mutex_);
    cut_ = true;
    Post(/*ended=*/true);
  }
  // The session has handed on all that Run brought it.
  void OnSent() {
    MutexLock lock(mutex_);
    unsent_ = out_.size();
  }
  // The server stops. True: the answer is a stream, which ends.
  bool EndStream() {
    {
      MutexLock lock(mutex_);
      if (!streams_) return false;
    }
    End();
    return true;
  }

  void Run() override {
    bool ended, cut;
    {
      MutexLock lock(mutex_);
      posted_ = false;
      if (session_ != nullptr) {
        if (session_->out_.empty())
          session_->out_.swap(out_);
        else
          session_->out_ += out_;
      }
      out_.clear();
      ended = ended_;
      cut = cut_;
    }
    if (session_ == nullptr) return;
    if (cut) return session_->connection_.Close(EndReason::kClient);
    session_->connection_.WantFlush();
    if (ended) session_->Answered(this);
  }
  void Detach() {
    session_ = nullptr;
    if (cancel != nullptr) cancel->Cancel();
    if (handler != nullptr) std::exchange(handler, nullptr)->OnDone();
  }
  bool keeps_connection() {
    MutexLock lock(mutex_);
    return response_.keeps_connection();
  }

  std::shared_ptr<HttpHandler> handler;
  std::shared_ptr<CancelToken> cancel;
  bool whole = false, answered = false;  // the request, the answer
  bool drops_body = false;

 private:
  void AddHead(const HttpReply& reply, std::optional<int64_t> length)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    H1Fields fields = reply.fields;
    if (!reply.content_type.empty()) fields.emplace_back("content-type", reply.content_type);
    absl::StatusOr<std::string> head =
        response_.Head(reply.status, fields, length, std::time(nullptr));
    // A field of the method's that no answer may have.
    if (!head.ok()) head = response_.Head(500, {}, length, std::time(nullptr));
    if (head.ok()) out_ += *head;
  }
  void AddPart(const std::string& part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    out_ += response_.Part(part);
    unsent_ += part.size();
    Post(/*ended=*/false);
  }
  void Post(bool ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ended_ |= ended;
    if (!std::exchange(posted_, true)) loop_->Post(shared_from_this());
  }

  NetShared& shared_;
  const std::shared_ptr<Loop> loop_;
  H1Session* session_;
  CallSeat seat_;
  bool in_gate_ = false;
  Mutex mutex_;
  H1Response response_ ABSL_GUARDED_BY(mutex_);
  std::string out_ ABSL_GUARDED_BY(mutex_);
  bool posted_ ABSL_GUARDED_BY(mutex_) = false, ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool streams_ ABSL_GUARDED_BY(mutex_) = false, cut_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<size_t> unsent_{0};
};

H1Session::H1Session(Connection* connection)
    : connection_(*connection), timer_([this] { connection_.Close(slow_); }) {
  SetTimer();
}

H1Session::~H1Session() { OnGone(); }

bool H1Session::Receive(std::string_view bytes) {
  if (lingers_) return true;
  if (waiting_.size() + bytes.size() > kMostWaiting && exchange_ != nullptr && exchange_->whole) {
    connection_.NoteReason(EndReason::kFrames);  // it asks without reading
    connection_.Close(EndReason::kFrames);
    return false;
  }
  waiting_.append(bytes);
  Step();
  SetTimer();
  connection_.WantFlush();
  return !closing_ || lingers_;
}

void H1Session::Step() {
  if (std::exchange(stepping_, true)) return;  // the loop below goes on
  size_t taken = 0;
  while (!closing_ && !lingers_ && (exchange_ == nullptr || !exchange_->whole)) {
    const H1Parser::Step step = parser_.Next(std::string_view(waiting_).substr(taken));
    taken += step.taken;
    if (step.event == H1Parser::Event::kMore) break;
    if (step.event == H1Parser::Event::kHead) Open();
    if (step.event == H1Parser::Event::kBody) TakeBody(step.body);
    if (step.event == H1Parser::Event::kError) {
      out_ += H1Response::Refusal(parser_.error());
      NoteError(parser_.error());
      connection_.NoteReason(EndReason::kStranger);
      closing_ = true;
      if (exchange_ != nullptr) Linger();  // a body is too long, or broken
    }
    if (step.event != H1Parser::Event::kEnd) continue;
    exchange_->whole = true;
    parser_.Reset();
    if (exchange_->answered)
      Answered(exchange_.get());
    else if (exchange_->handler != nullptr)
      exchange_->handler->OnEnd();
  }
  stepping_ = false;
  waiting_.erase(0, taken);
  if (lingers_) waiting_.clear();
}

void H1Session::TakeBody(std::string_view part) {
  if (exchange_->handler == nullptr) return;
  const absl::Status paid = exchange_->PayBody(part.size());
  if (paid.ok()) return exchange_->handler->OnBody(part);
  RefuseBody(paid);
  Linger();
}

// What the parser refuses: a head that is wrong, or a body that is.
void H1Session::NoteError(const H1Parser::Error& error) const {
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
}

// The call counts beyond a limit.
void H1Session::RefuseBody(const absl::Status& status) {
  HttpReply reply = ErrorReply(status);
  NoteRefused(*connection_.shared().routes, CallRefusal::kLimit,
              {connection_.who().peer, parser_.head().path}, reply);
  exchange_->Send(std::move(reply));
  std::exchange(exchange_->handler, nullptr)->OnDone();
}

void H1Session::Open() {
  const H1Head& head = parser_.head();
  const PeerIdentity& who = connection_.who();
  exchange_ = std::make_shared<Exchange>(this, head);
  exchange_->cancel = std::make_shared<CancelToken>();
  HttpHead asked;
  asked.method = head.method;
  asked.path = head.path;
  asked.query = head.query;
  asked.fields = head.fields;
  SetCaller(connection_.shared(), who, TakeAuthorization(&asked.fields), &asked);
  asked.cancel = exchange_->cancel;
  if (!head.chunked) asked.content_length = head.content_length.value_or(0);
  int64_t most = 0;
  exchange_->handler = connection_.shared().routes->Open(std::move(asked), exchange_, &most);
  if (exchange_->handler != nullptr && most > 0) {
    if (const absl::Status status = exchange_->Admit(who.peer); !status.ok()) RefuseBody(status);
  }
  if (exchange_->handler == nullptr) {
    // A short body of a request that was refused is read, so that the connection goes on.
    exchange_->drops_body =
        !head.chunked && !head.expects_continue && head.content_length.value_or(0) <= kMostDropped;
    most = kMostDropped;
    if (!exchange_->drops_body) Linger();
  }
  parser_.LimitBody(most);
  if (exchange_->handler != nullptr && head.expects_continue) out_ += H1Response::Continue();
}

// The answer is complete. A request that still arrives then is not read to its end.
void H1Session::Answered(Exchange* exchange) {
  if (exchange != exchange_.get()) return;
  exchange->answered = true;
  const bool stays = exchange->whole && exchange->keeps_connection() && !leaves_;
  if (!exchange->whole && (exchange->drops_body || !parser_.head().has_body()))
    return;  // its end is still to come
  if (!exchange->whole) Linger();
  exchange_->Detach();
  sending_.push_back(std::exchange(exchange_, nullptr));
  if (!stays) closing_ = true;
  if (!closing_) Step();
  SetTimer();
  connection_.WantFlush();
}

void H1Session::Linger() {
  lingers_ = true;
  lingers_until_ = connection_.loop()->now() + connection_.shared().limits.times.handshake;
}

void H1Session::Fill(std::string* out, size_t most) {
  if (gone_) return;
  const size_t part = std::min(most, out_.size() - out_sent_);
  out->append(out_, out_sent_, part);
  out_sent_ += part;
  if (out_sent_ < out_.size()) return;
  out_sent_ = 0;
  if (exchange_ != nullptr) exchange_->OnSent();
  if (out_.size() > kMostKept) std::string().swap(out_);
  out_.clear();
  sending_.clear();
}

bool H1Session::IsOver() const { return gone_ || (closing_ && out_.empty() && !lingers_); }

void H1Session::OnGone() {
  if (std::exchange(gone_, true)) return;
  timer_.Clear();
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->Detach();
  sending_.clear();
}

void H1Session::AskToLeave() {
  if (exchange_ == nullptr) {
    closing_ = true;
    connection_.NoteReason(EndReason::kDrain);
    connection_.WantFlush();
  }
}

void H1Session::EndStreams() {
  if (exchange_ != nullptr) leaves_ |= exchange_->EndStream();
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
  } else if (exchange_ == nullptr) {
    slow_ = EndReason::kIdle;
    if (times.idle > Duration::zero()) until = now + times.idle;
  } else if (!exchange_->whole) {
    until = now + times.handshake;  // between parts of a body
  }
  timer_.Set(connection_.loop()->timers(), until);
}

}  // namespace floe::server
