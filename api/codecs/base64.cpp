#include "api/codecs/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace meshd::api {
namespace {

// OpenSSL counts in int: work in pieces of complete groups.
constexpr size_t kBase64Piece = size_t{3} << 20;

size_t padding_of(std::string_view text) { return text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0; }

int decode_block(std::string_view text, std::byte* to) {
  return EVP_DecodeBlock(reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(text.data()),
                         static_cast<int>(text.size()));
}

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

std::optional<int64_t> base64_size(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  return static_cast<int64_t>(text.size() / 4 * 3 - padding_of(text));
}

bool base64_decode(std::string_view text, std::span<std::byte> out) {
  constexpr size_t kGroup = 4;
  const std::string_view digits = text.substr(0, text.size() - padding_of(text));
  // OpenSSL skips white space and dashes in places; the alphabet is checked here.
  const auto known = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  };
  if (!std::all_of(digits.begin(), digits.end(), known)) return false;
  if (text.empty()) return true;
  // OpenSSL writes bytes for the padding too: the last group is decoded into a temporary.
  std::byte last[3];
  const std::string_view tail = text.substr(text.size() - kGroup);
  text.remove_suffix(kGroup);
  std::byte* to = out.data();
  while (!text.empty()) {
    const size_t count = std::min(text.size(), kBase64Piece / 3 * kGroup);
    if (decode_block(text.substr(0, count), to) < 0) return false;
    to += count / kGroup * 3;
    text.remove_prefix(count);
  }
  if (decode_block(tail, last) < 0) return false;
  std::copy_n(last, out.data() + out.size() - to, to);
  return true;
}

}  // namespace meshd::api
