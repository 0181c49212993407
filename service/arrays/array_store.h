// The store of arrays: creates, finds, loads, lists, reserves, consumes and deletes them. Blobs are durable before
// rows.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "service/arrays/array.h"
#include "service/arrays/pending.h"
#include "service/arrays/regions/region.h"
#include "service/arrays/regions/spool.h"
#include "service/core/clock.h"
#include "service/sharding/layout_cache.h"
#include "service/tensor/dense_value.h"
#include "storage/pending_blobs.h"
#include "storage/store.h"

namespace meshd::arrays {

/// What a new array is to be; id, layout and time are the store's.
struct NewArray {
  std::string principal;
  std::string session;
  std::string name;
  tensor::TensorType type;
  std::string mesh_id;                                    ///< empty: uncommitted on device 0
  std::optional<sharding::TensorSharding> sharding = {};  ///< verified; needed with mesh_id
  storage::Durability durability = storage::Durability::kDurable;
  bool is_unique = false;  ///< it holds its name alone: otherwise publish() throws name_taken, as for a name so held
  std::vector<std::string> leaving = {};  ///< ids of the arrays in whose place it comes: their name is free for it
  /// Of the request that makes it: stored with the array's row, or by store_key(). `made` is the array's id, unless it
  /// is set.
  std::optional<storage::IdempotencyRow> key;
};

/// Bytes by where they are, for metrics and admission.
struct ArrayUsage {
  int64_t count = 0;
  int64_t memory_bytes = 0;  ///< shards in memory
  int64_t disk_bytes = 0;    ///< durable arrays, and spilled ones
};

/// What arrays may have of the process's memory.
struct ArrayMemory {
  ArrayMemory(int64_t most, int64_t most_with_jobs = INT64_MAX)  // NOLINT: a number is one without jobs
      : most_bytes(most), with_jobs_bytes(most_with_jobs) {}

  int64_t most_bytes;       ///< arrays in memory; beyond, durable ones used longest ago leave it, then others
  int64_t with_jobs_bytes;  ///< the same and what running jobs plan, together: arrays leave memory first
};

/// Why there is no array that the job, which "`how`" ("failed: ..."), had promised; and what its readers end with.
std::string why_not_made(std::string_view job, std::string_view how);
core::Error not_made(std::string_view array, std::string_view why);

/// How many rows of arrays that were donated or lost are kept, which answer 410 to who asks for them.
struct GoneRetention {
  int64_t count = 0;            ///< the newest of each principal; 0: any number
  std::chrono::seconds time{};  ///< since they were met; 0: for ever
};

class ArrayStore;

/// Memory that a job has planned, which arrays keep out of for as long as this lives. One thread at a time. It may
/// outlive the store.
class LentMemory {
 public:
  LentMemory(ArrayStore& store, int64_t bytes);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  /// So many bytes are left: of results, when the run is over.
  void shrink_to(int64_t bytes);

 private:
  const std::shared_ptr<std::atomic<int64_t>> lent_;  ///< by the store, in all
  int64_t bytes_;
};

/// Any thread. Lock order: an array's write_turn(), the lock of spilling, the table's lock, then one array's state;
/// storage is called with neither of the last two held. Callables that run on storage's writer thread take an array's
/// state for a moment.
class ArrayStore {
 public:
  ArrayStore(storage::Store& store, std::shared_ptr<tensor::BufferPool> pool, const core::Clock& clock,
             ArrayMemory memory, int64_t quota_bytes, PendingLimits pending = {}, const quotas::Limits& limits = {});

  /// Precondition of a new version (If-Match): throws if the current version does not satisfy it.
  using VersionCheck = std::function<void(int64_t version)>;

  static constexpr size_t kLongestName = 1024;  ///< bytes: names are in memory as long as the array is known

  /// Keeps out of so many bytes from now on, until they are taken back (LentMemory).
  void lend(int64_t bytes);
  void take_back(int64_t bytes) { *lent_bytes_ -= bytes; }

  /// A pending array with its buffers, to be filled by the caller (upload, job). Nothing is visible until publish(),
  /// but the principal's quota has it from now on. Throws invalid_array (size, name), quota_exceeded, limit_reached.
  /// `id`: of a promised array of before a restart; empty: a new one.
  ArrayRef begin(const NewArray& wanted, std::string id = {});
  /// The same for a result of an accepted job, which is found and listed as pending from now on: jobs of its session
  /// may take it as an argument. prepare() makes it ready, withdraw() ends it.
  ArrayRef promise(const NewArray& wanted, const std::string& job, std::string id = {});
  /// The job "`how`" ("failed: ..."): its promised arrays are lost, and no longer found; jobs that were to read them
  /// end with dependency_failed.
  void withdraw(const std::vector<ArrayRef>& promised, const std::string& how);
  /// Throws quota_exceeded when `what` ("an array", "a file of arrays") of so many bytes is too much for one request.
  void require_quota(int64_t bytes, std::string_view what) const;
  /// Lets a pending array be found and listed before it is complete. It has no row: a restart forgets it. Throws
  /// limit_reached when its principal has too many.
  void announce(const ArrayRef& array);
  /// Stores the key of a pending array that stays pending when its request is answered. Nothing for one that is
  /// complete. Throws idempotency_in_progress.
  void store_key(const ArrayRef& array);
  PendingArrays& pending() { return pending_; }
  /// Deletes expired pending arrays. Called periodically, and before a lookup.
  void expire_pending();
  /// Buffers for all distinct shards of an array that begin() gave; padding is zero.
  ShardBuffers allocate(const Array& array);
  /// The same for one of them.
  tensor::BufferRef allocate_shard(const Array& array, int64_t shard);
  /// Where an upload puts the shards of an array that begin() gave, or of the next version of a ready one: buffers, or,
  /// for kStreamedBytes and more of a durable array, blobs, so that no more than a few MiB of it are in memory.
  /// `held_bytes`: what the same request has in memory already. Throws disk_full where the disk has no room for it.
  NewShards new_shards(const Array& array, int64_t held_bytes = 0);
  static constexpr int64_t kStreamedBytes = int64_t{4} << 20;
  /// Room on the disk for `bytes` bytes of a request for this array, which its principal's quota counts. Throws
  /// quota_exceeded, disk_full.
  Spool spool(const Array& array, int64_t bytes);
  /// Makes the filled array visible and, when it is durable, safe: blobs first, then its rows in one transaction.
  /// Returns when that is durable (memory arrays: at once).
  /// Throws name_taken.
  void publish(const ArrayRef& array, NewShards shards);
  /// Several at once, in place of others, which are deleted in the same transaction: all of it, or nothing. Throws what
  /// remove() throws, and what `check` throws for the version of one that is replaced. `also`: rows of the same
  /// transaction.
  void publish(std::vector<std::pair<ArrayRef, NewShards>> arrays, const std::vector<ArrayRef>& replaced = {},
               const VersionCheck& check = {}, const std::function<void(storage::Transaction&)>& also = {});
  /// Throws what remove_all() of these would throw now; nothing happens to them.
  static void require_removable(const std::vector<ArrayRef>& arrays);
  /// For jobs: blobs of durable arrays, written now, that the job's own transaction names with `rows`. Call
  /// committed() once that is durable; destroyed before, it abandons the blobs, and the arrays are as they were.
  struct Prepared {
    storage::PendingBlobs blobs;
    std::function<void(storage::Transaction&)> rows;
    std::function<void()> visible;
    std::shared_ptr<void> coming;  ///< from before the rows: whoever finds one of these waits for the array in memory
    bool has_keys = false;         ///< `rows` stores idempotency keys, too: they are waited for

    void committed() {
      blobs.keep();
      visible();
    }
  };
  Prepared prepare(std::vector<std::pair<ArrayRef, NewShards>> arrays);

  /// The principal's array; throws not_found for unknown, deleted and other principals' ones.
  ArrayRef find(std::string_view id, std::string_view principal);
  /// The principal's array of this name (Reader::array_by_name). Throws not_found. Arrays that are not complete yet
  /// have no row, and are not found.
  ArrayRef find_named(std::string_view name, std::string_view principal);
  /// The same if it has data or may get it; null otherwise, and where there is none.
  ArrayRef find_live(std::string_view name, std::string_view principal);
  /// The arrays whose names begin so, of one moment: by name the one that it addresses, if that is ready, or all of
  /// them. Throws invalid_query beyond kMostWithPrefix.
  enum class OfAName : uint8_t { kAddressed, kAll };
  std::vector<ArrayRef> find_prefix(std::string_view prefix, std::string_view principal, OfAName which);
  static constexpr int64_t kMostWithPrefix = 4096;
  /// The same for an argument of an accepted job, which keeps what it reads, after a restart: one that is not there was
  /// promised by a job that did not make it, or in memory. Throws array_lost for it.
  ArrayRef find_kept(std::string_view id, std::string_view principal);
  /// find_kept() for what `was_accepted`, else find().
  ArrayRef find_argument(std::string_view id, std::string_view principal, bool was_accepted);
  /// Its shards are in memory: snapshot() and take() read no file.
  [[nodiscard]] static bool is_loaded(const ArrayRef& array);
  /// Its shards in memory, loaded from disk where they are not. Throws deleted_or_donated, array_lost (410 as data),
  /// dependency_failed, conflict (pending).
  ShardBuffers shards(const ArrayRef& array) { return snapshot(array).shards; }
  /// The same, with the version that these shards are.
  struct Snapshot {
    ShardBuffers shards;
    int64_t version = 1;
  };
  Snapshot snapshot(const ArrayRef& array);
  /// What a run binds whose shards other ranks hold, too: nothing is read for it. With `job`, for which the array is
  /// reserved, as take().
  struct Referred {
    ShardBuffers shards;                  ///< null where they are not in memory
    std::vector<storage::BlobRef> blobs;  ///< by shard, where one is null
    int64_t version = 1;
    /// Those blobs, which stay readable when the array has another version or is deleted.
    std::shared_ptr<storage::PendingBlobs> kept = {};
  };
  Referred refer(const ArrayRef& array, const std::string& job = {});
  /// A shard of that version, read from its blob; it stays in memory as others do. Throws conflict where the array has
  /// another version by now and the blob is gone.
  tensor::BufferRef load_shard(const ArrayRef& array, int64_t version, const storage::BlobRef& blob, int64_t shard);
  /// The name of a blob to be, of a shard of the array's next data that another rank writes.
  std::string new_blob_name(const Array& array, int64_t shard, int rank);
  /// As snapshot, for what is read once from front to back: kStreamedBytes and more that are not in memory stay on the
  /// disk, and GatherReader reads them from there. A client may take long to read: what it holds of an array that
  /// leaves memory meanwhile is counted, and where that is too much already this throws memory_full.
  struct Opened {
    ReadableShards shards;
    int64_t version = 1;
  };
  enum class ReadBy : uint8_t { kServer, kClient };
  Opened open(const ArrayRef& array, ReadBy who = ReadBy::kServer);
  /// A copy of an array, or of a region of it, in the pool's memory.
  tensor::DenseValue copy_dense(const ArrayRef& array, const std::optional<std::vector<Slice>>& slices);
  /// As open() for a client, of a version that it has named. Throws not_found for one that the array has not had yet,
  /// deleted_or_donated for one that it had before.
  Opened open_at(const ArrayRef& array, int64_t version);

  /// New data for a ready array: the next version, durable before this returns when the array is. Readers see the old
  /// version or the new one, never a mixture; old shards stay valid for their holders. Returns the new version. Throws
  /// what `check` throws, array_donated, array_lost, conflict (pending), array_in_use when a job has it reserved or has
  /// still to read it, not_found when it was deleted meanwhile.
  int64_t replace(const ArrayRef& array, NewShards shards, const VersionCheck& check);
  /// The same for a region, whose bytes `region` gives row-major: shards that it touches are copied and written, the
  /// others stay. Those of a durable array of kStreamedBytes and more that is not in memory, or has much to be copied
  /// there, go from the disk to the disk, and the array leaves memory.
  int64_t update(const ArrayRef& array, std::span<const Slice> slices, const ByteSource& region,
                 const VersionCheck& check);
  /// Accepted jobs keep what they have still to read from being replaced and deleted. Called on storage's writer thread
  /// with the job's row, so that a job sees what its arrays held when it was accepted. All or none: throws not_found
  /// when one was deleted meanwhile.
  void keep_for_job(const std::vector<ArrayRef>& arrays, const std::string& session);
  void job_has_read(const std::vector<ArrayRef>& arrays, const std::string& session);

  /// New contents that a job gives an array: its next version. `version` is the one they were made from.
  struct Update {
    ArrayRef array;
    int64_t version = 0;
    ShardBuffers shards;  ///< in the array's layout; no longer written
    /// By shard, or empty: what other ranks wrote of those that are null. They are the caller's until committed().
    std::vector<storage::BlobRef> left = {};
  };
  /// As Prepared; it holds the write_turn() of these arrays. committed() is to be called on storage's writer thread,
  /// behind the transaction; it is to be destroyed on the thread that made it.
  struct PreparedUpdates : Prepared {
    std::vector<std::unique_lock<std::mutex>> turns;
    std::vector<Replacing> replacing;  ///< ends before the turns do
  };
  /// For a job of `session` (empty: of none) that keeps `kept`: the order of a session's jobs is its line's matter.
  /// Throws (here, or in `rows`) conflict when the array has another version by now, array_in_use when a job has it
  /// reserved or accepted jobs outside of the session have still to read it, not_found when it was deleted.
  PreparedUpdates prepare_updates(std::vector<Update> updates, const std::vector<ArrayRef>& kept,
                                  const std::string& session);
  /// Throws unless a job may use it: array_donated (409), array_lost, dependency_failed, conflict (pending; a job of
  /// `session` may use what is promised there).
  void require_usable(const ArrayRef& array, std::string_view session = {});
  /// One page of the principal's arrays, by id, pending ones among them.
  struct Page {
    std::vector<ArrayRef> items;
    std::string next;
  };
  Page list(std::string_view principal, const storage::ArrayFilter& filter, const storage::PageRequest& page);
  /// Deletes; throws array_in_use when a job has it reserved or has still to read it. `key`: of the request, stored in
  /// the same transaction.
  void remove(const ArrayRef& array, const std::optional<storage::IdempotencyRow>& key = std::nullopt);
  /// Several in one transaction: all or none.
  void remove_all(const std::vector<ArrayRef>& arrays,
                  const std::optional<storage::IdempotencyRow>& key = std::nullopt);

  /// Reserves arrays that a job donates, promised ones among them: all or none. Throws array_donated, array_in_use,
  /// array_lost (as 409 and 410), dependency_failed, naming the array.
  void reserve(const std::vector<ArrayRef>& donated, const std::string& job);
  void release(const std::vector<ArrayRef>& donated, const std::string& job);
  /// The same for whatever a job of the principal has reserved, when it is not known what that is.
  void release_all(std::string_view principal, const std::string& job);
  /// The job is done: they are donated now. `rows` for durable ones belongs into the job's transaction.
  std::function<void(storage::Transaction&)> consume_rows(const std::vector<ArrayRef>& donated, const std::string& job);
  /// Does nothing to those that a reader has found donated before.
  void consume(const std::vector<ArrayRef>& donated, const std::string& job);
  /// The shards of an array that this job has reserved, taken out of it: while they are out, a durable array is read
  /// from disk and a memory array not at all (array_in_use), so that the job may write them once it is their only
  /// holder.
  ShardBuffers take(const ArrayRef& array, const std::string& job);
  /// Puts them back unharmed.
  void give_back(const ArrayRef& array, ShardBuffers shards);
  /// A failed job overwrote their memory: memory arrays that are not spilled are lost, the others will be read from
  /// disk again.
  void spoil(const std::vector<ArrayRef>& donated, const std::string& job);

  /// The same bytes under a new id; the old array is donated in the same transaction (behaviour P19). Throws what
  /// reserve() throws.
  ArrayRef move(const ArrayRef& from, const std::optional<storage::IdempotencyRow>& key = std::nullopt);

  /// Donated arrays leave memory once their rows say so, a thousand at a time; whoever asks for one reads its row. From
  /// time to time. Returns how many.
  int64_t forget_donated();
  /// Deletes the rows of arrays that were donated or lost and are not kept; returns how many. Their age counts from the
  /// first call that meets them. `now`: nothing where none may get too old (jobs::RetentionTime). Throws what
  /// Catalog::write throws. From time to time.
  ///
  /// Example: count 2 and time 1 h, and arrays of one principal met 5, 20, 30 and 90 minutes ago: the last two go.
  int64_t expire_gone(const GoneRetention& kept, std::optional<core::WallTime> now);

  /// Called with the id of an array whose data has another version now, or none: who keeps copies may drop them. Set
  /// before the first request; it must not call back.
  void on_new_version(std::function<void(const std::string& id)> call) { on_new_version_ = std::move(call); }

  [[nodiscard]] ArrayUsage usage() const;
  /// Of the shards that are in memory: what usage() finds array by array, and what readers hold of arrays that are not.
  [[nodiscard]] int64_t loaded_bytes() const { return loaded_bytes_->all; }
  /// Where uploads are charged until they have become arrays. Any thread.
  quotas::ArrayLedger& ledger() { return ledger_; }
  /// The principal's arrays that have data, or may get it.
  [[nodiscard]] quotas::ArrayTotals totals_of(std::string_view principal) const { return ledger_.totals(principal); }
  [[nodiscard]] sharding::LayoutCache::Counters layout_counters() const { return layouts_.counters(); }

 private:
  friend class LentMemory;
  /// A durable array in memory, unless it was used since.
  struct Evictable {
    uint64_t last_use;
    std::weak_ptr<Array> array;
  };
  struct Table {
    std::map<std::string, ArrayRef, std::less<>> by_id;
    std::set<std::string, std::less<>> coming;  ///< whose rows may be there a moment before they are in by_id
    int64_t removals = 0;  ///< arrays that have left: a row that was read before may be out of date
    uint64_t clock = 0;
  };
  /// An array is being deleted: nobody else deletes it, and no job takes it. Throws as remove(), and what `check`
  /// throws; then nothing has happened.
  static void begin_removal(const ArrayRef& array, const VersionCheck& check);
  static void begin_removals(const std::vector<ArrayRef>& arrays, const VersionCheck& check);
  static void undo_removals(const std::vector<ArrayRef>& arrays);
  /// Their rows are gone: nobody finds them. On storage's writer thread.
  static void note_removals(const std::vector<ArrayRef>& arrays);
  static void delete_rows(const std::vector<ArrayRef>& arrays, storage::Transaction& transaction);
  /// Its row is deleted for good.
  void end_removal(const ArrayRef& array);
  ArrayRef make_array(const NewArray& wanted, std::string id);
  /// The same mesh, one object for all arrays that are on it.
  mesh::MeshRef shared_mesh(const std::string& id, mesh::MeshRef mesh);
  ArrayRef find_addressed(std::string_view name, std::string_view principal);
  /// The array of a row that was read after `removals` was. Null: an array has left since, or this one is about to be
  /// in memory, and the row is to be read again.
  ArrayRef load_row(const storage::ArrayRow& row, int64_t removals);
  /// The array if it is in memory, and the number of those that have left.
  std::pair<ArrayRef, int64_t> find_loaded(std::string_view id);
  void follow_row(const ArrayRef& array);
  /// Throws memory_exceeded where the array can never be in memory.
  void require_fits(const Array& array) const;
  /// Throws overloaded when readers hold as many files as they may.
  std::shared_ptr<const storage::BlobReader> open_blob(const storage::BlobRef& blob);
  std::optional<Snapshot> try_snapshot(const ArrayRef& array);
  /// The shards of a snapshot, which a client reads.
  ShardBuffers read_by_client(const ArrayRef& array, ShardBuffers shards);
  /// Clients hold so much of arrays that have left memory that no more reads begin there.
  [[nodiscard]] bool is_memory_held() const { return loaded_bytes_->left > memory_.most_bytes / 2; }
  std::optional<Opened> try_open(const ArrayRef& array, ReadBy who);
  /// Bytes of a new version, as long as it is beside the old one. Throws quota_exceeded.
  quotas::ArrayCharge charge_beside(const Array& array, int64_t bytes);
  std::string blob_name(const Array& array, int64_t version, size_t shard);
  /// `changed`: the shards that the blobs of `next` are of, if it has blobs.
  int64_t write_version(const ArrayRef& array, int64_t version, const ShardBuffers* before, NewShards next,
                        std::vector<size_t> changed);
  int64_t update_in_memory(const ArrayRef& array, std::span<const Slice> slices, const ByteSource& region,
                           const VersionCheck& check);
  [[nodiscard]] int64_t memory_budget() const;
  /// Until so many more bytes fit into what there is for arrays: durable arrays leave memory, then memory arrays are
  /// spilled. Waits for the disk: not on storage's writer thread, which evicts only.
  void make_room(int64_t coming = 0);
  /// The part of it that waits for nothing. Returns the memory arrays that would have to be spilled.
  std::vector<ArrayRef> evict(int64_t coming);
  [[nodiscard]] bool is_over_budget(int64_t coming) const { return loaded_bytes_->all + coming > memory_budget(); }
  void find_evictable();
  std::vector<ArrayRef> evict_memory_arrays(int64_t coming);
  /// Writes a memory array to blobs and drops it from memory. Nothing where it is in use, or the disk is full.
  void spill(const ArrayRef& array);
  storage::ArrayRow row_of(const Array& array, const Array::State& state) const;
  void note_new_version(const Array& array) const {
    if (on_new_version_) on_new_version_(array.info().id);
  }

  storage::Store& store_;
  std::shared_ptr<tensor::BufferPool> pool_;
  const core::Clock& clock_;
  const ArrayMemory memory_;
  const std::shared_ptr<LoadedBytes> loaded_bytes_ = std::make_shared<LoadedBytes>();
  const std::shared_ptr<std::atomic<int64_t>> lent_bytes_ = std::make_shared<std::atomic<int64_t>>(0);  ///< to jobs
  const int64_t quota_bytes_;
  core::Locked<std::vector<Evictable>> evictable_;  ///< the last is the one used longest ago
  std::mutex spill_mutex_;                          ///< taken behind a write_turn(), before all other locks
  std::atomic<int64_t> writes_{0};                  ///< numbers blobs, so that a write that failed may be tried again
  quotas::ArrayLedger ledger_;
  sharding::LayoutCache layouts_;
  struct SharedMeshes {
    std::map<std::string, std::weak_ptr<const mesh::Mesh>> by_id;
    size_t sweep_at = 1024;
  };
  core::Locked<SharedMeshes> meshes_;
  PendingArrays pending_;
  const int64_t most_open_blobs_;  ///< of readers that live as long as an answer is sent
  std::function<void(const std::string& id)> on_new_version_;
  const std::shared_ptr<std::atomic<int64_t>> open_blobs_ = std::make_shared<std::atomic<int64_t>>(0);
  mutable core::Locked<Table> table_;
};

}  // namespace meshd::arrays
