// Any bytes as what TLS is configured with: a file of certificates, of a key and of clients' CAs,
// and TensorFlow Serving's text with all three. What is accepted is the same when written and read
// again; what is refused has a reason that shows nothing of a key; and OpenSSL's queue of errors,
// which connections share, is left empty.
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/ssl_config.h"
#include "server/net/tls_context.h"
#include "server/net/tls_pem.h"
#include "tests/fuzz/fuzzer.h"

namespace floe::fuzz {
namespace {

constexpr std::time_t kNow = 2'000'000'000;  // in 2033; seeds are valid then
constexpr size_t kSecretRun = 16;            // characters of base64 that no message has by itself
constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";
constexpr std::string_view kUtcTime = "\x17\x0d";  // 13 characters follow

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using PemBio = std::unique_ptr<BIO, FreeBio>;

std::string PemOf(const PemBio& bio) {
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

bool IsBase64(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

// Whether a long run of base64 characters of `bytes` stands in `message`.
bool Shows(std::string_view message, std::string_view bytes) {
  size_t run = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    run = IsBase64(message[i]) ? run + 1 : 0;
    if (run >= kSecretRun &&
        bytes.find(message.substr(i + 1 - kSecretRun, kSecretRun)) != std::string_view::npos)
      return true;
  }
  return false;
}

void CheckStep(const absl::Status& status, std::string_view bytes) {
  if (ERR_peek_error() != 0) Fail("an error of OpenSSL is left to the next caller");
  if (status.ok()) return;
  const std::string message(status.message());
  if (status.code() != absl::StatusCode::kInvalidArgument || !message.starts_with("f:"))
    Fail("a refusal does not name the file: " + status.ToString());
  if (std::any_of(message.begin(), message.end(),
                  [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; }))
    Fail("a refusal has control characters");
  if (Shows(message, bytes)) Fail("a refusal shows what the file holds: " + message);
}

std::shared_ptr<SSL_CTX> NewContext() { return {SSL_CTX_new(TLS_server_method()), SSL_CTX_free}; }

std::vector<X509*> ChainOf(SSL_CTX* context) {
  std::vector<X509*> all = {SSL_CTX_get0_certificate(context)};
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i) all.push_back(sk_X509_value(chain, i));
  return all;
}

// What operators and rules are told of a certificate is plain text, and a time that holds.
void CheckTold(const X509& certificate) {
  const auto plain = [](const std::string& text) {
    return std::none_of(text.begin(), text.end(),
                        [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  };
  if (!plain(server::SubjectOf(certificate))) Fail("a subject has control characters");
  const server::TlsPrincipal principal = server::PrincipalOf(certificate);
  if (!plain(principal.common_name)) Fail("a name has control characters");
  for (const std::string& name : principal.names)
    if (!plain(name) || name.find(':') == std::string::npos) Fail("a name is none");
  const absl::Status times = server::CheckTimes(certificate, kNow, "f");
  CheckStep(times, "");
  const std::time_t end = server::NotAfter(certificate);
  if (times.ok() && end < kNow) Fail("an expired certificate is used");
  Touch(server::DateText(end).data(), server::DateText(end).size());
}

void CheckWrittenAgain(SSL_CTX* context, bool with_key) {
  const PemBio certificates(BIO_new(BIO_s_mem())), key(BIO_new(BIO_s_mem()));
  const std::vector<X509*> chain = ChainOf(context);
  for (X509* const one : chain) {
    CheckTold(*one);
    PEM_write_bio_X509(certificates.get(), one);
  }
  const auto again = NewContext();
  if (!server::UseCertificates(again.get(), PemOf(certificates), "f").ok())
    Fail("certificates that were written are refused");
  const std::vector<X509*> read = ChainOf(again.get());
  if (!std::equal(read.begin(), read.end(), chain.begin(), chain.end(),
                  [](X509* a, X509* b) { return X509_cmp(a, b) == 0; }))
    Fail("certificates that were written are other ones");
  if (!with_key) return;
  if (SSL_CTX_check_private_key(context) != 1) Fail("the key is another certificate's");
  PEM_write_bio_PrivateKey(key.get(), SSL_CTX_get0_privatekey(context), nullptr, nullptr, 0,
                           nullptr, nullptr);
  if (!server::UseKey(again.get(), PemOf(key), "f", "g").ok())
    Fail("a key that was written is refused");
}

// The texts as floed reads them; the first thing that is wrong.
absl::Status RunFiles(const std::string& certificate, const std::string& key,
                      const std::string& clients) {
  const auto trusting = NewContext();
  CheckStep(server::TrustClientsOf(trusting.get(), clients, "f"), clients);
  const auto context = NewContext();
  absl::Status certified = server::UseCertificates(context.get(), certificate, "f");
  CheckStep(certified, certificate);
  if (!certified.ok()) return certified;
  absl::Status keyed = server::UseKey(context.get(), key, "f", "g");
  CheckStep(keyed, key);
  CheckWrittenAgain(context.get(), keyed.ok());
  ERR_clear_error();
  return keyed;
}

// A block of a file: where its base64 stands.
struct Block {
  size_t begin, text, end;  // of the first label, of the base64, of the last label
};

std::vector<Block> BlocksOf(std::string_view bytes) {
  std::vector<Block> blocks;
  size_t at = 0;
  while ((at = bytes.find(kBegin, at)) != std::string_view::npos) {
    const size_t text = bytes.find('\n', at);
    const size_t end = bytes.find(kEnd, at);
    if (text == std::string_view::npos || end == std::string_view::npos || text > end) break;
    blocks.push_back({at, text + 1, end});
    at = end;
  }
  return blocks;
}

// As PEM has it, in lines of 64 characters.
std::string Lines(std::string_view der) {
  const std::string base64 = absl::Base64Escape(absl::string_view(der.data(), der.size()));
  std::string lines;
  for (size_t i = 0; i < base64.size(); i += 64)
    absl::StrAppend(&lines, base64.substr(i, 64), "\n");
  return lines;
}

// One block's bytes changed, so that changes get past base64; the block gone or twice.
std::string MutateBlock(const std::string& bytes, size_t max_size, Random& random) {
  const std::vector<Block> blocks = BlocksOf(bytes);
  if (blocks.empty()) return MutateBytes(bytes, max_size);
  const Block block = random.Pick(blocks);
  if (random.OneIn(12)) return bytes.substr(0, block.begin) + bytes.substr(block.end);
  if (random.OneIn(12)) return bytes + bytes.substr(block.begin);
  std::string der;
  const std::string text = bytes.substr(block.text, block.end - block.text);
  if (!absl::Base64Unescape(text, &der) || der.empty()) return MutateBytes(bytes, max_size);
  // One of its times, or anything.
  const size_t time = der.find(kUtcTime, random.Below(der.size()));
  if (random.OneIn(4) && time != std::string::npos && time + 15 <= der.size())
    der[time + 2 + random.Below(13)] = static_cast<char>(' ' + random.Below(95));
  else
    der = MutateBytes(der, der.size() + 16);
  return bytes.substr(0, block.text) + Lines(der) + bytes.substr(block.end);
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) {
  absl::Status file = RunFiles(bytes, bytes, bytes);
  const absl::StatusOr<SslConfig> ssl = ParseSslConfig(bytes, "f");
  CheckStep(ssl.status(), bytes);
  return ssl.ok() ? RunFiles(ssl->certificate, ssl->key, ssl->client_ca) : file;
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  static constexpr std::string_view kParts[] = {
      "-----BEGIN CERTIFICATE-----\n",
      "-----END CERTIFICATE-----\n",
      "-----BEGIN PRIVATE KEY-----\n",
      "-----END PRIVATE KEY-----\n",
      "-----BEGIN EC PARAMETERS-----\n",
      "-----BEGIN TRUSTED CERTIFICATE-----\n",
      "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n",
      "server_key: \"",
      "server_cert: \"",
      "custom_ca: '",
      "client_verify: true\n",
      "\\n",
      "\n",
      "\"",
      "{",
      "# "};
  if (random.OneIn(8)) return MutateBytes(bytes, max_size);
  if (random.OneIn(3)) return PutInto(bytes, random.Pick(kParts), random);
  return MutateBlock(bytes, max_size, random);
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return random.OneIn(2) ? one + other : SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
