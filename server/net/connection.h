// Connection: a socket, its bytes in and out, and what speaks over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/net/loop.h"
#include "server/net/net_rules.h"
#include "server/net/tls_channel.h"

namespace floe::server {

class Connection;

// HTTP/2 or HTTP/1.1 over a connection. Threading: the connection's loop.
class Protocol {
 public:
  virtual ~Protocol() = default;
  // False: no more is read; what there is to say is said, and the connection ends.
  virtual bool Receive(std::string_view bytes) = 0;
  // Where the bytes that come next may be put, so that they need no copy; empty: nowhere. They are
  // then given to Receive.
  virtual std::span<char> Room() { return {}; }
  // Appends what is to be sent, about `most` bytes at most.
  virtual void Fill(std::string* out, size_t most) = 0;
  // Nothing is left to do: the connection ends when all is sent.
  virtual bool IsOver() const = 0;
  // What comes makes more work than its size says: little of it is read before others have their
  // turn.
  virtual bool IsSuspect() const { return false; }
  // The connection is gone, with all its calls.
  virtual void OnGone() = 0;
  // Asks the client to leave; calls that come still are served.
  virtual void AskToLeave() = 0;
  // Ends streams, which have no end of their own.
  virtual void EndStreams() = 0;
  // Takes no more calls; over when those in progress are.
  virtual void TakeNoMore() = 0;
};

// Owned by its loop's thread, as all calls on it are. One class: reading and writing decide
// together when a connection ends.
class Connection final : public Loop::Watcher {
 public:
  // Owns `fd`. `on_closed` is called once, and has the loop forget it.
  // `tls`: the context of its listener; null: plain text.
  Connection(int fd, PeerIdentity who, const std::shared_ptr<ssl_ctx_st>& tls, NetShared* shared,
             std::shared_ptr<Loop> loop, std::function<void(Connection*)> on_closed);
  ~Connection() override;

  void OnReady(bool may_be_over) override;
  void OnTurnEnd() override { Flush(); }

  // Something was added to what is to be sent.
  void WantFlush() { loop_->WantTurnEnd(this); }
  // Something was begun that may be answered by the end of the next turn, which a client that sends
  // no more still gets.
  void WantTurn();
  // Ends it now; the first reason counts.
  void Close(EndReason reason);
  void NoteReason(EndReason reason) {
    if (reason_ == EndReason::kClient) reason_ = reason;
  }
  bool is_closed() const { return fd_ < 0; }

  const PeerIdentity& who() const { return who_; }
  NetShared& shared() { return shared_; }
  const std::shared_ptr<Loop>& loop() const { return loop_; }
  TimePoint last_received() const { return last_received_; }
  Protocol* protocol() { return protocol_.get(); }

 private:
  // Of what is received or sent at once; more waits for another turn.
  static constexpr size_t kReadBytes = size_t{64} << 10, kReadsATurn = 8;
  static constexpr size_t kSuspectBytes = size_t{4} << 10;  // of a new connection too
  static constexpr size_t kWriteBytes = size_t{128} << 10;

  // -1: none now; 0: no more will come.
  ssize_t ReadSome(char* to, size_t room);
  // -1: none now; 0: nobody reads any more.
  ssize_t WriteSome(std::string_view bytes);
  bool Take(std::string_view bytes);
  void Identify();
  bool Choose(std::string_view bytes);
  bool WritePending();
  void Flush();

  int fd_;
  PeerIdentity who_;
  NetShared& shared_;
  const std::shared_ptr<Loop> loop_;
  const std::function<void(Connection*)> on_closed_;
  std::unique_ptr<TlsChannel> tls_;     // null: plain text
  std::unique_ptr<Protocol> protocol_;  // null: not known yet
  Timer silence_;                       // until the first words
  std::string first_;                   // what has come before it is known
  std::string pending_;                 // to be sent before anything else
  size_t sent_ = 0;                     // of pending_
  bool reading_ = true;
  bool answers_last_ = false;  // the client sends no more, and this turn's answers are still sent
  TimePoint last_received_;
  EndReason reason_ = EndReason::kClient;
};

}  // namespace floe::server
