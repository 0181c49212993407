// Idempotency keys: what a POST made under a key of its client's is found again when it is repeated. The record is
// inserted in the transaction that makes it (Transaction::claim_key), so that there is neither without the other. A
// backup, which has none, claims its key when it is there.
#pragma once

#include <optional>
#include <string_view>

#include "storage/catalog.h"

namespace meshd::jobs {

/// Any thread.
class IdempotencyKeys {
 public:
  explicit IdempotencyKeys(storage::Catalog& catalog) : catalog_(catalog) {}

  /// The record of the first request with this key; nothing for a new key. Throws idempotency_key_reused when that
  /// request had another fingerprint.
  std::optional<storage::IdempotencyRow> find(std::string_view principal, std::string_view route, std::string_view key,
                                              std::string_view fingerprint);
  /// For what has no row of its own to be inserted with. Throws idempotency_in_progress.
  void claim(const std::optional<storage::IdempotencyRow>& row);

 private:
  storage::Catalog& catalog_;
};

}  // namespace meshd::jobs
