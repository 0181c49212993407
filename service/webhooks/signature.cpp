#include "service/webhooks/signature.h"

#include <fmt/core.h>

#include <openssl/evp.h>

#include <array>
#include <new>
#include <vector>

#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::webhooks {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr int kNewBytes = 32;  // random; as hex digits the key has twice as many
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
  const std::string random = core::random_hex(kNewBytes);
  return base64(reinterpret_cast<const unsigned char*>(random.data()), random.size());
}

std::string secret_of_key(std::string_view key) { return std::string(kPrefix).append(key); }

std::string sign(std::string_view key, std::string_view id, int64_t seconds, std::string_view body) {
  const auto bytes = bytes_of(key);
  if (!bytes) throw core::Error("storage_failed", "the key of a webhook is damaged");
  std::string signed_text = fmt::format("{}.{}.", id, seconds);
  signed_text.append(body);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  size_t size = 0;
  if (EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, bytes->data(), bytes->size(),
                reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(), digest.data(),
                digest.size(), &size) == nullptr)
    throw std::bad_alloc();
  return "v1," + base64(digest.data(), size);
}

}  // namespace meshd::webhooks
