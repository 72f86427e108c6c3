// A call's life on its loop, and the two ways from other threads: Write and Finish.
#include "server/net/grpc_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/budget.h"
#include "base/status.h"
#include "server/api/call_watch.h"
#include "server/api/gunzip.h"
#include "server/net/h2_session.h"
#include "server/transport/call_text.h"

namespace floe::server {
namespace {

// Small replies leave their memory where they were made.
constexpr size_t kAdoptReplyBytes = 512;

uint32_t MessageSize(const char* prefix) {
  uint32_t size = 0;
  for (size_t i = 1; i < kMessagePrefix; ++i)
    size = size << 8 | static_cast<unsigned char>(prefix[i]);
  return size;
}

}  // namespace

GrpcCall::GrpcCall(H2Session* session, int32_t stream, const GrpcHead& head)
    : shared_(session->shared()),
      loop_(session->loop()),
      session_(session),
      stream_(stream),
      head_(head),
      deadline_([this] { OnDeadline(); }),
      unread_([this] { OnUnread(); }) {}

int64_t GrpcCall::MostBytes() const {
  const int64_t own = head_.method->info().max_bytes;
  const bool small = is_stream() && !is_bulk();
  const int64_t most = small ? kMaxStreamMessage : shared_.limits.max_message_bytes;
  return own > 0 ? std::min(own, most) : most;
}

absl::Status GrpcCall::Open(CallHead head) {
  // Token, message and responder are all parts of this object: one count, no allocation.
  head.cancel = std::shared_ptr<CancelToken>(shared_from_this(), &cancel_);
  if (absl::Status status = Admit(head.peer); !status.ok()) {
    if (CallWatch* const watch = shared_.methods.watch(); watch != nullptr)
      watch->Refused(CallRefusal::kLimit, head, status);
    return status;
  }
  const absl::Status opened = CatchOutOfMemory([&]() -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(handler_, head_.method->Open(head, shared_from_this()));
    return absl::OkStatus();
  });
  FLOE_RETURN_IF_ERROR(opened);
  if (is_stream()) peer_ = head.peer;
  deadline_.Set(loop_->timers(), head.deadline);
  return absl::OkStatus();
}

absl::Status GrpcCall::Admit(const std::string& peer) {
  if (is_stream() && shared_.streams_end.load()) return ShuttingDownError();
  if (!is_stream() || is_bulk()) {
    if (!shared_.gate.Enter()) return ShuttingDownError();
    in_gate_ = true;
  }
  return shared_.book.Take(peer, is_stream() ? int64_t{kMostWaitingBytes} : int64_t{0}, &seat_);
}

void GrpcCall::OnDeadline() {
  const std::shared_ptr<GrpcCall> self = shared_from_this();
  cancel_.Cancel();
  // The client does not take the reply that has begun, so a status behind it would not arrive.
  if (session_ != nullptr && (end_.has_value() || out_sent_ > 0)) return session_->Reset(this);
  End(absl::DeadlineExceededError("the deadline passed"));
}

void GrpcCall::OnUnread() {
  const Duration timeout = shared_.connections.limits().send_timeout;
  const int64_t least =
      CallLimits::kLeastRate * std::chrono::duration_cast<std::chrono::seconds>(timeout).count();
  if (unread_taken_ >= least && least > 0) return WatchUnread();
  const std::shared_ptr<GrpcCall> self = shared_from_this();
  session_->CloseUnread();
}

// From when a message of a stream waits, its client has the time of a reply to read it.
void GrpcCall::WatchUnread() {
  const Duration timeout = shared_.connections.limits().send_timeout;
  if (!is_stream() || out_.empty() || unread_.is_set() || timeout <= Duration::zero()) return;
  unread_taken_ = 0;
  unread_.Set(loop_->timers(), loop_->now() + timeout);
}

void GrpcCall::Refuse(const absl::Status& status) {
  if (is_stream() || handler_ == nullptr) return End(status);
  const std::shared_ptr<CallHandler> handler = std::move(handler_);
  End(handler->OnRefused(status));
}

// The transport ends the call, whatever the method says later.
void GrpcCall::End(const absl::Status& status) {
  if (end_.has_value() || session_ == nullptr) return;
  {
    MutexLock lock(mutex_);
    if (!said_.has_value()) said_ = status;
    waiting_.clear();
  }
  end_ = status;
  // A message that has begun is sent to its end.
  const size_t keep = out_sent_ > 0 ? out_first_ + 1 : out_first_;
  for (size_t i = keep; i < out_.size(); ++i) out_bytes_ -= kMessagePrefix + out_[i].bytes.size();
  out_.resize(std::min(out_.size(), keep));
  session_->Send(this);
}

void GrpcCall::OnData(std::string_view bytes) {
  if (!is_stream() || end_.has_value()) {
    session_->ConsumeStream(stream_, bytes.size());
    if (end_.has_value() || delivered_) return;
    if (const absl::Status status = TakeUnary(bytes); !status.ok()) Refuse(status);
    return;
  }
  held_.append(bytes);
  ReadOn();
}

std::span<char> GrpcCall::Room() {
  if (is_stream() || end_.has_value() || delivered_) return {};
  return {arriving_.memory.get() + arriving_.before + arriving_.size,
          arriving_.capacity - arriving_.size};
}

void GrpcCall::OnHalfClose() {
  half_closed_ = true;
  if (end_.has_value()) return;
  if (is_stream()) return ReadOn();
  if (!delivered_) Refuse(NoMessageError());
}

absl::Status GrpcCall::TakeUnary(std::string_view bytes) {
  if (prefix_size_ < kMessagePrefix) {
    const size_t part = std::min(kMessagePrefix - prefix_size_, bytes.size());
    std::memcpy(prefix_ + prefix_size_, bytes.data(), part);
    prefix_size_ += part;
    bytes.remove_prefix(part);
    if (prefix_size_ < kMessagePrefix) return absl::OkStatus();
    FLOE_RETURN_IF_ERROR(BeginMessage());
  }
  while (!bytes.empty() && arriving_.size < arriving_.whole) {
    if (arriving_.size == arriving_.capacity) FLOE_RETURN_IF_ERROR(arriving_.Grow(&seat_, bytes));
    const size_t part = std::min(bytes.size(), arriving_.capacity - arriving_.size);
    arriving_.Append(bytes.substr(0, part));
    bytes.remove_prefix(part);
  }
  if (arriving_.size == arriving_.whole) Deliver();
  return absl::OkStatus();
}

absl::Status GrpcCall::BeginMessage() {
  arriving_.whole = MessageSize(prefix_);
  FLOE_RETURN_IF_ERROR(CheckSize(arriving_.whole, MostBytes()));
  OpenWindow(arriving_.whole);
  if (static_cast<unsigned char>(prefix_[0]) > 1)
    return absl::InternalError("the request's message begins with an unknown flag");
  if (prefix_[0] == 0) return absl::OkStatus();
  if (!shared_.limits.compression) return NoCompressionError();
  if (head_.packing == Packing::kNone)
    return absl::InternalError("a message is compressed, and no grpc-encoding says how");
  return absl::OkStatus();
}

// At once for a whole message, so that its client need not wait for it: what comes is paid for as
// it comes.
void GrpcCall::OpenWindow(size_t message) {
  if (message > kCallWindow && session_ != nullptr)
    session_->SetWindow(stream_, std::min(message, kLargeWindow));
}

absl::Status GrpcCall::Arriving::Grow(CallSeat* seat, std::string_view next) {
  constexpr size_t kFirstPart = size_t{256} << 10, kTimes = 4;
  constexpr size_t kSecondPart = size_t{16} << 20, kAlignment = 16;
  const size_t larger = std::min(whole, std::max(kFirstPart, kTimes * capacity));
  FLOE_RETURN_IF_ERROR(seat->AddRequest(static_cast<int64_t>(larger - capacity)));
  if (larger > allocated) {
    // In few steps, since each copies what has come and keeps the loop from others. What is not
    // paid for yet is not written either, and takes no memory.
    const size_t part = larger <= kFirstPart ? kFirstPart : std::max(larger, kSecondPart);
    const size_t wanted = larger > kSecondPart ? whole : std::min(whole, part);
    if (allocated == 0)
      before = (kAlignment - PayloadOffset(next, whole) % kAlignment) % kAlignment;
    // Not by realloc: the allocator would extend the part with pages that are new to the process,
    // each of which costs a fault, where it has used ones for a whole.
    std::unique_ptr<char, void (*)(void*)> grown(static_cast<char*>(std::malloc(before + wanted)),
                                                 std::free);
    if (grown == nullptr) return absl::ResourceExhaustedError("no memory for the request");
    if (size > 0) std::memcpy(grown.get() + before, memory.get() + before, size);
    memory = std::move(grown);
    allocated = wanted;
  }
  capacity = larger;
  return absl::OkStatus();
}

GrpcCall::Large::~Large() {
  seat.Leave();
  if (gate != nullptr) gate->Leave();
}

void GrpcCall::Arriving::Append(std::string_view part) {
  char* const to = memory.get() + before + size;
  if (part.data() != to) std::memcpy(to, part.data(), part.size());  // else it was read into Room
  size += part.size();
}

void GrpcCall::Deliver() {
  delivered_ = true;
  if (prefix_[0] != 0) return Unpack();
  Give(Message{arriving_.bytes(), shared_from_this()});
}

// On a thread of its own: a few bytes may be much work.
void GrpcCall::Unpack() {
  const auto unpack = [self = shared_from_this()] {
    const absl::Status status = CatchOutOfMemory([&]() -> absl::Status {
      const size_t size = self->arriving_.whole;
      FLOE_ASSIGN_OR_RETURN(std::string bytes, Gunzip(self->arriving_.bytes(), self->MostBytes()));
      if (bytes.size() > size)
        FLOE_RETURN_IF_ERROR(self->seat_.AddRequest(static_cast<int64_t>(bytes.size() - size)));
      const auto owner = std::make_shared<const std::string>(std::move(bytes));
      self->Give(Message{*owner, owner});
      return absl::OkStatus();
    });
    if (status.ok()) return;
    const std::shared_ptr<CallHandler> handler = std::move(self->handler_);
    self->Responder::Finish(handler == nullptr ? status : handler->OnRefused(status));
  };
  if (!shared_.helpers.Post(unpack)) Responder::Finish(ShuttingDownError());
}

void GrpcCall::Give(Message message) {
  const std::shared_ptr<CallHandler> handler = std::move(handler_);
  const absl::Status status = CatchOutOfMemory([&] {
    handler->OnMessage(std::move(message));
    return absl::OkStatus();
  });
  if (!status.ok()) Responder::Finish(status);
}

bool GrpcCall::ReadingPaused() const {
  MutexLock lock(mutex_);
  return paused_ || said_.has_value() || unsent_ > kMaxWaiting || unsent_bytes_ > kMaxWaitingBytes;
}

// Gives the handler of a stream what has come, as long as it takes more.
void GrpcCall::ReadOn() {
  const std::shared_ptr<GrpcCall> self = shared_from_this();
  bool more = true;
  while (more && !end_.has_value() && !ReadingPaused()) {
    const absl::StatusOr<bool> took = CatchOutOfMemory([this] { return TakeOne(); });
    if (!took.ok()) return End(took.status());
    more = *took;
  }
  if (more || end_.has_value() || !half_closed_ || std::exchange(told_half_close_, true)) return;
  handler_->OnHalfClose();
}

absl::StatusOr<bool> GrpcCall::TakeOne() {
  if (large_ != nullptr) return TakeLarge();
  if (held_.size() < kMessagePrefix) return false;
  const size_t size = MessageSize(held_.data());
  FLOE_RETURN_IF_ERROR(CheckSize(size, MostBytes()));
  if (static_cast<int64_t>(size) > kMaxStreamMessage) {
    if (held_[0] != 0)
      return absl::UnimplementedError(
          "messages of streams beyond 64 KiB may not be compressed; send them as they are");
    large_ = std::make_shared<Large>();
    large_->message.whole = size;
    OpenWindow(size);
    held_.erase(0, kMessagePrefix);
    if (session_ != nullptr) session_->ConsumeStream(stream_, kMessagePrefix);
    if (!shared_.gate.Enter()) return ShuttingDownError();
    large_->gate = &shared_.gate;
    FLOE_RETURN_IF_ERROR(shared_.book.Take(peer_, 0, &large_->seat));
    return TakeLarge();
  }
  if (held_.size() < kMessagePrefix + size) return false;
  std::string bytes = held_.substr(kMessagePrefix, size);
  if (held_[0] != 0) {
    if (!shared_.limits.compression) return NoCompressionError();
    // Here and now, and for what the stream's seat has taken.
    constexpr auto kMost = static_cast<int64_t>(kMostWaitingBytes);
    FLOE_ASSIGN_OR_RETURN(bytes, Gunzip(bytes, std::min(MostBytes(), kMost)));
  }
  held_.erase(0, kMessagePrefix + size);
  if (session_ != nullptr) session_->ConsumeStream(stream_, kMessagePrefix + size);
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  handler_->OnMessage(Message{*owner, owner});
  return true;
}

// Takes what has come of a large message, and gives it away once it is whole.
absl::StatusOr<bool> GrpcCall::TakeLarge() {
  Arriving& message = large_->message;
  while (!held_.empty() && message.size < message.whole) {
    if (message.size == message.capacity) FLOE_RETURN_IF_ERROR(message.Grow(&large_->seat, held_));
    const size_t part = std::min(held_.size(), message.capacity - message.size);
    message.Append(std::string_view(held_).substr(0, part));
    held_.erase(0, part);
    if (session_ != nullptr) session_->ConsumeStream(stream_, part);
  }
  if (message.size < message.whole) return false;
  const std::shared_ptr<Large> whole = std::move(large_);
  if (session_ != nullptr) session_->SetWindow(stream_, kCallWindow);
  handler_->OnMessage(Message{message.bytes(), whole});
  return true;
}

void GrpcCall::Drain() {
  if (handler_ != nullptr && handler_->OnDrain()) return;
  Finish(ShuttingDownError(), {});
}

void GrpcCall::Write(std::string&& message) {
  if (!is_stream()) {
    const absl::Status paid = seat_.AddReply(static_cast<int64_t>(message.size()));
    MutexLock lock(mutex_);
    if (!paid.ok() && !said_.has_value()) said_ = paid;
    if (said_.has_value()) return std::string().swap(message);
  }
  Out out;
  if (head_.reply != Packing::kNone && message.size() >= kPackedFrom)
    out.bytes = server::Pack(message, head_.reply);
  out.packed = !out.bytes.empty();
  if (!out.packed)
    out.bytes = message.size() < kAdoptReplyBytes ? std::string(message) : std::move(message);
  MutexLock lock(mutex_);
  if (said_.has_value()) return;
  const size_t before = is_bulk() ? unsent_bytes_ : unsent_bytes_ + out.bytes.size();
  ++unsent_;
  unsent_bytes_ += out.bytes.size();
  waiting_.push_back(std::move(out));
  wrote_ = true;
  if (!is_stream()) return;  // sent by Finish
  if (unsent_ > kMostWaiting || before > kMostWaitingBytes) {
    waiting_.clear();
    said_ = NotReadError();
  }
  PostRun();
}

void GrpcCall::Finish(const absl::Status& status, const Trailers& trailers) {
  MutexLock lock(mutex_);
  if (std::exchange(finished_, true)) return;
  if (!said_.has_value()) {
    said_ = status;
    said_trailers_ = trailers;
    if (!is_stream() && status.ok() && !wrote_)
      said_ = absl::InternalError("the method gave no reply");
  }
  if (!is_stream() && !said_->ok()) waiting_.clear();
  PostRun();
}

int64_t GrpcCall::Credit() const {
  MutexLock lock(mutex_);
  return unsent_ >= kMostWaiting
             ? 0
             : static_cast<int64_t>(kMostWaitingBytes - std::min(unsent_bytes_, kMostWaitingBytes));
}

void GrpcCall::Pause() {
  MutexLock lock(mutex_);
  paused_ = true;
}

void GrpcCall::Resume() {
  MutexLock lock(mutex_);
  paused_ = false;
  PostRun();
}

void GrpcCall::PostRun() {
  if (!std::exchange(posted_, true)) loop_->Post(shared_from_this());
}

void GrpcCall::TakeWaiting() {
  posted_ = false;
  if (session_ == nullptr) return waiting_.clear();
  if (end_.has_value()) return;
  for (Out& out : waiting_) {
    out_bytes_ += kMessagePrefix + out.bytes.size();
    out_.push_back(std::move(out));
  }
  waiting_.clear();
  if (!said_.has_value()) return;
  end_ = said_;
  trailers_ = std::move(said_trailers_);
}

void GrpcCall::Run() {
  bool finished;
  {
    MutexLock lock(mutex_);
    TakeWaiting();
    finished = finished_;
  }
  if (session_ == nullptr) {
    if (finished) Leave();
    return;
  }
  WatchUnread();
  session_->Send(this);
  if (is_stream()) ReadOn();
}

void GrpcCall::CopyOut(size_t bytes, std::string* to) {
  out_bytes_ -= bytes;
  unread_taken_ += static_cast<int64_t>(bytes);
  while (bytes > 0) {
    Out& out = out_[out_first_];
    const size_t size = out.bytes.size();
    if (out_sent_ < kMessagePrefix) {
      char prefix[kMessagePrefix] = {static_cast<char>(out.packed)};
      for (size_t i = 1; i < kMessagePrefix; ++i)
        prefix[i] = static_cast<char>(size >> (8 * (kMessagePrefix - 1 - i)));
      const size_t part = std::min(bytes, kMessagePrefix - out_sent_);
      to->append(prefix + out_sent_, part);
      out_sent_ += part;
      bytes -= part;
    }
    const size_t at = out_sent_ - std::min(out_sent_, kMessagePrefix);
    const size_t part = std::min(bytes, size - at);
    if (part > 0) to->append(out.bytes, at, part);
    out_sent_ += part;
    bytes -= part;
    if (out_sent_ < kMessagePrefix + size) continue;
    MutexLock lock(mutex_);
    unsent_ -= 1;
    unsent_bytes_ -= size;
    std::string().swap(out.bytes);
    ++out_first_;
    out_sent_ = 0;
    unread_.Clear();
  }
  if (out_first_ < out_.size()) return WatchUnread();
  out_.clear();
  out_first_ = 0;
  if (!is_stream() || end_.has_value()) return;
  if (handler_ != nullptr) handler_->OnWritable();
  if (held_.empty() && !half_closed_) return;
  MutexLock lock(mutex_);
  PostRun();  // reading may have waited for this
}

void GrpcCall::OnClosed(bool whole) {
  session_ = nullptr;
  deadline_.Clear();
  unread_.Clear();
  bool over;
  {
    MutexLock lock(mutex_);
    if (!said_.has_value()) said_ = absl::CancelledError("the caller left");
    waiting_.clear();
    // What was sent in a bulk stream may still run: then the last to let go of this leaves.
    over = !is_bulk() && (is_stream() || finished_ || !delivered_);
  }
  out_.clear();
  held_.clear();
  large_.reset();
  if (!whole) cancel_.Cancel();
  if (is_stream() && handler_ != nullptr) handler_->OnDone();
  if (is_stream() || !delivered_) handler_.reset();
  if (over) Leave();
}

void GrpcCall::Leave() {
  seat_.Leave();
  if (std::exchange(in_gate_, false)) shared_.gate.Leave();
}

}  // namespace floe::server
