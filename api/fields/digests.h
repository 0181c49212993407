// Digest fields (RFC 9530): verifies the digest of a request's body, and adds digests to responses where the client
// wants them. sha-256 alone; other algorithms are ignored.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.h"
#include "service/core/sha256.h"

namespace meshd::api {

/// The digests of Content-Digest and Repr-Digest of a request; both are of the bytes as they are sent, before any
/// content coding is taken off. One thread.
class BodyDigest {
 public:
  /// Whether a body is all of what Repr-Digest is of: a part of an upload is not.
  enum class Body : uint8_t { kWhole, kPart };
  /// Null when the head announces none. Throws malformed_request for a sha-256 that is no byte sequence of 32 bytes.
  static std::unique_ptr<BodyDigest> announced(const Headers& headers, Body body = Body::kWhole);

  void update(std::span<const std::byte> bytes) { seen_.update(bytes); }
  /// The body is over: throws digest_mismatch with both digests.
  void check();

 private:
  std::vector<std::pair<std::string, std::string>> expected_;  ///< field, base64
  core::Sha256 seen_;
};

/// True when the field (Want-Repr-Digest or Want-Content-Digest) has sha-256 with a preference above 0.
bool wants_digest(const Headers& headers, std::string_view field);

/// "sha-256=:...:" of what `seen` has seen.
std::string digest_field(core::Sha256& seen);

/// Adds Repr-Digest (unless it is there) and Content-Digest to a response whose bytes are in memory, as the request
/// wants them: after ranges and content codings, of the bytes as they are sent. A range's Repr-Digest is of the full
/// representation, which only its handler has.
void apply_digests(const Request& request, Response& response);

/// "sha-256=:...:" of the pieces, when the request's Want-Repr-Digest (or Want-Content-Digest) has sha-256 with a
/// preference above 0; else empty.
std::string wanted_digest(const Headers& headers, const std::vector<std::span<const std::byte>>& pieces);

}  // namespace meshd::api
