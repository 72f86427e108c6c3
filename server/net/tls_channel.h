// TlsChannel: the server's side of TLS over a non-blocking socket.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct ssl_st;      // OpenSSL's SSL
struct ssl_ctx_st;  // its SSL_CTX

namespace floe::server {

struct TlsPrincipal;

// Threading: one thread at a time.
class TlsChannel {
 public:
  // `fd` is the caller's, and outlives this. Null when there is no memory.
  static std::unique_ptr<TlsChannel> Make(const std::shared_ptr<ssl_ctx_st>& context, int fd);

  // As recv and send: -1: none now, or the handshake goes on; 0: no more will come, or the client
  // broke the rules. The handshake is part of both.
  ssize_t Read(char* to, size_t room);
  ssize_t Write(std::string_view bytes);
  // Tells the client that no more will come, if that can be sent now.
  void Farewell();

  bool is_ready() const { return ready_; }  // the handshake is over
  TlsPrincipal client() const;  // of its certificate, which was checked; empty: it has none

 private:
  explicit TlsChannel(ssl_st* ssl);
  ssize_t Result(int said);

  const std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  bool ready_ = false;
};

}  // namespace floe::server
