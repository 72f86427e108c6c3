#include "server/net/tls_context.h"

#include <gmock/gmock.h>

#include "server/net/tls_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tls_test::ClientContext;
using tls_test::Identity;
using tls_test::Issue;

class TlsContextTest : public testing::Test {
 protected:
  TlsConfig Config() const {
    return {.certificate = folder_.Name("cert"), .key = folder_.Name("key")};
  }
  void WritePair(const Identity& identity) const {
    folder_.Write("cert", identity.CertificatePem());
    folder_.Write("key", identity.KeyPem());
  }
  std::shared_ptr<TlsContext> Make(const TlsConfig& config) {
    auto made = TlsContext::Make(config, [this] { return now_; });
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : nullptr;
  }
  std::string Error(const TlsConfig& config) {
    const auto made = TlsContext::Make(config, [this] { return now_; });
    return made.ok() ? "OK" : std::string(made.status().message());
  }
  // The name that a new connection shows.
  std::string Served(const TlsContext& context) const {
    const auto client = ClientContext(ca_);
    const auto server = context.Snapshot();
    tls_test::Pair pair(client.get(), server.get());
    if (!pair.Shake()) return "(refused)";
    const std::unique_ptr<X509, void (*)(X509*)> shown(SSL_get1_peer_certificate(pair.client.get()),
                                                       X509_free);
    return PrincipalOf(*shown).common_name;
  }

  const tls_test::Folder folder_;
  std::time_t now_ = std::time(nullptr);
  const Identity ca_ = Issue({.common_name = "ca", .ca = true});
  const Identity one_ = Issue({.common_name = "one"}, &ca_);
  const Identity two_ = Issue({.common_name = "two"}, &ca_);
};

TEST_F(TlsContextTest, ServesBothVersionsAndChoosesHttp2) {
  WritePair(one_);
  const auto context = Make(Config());
  EXPECT_EQ(Served(*context), "one");
  EXPECT_EQ(context->state().subject, "CN=one");
  EXPECT_NEAR(static_cast<double>(context->state().not_after - now_), 90 * 86400, 60);
  const auto client = ClientContext(ca_);
  for (const auto& [offered, chosen] :
       {std::pair("\x02h2", "h2"), std::pair("\x08http/1.1\x02h2", "h2"),
        std::pair("\x08http/1.1", "http/1.1"), std::pair("", "")}) {
    tls_test::Pair pair(client.get(), context->Snapshot().get(), offered);
    EXPECT_TRUE(pair.Shake()) << offered;
    EXPECT_EQ(pair.Alpn(), chosen);
  }
  EXPECT_FALSE(tls_test::Pair(client.get(), context->Snapshot().get(), "\x04spdy").Shake());
  SSL_CTX_set_max_proto_version(client.get(), TLS1_2_VERSION);
  tls_test::Pair old(client.get(), context->Snapshot().get());
  EXPECT_TRUE(old.Shake());
  EXPECT_EQ(SSL_version(old.server.get()), TLS1_2_VERSION);
  EXPECT_THAT(SSL_get_cipher_name(old.server.get()), StartsWith("ECDHE-"));
  SSL_CTX_set_min_proto_version(client.get(), TLS1_1_VERSION);
  SSL_CTX_set_max_proto_version(client.get(), TLS1_1_VERSION);
  SSL_CTX_set_security_level(client.get(), 0);
  EXPECT_FALSE(tls_test::Pair(client.get(), context->Snapshot().get()).Shake());
}

TEST_F(TlsContextTest, OldVersionsAreRefusedWhereTheConfigurationSaysSo) {
  WritePair(one_);
  TlsConfig config = Config();
  config.min_version = TlsVersion::k13;
  const auto context = Make(config);
  const auto client = ClientContext(ca_);
  EXPECT_TRUE(tls_test::Pair(client.get(), context->Snapshot().get()).Shake());
  SSL_CTX_set_max_proto_version(client.get(), TLS1_2_VERSION);
  EXPECT_FALSE(tls_test::Pair(client.get(), context->Snapshot().get()).Shake());
}

TEST_F(TlsContextTest, ATimeThatCannotBeReadIsRefused) {
  for (const auto time : {X509_getm_notAfter, X509_getm_notBefore}) {
    const Identity broken = Issue({.common_name = "broken"}, &ca_);
    ASN1_STRING_set(time(broken.certificate.get()), "garbage", 7);
    X509_sign(broken.certificate.get(), ca_.key.get(), EVP_sha256());
    WritePair(broken);
    EXPECT_THAT(Error(Config()), HasSubstr("CN=broken has a time that cannot be read"));
  }
}

TEST_F(TlsContextTest, NobodyRenegotiatesOrMakesWeakConnections) {
  WritePair(one_);
  const auto context = Make(Config());
  const auto client = ClientContext(ca_);
  SSL_CTX_set_max_proto_version(client.get(), TLS1_2_VERSION);
  tls_test::Pair pair(client.get(), context->Snapshot().get());
  ASSERT_TRUE(pair.Shake());
  ASSERT_EQ(SSL_renegotiate(pair.client.get()), 1);
  SSL_do_handshake(pair.client.get());
  char byte;
  EXPECT_LE(SSL_read(pair.server.get(), &byte, 1), 0);
  SSL_do_handshake(pair.client.get());
  EXPECT_TRUE(SSL_renegotiate_pending(pair.client.get()) == 1) << "it was answered";
  for (const char* weak : {"AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "kRSA", "aNULL"}) {
    const auto other = ClientContext(ca_);
    SSL_CTX_set_max_proto_version(other.get(), TLS1_2_VERSION);
    SSL_CTX_set_security_level(other.get(), 0);
    SSL_CTX_set_cipher_list(other.get(), weak);
    EXPECT_FALSE(tls_test::Pair(other.get(), context->Snapshot().get()).Shake()) << weak;
  }
}

TEST_F(TlsContextTest, SessionsAreResumedUntilTheCertificateChanges) {
  WritePair(one_);
  const auto context = Make(Config());
  const auto client = ClientContext(ca_);
  SSL_CTX_set_max_proto_version(client.get(), TLS1_2_VERSION);
  tls_test::Pair first(client.get(), context->Snapshot().get());
  ASSERT_TRUE(first.Shake());
  SSL_SESSION* const session = SSL_get1_session(first.client.get());
  tls_test::Pair again(client.get(), context->Snapshot().get(), "", session);
  ASSERT_TRUE(again.Shake());
  EXPECT_EQ(SSL_session_reused(again.server.get()), 1);
  now_ += 13 * 3600;  // the keys of tickets are new
  context->Poll();
  context->Poll();
  tls_test::Pair later(client.get(), context->Snapshot().get(), "", session);
  ASSERT_TRUE(later.Shake());
  EXPECT_EQ(SSL_session_reused(later.server.get()), 0);
  SSL_SESSION_free(session);
}

TEST_F(TlsContextTest, ClientsAreAskedAsTheConfigurationSays) {
  WritePair(one_);
  folder_.Write("ca", ca_.CertificatePem());
  TlsConfig config = Config();
  config.client_ca = folder_.Name("ca");
  const Identity known = Issue({.common_name = "known", .names = "DNS:a.b,URI:spiffe://a/b"}, &ca_);
  const Identity stranger = Issue({.common_name = "known"});
  for (const ClientCertificates asked :
       {ClientCertificates::kRequired, ClientCertificates::kOptional}) {
    config.client = asked;
    const auto context = Make(config);
    const auto with = ClientContext(ca_, &known), bare = ClientContext(ca_),
               wrong = ClientContext(ca_, &stranger);
    tls_test::Pair pair(with.get(), context->Snapshot().get());
    ASSERT_TRUE(pair.Shake());
    const std::unique_ptr<X509, void (*)(X509*)> shown(SSL_get1_peer_certificate(pair.server.get()),
                                                       X509_free);
    EXPECT_EQ(PrincipalOf(*shown).common_name, "known");
    EXPECT_THAT(PrincipalOf(*shown).names, ElementsAre("DNS:a.b", "URI:spiffe://a/b"));
    EXPECT_EQ(tls_test::Pair(bare.get(), context->Snapshot().get()).Shake(),
              asked == ClientCertificates::kOptional);
    EXPECT_FALSE(tls_test::Pair(wrong.get(), context->Snapshot().get()).Shake());
  }
}

TEST_F(TlsContextTest, ANewPairIsUsedOnceItIsWhole) {
  WritePair(one_);
  const auto context = Make(Config());
  const auto before = context->Snapshot();
  context->Poll();
  folder_.Write("cert", two_.CertificatePem());
  context->Poll();  // the key is still the old one's
  folder_.Write("key", two_.KeyPem());
  context->Poll();
  EXPECT_EQ(Served(*context), "one");
  EXPECT_TRUE(context->state().status.ok());
  context->Poll();
  EXPECT_EQ(Served(*context), "two");
  EXPECT_EQ(context->state().subject, "CN=two");
  const auto client = ClientContext(ca_);
  EXPECT_TRUE(tls_test::Pair(client.get(), before.get()).Shake()) << "connections keep theirs";
}

// As Kubernetes does it: the files are links to ..data/NAME, and ..data is turned.
TEST_F(TlsContextTest, ATurnedLinkIsANewFile) {
  for (const auto* identity : {&one_, &two_}) {
    const std::string name = identity == &one_ ? "v1" : "v2";
    std::filesystem::create_directory(folder_.path / name);
    folder_.Write(name + "/cert", identity->CertificatePem());
    folder_.Write(name + "/key", identity->KeyPem());
  }
  std::filesystem::create_symlink("v1", folder_.path / "..data");
  std::filesystem::create_symlink("..data/cert", folder_.path / "cert");
  std::filesystem::create_symlink("..data/key", folder_.path / "key");
  const auto context = Make(Config());
  std::filesystem::create_symlink("v2", folder_.path / "..tmp");
  std::filesystem::rename(folder_.path / "..tmp", folder_.path / "..data");
  context->Poll();
  context->Poll();
  EXPECT_EQ(Served(*context), "two");
}

TEST_F(TlsContextTest, WrongFilesChangeNothingAndAreSaid) {
  WritePair(one_);
  const auto context = Make(Config());
  const auto polled = [&] {
    context->Poll();
    context->Poll();
    return std::string(context->state().status.message());
  };
  folder_.Write("cert", two_.CertificatePem());
  EXPECT_THAT(polled(), AllOf(HasSubstr("key is not that of the certificate"),
                              HasSubstr("from before stays in use")));
  std::filesystem::remove(folder_.path / "cert");
  EXPECT_THAT(polled(), HasSubstr("No such file"));
  const Identity expired = Issue({.common_name = "late", .to = now_ - 60}, &ca_);
  WritePair(expired);
  EXPECT_THAT(polled(), AllOf(HasSubstr("CN=late expired at"), HasSubstr("renew it")));
  EXPECT_THAT(std::string(context->Reload().message()), HasSubstr("CN=late expired at"));
  EXPECT_EQ(Served(*context), "one");
  WritePair(one_);
  EXPECT_EQ(polled(), "") << "the same as before is no longer wrong";
  WritePair(two_);
  EXPECT_TRUE(context->Reload().ok()) << "at once";
  EXPECT_EQ(Served(*context), "two");
}

TEST_F(TlsContextTest, AnExpiredCertificateIsSaidWhileItIsInUse) {
  WritePair(one_);
  const auto context = Make(Config());
  EXPECT_TRUE(context->state().status.ok());
  now_ += 91 * 86400;
  context->Poll();
  EXPECT_THAT(std::string(context->state().status.message()), HasSubstr("CN=one expired at"));
}

TEST_F(TlsContextTest, MistakesNameTheFileAndTheWayOut) {
  WritePair(one_);
  const std::string cert = folder_.Name("cert"), key = folder_.Name("key");
  EXPECT_THAT(Error({.certificate = "/no/such", .key = key}),
              AllOf(HasSubstr("'/no/such'"), HasSubstr("No such file")));
  EXPECT_THAT(Error({.certificate = key, .key = cert}),
              AllOf(StartsWith(key), HasSubstr("private key"), HasSubstr("mixed up")));
  EXPECT_THAT(Error({.certificate = cert, .key = cert}),
              AllOf(StartsWith(cert), HasSubstr("holds a certificate; expected a private key")));
  const std::string text = folder_.Write("text", "hello\n");
  EXPECT_THAT(Error({.certificate = text, .key = key}), HasSubstr("-----BEGIN CERTIFICATE-----"));
  EXPECT_THAT(Error({.certificate = cert, .key = text}), HasSubstr("-----BEGIN PRIVATE KEY-----"));
  const std::string cut = folder_.Write("cut", one_.CertificatePem().substr(0, 300));
  EXPECT_THAT(Error({.certificate = cut, .key = key}), HasSubstr("copy the file again"));
  const std::string secret = folder_.Write("secret", one_.KeyPem("word"));
  EXPECT_THAT(Error({.certificate = cert, .key = secret}), HasSubstr("passphrase"));
  const std::string other = folder_.Write("other", two_.KeyPem());
  EXPECT_THAT(Error({.certificate = cert, .key = other}),
              AllOf(StartsWith(other), HasSubstr(cert), HasSubstr("CN=one")));
  const Identity weak = Issue({.rsa_bits = 1024}, &ca_);
  EXPECT_THAT(Error({.certificate = folder_.Write("weak", weak.CertificatePem()),
                     .key = folder_.Write("weak_key", weak.KeyPem())}),
              AllOf(HasSubstr("cannot be used"), HasSubstr("2048 bits")));
  const Identity early = Issue({.from = now_ + 9999}, &ca_);
  EXPECT_THAT(Error({.certificate = folder_.Write("early", early.CertificatePem()),
                     .key = folder_.Write("early_key", early.KeyPem())}),
              HasSubstr("not valid yet"));
  EXPECT_THAT(Error({.certificate = cert,
                     .key = key,
                     .client_ca = cert,
                     .client = ClientCertificates::kRequired}),
              AllOf(StartsWith(cert), HasSubstr("it is no CA")));
}

TEST_F(TlsContextTest, TensorFlowServingsFileHoldsThePem) {
  const auto quoted = [](std::string pem) {
    for (size_t at = 0; (at = pem.find('\n', at)) != std::string::npos; at += 2)
      pem.replace(at, 1, "\\n");
    return "\"" + pem + "\"";
  };
  const std::string pair =
      "server_key: " + quoted(one_.KeyPem()) + " server_cert: " + quoted(one_.CertificatePem());
  const auto context = Make({.ssl_config_file = folder_.Write("ssl", pair)});
  EXPECT_EQ(Served(*context), "one");
  EXPECT_THAT(Error({.ssl_config_file = folder_.Write("bad", pair + " client_verify: true")}),
              HasSubstr("without custom_ca"));
  folder_.Write("ssl", pair + " client_verify: true custom_ca: " + quoted(ca_.CertificatePem()));
  EXPECT_TRUE(context->Reload().ok());
  EXPECT_EQ(Served(*context), "(refused)") << "clients need a certificate now";
}

TEST(Principals, NamesThatDependOnTheReaderAreLeftOut) {
  const Identity zero =
      Issue({.common_name = std::string("good\0bad", 8), .names = "IP:127.0.0.1,IP:::1,email:a@b"});
  EXPECT_EQ(PrincipalOf(*zero.certificate).common_name, "");
  EXPECT_THAT(PrincipalOf(*zero.certificate).names,
              ElementsAre("IP:127.0.0.1", "IP:::1", "email:a@b"));
  EXPECT_EQ(PrincipalOf(*Issue({.common_name = ""}).certificate).common_name, "");
}

}  // namespace
}  // namespace floe::server
