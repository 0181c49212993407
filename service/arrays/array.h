// A global array (jax.Array) with a persistent id: dtype, shape, layout of its shards, and their bytes.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/core/clock.h"
#include "service/core/locked.h"
#include "service/core/waits/waiter_list.h"
#include "service/quotas/array_ledger.h"
#include "service/sharding/layout.h"
#include "service/sharding/tensor_sharding.h"
#include "service/tensor/buffer.h"
#include "service/tensor/shape.h"
#include "storage/pending_blobs.h"
#include "storage/rows/rows.h"

namespace meshd::arrays {

/// What never changes about an array.
struct ArrayInfo {
  std::string id;
  std::string principal;
  std::string session;
  std::string name;
  bool is_unique = false;             ///< no other array of the principal has its name while it has data
  tensor::TensorType type;            ///< global
  std::string mesh_id;                ///< empty: uncommitted, unsharded on device 0
  sharding::TensorSharding sharding;  ///< over its mesh; uncommitted: over a maximal mesh of device 0
  bool committed = false;             ///< placed by the user: a program may not move it silently
  storage::Durability durability = storage::Durability::kDurable;
  core::WallTime created;
};

/// Shards of an array in memory: one buffer for each distinct shard (Layout::shard order), each padded to
/// Layout::shard_dims; padding beyond the end of an uneven dimension is unspecified.
using ShardBuffers = std::vector<tensor::BufferRef>;

/// Bytes of shards in memory, of all arrays. Any thread.
struct LoadedBytes {
  std::atomic<int64_t> all{0};
  std::atomic<int64_t> left{0};  ///< of these, those that no array has any more, and readers still hold
};

/// The readers of one array's shards in memory, who may take long. What they hold when the array has other shards, or
/// none (it was deleted, has another version, or left memory), is counted for as long as this lives.
class ShardReaders {
 public:
  ShardReaders(std::shared_ptr<LoadedBytes> total, int64_t bytes) : total_(std::move(total)), bytes_(bytes) {}
  ~ShardReaders() { count(-left_); }
  ShardReaders(const ShardReaders&) = delete;
  ShardReaders& operator=(const ShardReaders&) = delete;

  /// The array has these shards no more. Once.
  void leave() {
    left_ = bytes_;
    count(left_);
  }

 private:
  void count(int64_t bytes) const {
    if (total_ == nullptr || bytes == 0) return;
    total_->all += bytes;
    total_->left += bytes;
  }

  std::shared_ptr<LoadedBytes> total_;
  int64_t bytes_;
  int64_t left_ = 0;
};

/// The shards of one array that are in memory, counted in a total of all arrays for as long as they are here: all, or
/// some of an array whose others are on the disks of other ranks (null here). Behind the array's lock.
class LoadedShards {
 public:
  /// Without a total nothing is counted.
  explicit LoadedShards(std::shared_ptr<LoadedBytes> total) : total_(std::move(total)) {}
  ~LoadedShards() { clear(); }
  LoadedShards(const LoadedShards&) = delete;
  LoadedShards& operator=(const LoadedShards&) = delete;
  LoadedShards& operator=(ShardBuffers shards) {
    swap(shards);
    return *this;
  }
  void swap(ShardBuffers& shards) {
    if (const auto readers = std::exchange(readers_, {}).lock()) readers->leave();
    shards_.swap(shards);
    const int64_t before = bytes_;
    bytes_ = 0;
    size_t count = 0;
    for (const tensor::BufferRef& shard : shards_) {
      if (shard == nullptr) continue;
      bytes_ += shard->size();
      ++count;
    }
    is_whole_ = count == shards_.size() && count > 0;
    if (count == 0) shards_.clear();
    if (total_ != nullptr && bytes_ != before) total_->all += bytes_ - before;
  }
  void clear() { *this = ShardBuffers(); }
  /// The same where another array will have the buffers: whoever reads them now is counted by nobody until adopt().
  [[nodiscard]] std::weak_ptr<ShardReaders> hand_over() {
    auto readers = std::exchange(readers_, {});
    clear();
    return readers;
  }
  /// `readers`, of hand_over(), read `shards`. They are counted as those of others where the array does not have these
  /// any more, or has readers already.
  void adopt(const std::weak_ptr<ShardReaders>& readers, const ShardBuffers& shards) {
    auto alive = readers.lock();
    if (alive == nullptr) return;
    if (shards_ != shards || !readers_.expired()) return alive->leave();
    readers_ = std::move(alive);
  }
  /// Those of whoever reads them now. All shards are here.
  [[nodiscard]] std::shared_ptr<ShardReaders> readers() {
    auto out = readers_.lock();
    if (out == nullptr) readers_ = out = std::make_shared<ShardReaders>(total_, bytes_);
    return out;
  }

  /// None is here.
  [[nodiscard]] bool empty() const { return shards_.empty(); }
  /// All are here.
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] const ShardBuffers& get() const { return shards_; }

 private:
  std::shared_ptr<LoadedBytes> total_;
  int64_t bytes_ = 0;
  bool is_whole_ = false;
  ShardBuffers shards_;
  std::weak_ptr<ShardReaders> readers_;
};

/// The shards of a new array, or of a new version: in memory, or in blobs that were written as the bytes came. A value
/// that moves; destroyed, it leaves no blob behind.
struct NewShards {
  NewShards() = default;
  NewShards(ShardBuffers shards) : memory(std::move(shards)) {}  // NOLINT: what most callers have

  ShardBuffers memory;                         ///< empty where there are blobs
  std::optional<storage::PendingBlobs> blobs;  ///< one for each shard, in Layout::shard order
  std::vector<storage::BlobRef> kept;          ///< blobs that are another array's rows', which the transaction drops
  std::optional<storage::PendingBlobs> left;   ///< what other ranks wrote of those that are null in `memory`, in order
  quotas::ArrayCharge charge;                  ///< of a new version, as long as it is beside the old one
};

/// The shards of one version of an array, to be read: in memory, or in blobs that are open. A value; what it refers to
/// stays readable whatever becomes of the array.
struct ReadableShards {
  ReadableShards() = default;
  ReadableShards(ShardBuffers shards) : memory(std::move(shards)) {}  // NOLINT: what most callers have

  /// One of them alone.
  [[nodiscard]] ReadableShards only(int64_t shard) const;

  ShardBuffers memory;                                            ///< empty where there are blobs
  std::vector<std::shared_ptr<const storage::BlobReader>> blobs;  ///< in Layout::shard order
};

/// What has come of an array that is put together from parts (assembly.h).
struct PendingParts {
  ShardBuffers shards;              ///< in Layout::shard order; null until a shard's bytes have come
  std::vector<bool> received;       ///< by place of the layout, or by chunk
  int64_t bytes = 0;                ///< of the shards that have come
  bool are_chunks = false;          ///< `received` is by chunk: another service takes them and completes the array
  int on_their_way = 0;             ///< parts that are being received: the array does not expire meanwhile
  bool is_being_completed = false;  ///< the last part has come and the array is being made safe
  core::SteadyTime progress;        ///< when something came last
  core::WallTime expires;           ///< what that means for its end
};

/// One array, shared by all its users. Info and layout are immutable; the rest is behind its lock. Any thread.
class Array {
 public:
  /// `loaded_bytes`: the total that its shards are counted in while they are in memory.
  Array(ArrayInfo info, std::shared_ptr<const sharding::Layout> layout,
        std::shared_ptr<LoadedBytes> loaded_bytes = nullptr);

  [[nodiscard]] const ArrayInfo& info() const { return info_; }
  [[nodiscard]] const sharding::Layout& layout() const { return *layout_; }
  /// Bytes of all elements once.
  [[nodiscard]] int64_t byte_count() const { return tensor::byte_count(info_.type); }
  /// Bytes of the distinct shards in memory, padding included.
  [[nodiscard]] int64_t shard_bytes() const;

  /// What changes.
  struct State {
    explicit State(std::shared_ptr<LoadedBytes> total) : shards(std::move(total)) {}

    storage::ArrayState state = storage::ArrayState::kPending;
    int64_t version = 1;
    std::string attributes;                      ///< JSON of a Zarr client, set before the array is ready
    std::string reason;                          ///< why it is lost, or the job that took it
    std::string reserved_by;                     ///< job that was accepted with it donated
    std::optional<storage::IdempotencyRow> key;  ///< of the request that makes it, until it is stored
    std::string promised_by;                     ///< job whose result it is to be; of a lost one: that did not make it
    LoadedShards shards;                         ///< what is in memory
    std::vector<storage::BlobRef> blobs;         ///< by shard; empty for memory arrays that are not spilled
    std::optional<storage::PendingBlobs> spilled;  ///< memory arrays: what keeps `blobs`, which no row names
    uint64_t last_use = 0;
    bool leaving = false;   ///< it is being deleted: whoever found it reads it, and nothing new begins with it
    bool deleted = false;   ///< its row is
    int64_t job_count = 0;  ///< accepted jobs that have still to read it: it is not replaced meanwhile
    std::map<std::string, int64_t> jobs_of_session;  ///< of these, by session
    bool replacing = false;                          ///< a new version is being written: no job may take the array now
    quotas::ArrayCharge charge;         ///< its part in what its principal has, as long as it may have data
    bool announced = false;             ///< found by its id while it is pending: ready is shown once it is safe
    std::optional<PendingParts> parts;  ///< while it is put together

    [[nodiscard]] bool is_going() const { return leaving || deleted; }
    [[nodiscard]] bool is_promised() const { return state == storage::ArrayState::kPending && !promised_by.empty(); }
    /// This version of a memory array ends: its blobs, to be destroyed (which removes their files) without the lock.
    [[nodiscard]] std::optional<storage::PendingBlobs> forget_spilled();
    /// Exchanges shards and blobs for those of the next version. Returns what forget_spilled() does.
    [[nodiscard]] std::optional<storage::PendingBlobs> put_next_version(ShardBuffers& next,
                                                                        std::vector<storage::BlobRef>& stored,
                                                                        uint64_t now);
  };
  core::Locked<State>& state() { return state_; }
  [[nodiscard]] int64_t version() {
    return state_.with([](const State& state) { return state.version; });
  }
  /// The version that the next data makes.
  [[nodiscard]] int64_t next_version() const {
    return state_.with([](const State& state) {
      return state.state == storage::ArrayState::kPending ? state.version : state.version + 1;
    });
  }
  /// The job that is to make it; empty: none is.
  [[nodiscard]] std::string promised_by() const {
    return state_.with([](const State& state) { return state.is_promised() ? state.promised_by : std::string(); });
  }
  /// It has had no data yet.
  [[nodiscard]] bool is_pending() const {
    return state_.with([](const State& state) { return state.state == storage::ArrayState::kPending; });
  }
  /// False while data may come that makes it complete.
  [[nodiscard]] bool is_settled() {
    return state_.with(
        [](const State& state) { return state.state != storage::ArrayState::kPending || state.deleted; });
  }
  /// Held by the writer of a new version, from reading the old one until it is committed. Taken before any other lock.
  std::mutex& write_turn() { return write_turn_; }
  /// Notified when the array is complete or deleted.
  core::WaiterList& watchers() { return watchers_; }

 private:
  ArrayInfo info_;
  std::shared_ptr<const sharding::Layout> layout_;
  core::Locked<State> state_;
  std::mutex write_turn_;
  core::WaiterList watchers_;
};

using ArrayRef = std::shared_ptr<Array>;

/// State::replacing of an array, for as long as this lives: committed or not, the new version is no longer being
/// written then. Used by the holder of the write_turn().
class Replacing {
 public:
  /// `state` is that of `array`, locked by the caller.
  Replacing(ArrayRef array, Array::State& state) : array_(std::move(array)) { state.replacing = true; }
  Replacing(Replacing&&) = default;
  Replacing& operator=(Replacing&&) = delete;
  ~Replacing() {
    if (array_ != nullptr) array_->state().with([](Array::State& state) { state.replacing = false; });
  }

 private:
  ArrayRef array_;
};

}  // namespace meshd::arrays
