// PEM texts put into an OpenSSL context, with errors that say what to do.
#pragma once

#include <ctime>
#include <string>

#include "absl/status/status.h"

struct ssl_ctx_st;
struct x509_st;

namespace floe::server {

// `file` is what messages call the text. INVALID_ARGUMENT for all of them.

// The first certificate is the server's, the others go with it.
absl::Status UseCertificates(ssl_ctx_st* context, const std::string& pem, const std::string& file);
// After UseCertificates: the key must be the certificate's.
absl::Status UseKey(ssl_ctx_st* context, const std::string& pem, const std::string& file,
                    const std::string& certificate_file);
// Clients' certificates must lead to one of these.
absl::Status TrustClientsOf(ssl_ctx_st* context, const std::string& pem, const std::string& file);

// Whether it is valid at `now`: expired ones and those of the future are refused.
absl::Status CheckTimes(const x509_st& certificate, std::time_t now, const std::string& file);

std::string SubjectOf(const x509_st& certificate);  // "CN=a, O=b"
std::time_t NotAfter(const x509_st& certificate);   // seconds since 1970
std::string DateText(std::time_t seconds);          // "2026-11-29 07:50 UTC"

}  // namespace floe::server
