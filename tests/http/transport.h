// How the bytes of the front's tests travel: as they are or, with MESHD_TEST_TRANSPORT=tls in the environment, in TLS
// records. The same tests run in both ways.
#pragma once

#include <memory>

#include "api/server/server.h"

struct ssl_st;

namespace meshd::http_test {

[[nodiscard]] bool is_over_tls();
/// A certificate that the process has made for itself.
[[nodiscard]] std::shared_ptr<api::TlsContext> server_certificate();
/// The client's side of a handshake over a blocking socket; certificates are not checked. Throws std::runtime_error.
[[nodiscard]] std::shared_ptr<ssl_st> client_handshake(int socket);

}  // namespace meshd::http_test
