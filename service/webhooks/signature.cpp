#include "service/webhooks/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "service/core/error.h"

namespace meshd::webhooks {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr size_t kNewBytes = 32;
constexpr size_t kLeastBytes = 24;
constexpr size_t kMostBytes = 64;

std::string base64(const unsigned char* bytes, size_t size) {
  std::string out((size + 2) / 3 * 4 + 1, '\0');
  out.resize(static_cast<size_t>(
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes, static_cast<int>(size))));
  return out;
}

std::optional<std::vector<unsigned char>> bytes_of(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::vector<unsigned char> out(text.size() / 4 * 3);
  const int size =
      EVP_DecodeBlock(out.data(), reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  out.resize(static_cast<size_t>(size) - padding);
  return out;
}

}  // namespace

std::optional<std::string> key_of_secret(std::string_view secret) {
  if (!secret.starts_with(kPrefix) || secret.size() > kPrefix.size() + (kMostBytes + 2) / 3 * 4) return std::nullopt;
  const std::string_view key = secret.substr(kPrefix.size());
  const auto bytes = bytes_of(key);
  if (!bytes || bytes->size() < kLeastBytes || bytes->size() > kMostBytes) return std::nullopt;
  return std::string(key);
}

std::string new_key() {
  std::array<unsigned char, kNewBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw core::Error("internal", "there is no random number").with_internal("RAND_bytes failed");
  return base64(bytes.data(), bytes.size());
}

std::string secret_of_key(std::string_view key) { return std::string(kPrefix).append(key); }

std::string sign(std::string_view key, std::string_view id, int64_t seconds, std::string_view body) {
  const auto bytes = bytes_of(key);
  if (!bytes) throw core::Error("storage_failed", "the key of a webhook is damaged");
  std::string signed_text = std::string(id) + "." + std::to_string(seconds) + ".";
  signed_text.append(body);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), bytes->data(), static_cast<int>(bytes->size()),
           reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(), digest.data(),
           &size) == nullptr)
    throw std::bad_alloc();
  return "v1," + base64(digest.data(), size);
}

}  // namespace meshd::webhooks
