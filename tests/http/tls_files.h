// Certificates that tests make for themselves, as PEM files.
#pragma once

#include <string>

namespace meshd::http_test {

struct TlsFiles {
  std::string certificate;
  std::string key;
};

/// Writes `folder`/`name`.crt and .key: a certificate for 127.0.0.1 that signs itself, with the subject "/CN=`name`".
TlsFiles make_certificate(const std::string& folder, const std::string& name);

}  // namespace meshd::http_test
