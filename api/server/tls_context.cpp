#include "api/server/tls_context.h"

#include <fmt/core.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "api/server/tls_stream.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr const char* kCiphersOfTls12 = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr int kSecurityLevel = 2;  ///< RSA keys of 2,048 bits and more
constexpr std::string_view kProtocols = "\x08http/1.1";
constexpr std::string_view kSessionContext = "meshd";

core::Error cannot_use(const std::string& option, const std::string& file, const std::string& why) {
  return core::Error("internal", option + ": '" + file + "' " + why);
}

/// OpenSSL's word for its last error.
std::string last_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("OpenSSL error {}", code);
}

void expect_readable(const std::string& option, const std::string& file) {
  errno = 0;
  if (!std::ifstream(file)) throw cannot_use(option, file, std::string("cannot be read: ") + std::strerror(errno));
}

/// A server cannot prompt for a passphrase.
int no_passphrase(char*, int, int, void*) { return -1; }

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(kProtocols.data()),
                                          static_cast<unsigned int>(kProtocols.size()), offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void set_rules(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_security_level(context, kSecurityLevel);
  SSL_CTX_set_cipher_list(context, kCiphersOfTls12);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                   SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  // A record without data ends a call, so that a flood of them cannot keep the reactor.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  // Sessions are resumed by tickets, which cost no memory here.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(kSessionContext.data()),
                                 static_cast<unsigned int>(kSessionContext.size()));
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_alpn_select_cb(context, &choose_protocol, nullptr);
  SSL_CTX_set_default_passwd_cb(context, &no_passphrase);
}

std::shared_ptr<SSL_CTX> load(const std::string& certificate_file, const std::string& key_file) {
  expect_readable("--tls-cert", certificate_file);
  expect_readable("--tls-key", key_file);
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), [](SSL_CTX* made) { SSL_CTX_free(made); });
  if (!context) throw core::Error("internal", "TLS cannot be set up: " + last_reason());
  set_rules(context.get());
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file.c_str()) != 1) {
    throw cannot_use("--tls-cert", certificate_file, "holds no usable chain of certificates in PEM: " + last_reason());
  }
  ERR_clear_error();
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const unsigned long code = ERR_peek_last_error();
    if (ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH) {
      throw cannot_use("--tls-key", key_file, "is not the key of the first certificate in '" + certificate_file + "'");
    }
    throw cannot_use("--tls-key", key_file, "holds no private key in PEM without passphrase: " + last_reason());
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    throw cannot_use("--tls-key", key_file, "is not the key of the first certificate in '" + certificate_file + "'");
  }
  return context;
}

std::string text_of(const ASN1_TIME* time) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  std::array<char, 64> text{};
  if (!out || ASN1_TIME_print(out.get(), time) != 1) return {};
  const int size = BIO_read(out.get(), text.data(), static_cast<int>(text.size()));
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : std::string();
}

}  // namespace

TlsContext::TlsContext(std::string certificate_file, std::string key_file)
    : certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      context_(load(certificate_file_, key_file_)) {}

TlsContext::~TlsContext() = default;

void TlsContext::reload() {
  std::shared_ptr<SSL_CTX> fresh = load(certificate_file_, key_file_);
  const std::lock_guard held(mutex_);
  context_.swap(fresh);
}

CertificateFacts TlsContext::facts() const {
  const std::shared_ptr<SSL_CTX> context = [this] {
    const std::lock_guard held(mutex_);
    return context_;
  }();
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  CertificateFacts out;
  std::array<char, 256> subject{};
  X509_NAME_oneline(X509_get_subject_name(certificate), subject.data(), static_cast<int>(subject.size()));
  out.subject = subject.data();
  out.not_after = text_of(X509_get0_notAfter(certificate));
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    out.warnings.push_back(
        fmt::format("the certificate in '{}' has been over since {}", certificate_file_, out.not_after));
  }
  struct stat key {};
  if (::stat(key_file_.c_str(), &key) == 0 && (key.st_mode & S_IROTH) != 0) {
    out.warnings.push_back("'" + key_file_ + "' is readable by everybody on this machine: chmod o= it");
  }
  return out;
}

std::unique_ptr<ByteStream> TlsContext::accept(int socket) const {
  const std::shared_ptr<SSL_CTX> context = [this] {
    const std::lock_guard held(mutex_);
    return context_;
  }();
  return std::make_unique<TlsStream>(context.get(), socket);
}

}  // namespace meshd::api
