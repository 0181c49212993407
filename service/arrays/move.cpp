// :move gives the bytes of an array to a new one. Those of a durable array stay where they are: the rows of the new
// array name its blobs, in the transaction that drops them from the old one.
#include <utility>
#include <vector>

#include "service/arrays/array_store.h"

namespace meshd::arrays {

using storage::Durability;

ArrayRef ArrayStore::move(const ArrayRef& from, const std::optional<storage::IdempotencyRow>& key) {
  const ArrayInfo& info = from->info();
  NewArray wanted{.principal = info.principal,
                  .session = info.session,
                  .name = info.name,
                  .type = info.type,
                  .mesh_id = info.mesh_id,
                  .durability = info.durability,
                  .is_unique = info.is_unique,
                  .key = key};
  if (info.committed) wanted.sharding = info.sharding;
  ArrayRef to = make_array(wanted, {});
  to->state().with([&, attributes = from->state().with([](const Array::State& state) { return state.attributes; })](
                       Array::State& state) { state.attributes = attributes; });
  const std::string taker = to->info().id;
  require_usable(from);
  reserve({from}, taker);
  // Both have the charge until the old one is donated, which whoever sees its row may find first.
  auto charge = from->state().with([](const Array::State& state) { return state.charge; });
  to->state().with([&](Array::State& state) { state.charge = std::move(charge); });
  ShardBuffers held;
  std::weak_ptr<ShardReaders> readers;
  // Slow readers hold the same memory as the new array, and are not to be counted beside it.
  try {
    NewShards same;
    from->state().with([&](Array::State& state) {
      // Rows of the new array name the blobs of the old one: nothing is read or written. No new version comes between,
      // because the array is reserved.
      if (info.durability == Durability::kDurable) same.kept = state.blobs;
      if (same.kept.empty() || state.shards.empty()) return;
      held = state.shards.get();
      readers = state.shards.hand_over();
    });
    if (same.kept.empty()) {
      held = shards(from);
      readers = from->state().with([](Array::State& state) { return state.shards.hand_over(); });
    }
    same.memory = held;
    std::vector<std::pair<ArrayRef, NewShards>> moved;
    moved.emplace_back(to, std::move(same));
    Prepared prepared = prepare(std::move(moved));
    const auto consumed = consume_rows({from}, taker);
    store_.catalog().write([&](storage::Transaction& transaction) {
      consumed(transaction);  // its name is free from here on
      prepared.rows(transaction);
    });
    prepared.committed();
  } catch (...) {
    if (!held.empty()) {
      give_back(from, held);
      from->state().with([&](Array::State& state) { state.shards.adopt(readers, held); });
    }
    release({from}, taker);
    throw;
  }
  to->state().with([&](Array::State& state) { state.shards.adopt(readers, held); });
  consume({from}, taker);
  return to;
}

}  // namespace meshd::arrays
