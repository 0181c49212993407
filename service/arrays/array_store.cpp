#include "service/arrays/array_store.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>

#include "service/arrays/array_text.h"
#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/mesh/mesh_document.h"
#include "service/mesh/processes.h"
#include "service/tensor/sizes.h"
#include "storage/blobs/rank_blobs.h"

namespace meshd::arrays {
namespace {

constexpr std::string_view kNewData = "the new version";
constexpr std::string_view kSpooled = "a body that waits on the disk";

using storage::ArrayState;
using storage::Durability;

// What a version that is durable may take until it is in memory, and how often that is looked at.
constexpr std::chrono::seconds kLastStep{1};
constexpr std::chrono::microseconds kLook{50};

// Arrays that clients may read from memory whatever others hold.
constexpr int64_t kAlwaysRead = int64_t{256} << 10;

// Of the process's file descriptors, those that readers of large arrays may hold.
constexpr int64_t kPartForReaders = 4;
int64_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT32_MAX))
                                                 : 0;
}

// Uncommitted arrays are unsharded on device 0.
sharding::TensorSharding on_first_device(int64_t rank) {
  static const auto first = std::make_shared<const mesh::Mesh>(mesh::Mesh{{}, {0}, {}});
  return sharding::fully_replicated("", first, rank);
}

// A new array with its first contents.
struct First {
  ArrayRef array;
  ShardBuffers shards;
  std::vector<storage::BlobRef> blobs;
};

[[noreturn]] void throw_unusable(const std::string& id, const Array::State& state, bool reading) {
  if (state.is_going()) throw core::Error("not_found", "there is no array '" + id + "'");
  switch (state.state) {
    case ArrayState::kDonated:
      if (reading)
        throw core::Error("deleted_or_donated", fmt::format("array '{}' is deleted or donated: {}", id, state.reason));
      throw core::Error("array_donated", fmt::format("array '{}' is deleted or donated: {}", id, state.reason));
    case ArrayState::kLost:
      if (!state.promised_by.empty()) throw not_made(id, state.reason);
      throw core::Error("array_lost", "array '" + id + "' is lost: " + state.reason);
    case ArrayState::kPending:
      throw core::Error(
          "conflict",
          fmt::format("array '{}' is not complete yet{}", id,
                      state.promised_by.empty() ? "" : "; it is to be a result of job " + state.promised_by));
    case ArrayState::kReady:
      break;
  }
  throw core::Error("internal", "array state");
}

[[noreturn]] void throw_taken(const std::string& id, const Array::State& state) {
  throw core::Error("array_in_use",
                    fmt::format("array '{}' is donated to job {}, which is running", id, state.reserved_by));
}

}  // namespace

ArrayStore::ArrayStore(storage::Store& store, std::shared_ptr<tensor::BufferPool> pool, const core::Clock& clock,
                       ArrayMemory memory, int64_t quota_bytes, PendingLimits pending, const quotas::Limits& limits)
    : store_(store),
      pool_(std::move(pool)),
      clock_(clock),
      memory_(memory),
      quota_bytes_(quota_bytes),
      ledger_(limits),
      pending_(clock, pending),
      most_open_blobs_(descriptor_limit() / kPartForReaders) {
  const auto stored = store_.catalog().read([](storage::Reader& reader) { return reader.stored_arrays(); });
  for (const storage::StoredArrays& each : stored) ledger_.count(each.principal, {each.count, each.bytes});
}

std::string ArrayStore::blob_name(const Array& array, int64_t version, size_t shard) {
  return fmt::format("{}.v{}.w{}.s{}", array.info().id, version, ++writes_, shard);
}

void ArrayStore::require_quota(int64_t bytes, std::string_view what) const {
  if (bytes > quota_bytes_) {
    throw core::Error("quota_exceeded",
                      fmt::format("{} of {} bytes is over the limit of {} bytes", what, bytes, quota_bytes_));
  }
}

ArrayRef ArrayStore::begin(const NewArray& wanted, std::string id) {
  tensor::require_sizes(wanted.type);
  const int64_t bytes = tensor::byte_count(wanted.type);
  require_quota(bytes, "an array");
  // Names are in memory as long as the array is known, in no account. A job that was accepted before has its names.
  if (id.empty() && wanted.name.size() > kLongestName) {
    throw core::Error("invalid_array", fmt::format("name: the name of an array has at most {} bytes, this one has {}",
                                                   kLongestName, wanted.name.size()));
  }
  if (!wanted.name.empty()) {
    // The transaction that makes it asks again; here it is refused before its bytes come.
    store_.catalog().read([&](storage::Reader& reader) {
      reader.require_free_name(wanted.principal, wanted.name, wanted.is_unique, wanted.leaving);
    });
  }
  quotas::ArrayCharge charge = ledger_.charge(wanted.principal, bytes);
  ArrayRef array = make_array(wanted, std::move(id));
  array->state().with([&](Array::State& state) { state.charge = std::move(charge); });
  return array;
}

ArrayRef ArrayStore::make_array(const NewArray& wanted, std::string id) {
  ArrayInfo info;
  info.id = id.empty() ? core::new_id("arr", clock_) : std::move(id);
  info.principal = wanted.principal;
  info.session = wanted.session;
  info.name = wanted.name;
  info.is_unique = wanted.is_unique && !wanted.name.empty();
  info.type = wanted.type;
  info.mesh_id = wanted.mesh_id;
  info.sharding = wanted.sharding ? *wanted.sharding : on_first_device(wanted.type.rank());
  info.sharding.mesh = shared_mesh(info.mesh_id, std::move(info.sharding.mesh));
  info.committed = wanted.sharding.has_value();
  info.durability = wanted.durability;
  info.created = clock_.wall();
  auto layout = layouts_.get(info.type.dims, info.sharding);
  auto array = std::make_shared<Array>(std::move(info), std::move(layout), loaded_bytes_);
  if (wanted.key) {
    array->state().with([&](Array::State& state) {
      state.key = wanted.key;
      if (state.key->made.empty()) state.key->made = array->info().id;
    });
  }
  return array;
}

mesh::MeshRef ArrayStore::shared_mesh(const std::string& id, mesh::MeshRef mesh) {
  if (id.empty()) return mesh;
  return meshes_.with([&](SharedMeshes& meshes) {
    if (meshes.by_id.size() >= meshes.sweep_at) {
      std::erase_if(meshes.by_id, [](const auto& entry) { return entry.second.expired(); });
      meshes.sweep_at = std::max<size_t>(1024, 2 * meshes.by_id.size());
    }
    std::weak_ptr<const mesh::Mesh>& known = meshes.by_id[id];
    if (auto shared = known.lock(); shared != nullptr && *shared == *mesh) return shared;
    known = mesh;
    return std::move(mesh);
  });
}

void ArrayStore::announce(const ArrayRef& array) {
  expire_pending();
  pending_.add(array);
  array->state().with([](Array::State& state) { state.announced = true; });
  table_.with([&](Table& table) { table.by_id[array->info().id] = array; });
}

void ArrayStore::store_key(const ArrayRef& array) {
  const auto key = array->state().with([](Array::State& state) { return std::exchange(state.key, std::nullopt); });
  if (key) store_.catalog().write([&](storage::Transaction& transaction) { transaction.claim_key(key); });
}

void ArrayStore::expire_pending() {
  const std::vector<ArrayRef> over = pending_.take_expired();
  if (over.empty()) return;
  table_.with([&](Table& table) {
    for (const ArrayRef& array : over) table.by_id.erase(array->info().id);
  });
  for (const ArrayRef& array : over) array->watchers().notify_all();
  // Withdraws the open callback requests for its parts.
  store_.catalog().write_async(
      [over](storage::Transaction& transaction) {
        for (const ArrayRef& array : over) transaction.drop_open_callbacks(array->info().id);
      },
      [](const std::exception_ptr&) {});
}

void ArrayStore::require_fits(const Array& array) const {
  if (array.shard_bytes() <= memory_.with_jobs_bytes) return;
  throw core::Error(
      "memory_exceeded",
      fmt::format("array '{}' has {} bytes, and there are {} for arrays and jobs together; read or replace "
                  "it as a whole, or give the server more memory",
                  array.info().id, array.shard_bytes(), memory_.with_jobs_bytes));
}

ShardBuffers ArrayStore::allocate(const Array& array) {
  ShardBuffers shards;
  for (int64_t s = 0; s < array.layout().shard_count; ++s) shards.push_back(allocate_shard(array, s));
  return shards;
}

tensor::BufferRef ArrayStore::allocate_shard(const Array& array, int64_t shard) {
  const sharding::Layout& layout = array.layout();
  const int64_t bytes = tensor::byte_count({array.info().type.dtype, layout.shard_dims});
  tensor::BufferRef buffer = pool_->allocate(bytes);
  if (tensor::element_count(layout.shard_actual_dims(shard)) != tensor::element_count(layout.shard_dims))
    std::memset(buffer->data(), 0, static_cast<size_t>(bytes));
  return buffer;
}

NewShards ArrayStore::new_shards(const Array& array, int64_t held_bytes) {
  const int64_t bytes = array.shard_bytes();
  if (array.info().durability != Durability::kDurable || core::checked_add(bytes, held_bytes) < kStreamedBytes) {
    NewShards in_memory = allocate(array);
    in_memory.charge = charge_beside(array, bytes);
    return in_memory;
  }
  if (store_.blobs().free_bytes() < bytes)
    throw core::Error("disk_full",
                      fmt::format("the disk that keeps the data has no room for an array of {} bytes", bytes));
  const int64_t version = array.next_version();
  const int64_t shard_bytes = bytes / array.layout().shard_count;
  NewShards out;
  out.charge = charge_beside(array, bytes);
  out.blobs.emplace(store_);
  for (int64_t s = 0; s < array.layout().shard_count; ++s)
    out.blobs->begin(blob_name(array, version, static_cast<size_t>(s)), shard_bytes);
  return out;
}

// What is not complete was charged when it was begun; what is small holds memory that the request is charged for.
quotas::ArrayCharge ArrayStore::charge_beside(const Array& array, int64_t bytes) {
  if (bytes < kStreamedBytes || array.is_pending()) return {};
  return ledger_.charge_bytes(array.info().principal, bytes, kNewData);
}

Spool ArrayStore::spool(const Array& array, int64_t bytes) {
  if (store_.blobs().free_bytes() < bytes)
    throw core::Error(
        "disk_full",
        fmt::format("the disk that keeps the data has no room for {} bytes while they are put into order", bytes));
  return {store_, blob_name(array, array.next_version(), 0), bytes,
          ledger_.charge_bytes(array.info().principal, bytes, kSpooled)};
}

storage::ArrayRow ArrayStore::row_of(const Array& array, const Array::State& state) const {
  const ArrayInfo& info = array.info();
  storage::ArrayRow row;
  row.id = info.id;
  row.principal = info.principal;
  row.session = info.session;
  row.name = info.name;
  row.holds_name = info.is_unique;
  row.dtype = std::string(tensor::name(info.type.dtype));
  row.shape = info.type.dims;
  row.mesh = info.mesh_id;
  row.sharding = sharding_to_text(info.sharding);
  row.durability = info.durability;
  row.state = state.state;
  row.version = state.version;
  row.bytes = array.byte_count();
  row.committed = info.committed;
  row.reason = state.reason;
  row.created = info.created;
  row.attributes = state.attributes;
  return row;
}

ArrayStore::Prepared ArrayStore::prepare(std::vector<std::pair<ArrayRef, NewShards>> arrays) {
  Prepared out;
  int64_t coming = 0;
  for (const auto& [array, shards] : arrays) {
    for (const tensor::BufferRef& shard : shards.memory) coming += shard == nullptr ? 0 : shard->size();
  }
  make_room(coming);
  out.blobs = storage::PendingBlobs(store_);
  std::vector<std::vector<size_t>> numbers(arrays.size());  // of blobs, by array and shard
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto& [array, shards] = arrays[i];
    numbers[i].resize(static_cast<size_t>(array->layout().shard_count));
    if (shards.blobs) {
      static_cast<void>(shards.blobs->sync());
      std::iota(numbers[i].begin(), numbers[i].end(), out.blobs.count());
      out.blobs.append(std::move(*shards.blobs));
    }
    if (shards.left) {
      size_t number = out.blobs.count();
      for (size_t s = 0; s < shards.memory.size(); ++s) {
        if (shards.memory[s] == nullptr) numbers[i][s] = number++;
      }
      out.blobs.append(std::move(*shards.left));
    }
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto& [array, shards] = arrays[i];
    if (array->info().durability != Durability::kDurable || shards.blobs || !shards.kept.empty()) continue;
    for (size_t s = 0; s < shards.memory.size(); ++s) {
      if (shards.memory[s] == nullptr) continue;
      numbers[i][s] = out.blobs.count();
      out.blobs.add(blob_name(*array, 1, s), shards.memory[s]->bytes());
    }
  }
  const std::vector<storage::BlobRef> written = out.blobs.sync();
  std::vector<First> firsts;
  std::vector<storage::ArrayRow> rows;
  std::vector<storage::ShardRow> shard_rows;
  std::map<std::pair<std::string, std::string>, storage::MeshRow> meshes;  // by id and principal
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto& [array, shards] = arrays[i];
    First first{array, std::move(shards.memory), {}};
    if (array->info().durability == Durability::kDurable) {
      for (int64_t s = 0; s < array->layout().shard_count; ++s) {
        const auto at = static_cast<size_t>(s);
        first.blobs.push_back(shards.kept.empty() ? written.at(numbers[i][at]) : shards.kept.at(at));
        shard_rows.push_back({array->info().id, s, first.blobs.back()});
      }
    }
    if (!array->info().mesh_id.empty()) {
      // The array names its mesh, and that its abstract form: whoever has the array sees both, posted or not.
      const mesh::Mesh& mesh = *array->info().sharding.mesh;
      const mesh::Mesh abstract = mesh::abstract_form(mesh);
      const std::string& principal = array->info().principal;
      for (const auto& [id, seen] : {std::pair(array->info().mesh_id, &mesh), {mesh::mesh_id(abstract), &abstract}})
        meshes.try_emplace({id, principal}, storage::MeshRow{id, principal, mesh::to_document(*seen), clock_.wall()});
    }
    rows.push_back(array->state().with([&](const Array::State& state) { return row_of(*array, state); }));
    rows.back().state = ArrayState::kReady;
    firsts.push_back(std::move(first));
  }
  std::vector<std::string> ids;
  for (const First& first : firsts) ids.push_back(first.array->info().id);
  out.coming = std::shared_ptr<void>(nullptr, [this, ids](void*) {
    table_.with([&](Table& table) {
      for (const std::string& id : ids) table.coming.erase(id);
    });
  });
  table_.with([&](Table& table) { table.coming.insert(ids.begin(), ids.end()); });
  std::vector<std::optional<storage::IdempotencyRow>> keys;
  for (const First& first : firsts)
    keys.push_back(
        first.array->state().with([](Array::State& state) { return std::exchange(state.key, std::nullopt); }));
  std::erase(keys, std::nullopt);
  out.has_keys = !keys.empty();
  std::vector<ArrayRef> promised;
  for (const First& first : firsts) {
    if (first.array->state().with([](const Array::State& state) { return state.is_promised(); }))
      promised.push_back(first.array);
  }
  out.rows = [promised, keys = std::move(keys), rows = std::move(rows), shard_rows = std::move(shard_rows),
              meshes = std::move(meshes)](storage::Transaction& transaction) {
    for (const auto& [name, row] : meshes) transaction.put_mesh(row);
    for (const storage::ArrayRow& row : rows) transaction.insert_array(row);
    for (const storage::ShardRow& row : shard_rows) transaction.put_shard(row);
    for (const auto& key : keys) transaction.claim_key(key);
    // A job that was accepted to donate one of them had no row to reserve.
    for (const ArrayRef& array : promised) {
      const std::string job = array->state().with([](const Array::State& state) { return state.reserved_by; });
      if (!job.empty() && array->info().durability == Durability::kDurable)
        transaction.reserve_array(array->info().id, job);
    }
  };
  out.visible = [this, promised, firsts = std::move(firsts)]() mutable {
    table_.with([&](Table& table) {
      for (First& first : firsts) {
        first.array->state().with([&](Array::State& state) {
          state.state = ArrayState::kReady;
          state.shards = std::move(first.shards);
          state.blobs = std::move(first.blobs);
          state.announced = false;
          state.promised_by.clear();
          state.last_use = ++table.clock;
        });
        table.by_id[first.array->info().id] = first.array;
      }
    });
    for (const ArrayRef& array : promised) pending_.remove(array);
    for (const First& first : firsts) first.array->watchers().notify_all();
  };
  return out;
}

void ArrayStore::publish(const ArrayRef& array, NewShards shards) {
  std::vector<std::pair<ArrayRef, NewShards>> one;
  one.emplace_back(array, std::move(shards));
  publish(std::move(one));
}

void ArrayStore::publish(std::vector<std::pair<ArrayRef, NewShards>> arrays, const std::vector<ArrayRef>& replaced,
                         const VersionCheck& check, const std::function<void(storage::Transaction&)>& also) {
  // A memory array's row only makes its loss visible after a restart: not waited for, unless it has a name.
  const bool has_rows = std::any_of(arrays.begin(), arrays.end(), [](const auto& entry) {
    const ArrayInfo& info = entry.first->info();
    return info.durability == Durability::kDurable || !info.name.empty();
  });
  Prepared prepared = prepare(std::move(arrays));
  if (!has_rows && !prepared.has_keys && replaced.empty() && !also) {
    prepared.committed();
    return store_.catalog().write_async(prepared.rows, [](const std::exception_ptr&) {});
  }
  begin_removals(replaced, check);
  try {
    store_.catalog().write_then(
        [&](storage::Transaction& transaction) {
          delete_rows(replaced, transaction);
          prepared.rows(transaction);
          if (also) also(transaction);
        },
        [&] { note_removals(replaced); });
  } catch (...) {
    undo_removals(replaced);
    throw;
  }
  prepared.committed();
  for (const ArrayRef& array : replaced) end_removal(array);
}

std::pair<ArrayRef, int64_t> ArrayStore::find_loaded(std::string_view id) {
  return table_.with([&](Table& table) -> std::pair<ArrayRef, int64_t> {
    const auto found = table.by_id.find(id);
    return {found == table.by_id.end() ? nullptr : found->second, table.removals};
  });
}

ArrayRef ArrayStore::load_row(const storage::ArrayRow& row, int64_t removals) {
  ArrayInfo info;
  info.id = row.id;
  info.principal = row.principal;
  info.session = row.session;
  info.name = row.name;
  info.is_unique = row.holds_name;
  const auto dtype = tensor::dtype_from_name(row.dtype);
  if (!dtype) throw core::Error("internal", "a stored array has an unknown dtype");
  info.type = {*dtype, row.shape};
  info.mesh_id = row.mesh;
  info.committed = row.committed;
  info.durability = row.durability;
  info.created = row.created;
  std::vector<storage::ShardRow> shards;
  std::optional<std::string> document;
  store_.catalog().read([&](storage::Reader& reader) {
    shards = reader.shards(row.id);
    if (!row.mesh.empty()) document = reader.mesh_document(row.mesh);
  });
  if (row.mesh.empty()) {
    info.sharding = on_first_device(info.type.rank());
  } else {
    if (!document) throw core::Error("internal", "a stored array's mesh is gone");
    info.sharding = sharding_from_text(
        row.sharding, shared_mesh(row.mesh, std::make_shared<const mesh::Mesh>(mesh::from_document(*document))));
  }
  auto layout = layouts_.get(info.type.dims, info.sharding);
  auto array = std::make_shared<Array>(std::move(info), std::move(layout), loaded_bytes_);
  array->state().with([&](Array::State& state) {
    state.state = row.state;
    state.version = row.version;
    state.reason = row.reason;
    state.reserved_by = row.reserved_by;
    state.attributes = row.attributes;
    for (const storage::ShardRow& shard : shards) state.blobs.push_back(shard.blob);
  });
  return table_.with([&](Table& table) -> ArrayRef {
    // One object for an array, which has its charge.
    if (table.coming.contains(row.id) && !table.by_id.contains(row.id)) return nullptr;
    if (row.state == ArrayState::kDonated) return array;  // for good: memory need not know it
    if (table.removals != removals && !table.by_id.contains(row.id)) return nullptr;
    const auto [found, fresh] = table.by_id.try_emplace(row.id, array);
    const bool counts = row.state == ArrayState::kReady || row.state == ArrayState::kPending;
    if (fresh && counts) {
      array->state().with([&](Array::State& state) { state.charge = ledger_.counted(row.principal, row.bytes); });
    }
    return found->second;
  });
}

ArrayRef ArrayStore::find(std::string_view id, std::string_view principal) {
  ArrayRef array;
  for (bool is_known = false; !is_known;) {
    const auto [loaded, removals] = find_loaded(id);
    // The database is read for others' arrays, too, so that the time does not reveal that the id is in memory.
    if (loaded != nullptr && loaded->info().principal == principal) array = loaded;
    if (array != nullptr) break;
    const auto row = store_.catalog().read([&](storage::Reader& reader) { return reader.array(id, principal); });
    if (row) array = load_row(*row, removals);
    is_known = !row || array != nullptr;
    if (!is_known) std::this_thread::sleep_for(kLook);
  }
  if (array != nullptr) follow_row(array);
  if (array != nullptr && pending_.is_over(*array)) expire_pending();
  const bool visible =
      array != nullptr && !array->state().with([](const Array::State& state) { return state.deleted; });
  if (!visible) {
    const char* const advice =
        core::looks_like_id(id, "arr") ? "" : ": ids begin with arr_, and /v1/arrays/by-name/NAME has that of a name";
    throw core::Error("not_found",
                      pending_.why_gone(id, principal).value_or(fmt::format("there is no array '{}'{}", id, advice)));
  }
  return array;
}

ArrayRef ArrayStore::find_kept(std::string_view id, std::string_view principal) {
  try {
    return find(id, principal);
  } catch (const core::Error& error) {
    if (error.code() != core::ErrorCode("not_found")) throw;
    throw core::Error("array_lost", "array '" + std::string(id) +
                                        "' is lost: the job that was to make it did not, or it was in memory only and "
                                        "the server has restarted");
  }
}

ArrayRef ArrayStore::find_argument(std::string_view id, std::string_view principal, bool was_accepted) {
  return was_accepted ? find_kept(id, principal) : find(id, principal);
}

tensor::DenseValue ArrayStore::copy_dense(const ArrayRef& array, const std::optional<std::vector<Slice>>& slices) {
  const tensor::TensorType& type = array->info().type;
  const std::vector<Slice> region = slices ? *slices : full_slices(type.dims);
  GatherReader reader({array, &array->layout()}, tensor::size_bytes(type.dtype), open(array).shards, region);
  tensor::DenseValue value = tensor::new_dense({type.dtype, slice_dims(region)}, *pool_);
  reader.read(value.buffer->bytes());
  return value;
}

// A transaction is visible in pages of effects a moment before the array follows it in memory: whoever has seen the
// effects of a job finds neither what it has donated nor the old version of what it has updated.
void ArrayStore::follow_row(const ArrayRef& array) {
  const auto [job, is_replaced, version] = array->state().with(
      [](const Array::State& state) { return std::tuple(state.reserved_by, state.replacing, state.version); });
  if ((job.empty() && !is_replaced) || array->info().durability != Durability::kDurable) return;
  const ArrayInfo& info = array->info();
  const auto row =
      store_.catalog().read([&](storage::Reader& reader) { return reader.array(info.id, info.principal); });
  if (!row) return;
  if (row->state == ArrayState::kDonated) return consume({array}, job);
  // The writer's thread is about to put the new shards in place.
  const auto end = clock_.steady() + kLastStep;
  while (array->version() < row->version && clock_.steady() < end) std::this_thread::sleep_for(kLook);
}

bool ArrayStore::is_loaded(const ArrayRef& array) {
  return array->state().with([](const Array::State& state) { return state.shards.is_whole(); });
}

ArrayStore::Snapshot ArrayStore::snapshot(const ArrayRef& array) {
  for (;;) {
    if (auto found = try_snapshot(array)) return std::move(*found);
  }
}

ArrayStore::Opened ArrayStore::open(const ArrayRef& array, ReadBy who) {
  for (;;) {
    if (auto found = try_open(array, who)) return std::move(*found);
  }
}

ArrayStore::Opened ArrayStore::open_at(const ArrayRef& array, int64_t version) {
  const std::string& id = array->info().id;
  if (version > array->version())
    throw core::Error("not_found", fmt::format("array '{}' has no version {}", id, version));
  Opened now = open(array, ReadBy::kClient);
  if (now.version != version) {
    throw core::Error("deleted_or_donated",
                      fmt::format("array '{0}' is at version {1}; open it at v{1}/zarr", id, now.version));
  }
  return now;
}

// Slow readers hold these for long; what is left of the process's descriptors is for connections and for writing.
std::shared_ptr<const storage::BlobReader> ArrayStore::open_blob(const storage::BlobRef& blob) {
  const auto give_back = [open = open_blobs_](void*) { --*open; };
  const bool is_one_too_many = open_blobs_->fetch_add(1) >= most_open_blobs_;
  const std::shared_ptr<void> count(nullptr, give_back);  // where it throws, it has given back
  if (is_one_too_many) {
    throw core::Error("overloaded", "as many large arrays are being read as the server has file descriptors for")
        .with_retry_after(1);
  }
  const auto reader = std::make_shared<const storage::BlobReader>(store_.blobs().open(blob));
  return {reader.get(), [reader, count](const storage::BlobReader*) {}};
}

// Nothing when the array got another version while the files of the old one were opened.
std::optional<ArrayStore::Opened> ArrayStore::try_open(const ArrayRef& array, ReadBy who) {
  std::vector<storage::BlobRef> blobs;
  int64_t version = 0;
  const bool stays_on_disk = who == ReadBy::kClient && is_memory_held();
  if (array->shard_bytes() >= kStreamedBytes) {
    auto state = array->state().lock();
    const bool is_on_disk =
        !state->deleted && state->state == ArrayState::kReady && (stays_on_disk || !state->shards.is_whole());
    // Beyond, row-major order would read a page for each run: a reader keeps no more pages than these.
    const bool is_read_by_pages = array->layout().shard_count <= static_cast<int64_t>(GatherReader::kMostPages);
    if (is_on_disk && is_read_by_pages) blobs = state->blobs;
    version = state->version;
  }
  if (blobs.empty()) {
    if (stays_on_disk && array->shard_bytes() > kAlwaysRead) {
      throw core::Error("memory_full", "clients that read slowly hold the memory that reading this array may take")
          .with_retry_after(1);
    }
    Snapshot now = snapshot(array);
    if (who == ReadBy::kClient) now.shards = read_by_client(array, std::move(now.shards));
    return Opened{std::move(now.shards), now.version};
  }
  Opened out;
  out.version = version;
  try {
    for (const storage::BlobRef& blob : blobs) out.shards.blobs.push_back(open_blob(blob));
  } catch (const core::Error&) {
    auto state = array->state().lock();
    if (state->deleted || state->state != ArrayState::kReady) throw_unusable(array->info().id, *state, true);
    if (state->version != version) return std::nullopt;
    throw;
  }
  return out;
}

ShardBuffers ArrayStore::read_by_client(const ArrayRef& array, ShardBuffers shards) {
  struct Held {
    ShardBuffers shards;
    std::shared_ptr<ShardReaders> readers;
  };
  const auto held = std::make_shared<Held>();
  held->readers = array->state().with(
      [&](Array::State& state) { return state.shards.get() == shards ? state.shards.readers() : nullptr; });
  if (held->readers == nullptr) {  // the array has left memory already
    int64_t bytes = 0;
    for (const tensor::BufferRef& shard : shards) bytes += shard->size();
    held->readers = std::make_shared<ShardReaders>(loaded_bytes_, bytes);
    held->readers->leave();
  }
  held->shards = std::move(shards);
  ShardBuffers out;
  for (const tensor::BufferRef& shard : held->shards) out.push_back({held, shard.get()});
  return out;
}

// Nothing when the array got another version while the old one was read from disk.
std::optional<ArrayStore::Snapshot> ArrayStore::try_snapshot(const ArrayRef& array) {
  std::vector<storage::BlobRef> blobs;
  int64_t version = 0;
  ShardBuffers loaded;
  const uint64_t now = table_.with([](Table& table) { return ++table.clock; });
  {
    auto state = array->state().lock();
    if (state->deleted || state->state != ArrayState::kReady) throw_unusable(array->info().id, *state, true);
    state->last_use = now;
    if (state->shards.is_whole()) return Snapshot{state->shards.get(), state->version};
    if (state->blobs.empty()) throw_taken(array->info().id, *state);
    blobs = state->blobs;
    version = state->version;
    loaded = state->shards.get();
  }
  require_fits(*array);
  loaded.resize(blobs.size());
  try {
    for (size_t s = 0; s < loaded.size(); ++s) {
      if (loaded[s] != nullptr) continue;
      loaded[s] = allocate_shard(*array, static_cast<int64_t>(s));
      store_.blobs().read(blobs.at(s), 0, loaded[s]->bytes());
    }
  } catch (const core::Error&) {
    auto state = array->state().lock();
    if (state->deleted || state->state != ArrayState::kReady) throw_unusable(array->info().id, *state, true);
    if (state->version != version) return std::nullopt;
    throw;
  }
  {
    auto state = array->state().lock();
    if (state->deleted || state->state != ArrayState::kReady) throw_unusable(array->info().id, *state, true);
    if (state->version != version) return std::nullopt;
    // While a job has the shards out, what was read stays the reader's own.
    if (!state->shards.is_whole() && state->reserved_by.empty()) state->shards = loaded;
    if (state->shards.is_whole()) loaded = state->shards.get();
  }
  make_room();
  return Snapshot{std::move(loaded), version};
}

ArrayStore::Referred ArrayStore::refer(const ArrayRef& array, const std::string& job) {
  const uint64_t now = table_.with([](Table& table) { return ++table.clock; });
  Referred out;
  {
    auto state = array->state().lock();
    if (state->deleted || state->state != ArrayState::kReady) throw_unusable(array->info().id, *state, true);
    if (!state->shards.is_whole() && state->blobs.empty()) throw_taken(array->info().id, *state);
    state->last_use = now;
    out = {state->shards.get(), state->blobs, state->version};
    if (!job.empty() && state->reserved_by == job) state->shards.clear();
  }
  out.shards.resize(static_cast<size_t>(array->layout().shard_count));
  for (size_t s = 0; s < out.shards.size(); ++s) {
    if (out.shards[s] != nullptr) continue;
    if (out.kept == nullptr) out.kept = std::make_shared<storage::PendingBlobs>(store_);
    out.kept->adopt(out.blobs.at(s));
  }
  return out;
}

tensor::BufferRef ArrayStore::load_shard(const ArrayRef& array, int64_t version, const storage::BlobRef& blob,
                                         int64_t shard) {
  const auto at = static_cast<size_t>(shard);
  tensor::BufferRef loaded = allocate_shard(*array, shard);
  try {
    store_.blobs().read(blob, 0, loaded->bytes());
  } catch (const core::Error&) {
    auto state = array->state().lock();
    if (state->deleted || state->state != ArrayState::kReady) throw_unusable(array->info().id, *state, true);
    if (state->version == version) throw;
    throw core::Error(
        "conflict", fmt::format("array '{}' has another version since the job began; run it again", array->info().id));
  }
  {
    auto state = array->state().lock();
    const bool is_same = !state->deleted && state->state == ArrayState::kReady && state->version == version;
    if (!is_same || !state->reserved_by.empty()) return loaded;
    ShardBuffers shards = state->shards.get();
    shards.resize(static_cast<size_t>(array->layout().shard_count));
    if (shards[at] != nullptr) return shards[at];
    shards[at] = loaded;
    state->shards = std::move(shards);
  }
  make_room();
  return loaded;
}

std::string ArrayStore::new_blob_name(const Array& array, int64_t shard, int rank) {
  return storage::rank_blob_name(blob_name(array, array.next_version(), static_cast<size_t>(shard)), rank);
}

void ArrayStore::require_usable(const ArrayRef& array, std::string_view session) {
  array->state().with([&](const Array::State& state) {
    if (!session.empty() && state.is_promised() && array->info().session == session) return;
    if (state.deleted || state.state != ArrayState::kReady) throw_unusable(array->info().id, state, false);
  });
}

void ArrayStore::lend(int64_t bytes) {
  *lent_bytes_ += bytes;
  try {
    if (memory_budget() < memory_.most_bytes) make_room();
  } catch (...) {
    take_back(bytes);
    throw;
  }
}

LentMemory::LentMemory(ArrayStore& store, int64_t bytes) : lent_(store.lent_bytes_), bytes_(bytes) {
  store.lend(bytes);
}

LentMemory::~LentMemory() { shrink_to(0); }

void LentMemory::shrink_to(int64_t bytes) {
  if (bytes >= bytes_) return;
  *lent_ -= bytes_ - bytes;
  bytes_ = bytes;
}

int64_t ArrayStore::memory_budget() const {
  return std::clamp<int64_t>(memory_.with_jobs_bytes - *lent_bytes_, 0, memory_.most_bytes);
}

ArrayStore::Page ArrayStore::list(std::string_view principal, const storage::ArrayFilter& filter,
                                  const storage::PageRequest& page) {
  expire_pending();
  // Before the rows are read: an array that becomes ready meanwhile is found twice, not missed.
  std::map<std::string, ArrayRef> found;
  for (const ArrayRef& array : pending_.of(principal)) {
    const ArrayInfo& info = array->info();
    const bool fits = (filter.session.empty() || filter.session == info.session) &&
                      (filter.name.empty() || filter.name == info.name) && info.name.starts_with(filter.prefix);
    if (fits && info.id > page.cursor) found.emplace(info.id, array);
  }
  const int64_t removals = table_.with([](const Table& table) { return table.removals; });
  auto rows = store_.catalog().read([&](storage::Reader& reader) { return reader.arrays(principal, filter, page); });
  for (const storage::ArrayRow& row : rows.items) {
    ArrayRef array = find_loaded(row.id).first;
    if (array == nullptr) array = load_row(row, removals);
    try {
      if (array == nullptr) array = find(row.id, principal);
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode("not_found")) throw;
      continue;  // it was deleted meanwhile
    }
    found[row.id] = std::move(array);
  }
  Page out;
  int64_t listed = 0;
  std::string last;
  for (auto& [id, array] : found) {
    if (listed == page.limit) {
      out.next = last;
      return out;
    }
    ++listed;
    last = id;
    if (!array->state().with([](const Array::State& state) { return state.deleted; }))
      out.items.push_back(std::move(array));
  }
  out.next = rows.next;
  return out;
}

void ArrayStore::reserve(const std::vector<ArrayRef>& donated, const std::string& job) {
  for (size_t i = 0; i < donated.size(); ++i) {
    try {
      auto state = donated[i]->state().lock();
      if (state->is_going() || (state->state != ArrayState::kReady && !state->is_promised()))
        throw_unusable(donated[i]->info().id, *state, false);
      if (!state->reserved_by.empty()) {
        throw core::Error(
            "array_in_use",
            fmt::format("array '{}' is donated to {}", donated[i]->info().id,
                        state->reserved_by == job ? "this job twice" : "job " + state->reserved_by + " already"));
      }
      if (state->replacing) {
        throw core::Error("array_in_use", "array '" + donated[i]->info().id + "' is just being given new data");
      }
      state->reserved_by = job;
    } catch (...) {
      release({donated.begin(), donated.begin() + static_cast<std::ptrdiff_t>(i)}, job);
      throw;
    }
  }
}

void ArrayStore::release(const std::vector<ArrayRef>& donated, const std::string& job) {
  for (const ArrayRef& array : donated) {
    array->state().with([&](Array::State& state) {
      if (state.reserved_by == job) state.reserved_by.clear();
    });
  }
}

void ArrayStore::release_all(std::string_view principal, const std::string& job) {
  table_.with([&](Table& table) {
    for (const auto& [id, array] : table.by_id) {
      if (array->info().principal == principal) release({array}, job);
    }
  });
}

ShardBuffers ArrayStore::take(const ArrayRef& array, const std::string& job) {
  ShardBuffers loaded = shards(array);
  array->state().with([&](Array::State& state) {
    if (state.reserved_by == job) state.shards.clear();
  });
  return loaded;
}

void ArrayStore::give_back(const ArrayRef& array, ShardBuffers shards) {
  array->state().with([&](Array::State& state) {
    if (state.state == ArrayState::kReady && !state.shards.is_whole()) state.shards = std::move(shards);
  });
  make_room();
}

std::function<void(storage::Transaction&)> ArrayStore::consume_rows(const std::vector<ArrayRef>& donated,
                                                                    const std::string& job) {
  std::vector<std::string> ids;
  for (const ArrayRef& array : donated) ids.push_back(array->info().id);
  return [ids = std::move(ids), job](storage::Transaction& transaction) {
    for (const std::string& id : ids) transaction.consume_array(id, job);
  };
}

void ArrayStore::consume(const std::vector<ArrayRef>& donated, const std::string& job) {
  for (const ArrayRef& array : donated) {
    note_new_version(*array);
    const auto spilled = array->state().with([&](Array::State& state) -> std::optional<storage::PendingBlobs> {
      if (state.state == ArrayState::kDonated) return std::nullopt;  // a reader has seen the row before
      state.state = ArrayState::kDonated;
      state.reason = storage::donated_reason(job);
      state.reserved_by.clear();
      state.shards.clear();
      state.charge.release();
      ++state.version;
      auto gone = state.forget_spilled();
      state.blobs.clear();
      return gone;
    });
  }
}

int64_t ArrayStore::forget_donated() {
  constexpr size_t kAtOnce = 1000;
  int64_t forgotten = 0;
  std::string after;
  for (;;) {
    std::vector<ArrayRef> donated;
    table_.with([&](const Table& table) {
      for (auto entry = table.by_id.upper_bound(after); entry != table.by_id.end() && donated.size() < kAtOnce;
           ++entry) {
        after = entry->first;
        const bool is_donated = entry->second->state().with(
            [](const Array::State& state) { return state.state == ArrayState::kDonated && !state.deleted; });
        if (is_donated) donated.push_back(entry->second);
      }
    });
    if (donated.empty()) return forgotten;
    // Those of memory arrays are written later.
    store_.catalog().read([&](storage::Reader& reader) {
      std::erase_if(donated, [&](const ArrayRef& array) {
        const auto row = reader.array(array->info().id);
        return !row || row->state != ArrayState::kDonated;
      });
    });
    table_.with([&](Table& table) {
      for (const ArrayRef& array : donated) forgotten += static_cast<int64_t>(table.by_id.erase(array->info().id));
      table.removals += static_cast<int64_t>(donated.size());
    });
  }
}

void ArrayStore::spoil(const std::vector<ArrayRef>& donated, const std::string& job) {
  for (const ArrayRef& array : donated) {
    const bool is_kept = array->state().with([&](Array::State& state) {
      if (state.state != ArrayState::kReady) return true;
      state.shards.clear();
      state.reserved_by.clear();
      if (!state.blobs.empty()) return true;
      state.state = ArrayState::kLost;
      state.reason = "job " + job + " failed after it had overwritten the memory";
      state.charge.release();
      ++state.version;
      return false;
    });
    if (is_kept) continue;
    const storage::ArrayRow row = array->state().with([&](const Array::State& state) { return row_of(*array, state); });
    store_.catalog().write_async([row](storage::Transaction& transaction) { transaction.update_array(row); },
                                 [](const std::exception_ptr&) {});
  }
}

ArrayUsage ArrayStore::usage() const {
  ArrayUsage usage;
  table_.with([&](const Table& table) {
    for (const auto& [id, array] : table.by_id) {
      ++usage.count;
      array->state().with([&](const Array::State& state) {
        usage.memory_bytes += state.shards.bytes();
        if (state.parts) usage.memory_bytes += state.parts->bytes;
        if (!state.blobs.empty()) usage.disk_bytes += array->shard_bytes();
      });
    }
  });
  return usage;
}

}  // namespace meshd::arrays
