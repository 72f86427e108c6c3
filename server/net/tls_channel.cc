// OpenSSL on the descriptor itself. Its errors are taken from the thread's queue at once, because
// those that are left would be blamed on the next connection.
#include "server/net/tls_channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <climits>

#include "server/net/tls_context.h"

namespace floe::server {

std::unique_ptr<TlsChannel> TlsChannel::Make(const std::shared_ptr<ssl_ctx_st>& context, int fd) {
  SSL* const ssl = SSL_new(context.get());  // which holds the context
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsChannel> made(new TlsChannel(ssl));
  if (SSL_set_fd(ssl, fd) != 1) return nullptr;
  SSL_set_accept_state(ssl);
  return made;
}

TlsChannel::TlsChannel(ssl_st* ssl) : ssl_(ssl, SSL_free) {}

ssize_t TlsChannel::Result(int said) {
  ready_ = ready_ || SSL_is_init_finished(ssl_.get()) == 1;
  if (said > 0) return said;
  const int error = SSL_get_error(ssl_.get(), said);
  ERR_clear_error();
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? -1 : 0;
}

ssize_t TlsChannel::Read(char* to, size_t room) {
  return Result(SSL_read(ssl_.get(), to, static_cast<int>(std::min<size_t>(room, INT_MAX))));
}

ssize_t TlsChannel::Write(std::string_view bytes) {
  return Result(SSL_write(ssl_.get(), bytes.data(),
                          static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX))));
}

void TlsChannel::Farewell() {
  if (ready_) (void)SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

TlsPrincipal TlsChannel::client() const {
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  return certificate == nullptr ? TlsPrincipal() : PrincipalOf(*certificate);
}

}  // namespace floe::server
