// The tokens file: bearer tokens with their principals and roles. Tokens are kept as SHA-256 only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/http/roles.h"

namespace meshd::api {

/// Whose a token is.
struct Identity {
  std::string principal;
  Role role = Role::kUser;
};

/// The principal of a token that has no name: "tok_" and the first 32 hex digits of its SHA-256. Names never look so.
std::string nameless_principal(std::string_view token);
/// Throws invalid_request: a name is 1 to 64 of A-Z a-z 0-9 . _ - and neither begins with tok_ nor is "anonymous".
void check_principal_name(std::string_view name);

/// The parsed tokens file. Immutable; any thread.
///
///   # comment                      -> nothing
///   s3cret                         -> principal tok_..., role user
///   ann s3cret-2                   -> principal ann, role user
///   ann sha256:9f86d0... reader    -> principal ann, role reader; several tokens a name
///
/// Blanks separate words; a word that begins with '#' begins a comment. Data belongs to the name, so that tokens may
/// change.
class TokenTable {
 public:
  /// Throws invalid_request with the number of the line, and never with what may be a token: a line that does not fit
  /// the form, a token that two lines give to different principals or roles, no token at all.
  static TokenTable parse(std::string_view text);

  /// By digest: the time of the search reveals nothing about the token. Nothing for an unknown one.
  [[nodiscard]] std::optional<Identity> find(std::string_view token) const;
  [[nodiscard]] const std::set<std::string>& principals() const { return principals_; }
  [[nodiscard]] size_t token_count() const { return by_digest_.size(); }

 private:
  struct Entry {
    Identity identity;
    int line = 0;
  };
  void add(std::string digest, Identity identity, int line);

  std::map<std::string, Entry, std::less<>> by_digest_;
  std::set<std::string> principals_;
};

}  // namespace meshd::api
