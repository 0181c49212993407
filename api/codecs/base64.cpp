#include "api/codecs/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "api/codecs/base64_vectors.h"

namespace meshd::api {
namespace {

// A piece of complete groups that stays in the first level cache with its text.
constexpr size_t kPiece = 3 << 10;
constexpr size_t kBytes = 3, kChars = 4;  // of a group

size_t padding_of(std::string_view text) { return text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0; }

// OpenSSL's decoder skips white space and dashes in places, writes bytes for the padding, and is slower than the JSON
// around the text: six bits of each character come from a table.
constexpr uint32_t kNoDigit = 1U << 31;
constexpr std::array<uint32_t, 256> kDigits = [] {
  std::array<uint32_t, 256> out{};
  out.fill(kNoDigit);
  uint32_t value = 0;
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
    out[static_cast<unsigned char>(c)] = value++;
  return out;
}();

}  // namespace

void append_base64(std::string& out, std::span<const std::byte> bytes) {
  std::array<unsigned char, kPiece / 3 * 4 + 1> text;  // OpenSSL ends it with a NUL
  constexpr size_t kRest = 1024;  // what is behind it: a long text is not copied for a few characters more
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4 + kRest);
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kPiece);
    const size_t done = encode_base64_vectors(bytes.first(count), reinterpret_cast<char*>(text.data()));
    const int written =
        EVP_EncodeBlock(text.data() + done / kBytes * kChars,
                        reinterpret_cast<const unsigned char*>(bytes.data() + done), static_cast<int>(count - done));
    out.append(reinterpret_cast<const char*>(text.data()), done / kBytes * kChars + static_cast<size_t>(written));
    bytes = bytes.subspan(count);
  }
}

std::string base64_encode(std::span<const std::byte> bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

std::optional<int64_t> base64_size(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  return static_cast<int64_t>(text.size() / 4 * 3 - padding_of(text));
}

bool base64_decode(std::string_view text, std::span<std::byte> out) {
  const size_t padding = padding_of(text);
  const auto digit = [&](size_t i) { return kDigits[static_cast<unsigned char>(text[i])]; };
  const size_t whole = (text.size() - (padding == 0 ? 0 : kChars));
  const size_t done = decode_base64_vectors(text.substr(0, whole), out);
  std::byte* to = out.data() + done / kChars * kBytes;
  uint32_t seen = 0;  // of all digits: kNoDigit where one of them is none
  for (size_t i = done; i < whole; i += kChars, to += kBytes) {
    const uint32_t a = digit(i), b = digit(i + 1), c = digit(i + 2), d = digit(i + 3);
    seen |= a | b | c | d;
    const uint32_t bits = a << 18 | b << 12 | c << 6 | d;
    to[0] = static_cast<std::byte>(bits >> 16);
    to[1] = static_cast<std::byte>(bits >> 8);
    to[2] = static_cast<std::byte>(bits);
  }
  if (padding > 0) {
    const uint32_t a = digit(whole), b = digit(whole + 1), c = padding == 1 ? digit(whole + 2) : 0;
    seen |= a | b | c;
    to[0] = static_cast<std::byte>(a << 2 | b >> 4);
    if (padding == 1) to[1] = static_cast<std::byte>(b << 4 | c >> 2);
  }
  return (seen & kNoDigit) == 0;
}

}  // namespace meshd::api
