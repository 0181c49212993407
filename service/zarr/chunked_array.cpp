#include "service/zarr/chunked_array.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "service/arrays/assembly.h"
#include "service/core/error.h"
#include "service/zarr/blob_runs.h"

namespace meshd::zarr {
namespace {

constexpr size_t kFilledAtOnce = size_t{64} << 10;  // bytes, about
constexpr int64_t kNarrow = 512;                    // bytes of a row of a chunk

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

arrays::PendingParts& parts_of(const arrays::Array& array, arrays::Array::State& state) {
  if (!state.deleted && state.parts) return *state.parts;
  throw core::Error("not_found", "there is no array '" + array.info().id + "'; it was deleted");
}

}  // namespace

ChunkedArray::ChunkedArray(arrays::ArrayStore& store, arrays::ArrayRef array, ChunkedType type, FileCharge files)
    : store_(store),
      array_(std::move(array)),
      type_(std::move(type)),
      grid_(array_->info().type, type_.chunk_dims),
      files_(std::move(files)),
      has_come_(static_cast<size_t>(grid_.count())) {
  store_.announce(array_);
  try {
    shards_ = store_.new_shards(*array_);
    array_->state().with([&](arrays::Array::State& state) {
      arrays::PendingParts& parts = parts_of(*array_, state);
      parts.are_chunks = true;
      parts.received.assign(has_come_.size(), false);
      if (!shards_.blobs) store_.pending().take_bytes(parts, array_->shard_bytes());
    });
  } catch (...) {
    store_.remove(array_);
    throw;
  }
}

ChunkedArray::~ChunkedArray() {
  if (is_gone()) return;
  undo_commit();
  try {
    store_.remove(array_);
  } catch (const std::exception&) {
    // It expires by itself.
  }
}

bool ChunkedArray::is_gone() const {
  return is_done_ || array_->state().with([](const arrays::Array::State& state) { return state.deleted; });
}

void ChunkedArray::note_progress() {
  array_->state().with([&](arrays::Array::State& state) {
    if (state.parts) store_.pending().note_progress(*state.parts);
  });
}

void ChunkedArray::release() {
  const std::lock_guard lock(mutex_);
  is_ending_ = is_released_ = true;
  shards_ = {};
  files_.reset();
}

void ChunkedArray::note(int64_t chunk, bool has_come) {
  has_come_[static_cast<size_t>(chunk)] = has_come;
  array_->state().with([&](arrays::Array::State& state) {
    if (state.parts) state.parts->received[static_cast<size_t>(chunk)] = has_come;
  });
}

template <typename Visit>
void ChunkedArray::each_run(const Region& region, const Visit& visit) const {
  const auto element_bytes = static_cast<int64_t>(type_.fill.size());
  arrays::for_each_run(array_->layout(), region, [&](int64_t element, int64_t shard, int64_t place, int64_t run) {
    visit(static_cast<size_t>(element * element_bytes), static_cast<size_t>(shard), place * element_bytes,
          static_cast<size_t>(run * element_bytes));
  });
}

void ChunkedArray::put(int64_t chunk, std::span<const std::byte> region) {
  if (!shards_.blobs) {
    return each_run(grid_.region(chunk), [&](size_t in_region, size_t shard, int64_t in_shard, size_t bytes) {
      std::memcpy(shards_.memory[shard]->data() + in_shard, region.data() + in_region, bytes);
    });
  }
  BlobRuns runs(*shards_.blobs, array_->shard_bytes() / array_->layout().shard_count);
  each_run(grid_.region(chunk), [&](size_t in_region, size_t shard, int64_t in_shard, size_t bytes) {
    runs.write(shard, in_shard, region.subspan(in_region, bytes));
  });
  runs.finish();
}

void ChunkedArray::get(int64_t chunk, std::span<std::byte> region) {
  if (!shards_.blobs) {
    return each_run(grid_.region(chunk), [&](size_t in_region, size_t shard, int64_t in_shard, size_t bytes) {
      std::memcpy(region.data() + in_region, shards_.memory[shard]->data() + in_shard, bytes);
    });
  }
  BlobRuns runs(*shards_.blobs, array_->shard_bytes() / array_->layout().shard_count);
  each_run(grid_.region(chunk), [&](size_t in_region, size_t shard, int64_t in_shard, size_t bytes) {
    runs.read(shard, in_shard, region.subspan(in_region, bytes));
  });
}

bool ChunkedArray::has_narrow_chunks() const {
  const tensor::Dims& dims = array_->info().type.dims;
  auto row = static_cast<int64_t>(type_.fill.size());
  for (size_t d = dims.size(); d-- > 0;) {
    row *= std::min(dims[d], type_.chunk_dims[d]);
    if (type_.chunk_dims[d] < dims[d]) return row < kNarrow;
  }
  return false;
}

void ChunkedArray::write(int64_t chunk, std::span<const std::byte> bytes) {
  const arrays::PartOnItsWay on_its_way(store_, array_);
  std::vector<std::byte> cropped;
  const int64_t region_bytes = grid_.region_bytes(chunk);
  if (region_bytes != grid_.chunk_bytes()) {
    cropped.resize(static_cast<size_t>(region_bytes));
    grid_.crop(chunk, bytes, cropped);
    bytes = cropped;
  }
  const std::lock_guard lock(mutex_);
  if (is_ending_) throw core::Error("conflict", "array '" + array_->info().id + "' is being committed");
  // Of narrow chunks those that never come would be filled row by row, in the worst case byte by byte.
  if (shards_.blobs && !is_filled_ && !is_zero(type_.fill) && has_narrow_chunks()) {
    fill(arrays::full_slices(array_->info().type.dims));
    is_filled_ = true;
  }
  put(chunk, bytes);
  note(chunk, true);
}

bool ChunkedArray::read(int64_t chunk, std::span<std::byte> bytes) {
  const auto region_bytes = static_cast<size_t>(grid_.region_bytes(chunk));
  std::vector<std::byte> region(region_bytes == bytes.size() ? 0 : region_bytes);
  {
    const std::lock_guard lock(mutex_);
    if (!has_come_[static_cast<size_t>(chunk)] || is_ending_) return false;
    get(chunk, region.empty() ? bytes : region);
  }
  if (region.empty()) return true;
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  grid_.pad(chunk, region, bytes);
  return true;
}

void ChunkedArray::forget(int64_t chunk) {
  const arrays::PartOnItsWay on_its_way(store_, array_);
  const std::lock_guard lock(mutex_);
  if (is_ending_) throw core::Error("conflict", "array '" + array_->info().id + "' is being committed");
  if (has_come_[static_cast<size_t>(chunk)]) fill(grid_.region(chunk));
  note(chunk, false);
}

void ChunkedArray::begin_commit() {
  const arrays::PartOnItsWay on_its_way(store_, array_);
  const std::lock_guard lock(mutex_);
  array_->state().with([&](arrays::Array::State& state) { parts_of(*array_, state).is_being_completed = true; });
  is_ending_ = true;
}

void ChunkedArray::undo_commit() {
  const std::lock_guard lock(mutex_);
  array_->state().with([](arrays::Array::State& state) {
    if (state.parts) state.parts->is_being_completed = false;
  });
  is_ending_ = is_released_;
}

void ChunkedArray::fill(const Region& region) {
  const size_t element_bytes = type_.fill.size();
  std::vector<std::byte> pattern(kFilledAtOnce / element_bytes * element_bytes);
  for (size_t at = 0; at < pattern.size(); at += element_bytes)
    std::memcpy(pattern.data() + at, type_.fill.data(), element_bytes);
  std::optional<BlobRuns> runs;
  if (shards_.blobs) runs.emplace(*shards_.blobs, array_->shard_bytes() / array_->layout().shard_count);
  each_run(region, [&](size_t, size_t shard, int64_t in_shard, size_t bytes) {
    while (bytes > 0) {
      const std::span<const std::byte> piece = std::span(pattern).first(std::min(bytes, pattern.size()));
      if (runs) {
        runs->write(shard, in_shard, piece);
      } else {
        std::memcpy(shards_.memory[shard]->data() + in_shard, piece.data(), piece.size());
      }
      in_shard += static_cast<int64_t>(piece.size());
      bytes -= piece.size();
    }
  });
  if (runs) runs->finish();
}

arrays::NewShards ChunkedArray::take_shards() {
  const std::lock_guard lock(mutex_);
  // Blobs are zero where nothing was written; what forget() took back has the fill value already.
  const bool is_filled = is_filled_ || (shards_.blobs && is_zero(type_.fill));
  const bool has_any = std::find(has_come_.begin(), has_come_.end(), true) != has_come_.end();
  if (!is_filled && !has_any) fill(arrays::full_slices(array_->info().type.dims));
  for (int64_t chunk = 0; chunk < grid_.count() && !is_filled && has_any; ++chunk) {
    if (!has_come_[static_cast<size_t>(chunk)]) fill(grid_.region(chunk));
  }
  files_.reset();
  is_released_ = true;
  return std::move(shards_);
}

void ChunkedArray::put_back(arrays::ShardBuffers shards) {
  const std::lock_guard lock(mutex_);
  shards_ = std::move(shards);
  is_released_ = false;
}

void ChunkedArray::end_commit() {
  is_done_ = true;
  store_.pending().remove(array_);
}

}  // namespace meshd::zarr
