// How the bytes of the front's tests travel: as they are or, with MESHD_TEST_TRANSPORT=tls in the environment, in TLS
// records. The same tests run in both ways.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string_view>

#include "api/server/server.h"

struct ssl_st;

namespace meshd::http_test {

[[nodiscard]] bool is_over_tls();
/// A certificate that the process has made for itself.
[[nodiscard]] std::shared_ptr<api::TlsContext> server_certificate();

/// The client's side of TLS over a connected socket, which is not blocking from then on. One thread may send while
/// another receives: OpenSSL allows one call at a time on a session, and no call waits here.
class TlsClient {
 public:
  /// The handshake; certificates are not checked. Throws std::runtime_error.
  explicit TlsClient(int socket);

  /// Sends everything; false if the server closed before all was sent.
  bool send(std::string_view bytes);
  /// What came, at most `size` bytes: 0 when nothing did before the deadline, below 0 at the end.
  ssize_t receive(char* destination, size_t size, std::chrono::steady_clock::time_point deadline);
  /// Says that nothing more is sent.
  void finish_sending();

 private:
  int socket_;
  std::mutex mutex_;  ///< guards session_
  std::shared_ptr<ssl_st> session_;
};

}  // namespace meshd::http_test
