// Who asks: a bearer token, or nobody in particular. Tokens are kept as SHA-256 only.
#pragma once

#include <set>
#include <string>

#include "api/http.h"

namespace meshd::api {

/// Immutable once built; any thread.
class Authenticator {
 public:
  /// Reads one token a line from the file; empty name: every token is a principal of its own and none is needed.
  explicit Authenticator(const std::string& tokens_file);
  /// Sets request.principal; throws unauthorized.
  void operator()(Request& request) const;

 private:
  bool required_ = false;
  std::set<std::string> digests_;
};

}  // namespace meshd::api
