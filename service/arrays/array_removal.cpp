// Deleting arrays, one or many. The protocol:
//   1. Nothing new begins with them (State::leaving); whoever reads them goes on, and finds them as before.
//   2. In one transaction: their rows go, and the rows of what comes in their place are there.
//   3. On storage's writer thread, once that is durable and before their files go: nobody finds them (State::deleted).
//   4. They leave memory.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/core/error.h"

namespace meshd::arrays {

void ArrayStore::begin_removal(const ArrayRef& array, const VersionCheck& check) {
  auto state = array->state().lock();
  const std::string& id = array->info().id;
  if (state->is_going()) throw core::Error("not_found", "there is no array '" + id + "'");
  if (!state->reserved_by.empty())
    throw core::Error("array_in_use", fmt::format("array '{}' is reserved by job {}", id, state->reserved_by));
  if (state->is_promised()) {
    throw core::Error(
        "array_in_use",
        fmt::format("array '{}' is to be a result of job {}; cancel the job, or wait for it", id, state->promised_by));
  }
  if (state->parts && state->parts->is_being_completed)
    throw core::Error("array_in_use", "array '" + id + "' is just being completed");
  if (state->job_count > 0) {
    throw core::Error("array_in_use", fmt::format("array '{}' has still to be read by {} accepted jobs or models; wait "
                                                  "for them, cancel them, or delete the models",
                                                  id, state->job_count));
  }
  if (check) check(state->version);
  state->leaving = true;
}

void ArrayStore::begin_removals(const std::vector<ArrayRef>& arrays, const VersionCheck& check) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    try {
      begin_removal(arrays[i], check);
    } catch (...) {
      undo_removals({arrays.begin(), arrays.begin() + static_cast<std::ptrdiff_t>(i)});
      throw;
    }
  }
}

void ArrayStore::undo_removals(const std::vector<ArrayRef>& arrays) {
  for (const ArrayRef& array : arrays) array->state().with([](Array::State& state) { state.leaving = false; });
}

void ArrayStore::note_removals(const std::vector<ArrayRef>& arrays) {
  for (const ArrayRef& array : arrays) array->state().with([](Array::State& state) { state.deleted = true; });
}

void ArrayStore::require_removable(const std::vector<ArrayRef>& arrays) {
  begin_removals(arrays, {});
  undo_removals(arrays);
}

void ArrayStore::end_removal(const ArrayRef& array) {
  pending_.remove(array);
  note_new_version(*array);
  const auto spilled = array->state().with([](Array::State& state) {
    state.shards.clear();
    state.charge.release();
    return state.forget_spilled();
  });
  table_.with([&](Table& table) {
    table.by_id.erase(array->info().id);
    ++table.removals;
  });
  array->watchers().notify_all();
}

void ArrayStore::delete_rows(const std::vector<ArrayRef>& arrays, storage::Transaction& transaction) {
  for (const ArrayRef& array : arrays) {
    transaction.delete_array(array->info().id);
    transaction.drop_open_callbacks(array->info().id);
  }
}

int64_t ArrayStore::expire_gone(const GoneRetention& kept, std::optional<core::WallTime> now) {
  constexpr int64_t kBatch = 1000;  // of one transaction: others wait for it
  storage::Catalog& catalog = store_.catalog();
  for (int64_t met = kBatch; now && met == kBatch;) {
    catalog.write([&](storage::Transaction& transaction) { met = transaction.age_gone_arrays(*now, kBatch); },
                  storage::Space::kFrees);
  }
  std::optional<core::WallTime> before;
  if (now && kept.time.count() > 0) before = *now - kept.time;
  int64_t all = 0;
  std::optional<std::string> principal;
  while ((principal = catalog.read([&](storage::Reader& reader) { return reader.next_with_gone_arrays(principal); }))) {
    for (std::vector<std::string> gone;;) {
      catalog.write(
          [&](storage::Transaction& transaction) {
            gone = transaction.delete_gone_arrays(*principal, before, kept.count, kBatch);
            for (const std::string& id : gone) transaction.drop_open_callbacks(id);
          },
          storage::Space::kFrees);
      if (gone.empty()) break;
      all += static_cast<int64_t>(gone.size());
      table_.with([&](Table& table) {
        for (const std::string& id : gone) table.by_id.erase(id);
        table.removals += static_cast<int64_t>(gone.size());
      });
    }
  }
  return all;
}

void ArrayStore::remove(const ArrayRef& array, const std::optional<storage::IdempotencyRow>& key) {
  remove_all({array}, key);
}

void ArrayStore::remove_all(const std::vector<ArrayRef>& arrays, const std::optional<storage::IdempotencyRow>& key) {
  begin_removals(arrays, {});
  try {
    store_.catalog().write_then(
        [&](storage::Transaction& transaction) {
          delete_rows(arrays, transaction);
          transaction.claim_key(key);
        },
        [&] { note_removals(arrays); }, storage::Space::kFrees);
  } catch (...) {
    undo_removals(arrays);
    throw;
  }
  for (const ArrayRef& array : arrays) end_removal(array);
}

}  // namespace meshd::arrays
