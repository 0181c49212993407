// Arrays that jobs update: the same array, its next version, as array_versions.cpp makes them, but in the transaction
// of the job.
#include <fmt/core.h>

#include <algorithm>

#include "service/arrays/array_store.h"
#include "service/arrays/array_text.h"
#include "service/core/error.h"

namespace meshd::arrays {
namespace {

using storage::ArrayState;
using storage::Durability;

// One array with its next version.
struct Next {
  ArrayRef array;
  int64_t before = 0;
  int64_t own_jobs = 0;  // of job_count: the job itself, where it has no session
  ShardBuffers shards;
  std::vector<storage::BlobRef> left;
  std::vector<storage::BlobRef> blobs;
  storage::ArrayRow row;
  std::vector<storage::ShardRow> shard_rows;
};

// Throws unless the next version may be made now.
void require_updatable(const Next& next, const Array::State& state, const std::string& session) {
  const std::string& id = next.array->info().id;
  if (state.is_going()) throw core::Error("not_found", "there is no array '" + id + "'");
  if (!state.reserved_by.empty())
    throw core::Error("array_in_use", fmt::format("array '{}' is donated to job {}", id, state.reserved_by));
  if (state.state != ArrayState::kReady || state.version != next.before) {
    throw core::Error("conflict", fmt::format("array '{}' has version {} by now; the job has read version {}, so its "
                                              "update would lose another; run it again",
                                              id, state.version, next.before));
  }
  const auto own = state.jobs_of_session.find(session);
  const int64_t others = state.job_count - next.own_jobs - (own == state.jobs_of_session.end() ? 0 : own->second);
  if (others > 0) {
    throw core::Error("array_in_use",
                      fmt::format("array '{}' has still to be read by {} accepted jobs or models elsewhere; run the "
                                  "job again when those jobs are over and those models are deleted",
                                  id, others));
  }
}

}  // namespace

ArrayStore::PreparedUpdates ArrayStore::prepare_updates(std::vector<Update> updates, const std::vector<ArrayRef>& kept,
                                                        const std::string& session) {
  // write_turn() is locked in the order of ids: no circular wait.
  std::sort(updates.begin(), updates.end(),
            [](const Update& a, const Update& b) { return a.array->info().id < b.array->info().id; });
  make_room();
  PreparedUpdates out;
  for (const Update& update : updates) out.turns.emplace_back(update.array->write_turn());
  auto nexts = std::make_shared<std::vector<Next>>();
  for (Update& update : updates) {
    Next& next = nexts->emplace_back();
    next.array = update.array;
    next.before = update.version;
    next.shards = std::move(update.shards);
    next.left = std::move(update.left);
    if (session.empty()) next.own_jobs = std::count(kept.begin(), kept.end(), next.array);
    next.array->state().with([&](Array::State& state) {
      require_updatable(next, state, session);
      out.replacing.emplace_back(next.array, state);
      next.row = row_of(*next.array, state);
      next.row.version = next.before + 1;
    });
  }
  out.blobs = storage::PendingBlobs(store_);
  for (const Next& next : *nexts) {
    if (next.array->info().durability != Durability::kDurable) continue;
    for (size_t s = 0; s < next.shards.size(); ++s) {
      if (next.shards[s] != nullptr) out.blobs.add(blob_name(*next.array, next.before + 1, s), next.shards[s]->bytes());
    }
  }
  const std::vector<storage::BlobRef> written = out.blobs.sync();
  auto next_blob = written.begin();
  for (Next& next : *nexts) {
    if (next.array->info().durability != Durability::kDurable) continue;
    for (size_t s = 0; s < next.shards.size(); ++s) {
      next.blobs.push_back(next.shards[s] == nullptr ? next.left.at(s) : *next_blob++);
      next.shard_rows.push_back({next.array->info().id, static_cast<int64_t>(s), next.blobs.back()});
    }
  }
  out.rows = [nexts, session](storage::Transaction& transaction) {
    for (const Next& next : *nexts) {
      next.array->state().with([&](const Array::State& state) { require_updatable(next, state, session); });
      transaction.update_array(next.row);
      for (const storage::ShardRow& row : next.shard_rows) transaction.put_shard(row);
    }
  };
  out.visible = [this, nexts] {
    const uint64_t now = table_.with([](Table& table) { return ++table.clock; });
    for (Next& next : *nexts) {
      const auto spilled = next.array->state().with(
          [&](Array::State& state) { return state.put_next_version(next.shards, next.blobs, now); });
      note_new_version(*next.array);
    }
    evict(0);
  };
  return out;
}

}  // namespace meshd::arrays
