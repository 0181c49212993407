// Authentication: the principal of a request, by bearer token, or the anonymous one.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "api/app/access/token_file.h"
#include "api/http/http.h"
#include "service/core/locked.h"

namespace meshd::api {

/// Any thread.
class Authenticator {
 public:
  /// Reads the file (token_file.h). Empty name: no token is needed, every token is a principal of its own, and all have
  /// the role user. Throws invalid_request.
  explicit Authenticator(std::string tokens_file);

  /// Sets the request's principal and role; throws unauthorized.
  void operator()(Request& request) const;

  /// Reads the file again; its contents hold for later requests; those in flight continue. Throws invalid_request, and
  /// then the table is unchanged. Returns how many tokens there are.
  size_t reload();
  [[nodiscard]] bool is_required() const { return !tokens_file_.empty(); }
  /// Those that the file names; none without a file.
  [[nodiscard]] std::set<std::string> principals() const;

 private:
  [[nodiscard]] std::shared_ptr<const TokenTable> table() const;

  const std::string tokens_file_;
  core::Locked<std::shared_ptr<const TokenTable>> table_;
};

}  // namespace meshd::api
