#include "tests/http/transport.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "api/server/tls_context.h"
#include "tests/http/tls_files.h"
#include "tests/support/temp_folder.h"

namespace meshd::http_test {

bool is_over_tls() {
  static const bool is = [] {
    const char* transport = std::getenv("MESHD_TEST_TRANSPORT");
    return transport != nullptr && std::string_view(transport) == "tls";
  }();
  return is;
}

std::shared_ptr<api::TlsContext> server_certificate() {
  static const std::shared_ptr<api::TlsContext> context = [] {
    const testing::TempFolder folder;
    const TlsFiles files = make_certificate(folder.path(), "front");
    return std::make_shared<api::TlsContext>(files.certificate, files.key);
  }();
  return context;
}

std::shared_ptr<ssl_st> client_handshake(int socket) {
  static const std::shared_ptr<SSL_CTX> context = [] {
    // OpenSSL writes without MSG_NOSIGNAL.
    std::signal(SIGPIPE, SIG_IGN);
    std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_clear_mode(made.get(), SSL_MODE_AUTO_RETRY);
    return made;
  }();
  ERR_clear_error();
  std::shared_ptr<SSL> session(SSL_new(context.get()), &SSL_free);
  if (session == nullptr || SSL_set_fd(session.get(), socket) != 1 || SSL_connect(session.get()) != 1)
    throw std::runtime_error("no TLS handshake");
  return session;
}

}  // namespace meshd::http_test
