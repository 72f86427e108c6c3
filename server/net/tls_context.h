// The server's side of TLS: certificates and rules as an OpenSSL context, read again when the files
// change.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "config/config.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct x509_st;     // its X509

namespace floe::server {

// Who a client is by its certificate. Names with control characters are left out.
struct TlsPrincipal {
  std::string common_name;         // of the subject; "": none
  std::vector<std::string> names;  // alternative ones: "DNS:a.b", "URI:spiffe://a/b", "IP:::1",
                                   // "email:a@b"
};
TlsPrincipal PrincipalOf(const x509_st& certificate);

// What operators see.
struct TlsState {
  std::string subject;        // of the certificate in use, as "CN=a, O=b"
  std::time_t not_after = 0;  // it expires then
  absl::Status status;        // OK, or what is wrong: newer files that are not used, or its expiry
};

// A context allows TLS 1.2 and 1.3, ciphers with forward secrecy and authentication, ALPN of h2 and
// http/1.1, no renegotiation, no compression, no early data. Tickets resume sessions for up to an
// hour, and their keys are replaced twice a day and with every certificate.
// Threading: any thread, but Poll and Reload one at a time.
class TlsContext {
 public:
  // Seconds since 1970.
  using WallClock = std::function<std::time_t()>;

  // Reads and checks the files. NOT_FOUND when one cannot be read, else INVALID_ARGUMENT: the
  // message names the file, what is wrong and the way out, and never shows what a key's file holds.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Make(
      const TlsConfig& config, WallClock now = [] { return std::time(nullptr); });

  // For new connections; those that have one keep it. Never null.
  std::shared_ptr<ssl_ctx_st> Snapshot() const ABSL_LOCKS_EXCLUDED(mutex_);

  // To be called each second or two: reads the files by their paths, so that a symbolic link that
  // was turned counts, and uses other ones once they were the same in two calls. Files that are
  // wrong change nothing but state() and the log.
  void Poll() { Step(/*asked=*/false).IgnoreError(); }
  // The same at once, for SIGHUP.
  absl::Status Reload() { return Step(/*asked=*/true); }

  TlsState state() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What the files hold.
  struct Pem {
    std::string certificate, key, client_ca;
    std::string certificate_file, key_file, client_ca_file;  // what messages call them
    ClientCertificates client = ClientCertificates::kNone;
    bool operator==(const Pem&) const = default;
  };
  struct Made {
    std::shared_ptr<ssl_ctx_st> context;
    std::string subject;
    std::time_t not_after = 0;
  };

  TlsContext(const TlsConfig& config, WallClock now) : config_(config), now_(std::move(now)) {}

  absl::StatusOr<Pem> Read() const;
  absl::StatusOr<Made> Build(const Pem& pem) const;
  absl::Status Step(bool asked);
  void Use(const Pem& pem, Made made) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Refused(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void LogExpiry();

  const TlsConfig config_;
  const WallClock now_;
  // The stepping thread's: what is in use, what was found wrong, and what the last Poll saw.
  Pem used_;
  std::optional<Pem> refused_, seen_;
  std::time_t made_at_ = 0;
  int logged_days_ = -1;  // left, as last logged

  mutable Mutex mutex_;
  Made current_ ABSL_GUARDED_BY(mutex_);
  absl::Status problem_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe::server
