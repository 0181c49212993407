#include "api/codecs/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace meshd::api {
namespace {

// OpenSSL counts in int: work in pieces that are whole groups.
constexpr size_t kBase64Piece = size_t{3} << 20;

}  // namespace

std::string base64_encode(std::span<const std::byte> bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  size_t written = 0;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kBase64Piece);
    written += static_cast<size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()) + written,
                                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                                   static_cast<int>(count)));
    bytes = bytes.subspan(count);
  }
  out.resize(written);
  return out;
}

std::optional<std::vector<std::byte>> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::string_view digits = text.substr(0, text.size() - padding);
  // OpenSSL skips white space and dashes in places; the alphabet is checked here.
  const auto known = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  };
  if (!std::all_of(digits.begin(), digits.end(), known)) return std::nullopt;
  std::vector<std::byte> out(text.size() / 4 * 3 + 3);
  size_t written = 0;
  while (!text.empty()) {
    const size_t count = std::min(text.size(), kBase64Piece / 3 * 4);
    const int got = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()) + written,
                                    reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(count));
    if (got < 0) return std::nullopt;
    written += static_cast<size_t>(got);
    text.remove_prefix(count);
  }
  out.resize(written - padding);
  return out;
}

}  // namespace meshd::api
