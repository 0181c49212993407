// Gather and scatter between row-major streams and shards, for uploads and downloads. Copies only where the layout
// requires it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "service/arrays/array.h"

namespace meshd::arrays {

/// A slice of one dimension: start, start + step, ... below stop; step > 0.
struct Slice {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  [[nodiscard]] int64_t count() const { return stop > start ? (stop - start - 1) / step + 1 : 0; }
};

/// Parses "0:10,::2,3" against dims, as NumPy does (negative numbers count from the end, a single number keeps its
/// dimension with one element, missing dimensions are complete). Throws invalid_query naming the field. Empty text is
/// everything.
std::vector<Slice> parse_slices(std::string_view text, std::span<const int64_t> dims);
/// All elements of every dimension.
std::vector<Slice> full_slices(std::span<const int64_t> dims);
/// The index of an element by its number in row-major order. Example: 5 of dims {2, 3}: {1, 2}.
tensor::Dims unravel(int64_t element, std::span<const int64_t> dims);
/// Sizes of what the slices leave.
tensor::Dims slice_dims(std::span<const Slice> slices);

/// Takes the bytes of a global array in row-major order and puts them into its shards as they come. One thread.
class ScatterWriter {
 public:
  /// `shards` as in ShardBuffers, sized by the layout.
  ScatterWriter(const sharding::Layout& layout, int64_t element_bytes, ShardBuffers shards);
  /// Into memory or blobs, whichever there are. `shards` must outlive it.
  ScatterWriter(const sharding::Layout& layout, int64_t element_bytes, NewShards& shards);

  /// Where the next bytes belong: a slice of one shard in memory. A caller may fill it directly (a socket read into the
  /// array) and then advance(). Empty when everything is there, and where shards are blobs.
  [[nodiscard]] std::span<std::byte> destination();
  void advance(size_t bytes);
  /// Copies; throws malformed_body when there is more than the array holds, and what writing a blob throws.
  void write(std::span<const std::byte> bytes);
  [[nodiscard]] int64_t remaining() const { return total_ - done_; }

 private:
  void locate();
  const sharding::Layout& layout_;
  int64_t element_bytes_;
  ShardBuffers shards_;
  storage::PendingBlobs* blobs_ = nullptr;  ///< null: shards_
  std::vector<Slice> slices_;
  int64_t total_;
  int64_t done_ = 0;
  size_t shard_ = 0;  ///< of the next byte
  int64_t at_ = 0;    ///< where it belongs in there
  int64_t run_left_ = 0;
};

/// Gives the bytes of a region of a global array in row-major order, from memory or from blobs, whose pages are checked
/// before a byte of them is given. One thread.
///
/// A blob's page (256 KiB) is read once: row-major order takes each shard's bytes in ascending order, and the page that
/// a shard is at is kept as long as the order comes back to the shard, for up to 64 shards. Example: float32[1024,
/// 4096] over x = 4 of dimension 1, in four blobs: row 0 reads the first page of each, rows 1 to 63 take their 4 KiB
/// from the four pages kept, row 64 reads the second pages. Over x = 4 of dimension 0 one page is kept.
class GatherReader {
 public:
  /// Of blobs that it keeps in memory: 16 MiB.
  static constexpr size_t kMostPages = 64;

  GatherReader(std::shared_ptr<const sharding::Layout> layout, int64_t element_bytes, ReadableShards shards,
               std::vector<Slice> slices);

  /// Elements beyond these dims are given as zeros. The region is all of one shard: dims of what is not its padding.
  /// Example: int8[5] over x = 2, shard 1 holds elements 3, 4 and padding: it gives 3, 4, 0.
  void zero_beyond(tensor::Dims dims) { actual_ = std::move(dims); }
  [[nodiscard]] int64_t total_bytes() const { return total_; }
  /// The most memory that it takes for pages of blobs, from its first byte to its last.
  [[nodiscard]] int64_t page_memory() const;
  /// The region as slices of shard memory, without a copy, when it needs no more than `limit` of them, and is in
  /// memory.
  [[nodiscard]] std::optional<std::vector<std::span<const std::byte>>> pieces(size_t limit) const;
  /// Fills as much of `out` as there is; 0 at the end. Throws storage_failed where a page of a blob is damaged.
  size_t read(std::span<std::byte> out);
  /// Skips to a byte of the region.
  void seek(int64_t byte);

 private:
  // Bytes that follow each other in the region and in one shard.
  struct Run {
    size_t shard = 0;
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  [[nodiscard]] size_t shards_in_turn() const;
  // A page of a blob.
  struct Page {
    size_t shard = 0;
    int64_t number = 0;
    std::vector<std::byte> bytes;
    uint64_t last_use = 0;
  };
  [[nodiscard]] Run run_at(int64_t element) const;
  void zero_padding(int64_t first_byte, std::span<std::byte> bytes) const;
  void read_blob(size_t shard, int64_t offset, std::span<std::byte> out);
  Page& page_of(size_t shard, int64_t number);
  std::shared_ptr<const sharding::Layout> layout_;
  int64_t element_bytes_;
  ReadableShards shards_;
  std::vector<Slice> slices_;
  tensor::Dims dims_;
  tensor::Dims actual_;  ///< of zero_beyond(); empty: all
  int64_t total_;
  int64_t done_ = 0;
  const size_t most_pages_;
  std::vector<Page> pages_;
  std::vector<size_t> page_of_shard_;  ///< its place in pages_, or one that another shard has by now; by shard
  uint64_t uses_ = 0;
};

/// Copies shards of one layout to those of another: all elements of `to`, which are the first ones of `from` in each
/// dimension.
void copy_between(const sharding::Layout& from, ShardBuffers shards, const sharding::Layout& to, ShardBuffers into,
                  int64_t element_bytes);

/// Fills a span with the bytes at an offset.
using ByteSource = std::function<void(int64_t offset, std::span<std::byte> out)>;

/// Puts the row-major bytes of a region in place: `shard(s)` gives the memory of shard s, which is then written.
/// `bytes` has slice_dims(slices) elements.
void write_region(const sharding::Layout& layout, int64_t element_bytes, std::span<const Slice> slices,
                  const ByteSource& bytes, const std::function<std::byte*(int64_t)>& shard);

/// `run` elements of a region from its element `element` on that follow each other in `shard`, from its element `place`
/// on.
using RunVisitor = std::function<void(int64_t element, int64_t shard, int64_t place, int64_t run)>;
/// Calls `visit` for each run of the region, in row-major order.
void for_each_run(const sharding::Layout& layout, std::span<const Slice> slices, const RunVisitor& visit);

/// The elements of a column-major value (Fortran order, first index fastest) in row-major order: `out` and `columns`
/// are byte_count(type) bytes each. Example: int8[2, 3], columns 1 4 2 5 3 6: out 1 2 3 4 5 6.
void to_row_major(const tensor::TensorType& type, const std::byte* columns, std::byte* out);

/// Where all of a value is in one shard.
std::shared_ptr<const sharding::Layout> unsharded_layout(const tensor::Dims& dims);

}  // namespace meshd::arrays
