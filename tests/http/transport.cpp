#include "tests/http/transport.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "api/server/tls_context.h"
#include "tests/http/tls_files.h"
#include "tests/support/temp_folder.h"

namespace meshd::http_test {

namespace {

/// What a call waits for that returned `result`: 0 when the connection has ended.
short event_wanted(const ssl_st* session, int result) {
  switch (SSL_get_error(session, result)) {
    case SSL_ERROR_WANT_READ:
      return POLLIN;
    case SSL_ERROR_WANT_WRITE:
      return POLLOUT;
    default:
      return 0;
  }
}

}  // namespace

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

TlsClient::TlsClient(int socket) : socket_(socket) {
  static const std::shared_ptr<SSL_CTX> context = [] {
    // OpenSSL writes without MSG_NOSIGNAL.
    std::signal(SIGPIPE, SIG_IGN);
    std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    // What send() has left to write may lie elsewhere in its next call.
    SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return made;
  }();
  ERR_clear_error();
  session_.reset(SSL_new(context.get()), &SSL_free);
  if (session_ == nullptr || SSL_set_fd(session_.get(), socket) != 1 || SSL_connect(session_.get()) != 1)
    throw std::runtime_error("no TLS handshake");
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

bool TlsClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    short event = 0;
    {
      std::lock_guard held(mutex_);
      ERR_clear_error();
      const int count =
          SSL_write(session_.get(), bytes.data(), static_cast<int>(std::min(bytes.size(), size_t{1} << 20)));
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
      } else {
        event = event_wanted(session_.get(), count);
        if (event == 0) return false;
      }
    }
    pollfd wait{socket_, event, 0};
    if (event != 0 && ::poll(&wait, 1, -1) < 0) return false;
  }
  return true;
}

ssize_t TlsClient::receive(char* destination, size_t size, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    pollfd wait{socket_, 0, 0};
    {
      std::lock_guard held(mutex_);
      ERR_clear_error();
      const int count = SSL_read(session_.get(), destination, static_cast<int>(size));
      if (count > 0) return count;
      wait.events = event_wanted(session_.get(), count);
      if (wait.events == 0) return -1;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return 0;
  }
}

void TlsClient::finish_sending() {
  std::lock_guard held(mutex_);
  ERR_clear_error();
  SSL_shutdown(session_.get());
}

}  // namespace meshd::http_test
