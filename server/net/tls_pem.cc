// Reading PEM: certificates, keys, and what is wrong with them.
#include "server/net/tls_pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::server {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using BioPointer = std::unique_ptr<BIO, FreeBio>;
using CertificatePointer = std::unique_ptr<X509, FreeCertificate>;
using KeyPointer = std::unique_ptr<EVP_PKEY, FreeKey>;

BioPointer BioOf(const std::string& text) {
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// What checks leave behind is no error of the connections of this thread.
struct NoErrorsLeft {
  ~NoErrorsLeft() { ERR_clear_error(); }
};

// OpenSSL's newest reason; the others are forgotten.
std::string TakeReason() {
  const unsigned long code = ERR_peek_last_error();  // NOLINT(google-runtime-int)
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "unknown error" : reason;
}

absl::Status WrongPem(const std::string& file, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what));
}

bool HoldsLabel(const std::string& pem, std::string_view label) {
  return pem.find(absl::StrCat("-----BEGIN ", std::string(label))) != std::string::npos;
}

bool HoldsKey(const std::string& pem) {
  for (const char* kind : {"", "RSA ", "EC ", "ENCRYPTED "})
    if (HoldsLabel(pem, absl::StrCat(kind, "PRIVATE KEY-----"))) return true;
  return false;
}

// There is nobody to ask for a passphrase.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

absl::StatusOr<std::vector<CertificatePointer>> ReadCertificates(const std::string& pem,
                                                                 const std::string& file) {
  std::vector<CertificatePointer> read;
  const BioPointer bio = BioOf(pem);
  bool asked = false;
  ERR_clear_error();
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, &asked))
    read.emplace_back(one);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = TakeReason();
  if (!at_end)
    return WrongPem(
        file, absl::StrCat("certificate ", read.size() + 1, " of the file cannot be read (", reason,
                           "); copy the file again, or have it issued again"));
  if (!read.empty()) return read;
  if (HoldsKey(pem))
    return WrongPem(
        file,
        "holds a private key; expected certificates. Are the paths of certificate and key "
        "mixed up?");
  return WrongPem(file, "holds no certificate in PEM form; expected -----BEGIN CERTIFICATE-----");
}

}  // namespace

absl::Status UseCertificates(ssl_ctx_st* context, const std::string& pem, const std::string& file) {
  const NoErrorsLeft errors;
  FLOE_ASSIGN_OR_RETURN(std::vector<CertificatePointer> all, ReadCertificates(pem, file));
  if (SSL_CTX_use_certificate(context, all[0].get()) != 1)
    return WrongPem(
        file,
        absl::StrCat("the certificate of ", SubjectOf(*all[0]), " cannot be used: ", TakeReason(),
                     "; have one issued for an EC key, or an RSA key of 2048 bits "
                     "or more"));
  for (size_t i = 1; i < all.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, all[i].get()) != 1)
      return WrongPem(file, absl::StrCat("the certificate of ", SubjectOf(*all[i]), ", number ",
                                         i + 1, " of the file, cannot be used: ", TakeReason()));
  }
  return absl::OkStatus();
}

absl::Status UseKey(ssl_ctx_st* context, const std::string& pem, const std::string& file,
                    const std::string& certificate_file) {
  const NoErrorsLeft errors;
  const BioPointer bio = BioOf(pem);
  bool asked = false;
  ERR_clear_error();
  const KeyPointer key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, &asked));
  const std::string reason = TakeReason();
  if (asked)
    return WrongPem(file,
                    "the key has a passphrase, for which nobody can be asked; write it without one "
                    "(openssl pkey -in FILE -out NEW) and let file permissions protect it");
  if (key == nullptr && !HoldsKey(pem))
    return WrongPem(
        file, HoldsLabel(pem, "CERTIFICATE")
                  ? "holds a certificate; expected a private key. Are the paths of certificate "
                    "and key mixed up?"
                  : "holds no private key in PEM form; expected -----BEGIN PRIVATE KEY-----");
  if (key == nullptr)
    return WrongPem(
        file, absl::StrCat("the private key cannot be read (", reason, "); copy the file again"));
  X509* const certificate = SSL_CTX_get0_certificate(context);
  if (X509_check_private_key(certificate, key.get()) != 1)
    return WrongPem(
        file, absl::StrCat("the key is not that of the certificate in ", certificate_file, " (",
                           SubjectOf(*certificate), "); give the pair that was made together"));
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return WrongPem(file, absl::StrCat("the key cannot be used: ", TakeReason()));
  return absl::OkStatus();
}

absl::Status TrustClientsOf(ssl_ctx_st* context, const std::string& pem, const std::string& file) {
  const NoErrorsLeft errors;
  FLOE_ASSIGN_OR_RETURN(std::vector<CertificatePointer> all, ReadCertificates(pem, file));
  for (const CertificatePointer& one : all) {
    if (X509_check_ca(one.get()) == 0)
      return WrongPem(file, absl::StrCat("the certificate of ", SubjectOf(*one),
                                         " may not sign others (it is no CA); give the one that "
                                         "signs the clients' certificates"));
    // The name alone is sent to clients, for them to choose a certificate by.
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()) != 1 ||
        SSL_CTX_add_client_CA(context, one.get()) != 1)
      return WrongPem(file, absl::StrCat("the certificate of ", SubjectOf(*one),
                                         " cannot be used: ", TakeReason()));
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(const x509_st& certificate, std::time_t now, const std::string& file) {
  const NoErrorsLeft errors;
  std::time_t at = now;  // the call's argument is not const
  const int end = X509_cmp_time(X509_get0_notAfter(&certificate), &at);
  const int begin = X509_cmp_time(X509_get0_notBefore(&certificate), &at);
#ifndef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
  if (end == 0 || begin == 0)
    return WrongPem(file, absl::StrCat("the certificate of ", SubjectOf(certificate),
                                       " has a time that cannot be read; have it issued again"));
#endif
  if (end < 0)
    return WrongPem(file,
                    absl::StrCat("the certificate of ", SubjectOf(certificate), " expired at ",
                                 DateText(NotAfter(certificate)), "; renew it"));
  if (begin > 0)
    return WrongPem(file, absl::StrCat("the certificate of ", SubjectOf(certificate),
                                       " is not valid yet; check the clock of this machine (",
                                       DateText(now), ")"));
  return absl::OkStatus();
}

std::string SubjectOf(const x509_st& certificate) {
  const NoErrorsLeft errors;
  const BioPointer bio(BIO_new(BIO_s_mem()));
  // Escapes control characters and what is not ASCII.
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(&certificate), 0,
                     ASN1_STRFLGS_RFC2253 | XN_FLAG_SEP_CPLUS_SPC | XN_FLAG_FN_SN);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  std::string subject = Escaped(std::string_view(text, static_cast<size_t>(size)));
  return subject.empty() ? "(no name)" : subject;
}

std::time_t NotAfter(const x509_st& certificate) {
  std::tm when = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &when) != 1) return 0;
  return timegm(&when);
}

std::string DateText(std::time_t seconds) {
  std::tm when = {};
  char text[40];
  gmtime_r(&seconds, &when);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &when));
}

}  // namespace floe::server
