// Reads until the socket is empty or others have their turn; writes once a turn.
#include "server/net/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "server/listener/stranger.h"
#include "server/net/h1_session.h"
#include "server/net/h2_session.h"
#include "server/net/tls_context.h"

namespace floe::server {
namespace {

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

Connection::Connection(int fd, PeerIdentity who, const std::shared_ptr<ssl_ctx_st>& tls,
                       NetShared* shared, std::shared_ptr<Loop> loop,
                       std::function<void(Connection*)> on_closed)
    : fd_(fd),
      who_(std::move(who)),
      shared_(*shared),
      loop_(std::move(loop)),
      on_closed_(std::move(on_closed)),
      silence_([this] { Close(EndReason::kHandshake); }),
      last_received_(loop_->now()) {
  if (tls != nullptr) tls_ = TlsChannel::Make(tls, fd_);
  if (tls != nullptr && tls_ == nullptr) shutdown(fd_, SHUT_RDWR);  // no memory
  silence_.Set(loop_->timers(), loop_->now() + shared_.limits.times.handshake);
}

Connection::~Connection() {
  if (fd_ < 0) return;
  shared_.connections.Remove(fd_);
  close(fd_);
}

ssize_t Connection::ReadSome(char* to, size_t room) {
  if (tls_ != nullptr) return tls_->Read(to, room);
  const ssize_t size = recv(fd_, to, room, 0);
  if (size >= 0) return size;
  return errno == EAGAIN || errno == EINTR ? -1 : 0;
}

ssize_t Connection::WriteSome(std::string_view bytes) {
  if (tls_ != nullptr) return tls_->Write(bytes);
  const ssize_t size = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (size > 0) return size;
  return errno == EAGAIN || errno == EINTR ? -1 : 0;
}

void Connection::OnReady(bool may_be_over) {
  if (is_closed()) return;
  answers_last_ = false;
  thread_local std::array<char, kReadBytes> buffer;
  for (size_t reads = 0; reading_; ++reads) {
    const bool suspect = protocol_ != nullptr && protocol_->IsSuspect();
    if (reads == kReadsATurn || (suspect && reads > 0)) {
      loop_->Again(this);
      break;
    }
    const bool little = suspect || protocol_ == nullptr;
    const std::span<char> direct = little ? std::span<char>() : protocol_->Room();
    char* const to = direct.empty() ? buffer.data() : direct.data();
    const size_t room = little           ? kSuspectBytes
                        : direct.empty() ? buffer.size()
                                         : std::min(direct.size(), kReadBytes);
    const ssize_t size = ReadSome(to, room);
    if (size < 0) break;
    reading_ = size > 0 && Take({to, static_cast<size_t>(size)});
    if (size == 0) WantTurn();
    if (is_closed()) return;
    if (size == 0 && tls_ != nullptr && !tls_->is_ready()) NoteReason(EndReason::kHandshake);
    // A plain socket that gave less than it was asked for is empty (epoll(7)).
    if (tls_ == nullptr && !may_be_over && size < static_cast<ssize_t>(room)) break;
  }
  WantFlush();
}

void Connection::WantTurn() {
  if (reading_) return;
  answers_last_ = true;
  loop_->Again(this);
}

bool Connection::Take(std::string_view bytes) {
  last_received_ = loop_->now();
  if (protocol_ != nullptr) return protocol_->Receive(bytes);
  if (tls_ != nullptr && first_.empty()) Identify();
  first_.append(bytes);
  return Choose(first_);
}

// The handshake is over, so what the client's certificate says has been checked.
void Connection::Identify() {
  TlsPrincipal names = tls_->client();
  if (shared_.access == nullptr || (names.common_name.empty() && names.names.empty())) return;
  ConnectionFacts facts;
  facts.common_name = std::move(names.common_name);
  facts.names = std::move(names.names);
  who_.caller = shared_.access->OfConnection(facts);
}

// By the first bytes. False: it is none of ours.
bool Connection::Choose(std::string_view bytes) {
  const size_t known = std::min(bytes.size(), kHttp2Preface.size());
  if (bytes.substr(0, known) == kHttp2Preface.substr(0, known)) {
    if (known < kHttp2Preface.size()) return true;
    protocol_ = std::make_unique<H2Session>(this);
    silence_.Clear();
    const std::string first = std::exchange(first_, {});
    return protocol_->Receive(first);
  }
  const std::string_view stranger = StrangerOf(bytes);
  if (shared_.routes != nullptr && stranger != "TLS") {
    protocol_ = std::make_unique<H1Session>(this);
    silence_.Clear();
    const std::string first = std::exchange(first_, {});
    return protocol_->Receive(first);
  }
  pending_ = AnswerTo(stranger);
  NoteReason(EndReason::kStranger);
  return false;
}

// False while the socket is full.
bool Connection::WritePending() {
  while (sent_ < pending_.size()) {
    const ssize_t size = WriteSome(std::string_view(pending_).substr(sent_));
    if (size < 0) return false;
    if (size == 0) {
      Close(EndReason::kClient);
      return false;
    }
    sent_ += static_cast<size_t>(size);
  }
  std::string().swap(pending_);
  sent_ = 0;
  return true;
}

void Connection::Flush() {
  if (is_closed()) return;
  thread_local std::string out;
  while (WritePending()) {
    out.clear();
    if (protocol_ != nullptr) protocol_->Fill(&out, kWriteBytes);
    if (is_closed()) return;
    if (out.empty()) {
      if ((!reading_ && !answers_last_) || (protocol_ != nullptr && protocol_->IsOver()))
        Close(reason_);
      return;
    }
    const ssize_t size = WriteSome(out);
    if (size == 0) return Close(EndReason::kClient);
    const size_t sent = size < 0 ? 0 : static_cast<size_t>(size);
    if (sent < out.size()) pending_.assign(out, sent);
  }
}

void Connection::Close(EndReason reason) {
  if (is_closed()) return;
  NoteReason(reason);
  if (shared_.connections.WasCut(fd_)) NoteReason(EndReason::kUnread);
  silence_.Clear();
  if (protocol_ != nullptr) protocol_->OnGone();
  if (tls_ != nullptr) tls_->Farewell();
  shared_.ends.Count(reason_, who_.peer);  // before the client can know
  // What is unread would reset the connection, and the last words with it.
  shutdown(fd_, SHUT_WR);
  thread_local std::array<char, 4096> unread;
  for (int i = 0; i < 16 && recv(fd_, unread.data(), unread.size(), MSG_DONTWAIT) > 0; ++i) {
  }
  loop_->Unwatch(fd_);
  shared_.connections.Remove(fd_);
  close(std::exchange(fd_, -1));
  on_closed_(this);
}

}  // namespace floe::server
