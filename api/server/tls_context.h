// The TLS context: certificate and key, read from PEM files and reloaded on request, and the TLS settings: versions 1.2
// and 1.3, ciphers with forward secrecy, HTTP/1.1 by ALPN, no renegotiation.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/server/byte_stream.h"

struct ssl_ctx_st;

namespace meshd::api {

/// The facts of a certificate for operators.
struct CertificateFacts {
  std::string subject;
  std::string not_after;              ///< "Nov 22 13:00:00 2027 GMT"
  std::vector<std::string> warnings;  ///< it is over, or its key is readable by others
};

/// Any thread.
class TlsContext {
 public:
  /// Reads both files. Throws core::Error internal with the file and what is wrong with it.
  TlsContext(std::string certificate_file, std::string key_file);
  ~TlsContext();

  /// Reads the files again, for connections that come from now on; those that there are keep what they have. Throws as
  /// the constructor, and then everything stays as it is.
  void reload();
  [[nodiscard]] CertificateFacts facts() const;
  /// The server's side of TLS over a client's socket, which is non-blocking. Throws std::bad_alloc.
  [[nodiscard]] std::unique_ptr<ByteStream> accept(int socket) const;

 private:
  const std::string certificate_file_;
  const std::string key_file_;
  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_;  ///< guarded by mutex_
};

}  // namespace meshd::api
