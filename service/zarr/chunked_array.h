// A pending array that is filled chunk by chunk: chunks go straight into its shards, in memory or in blobs on the disk,
// whatever order they come in. Nothing of it outlives the process before it is committed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/zarr/chunk_codec.h"
#include "service/zarr/chunk_grid.h"
#include "service/zarr/open_files.h"

namespace meshd::zarr {

/// How a client writes an array, beside its type.
struct ChunkedType {
  tensor::Dims chunk_dims;      ///< each at least 1
  std::vector<std::byte> fill;  ///< an element: what chunks have that never come
  ChunkEncoding encoding;

  friend bool operator==(const ChunkedType&, const ChunkedType&) = default;
};

/// Any thread; one at a time is in the shards. Lock order: its own lock, then the array's state; it calls storage with
/// its own lock held.
///
/// Example: int16[5] in chunks of 2 over x = 2, fill value 9. Chunk 1 has 3, 4 and 5; chunk 2, with elements 4 and
/// padding, never comes: shards {0 0 3}, {4 9 .} once chunk 0 came with zeros.
class ChunkedArray {
 public:
  /// `array` is of ArrayStore::begin and announced from here on. The store must outlive this. `files`: those
  /// that its blobs hold open; none where its shards are in memory. Throws invalid_array, limit_reached, overloaded,
  /// disk_full; then the array is not announced.
  ChunkedArray(arrays::ArrayStore& store, arrays::ArrayRef array, ChunkedType type, FileCharge files = {});
  /// Deletes the array where it is still pending.
  ~ChunkedArray();
  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;

  [[nodiscard]] const arrays::ArrayRef& array() const { return array_; }
  [[nodiscard]] const ChunkedType& type() const { return type_; }
  [[nodiscard]] const ChunkGrid& grid() const { return grid_; }
  /// Its time is over, it was deleted, or it is committed.
  [[nodiscard]] bool is_gone() const;
  /// Its time to expire begins anew.
  void note_progress();
  /// Gives its memory and files back; it takes no chunks any more.
  void release();

  /// All of a chunk, padding too; again in place of what it had. Throws not_found and conflict where the array takes no
  /// chunks any more, disk_full.
  void write(int64_t chunk, std::span<const std::byte> bytes);
  /// What has come of it, with zeros for padding. False: nothing.
  bool read(int64_t chunk, std::span<std::byte> bytes);
  /// As if the chunk had not come.
  void forget(int64_t chunk);

  /// No chunk is taken from here on; the array neither expires nor is it deleted. Throws not_found, conflict.
  void begin_commit();
  /// begin_commit() is undone: the commit was refused. Of an array that was released, or whose shards were not put
  /// back, nothing is.
  void undo_commit();
  /// Before undo_commit(): the shards that take_shards() gave, which were in memory.
  void put_back(arrays::ShardBuffers shards);
  /// The shards, with the fill value where no chunk came, to be published. Once, after begin_commit(). Throws
  /// disk_full.
  arrays::NewShards take_shards();
  /// The array is ready.
  void end_commit();

 private:
  using Region = std::vector<arrays::Slice>;
  /// visit(offset in the region, shard, offset in the shard, bytes) for each run of a region.
  template <typename Visit>
  void each_run(const Region& region, const Visit& visit) const;
  void put(int64_t chunk, std::span<const std::byte> region);
  void get(int64_t chunk, std::span<std::byte> region);
  /// The fill value in all of a region.
  void fill(const Region& region);
  /// A chunk is much narrower than the array: its rows are far apart in the shards.
  [[nodiscard]] bool has_narrow_chunks() const;
  /// Notes whether it has come.
  void note(int64_t chunk, bool has_come);

  arrays::ArrayStore& store_;
  const arrays::ArrayRef array_;
  const ChunkedType type_;
  const ChunkGrid grid_;
  std::mutex mutex_;
  FileCharge files_;            ///< of the blobs; behind the lock
  arrays::NewShards shards_;    ///< behind the lock
  std::vector<bool> has_come_;  ///< by chunk; behind the lock
  bool is_ending_ = false;      ///< it takes and gives no chunks: of a commit, or for good; behind the lock
  bool is_released_ = false;    ///< the shards are gone: is_ending_ for good; behind the lock
  /// Where no chunk has come, the blobs have the fill value; behind the lock.
  bool is_filled_ = false;
  std::atomic<bool> is_done_{false};
};

}  // namespace meshd::zarr
