#include "service/core/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <new>

namespace meshd::core {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

// A call of OpenSSL's with valid arguments fails only where it has no memory.

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  if (impl_->context == nullptr || EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

std::string Sha256::base64() {
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(impl_->context, digest.data(), nullptr) != 1) throw std::bad_alloc();
  std::array<unsigned char, 45> text{};
  const int length = EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest.size()));
  return {reinterpret_cast<const char*>(text.data()), static_cast<size_t>(length)};
}

}  // namespace meshd::core
