// The rules of a context, and when a new one replaces it.
#include "server/net/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/files.h"
#include "config/ssl_config.h"
#include "server/net/tls_pem.h"

namespace floe::server {
namespace {

constexpr long kSessionSeconds = 3600;  // NOLINT(google-runtime-int)
constexpr std::time_t kTicketKeySeconds = std::time_t{12} * 3600;
constexpr long kMaxClientChainBytes = 32 << 10;  // NOLINT(google-runtime-int)

// HTTP/2 before HTTP/1.1, whatever the client's order. Without ALPN the first bytes decide.
int ChooseProtocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* in, unsigned int in_size, void* /*arg*/) {
  static constexpr unsigned char kOffered[] = "\x02h2\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOffered, sizeof kOffered - 1, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

void SetRules(SSL_CTX* context, TlsVersion least) {
  // Whatever the system's openssl.cnf says.
  SSL_CTX_set_security_level(context, 2);
  SSL_CTX_set_min_proto_version(context,
                                least == TlsVersion::k13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_ciphersuites(
      context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384");
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  // Idle connections hold no buffers, and writes may end after any part and go on from elsewhere.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  static constexpr unsigned char kName[] = "floed";
  SSL_CTX_set_session_id_context(context, kName, sizeof kName - 1);
  SSL_CTX_set_timeout(context, kSessionSeconds);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_max_cert_list(context, kMaxClientChainBytes);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
}

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

std::string_view ViewOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string AddressText(const ASN1_OCTET_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  const int size = ASN1_STRING_length(bytes);
  if (size == 4 || size == 16)
    inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return text;
}

// "DNS:a"; "" for kinds that name nobody here.
std::string NameText(const GENERAL_NAME& name) {
  const auto text = [](const char* kind, std::string_view value) {
    return !value.empty() && IsPlain(value) ? absl::StrCat(kind, std::string(value))
                                            : std::string();
  };
  switch (name.type) {
    case GEN_DNS:
      return text("DNS:", ViewOf(name.d.dNSName));
    case GEN_URI:
      return text("URI:", ViewOf(name.d.uniformResourceIdentifier));
    case GEN_EMAIL:
      return text("email:", ViewOf(name.d.rfc822Name));
    case GEN_IPADD:
      return text("IP:", AddressText(name.d.iPAddress));
    default:
      return "";
  }
}

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

// One name, or none: with two it would depend on the reader who this is.
std::string CommonName(const X509& certificate) {
  const X509_NAME* const subject = X509_get_subject_name(&certificate);
  const int first = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (first < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, first) >= 0) return "";
  unsigned char* utf8 = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, first)));
  if (size < 0) return "";
  const std::string name(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return IsPlain(name) ? name : "";
}

}  // namespace

TlsPrincipal PrincipalOf(const x509_st& certificate) {
  TlsPrincipal principal{CommonName(certificate), {}};
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    std::string text = NameText(*sk_GENERAL_NAME_value(names.get(), i));
    if (!text.empty()) principal.names.push_back(std::move(text));
  }
  ERR_clear_error();
  return principal;
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Make(const TlsConfig& config,
                                                             WallClock now) {
  std::shared_ptr<TlsContext> made(new TlsContext(config, std::move(now)));
  FLOE_ASSIGN_OR_RETURN(const Pem pem, made->Read());
  FLOE_ASSIGN_OR_RETURN(Made built, made->Build(pem));
  made->Use(pem, std::move(built));
  made->LogExpiry();
  return made;
}

std::shared_ptr<ssl_ctx_st> TlsContext::Snapshot() const {
  MutexLock lock(mutex_);
  return current_.context;
}

TlsState TlsContext::state() const {
  TlsState state;
  {
    MutexLock lock(mutex_);
    state = {current_.subject, current_.not_after, problem_};
  }
  if (state.status.ok() && now_() > state.not_after)
    state.status = absl::FailedPreconditionError(
        absl::StrCat("the certificate of ", state.subject, " expired at ",
                     DateText(state.not_after), "; renew it"));
  return state;
}

absl::StatusOr<TlsContext::Pem> TlsContext::Read() const {
  Pem pem;
  if (const std::string& file = config_.ssl_config_file; !file.empty()) {
    FLOE_ASSIGN_OR_RETURN(const std::string text, ReadConfigText(file));
    FLOE_ASSIGN_OR_RETURN(SslConfig ssl, ParseSslConfig(text, file));
    pem.certificate = std::move(ssl.certificate);
    pem.key = std::move(ssl.key);
    pem.client_ca = std::move(ssl.client_ca);
    pem.certificate_file = absl::StrCat(file, ": server_cert");
    pem.key_file = absl::StrCat(file, ": server_key");
    pem.client_ca_file = absl::StrCat(file, ": custom_ca");
    if (ssl.client_verify) pem.client = ClientCertificates::kRequired;
    if (ssl.client_verify && pem.client_ca.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          file,
          ": client_verify is set without custom_ca; give the certificates that sign those "
          "of clients"));
    return pem;
  }
  FLOE_ASSIGN_OR_RETURN(pem.certificate, ReadConfigText(config_.certificate));
  FLOE_ASSIGN_OR_RETURN(pem.key, ReadConfigText(config_.key));
  if (!config_.client_ca.empty()) {
    FLOE_ASSIGN_OR_RETURN(pem.client_ca, ReadConfigText(config_.client_ca));
  }
  pem.certificate_file = config_.certificate;
  pem.key_file = config_.key;
  pem.client_ca_file = config_.client_ca;
  pem.client = config_.client;
  return pem;
}

absl::StatusOr<TlsContext::Made> TlsContext::Build(const Pem& pem) const {
  Made made;
  made.context = std::shared_ptr<SSL_CTX>(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX* const context = made.context.get();
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for a context of TLS");
  SetRules(context, config_.min_version);
  FLOE_RETURN_IF_ERROR(UseCertificates(context, pem.certificate, pem.certificate_file));
  FLOE_RETURN_IF_ERROR(UseKey(context, pem.key, pem.key_file, pem.certificate_file));
  const X509& certificate = *SSL_CTX_get0_certificate(context);
  FLOE_RETURN_IF_ERROR(CheckTimes(certificate, now_(), pem.certificate_file));
  if (pem.client != ClientCertificates::kNone) {
    FLOE_RETURN_IF_ERROR(TrustClientsOf(context, pem.client_ca, pem.client_ca_file));
    const bool required = pem.client == ClientCertificates::kRequired;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       nullptr);
    SSL_CTX_set_verify_depth(context, 8);
  }
  made.subject = SubjectOf(certificate);
  made.not_after = NotAfter(certificate);
  return made;
}

void TlsContext::Use(const Pem& pem, Made made) {
  used_ = pem;
  refused_.reset();
  made_at_ = now_();
  MutexLock lock(mutex_);
  current_ = std::move(made);
  problem_ = absl::OkStatus();
}

absl::Status TlsContext::Refused(const absl::Status& status) {
  const std::string message =
      absl::StrCat(std::string(status.message()), "; the certificate from before stays in use");
  const absl::Status problem(status.code(), message);
  bool known;
  {
    MutexLock lock(mutex_);
    known = problem_ == problem;
    problem_ = problem;
  }
  if (!known) spdlog::error("TLS: {}", message);
  return problem;
}

absl::Status TlsContext::Step(bool asked) {
  LogExpiry();
  absl::StatusOr<Pem> pem = Read();
  if (!pem.ok()) {
    // Between two files of a rename there may be none for a moment.
    const bool twice = asked || !seen_.has_value();
    seen_.reset();
    return twice ? Refused(pem.status()) : absl::OkStatus();
  }
  const bool settled = asked || (seen_.has_value() && *seen_ == *pem);
  seen_ = *pem;
  if (!settled || (!asked && refused_ == *pem)) return absl::OkStatus();
  const bool old_keys = now_() - made_at_ >= kTicketKeySeconds;
  const bool same = *pem == used_;
  if (same && !asked && !old_keys) {
    refused_.reset();
    MutexLock lock(mutex_);
    problem_ = absl::OkStatus();
    return absl::OkStatus();
  }
  absl::StatusOr<Made> made = Build(*pem);
  if (!made.ok()) {
    refused_ = *pem;
    return Refused(made.status());
  }
  const std::string what = absl::StrCat(made->subject, ", valid until ", DateText(made->not_after));
  Use(*pem, *std::move(made));
  if (!same || asked) spdlog::info("TLS: new connections use the certificate of {}", what);
  return absl::OkStatus();
}

// Once a day in the last two weeks.
void TlsContext::LogExpiry() {
  constexpr std::time_t kDay = 86'400;
  const TlsState now = state();
  const int days = static_cast<int>(std::max<std::time_t>(0, now.not_after - now_()) / kDay);
  if (days >= 14 || days == std::exchange(logged_days_, days)) return;
  spdlog::warn("TLS: the certificate of {} expires at {}; renew it", now.subject,
               DateText(now.not_after));
}

}  // namespace floe::server
