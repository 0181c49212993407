// Room for arrays in memory. Durable arrays leave it first, because they are on disk; then `memory` arrays are written
// to blobs that no row names, so that a restart, which loses these arrays, removes them. A blob stays when its array is
// read again, and the array leaves memory a second time without a write, until it gets another version.
//
// Example: 8 MiB for arrays; durable D of 4 MiB and memory arrays M1 and M2 of 4 MiB each, used in this order.
//   M2 comes: 12 MiB, D leaves memory.       M3 comes: 12 MiB, M1 is written and leaves.
//   M1 is read: it comes back, and M2 is written and leaves.
#include <algorithm>
#include <utility>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/core/error.h"

namespace meshd::arrays {

using storage::ArrayState;
using storage::Durability;

std::optional<storage::PendingBlobs> Array::State::forget_spilled() {
  if (!spilled) return std::nullopt;
  blobs.clear();
  return std::exchange(spilled, std::nullopt);
}

std::optional<storage::PendingBlobs> Array::State::put_next_version(ShardBuffers& next,
                                                                    std::vector<storage::BlobRef>& stored,
                                                                    uint64_t now) {
  auto gone = forget_spilled();
  ++version;
  shards.swap(next);
  blobs.swap(stored);
  last_use = now;
  return gone;
}

std::vector<ArrayRef> ArrayStore::evict(int64_t coming) {
  for (bool searched = false; is_over_budget(coming);) {
    const auto next = evictable_.with([](std::vector<Evictable>& list) -> std::optional<Evictable> {
      if (list.empty()) return std::nullopt;
      std::optional<Evictable> last = std::move(list.back());
      list.pop_back();
      return last;
    });
    if (next) {
      const ArrayRef array = next->array.lock();
      if (array == nullptr) continue;
      array->state().with([&](Array::State& state) {
        if (state.last_use == next->last_use && !state.blobs.empty()) state.shards.clear();
      });
    } else if (!searched) {
      find_evictable();
      searched = true;
    } else {
      return evict_memory_arrays(coming);
    }
  }
  return {};
}

// Looks at all arrays; what it finds lasts for as many evictions as there are durable arrays in memory.
void ArrayStore::find_evictable() {
  std::vector<Evictable> found;
  table_.with([&](Table& table) {
    for (const auto& [id, array] : table.by_id) {
      if (array->info().durability != Durability::kDurable) continue;
      auto state = array->state().lock();
      if (!state->shards.empty() && !state->blobs.empty()) found.push_back({state->last_use, array});
    }
  });
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.last_use > b.last_use; });
  evictable_.with([&](std::vector<Evictable>& list) { list = std::move(found); });
}

std::vector<ArrayRef> ArrayStore::evict_memory_arrays(int64_t coming) {
  std::vector<std::pair<uint64_t, ArrayRef>> candidates;
  table_.with([&](Table& table) {
    for (const auto& [id, array] : table.by_id) {
      if (array->info().durability == Durability::kDurable) continue;
      auto state = array->state().lock();
      if (!state->shards.empty()) candidates.emplace_back(state->last_use, array);
    }
  });
  std::sort(candidates.begin(), candidates.end());
  int64_t over = loaded_bytes_->all + coming - memory_budget();
  std::vector<ArrayRef> to_spill;
  for (const auto& [last_use, array] : candidates) {
    if (over <= 0) break;
    const bool is_on_disk = array->state().with([&](Array::State& state) {
      over -= state.shards.bytes();  // some shards, or all
      if (!state.blobs.empty()) state.shards.clear();
      return !state.blobs.empty();
    });
    if (!is_on_disk) to_spill.push_back(array);
  }
  return to_spill;
}

void ArrayStore::make_room(int64_t coming) {
  if (evict(coming).empty()) return;
  // One at a time: who comes second finds the room that the first has made.
  const std::lock_guard held(spill_mutex_);
  for (const ArrayRef& array : evict(coming)) spill(array);
}

void ArrayStore::spill(const ArrayRef& array) {
  ShardBuffers shards;
  int64_t version = 0;
  array->state().with([&](const Array::State& state) {
    const bool is_ours = state.state == ArrayState::kReady && state.reserved_by.empty() && !state.is_going();
    if (is_ours) shards = state.shards.get();
    version = state.version;
  });
  if (shards.empty()) return;
  storage::PendingBlobs written(store_);
  std::vector<storage::BlobRef> blobs;
  try {
    for (size_t s = 0; s < shards.size(); ++s) written.add(blob_name(*array, version, s), shards[s]->bytes());
    blobs = written.sync();
  } catch (const core::Error&) {
    return;  // a full disk: it stays in memory
  }
  array->state().with([&](Array::State& state) {
    // Taken by a job, deleted, or of another version since: what was written is of no use.
    if (state.shards.get() != shards || state.version != version || state.spilled) return;
    state.blobs = std::move(blobs);
    state.spilled = std::move(written);
    state.shards.clear();
  });
}

}  // namespace meshd::arrays
