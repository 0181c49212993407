// SHA-256 of bytes that come piece by piece.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace meshd::core {

/// One thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// The digest of everything so far in base64, 44 characters. Ends it: nothing may follow.
  std::string base64();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::core
