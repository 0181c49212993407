#include "api/app/access/token_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "api/http/characters.h"
#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::api {
namespace {

constexpr std::string_view kNameless = "tok_";
constexpr std::string_view kDigest = "sha256:";
constexpr size_t kDigestDigits = 64;
constexpr size_t kNamelessDigits = 32;
constexpr size_t kLongestName = 64;

// No word of the line is in the message: with words in another order, any of them may be a token.
[[noreturn]] void refuse(int line, const std::string& why) {
  throw core::Error("invalid_request", fmt::format("line {} of the tokens file: {}", line, why));
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  while (true) {
    const size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos || line[start] == '#') return words;
    const size_t end = std::min(line.find_first_of(kBlanks, start), line.size());
    words.push_back(line.substr(start, end - start));
    line.remove_prefix(end);
  }
}

std::string nameless(std::string_view digest) {
  return std::string(kNameless) + std::string(digest.substr(0, kNamelessDigits));
}

// The digest of a token as the file writes it: the token, or sha256: and the digest.
std::string digest_of(std::string_view word, int line) {
  if (!word.starts_with(kDigest)) return core::sha256_hex(word);
  word.remove_prefix(kDigest.size());
  const bool is_hex =
      std::all_of(word.begin(), word.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (word.size() != kDigestDigits || !is_hex) {
    refuse(line, fmt::format(
                     "expected 64 lower-case hex digits after sha256:, got {} characters; meshd tokens hash makes them",
                     word.size()));
  }
  return std::string(word);
}

}  // namespace

std::string nameless_principal(std::string_view token) { return nameless(core::sha256_hex(token)); }

void check_principal_name(std::string_view name) {
  if (!is_plain_name(name, kLongestName))
    throw core::Error("invalid_request", "a name has 1 to 64 of the characters A-Z a-z 0-9 . _ -");
  if (name.starts_with(kNameless)) {
    throw core::Error("invalid_request", "a name does not begin with tok_, which is what tokens without a name have");
  }
  if (name == "anonymous")
    throw core::Error("invalid_request", "the name anonymous is that of clients without a token");
}

TokenTable TokenTable::parse(std::string_view text) {
  TokenTable table;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) continue;
    if (words.size() > 3) {
      refuse(number, fmt::format("expected TOKEN, or NAME TOKEN [ROLE], got {} words", words.size()));
    }
    if (words.size() == 1) {
      if (words[0].starts_with(kDigest)) refuse(number, "expected a name before the digest: NAME sha256:HEX");
      std::string digest = core::sha256_hex(words[0]);
      std::string principal = nameless(digest);
      table.add(std::move(digest), {std::move(principal), Role::kUser}, number);
      continue;
    }
    Identity identity{std::string(words[0]), Role::kUser};
    try {
      check_principal_name(identity.principal);
    } catch (const core::Error& error) {
      refuse(number, error.detail());
    }
    if (words.size() == 3) {
      const auto role = role_from_word(words[2]);
      if (!role) refuse(number, "the third word is a role: expected reader, user or admin");
      identity.role = *role;
    }
    table.add(digest_of(words[1], number), std::move(identity), number);
  }
  if (table.by_digest_.empty()) {
    throw core::Error("invalid_request", "the tokens file has no token, so that nobody could use the server");
  }
  return table;
}

void TokenTable::add(std::string digest, Identity identity, int line) {
  principals_.insert(identity.principal);
  const auto [found, fresh] = by_digest_.try_emplace(std::move(digest), Entry{identity, line});
  const Identity& known = found->second.identity;
  if (!fresh && (known.principal != identity.principal || known.role != identity.role)) {
    refuse(line, fmt::format("line {} gives the same token to another name or role", found->second.line));
  }
}

std::optional<Identity> TokenTable::find(std::string_view token) const {
  const auto found = by_digest_.find(core::sha256_hex(token));
  if (found == by_digest_.end()) return std::nullopt;
  return found->second.identity;
}

}  // namespace meshd::api
