#include "service/jobs/commit/idempotency_keys.h"

#include "service/core/error.h"

namespace meshd::jobs {

std::optional<storage::IdempotencyRow> IdempotencyKeys::find(std::string_view principal, std::string_view route,
                                                             std::string_view key, std::string_view fingerprint) {
  auto known = catalog_.read([&](storage::Reader& reader) { return reader.idempotency(principal, route, key); });
  if (known && known->fingerprint != fingerprint) {
    throw core::Error("idempotency_key_reused",
                      "this Idempotency-Key came with another request before; use a new key for a new request");
  }
  return known;
}

void IdempotencyKeys::claim(const std::optional<storage::IdempotencyRow>& row) {
  if (row) catalog_.write([&](storage::Transaction& transaction) { transaction.claim_key(row); });
}

}  // namespace meshd::jobs
