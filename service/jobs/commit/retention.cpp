#include "service/jobs/commit/retention.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace meshd::jobs {
namespace {

/// Of one transaction: others wait for it.
constexpr int64_t kBatch = 1000;
constexpr int64_t kBatchBytes = 1 << 20;

// Has `drop(transaction, limit)` drop up to `count` rows, until there are none left; how many it has dropped.
template <typename Drop>
int64_t in_batches(storage::Catalog& catalog, int64_t count, const Drop& drop) {
  int64_t all = 0;
  for (int64_t gone = kBatch; gone == kBatch && all < count; all += gone) {
    catalog.write([&](storage::Transaction& transaction) { gone = drop(transaction, std::min(kBatch, count - all)); },
                  storage::Space::kFrees);
  }
  return all;
}

// The end of what is not kept, in the order of finished jobs: the newest of these, or the moment behind it.
std::optional<storage::FinishedJob> newest_to_expire(storage::Reader& reader, const std::string& principal,
                                                     const JobRetention& kept, std::optional<core::WallTime> now) {
  std::optional<storage::FinishedJob> newest;
  const auto expire_from = [&](const std::optional<storage::FinishedJob>& job) {
    const auto end = [](const storage::FinishedJob& each) { return std::tie(each.finished, each.id); };
    if (job && (!newest || end(*newest) < end(*job))) newest = job;
  };
  if (kept.count > 0) expire_from(reader.finished_job(principal, kept.count));
  if (kept.answer_bytes > 0) expire_from(reader.finished_job_behind(principal, kept.answer_bytes));
  if (kept.time.count() == 0 || !now) return newest;
  // No id is empty: this comes after all jobs that ended before the moment, and before those that ended in it.
  expire_from(storage::FinishedJob{"", *now - kept.time});
  return newest;
}

// Cuts off what is too much for one transaction, but for the first.
void bound(std::vector<storage::FinishedJob>& batch) {
  int64_t bytes = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    bytes += batch[i].answer_bytes;
    if (i > 0 && bytes > kBatchBytes) return batch.resize(i);
  }
}

}  // namespace

RetentionTime::RetentionTime(storage::Catalog& catalog, const core::Clock& clock,
                             std::function<void(std::chrono::seconds)> on_jump)
    : catalog_(catalog), clock_(clock), on_jump_(std::move(on_jump)) {
  const auto kept = catalog_.read([](storage::Reader& reader) { return reader.aged_until(); });
  if (kept) last_ = Moment{*kept, clock_.steady()};
}

// How far the wall clock has run ahead of the steady one.
core::WallTime::duration RetentionTime::jump(const Moment& from, const Moment& to) {
  return (to.wall - from.wall) - std::chrono::duration_cast<core::WallTime::duration>(to.steady - from.steady);
}

std::optional<core::WallTime> RetentionTime::now() {
  const Moment seen{clock_.wall(), clock_.steady()};
  const auto ahead = last_ ? jump(*last_, seen) : core::WallTime::duration(0);
  if (ahead > kMostJump) {
    const bool is_new = !doubted_ || std::chrono::abs(jump(*doubted_, seen)) > kMostJump;
    if (is_new) {
      doubted_ = seen;
      if (on_jump_) on_jump_(std::chrono::duration_cast<std::chrono::seconds>(ahead));
    }
    if (seen.steady - doubted_->steady < kMostJump) return std::nullopt;
  }
  doubted_.reset();
  last_ = seen;
  catalog_.write([&](storage::Transaction& transaction) { transaction.set_aged_until(seen.wall); },
                 storage::Space::kFrees);
  return seen.wall;
}

int64_t expire_idempotency_keys(storage::Catalog& catalog, std::optional<core::WallTime> now, int64_t most) {
  int64_t all = 0;
  if (now) {
    all += in_batches(catalog, INT64_MAX, [&](storage::Transaction& transaction, int64_t limit) {
      return transaction.expire_idempotency(*now - kKeyLife, limit);
    });
  }
  for (const storage::KeyCount& each :
       catalog.read([&](storage::Reader& reader) { return reader.principals_with_more_keys(most); })) {
    all += in_batches(catalog, each.count - most, [&](storage::Transaction& transaction, int64_t limit) {
      return transaction.drop_oldest_keys(each.principal, limit);
    });
  }
  return all;
}

int64_t expire_jobs(storage::Catalog& catalog, const JobRetention& kept, std::optional<core::WallTime> now) {
  int64_t all = 0;
  std::optional<std::string> principal;
  while (
      (principal = catalog.read([&](storage::Reader& reader) { return reader.next_with_finished_jobs(principal); }))) {
    const auto last =
        catalog.read([&](storage::Reader& reader) { return newest_to_expire(reader, *principal, kept, now); });
    if (!last) continue;
    storage::FinishedJob after;
    for (;;) {
      auto batch =
          catalog.read([&](storage::Reader& reader) { return reader.finished_jobs(*principal, after, *last, kBatch); });
      if (batch.empty()) break;
      bound(batch);
      catalog.write(
          [&](storage::Transaction& transaction) {
            for (const storage::FinishedJob& job : batch) {
              // Its client may have deleted it since, and put another job under its id.
              const auto state = transaction.job_state(job.id, *principal);
              if (state && is_over(*state)) transaction.delete_job(job.id, *principal);
            }
          },
          storage::Space::kFrees);
      all += static_cast<int64_t>(batch.size());
      after = batch.back();
    }
  }
  return all;
}

}  // namespace meshd::jobs
