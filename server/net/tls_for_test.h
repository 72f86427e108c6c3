// Certificates made for a test, and both ends of a connection in memory.
#pragma once

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace floe::server::tls_test {

struct Identity {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;

  std::string CertificatePem() const {
    BIO* const bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate.get());
    return TextOf(bio);
  }
  std::string KeyPem(const char* passphrase = nullptr) const {
    BIO* const bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(bio, key.get(), passphrase ? EVP_aes_128_cbc() : nullptr, nullptr,
                                  0, nullptr, const_cast<char*>(passphrase));
    return TextOf(bio);
  }

 private:
  static std::string TextOf(BIO* bio) {
    char* text = nullptr;
    const auto size = BIO_get_mem_data(bio, &text);
    std::string copy(text, static_cast<size_t>(size));
    BIO_free(bio);
    return copy;
  }
};

struct Wanted {
  std::string common_name = "server";
  std::string names = {};  // "DNS:a,IP:1.2.3.4"
  std::time_t from = std::time(nullptr) - 3600, to = std::time(nullptr) + 90 * 86400;
  bool ca = false;
  int rsa_bits = 0;  // 0: an EC key
};

inline void AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Signed by `signer`, or by itself.
inline Identity Issue(const Wanted& wanted, const Identity* signer = nullptr) {
  Identity made;
  made.key.reset(wanted.rsa_bits > 0 ? EVP_RSA_gen(static_cast<unsigned>(wanted.rsa_bits))
                                     : EVP_EC_gen("P-256"),
                 EVP_PKEY_free);
  made.certificate.reset(X509_new(), X509_free);
  X509* const certificate = made.certificate.get();
  static int serial = 0;
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  ASN1_TIME_set(X509_getm_notBefore(certificate), wanted.from);
  ASN1_TIME_set(X509_getm_notAfter(certificate), wanted.to);
  if (!wanted.common_name.empty())
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(wanted.common_name.data()),
                               static_cast<int>(wanted.common_name.size()), -1, 0);
  const Identity& by = signer == nullptr ? made : *signer;
  X509_set_issuer_name(certificate, X509_get_subject_name(by.certificate.get()));
  X509_set_pubkey(certificate, made.key.get());
  AddExtension(certificate, NID_basic_constraints, wanted.ca ? "critical,CA:TRUE" : "CA:FALSE");
  if (!wanted.names.empty()) AddExtension(certificate, NID_subject_alt_name, wanted.names);
  X509_sign(certificate, by.key.get(), EVP_sha256());
  return made;
}

// A client that trusts `ca`, offers these protocols ("\x02h2") and may have a certificate.
inline std::shared_ptr<SSL_CTX> ClientContext(const Identity& ca, const Identity* own = nullptr) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.certificate.get());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (own != nullptr) {
    SSL_CTX_use_certificate(context.get(), own->certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), own->key.get());
  }
  return context;
}

// Two ends whose bytes go from one to the other.
struct Pair {
  std::shared_ptr<SSL> client, server;

  Pair(SSL_CTX* client_context, SSL_CTX* server_context, const std::string& alpn = "",
       SSL_SESSION* session = nullptr)
      : client(SSL_new(client_context), SSL_free), server(SSL_new(server_context), SSL_free) {
    BIO *one = nullptr, *other = nullptr;
    BIO_new_bio_pair(&one, 0, &other, 0);
    SSL_set_bio(client.get(), one, one);
    SSL_set_bio(server.get(), other, other);
    if (!alpn.empty())
      SSL_set_alpn_protos(client.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned>(alpn.size()));
    if (session != nullptr) SSL_set_session(client.get(), session);
    SSL_set_connect_state(client.get());
    SSL_set_accept_state(server.get());
  }

  // Whether both ends finish the handshake, and a byte gets through each way.
  bool Shake() {
    for (int turn = 0; turn < 20; ++turn) {
      const int client_said = SSL_do_handshake(client.get());
      const int server_said = SSL_do_handshake(server.get());
      if (client_said == 1 && server_said == 1)
        return Carry(client, server) && Carry(server, client);
      if (Failed(client.get(), client_said) || Failed(server.get(), server_said)) break;
    }
    // What a client of TLS 1.3 hears of a refused certificate comes after its handshake.
    return false;
  }
  std::string Alpn() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(server.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

 private:
  static bool Failed(SSL* ssl, int said) {
    return said != 1 && SSL_get_error(ssl, said) != SSL_ERROR_WANT_READ;
  }
  static bool Carry(const std::shared_ptr<SSL>& from, const std::shared_ptr<SSL>& to) {
    char byte = 0;
    return SSL_write(from.get(), "x", 1) == 1 && SSL_read(to.get(), &byte, 1) == 1;
  }
};

// Files of one test.
struct Folder {
  std::filesystem::path path;

  Folder() {
    std::string name = testing::TempDir() + "tlsXXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
  std::string Name(const std::string& name) const { return path / name; }
};

}  // namespace floe::server::tls_test
