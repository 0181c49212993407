// New versions of arrays. The protocol:
//   1. Lock the array's write_turn(): one writer of versions at a time, from reading the old one on.
//   2. Write and sync blobs of the shards that change, under new names (storage/README.md).
//   3. On storage's writer thread, in one transaction: check again that the version may be made, then update row and
//      shards. Jobs are accepted on the same thread: each entirely before or after.
//   4. On the same thread, once durable: swap the new shards in.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>

#include "service/arrays/array_store.h"
#include "service/arrays/array_text.h"
#include "service/arrays/regions/merge.h"
#include "service/core/error.h"

namespace meshd::arrays {
namespace {

using storage::ArrayState;
using storage::Durability;

// Of shards in memory that a slice touches: up to so much, their copies stay there.
constexpr int64_t kMostCopied = int64_t{32} << 20;

// Throws unless a new version may be made now, beside the checks of require_usable.
void require_free(const std::string& id, const Array::State& state, int64_t version) {
  if (state.is_going()) throw core::Error("not_found", "there is no array '" + id + "'");
  if (!state.reserved_by.empty())
    throw core::Error("array_in_use", "array '" + id + "' is reserved by job " + state.reserved_by);
  if (state.job_count > 0) {
    throw core::Error("array_in_use", fmt::format("array '{}' has still to be read by {} accepted jobs or models; wait "
                                                  "for them, delete the models, or make a new array",
                                                  id, state.job_count));
  }
  if (state.state != ArrayState::kReady || state.version != version)
    throw core::Error("conflict", "array '" + id + "' was taken meanwhile");
}

}  // namespace

int64_t ArrayStore::replace(const ArrayRef& array, NewShards shards, const VersionCheck& check) {
  if (shards.blobs) static_cast<void>(shards.blobs->sync());  // may take long: not with the turn
  const std::lock_guard turn(array->write_turn());
  require_usable(array);
  const int64_t version = array->version();
  check(version);
  std::vector<size_t> all(shards.blobs ? static_cast<size_t>(array->layout().shard_count) : 0);
  std::iota(all.begin(), all.end(), size_t{0});
  return write_version(array, version, nullptr, std::move(shards), std::move(all));
}

int64_t ArrayStore::update(const ArrayRef& array, std::span<const Slice> slices, const ByteSource& region,
                           const VersionCheck& check) {
  const sharding::Layout& layout = array->layout();
  const int64_t shard_bytes = array->shard_bytes() / layout.shard_count;
  std::vector<std::pair<size_t, RegionInShard>> parts;
  for (int64_t s = 0; s < layout.shard_count; ++s) {
    if (auto part = region_in_shard(layout, slices, s)) parts.emplace_back(static_cast<size_t>(s), std::move(*part));
  }
  const auto touched = static_cast<int64_t>(parts.size()) * shard_bytes;
  const quotas::ArrayCharge charge = charge_beside(*array, touched);
  const bool is_large = array->shard_bytes() >= kStreamedBytes && array->info().durability == Durability::kDurable;
  if (!is_large || (is_loaded(array) && touched < kMostCopied)) return update_in_memory(array, slices, region, check);

  const std::lock_guard turn(array->write_turn());
  require_usable(array);
  const Opened now = open(array);
  check(now.version);
  const int64_t element_bytes = tensor::size_bytes(array->info().type.dtype);
  NewShards next;
  next.blobs.emplace(store_);
  std::vector<size_t> changed;
  for (const auto& [shard, part] : parts) {
    const size_t number = changed.size();
    next.blobs->begin(blob_name(*array, now.version + 1, shard), shard_bytes);
    const ByteSource before = now.shards.blobs.empty() ? memory_source(std::as_const(*now.shards.memory[shard]).bytes())
                                                       : paged_source(now.shards.blobs[shard]);
    int64_t done = 0;
    merge_shard(layout, element_bytes, slices, part, before, region, [&](std::span<const std::byte> bytes) {
      next.blobs->write(number, done, bytes);
      done += static_cast<int64_t>(bytes.size());
    });
    changed.push_back(shard);
  }
  return write_version(array, now.version, nullptr, std::move(next), std::move(changed));
}

int64_t ArrayStore::update_in_memory(const ArrayRef& array, std::span<const Slice> slices, const ByteSource& region,
                                     const VersionCheck& check) {
  const std::lock_guard turn(array->write_turn());
  require_usable(array);
  const Snapshot now = snapshot(array);
  check(now.version);
  ShardBuffers next = now.shards;
  write_region(array->layout(), tensor::size_bytes(array->info().type.dtype), slices, region, [&](int64_t shard) {
    const auto s = static_cast<size_t>(shard);
    if (next[s] == now.shards[s]) {
      next[s] = pool_->allocate(now.shards[s]->size());
      std::memcpy(next[s]->data(), now.shards[s]->data(), static_cast<size_t>(next[s]->size()));
    }
    return next[s]->data();
  });
  return write_version(array, now.version, &now.shards, std::move(next), {});
}

int64_t ArrayStore::write_version(const ArrayRef& array, int64_t version, const ShardBuffers* before, NewShards next,
                                  std::vector<size_t> changed) {
  const std::string& id = array->info().id;
  const bool is_durable = array->info().durability == Durability::kDurable;
  storage::ArrayRow row;
  std::vector<storage::BlobRef> blobs;
  std::optional<Replacing> replacing;
  array->state().with([&](Array::State& state) {
    require_free(id, state, version);
    replacing.emplace(array, state);
    if (is_durable) blobs = state.blobs;
    row = row_of(*array, state);
    row.version = version + 1;
  });
  const auto take_place = [this, array](ShardBuffers& shards, std::vector<storage::BlobRef>& stored) {
    const uint64_t now = table_.with([](Table& table) { return ++table.clock; });
    const auto spilled =
        array->state().with([&](Array::State& state) { return state.put_next_version(shards, stored, now); });
    note_new_version(*array);
  };
  if (!is_durable) {
    take_place(next.memory, blobs);
    store_.catalog().write_async([row](storage::Transaction& transaction) { transaction.update_array(row); },
                                 [](const std::exception_ptr&) {});
    make_room();
    return version + 1;
  }

  storage::PendingBlobs pending(store_);
  if (next.blobs) pending = std::move(*next.blobs);
  for (size_t s = 0; s < next.memory.size(); ++s) {
    if (before != nullptr && before->at(s) == next.memory[s]) continue;
    changed.push_back(s);
    pending.add(blob_name(*array, version + 1, s), next.memory[s]->bytes());
  }
  const std::vector<storage::BlobRef> written = pending.sync();
  std::vector<storage::ShardRow> shard_rows;
  for (size_t i = 0; i < changed.size(); ++i) {
    blobs.at(changed[i]) = written[i];
    shard_rows.push_back({id, static_cast<int64_t>(changed[i]), written[i]});
  }
  store_.catalog().write_then(
      [&](storage::Transaction& transaction) {
        array->state().with([&](const Array::State& state) { require_free(id, state, version); });
        transaction.update_array(row);
        for (const storage::ShardRow& shard : shard_rows) transaction.put_shard(shard);
      },
      [&] { take_place(next.memory, blobs); });
  pending.keep();
  make_room();
  return version + 1;
}

void ArrayStore::keep_for_job(const std::vector<ArrayRef>& arrays, const std::string& session) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool is_going = arrays[i]->state().with([&](Array::State& state) {
      if (state.is_going()) return true;
      ++state.job_count;
      if (!session.empty()) ++state.jobs_of_session[session];
      return false;
    });
    if (!is_going) continue;
    job_has_read({arrays.begin(), arrays.begin() + static_cast<std::ptrdiff_t>(i)}, session);
    throw core::Error("not_found", "there is no array '" + arrays[i]->info().id + "'");
  }
}

void ArrayStore::job_has_read(const std::vector<ArrayRef>& arrays, const std::string& session) {
  for (const ArrayRef& array : arrays) {
    array->state().with([&](Array::State& state) {
      --state.job_count;
      const auto found = state.jobs_of_session.find(session);
      if (found != state.jobs_of_session.end() && --found->second == 0) state.jobs_of_session.erase(found);
    });
  }
}

}  // namespace meshd::arrays
