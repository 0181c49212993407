#include "service/jobs/retention.h"

namespace meshd::jobs {
namespace {

/// Of one transaction: others wait for it.
constexpr int64_t kBatch = 1000;

}  // namespace

int64_t expire_idempotency_keys(storage::Catalog& catalog, core::WallTime now) {
  int64_t all = 0;
  int64_t gone = 0;
  do {
    catalog.write(
        [&](storage::Transaction& transaction) { gone = transaction.expire_idempotency(now - kKeyLife, kBatch); },
        storage::Space::kFrees);
    all += gone;
  } while (gone == kBatch);
  return all;
}

}  // namespace meshd::jobs
