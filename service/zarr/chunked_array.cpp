#include "service/zarr/chunked_array.h"

#include <algorithm>
#include <cstring>

#include "service/arrays/assembly.h"
#include "service/core/error.h"

namespace meshd::zarr {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

arrays::PendingParts& parts_of(const arrays::Array& array, arrays::Array::State& state) {
  if (!state.deleted && state.parts) return *state.parts;
  throw core::Error("not_found", "there is no array '" + array.info().id + "'; it was deleted");
}

}  // namespace

ChunkedArray::ChunkedArray(arrays::ArrayStore& store, arrays::ArrayRef array, ChunkedType type)
    : store_(store),
      array_(std::move(array)),
      type_(std::move(type)),
      grid_(array_->info().type, type_.chunk_dims),
      has_come_(static_cast<size_t>(grid_.count())) {
  store_.announce(array_);
  try {
    shards_ = store_.new_shards(*array_);
    if (shards_.blobs) open_files_ = array_->layout().shard_count;
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
  if (is_done_ || is_gone()) return;
  undo_commit();
  try {
    store_.remove(array_);
  } catch (const std::exception&) {
    // It expires by itself.
  }
}

bool ChunkedArray::is_gone() const {
  return array_->state().with([](const arrays::Array::State& state) { return state.deleted; });
}

void ChunkedArray::note_progress() {
  array_->state().with([&](arrays::Array::State& state) {
    if (state.parts) store_.pending().note_progress(*state.parts);
  });
}

void ChunkedArray::release() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  shards_ = {};
  open_files_ = 0;
}

void ChunkedArray::note(int64_t chunk, bool has_come) {
  has_come_[static_cast<size_t>(chunk)] = has_come;
  array_->state().with([&](arrays::Array::State& state) {
    if (state.parts) state.parts->received[static_cast<size_t>(chunk)] = has_come;
  });
}

template <typename Visit>
void ChunkedArray::each_run(int64_t chunk, const Visit& visit) const {
  const auto element_bytes = static_cast<int64_t>(type_.fill.size());
  arrays::for_each_run(array_->layout(), grid_.region(chunk),
                       [&](int64_t element, int64_t shard, int64_t place, int64_t run) {
                         visit(static_cast<size_t>(element * element_bytes), static_cast<size_t>(shard),
                               place * element_bytes, static_cast<size_t>(run * element_bytes));
                       });
}

void ChunkedArray::put(int64_t chunk, std::span<const std::byte> region) {
  each_run(chunk, [&](size_t in_region, size_t shard, int64_t in_shard, size_t bytes) {
    if (shards_.blobs) {
      shards_.blobs->write(shard, in_shard, region.subspan(in_region, bytes));
    } else {
      std::memcpy(shards_.memory[shard]->data() + in_shard, region.data() + in_region, bytes);
    }
  });
}

void ChunkedArray::get(int64_t chunk, std::span<std::byte> region) {
  each_run(chunk, [&](size_t in_region, size_t shard, int64_t in_shard, size_t bytes) {
    if (shards_.blobs) {
      shards_.blobs->read(shard, in_shard, region.subspan(in_region, bytes));
    } else {
      std::memcpy(region.data() + in_region, shards_.memory[shard]->data() + in_shard, bytes);
    }
  });
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
  put(chunk, bytes);
  note(chunk, true);
}

bool ChunkedArray::read(int64_t chunk, std::span<std::byte> bytes) {
  std::vector<std::byte> region(static_cast<size_t>(grid_.region_bytes(chunk)));
  {
    const std::lock_guard lock(mutex_);
    if (!has_come_[static_cast<size_t>(chunk)] || is_ending_) return false;
    get(chunk, region);
  }
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  grid_.pad(chunk, region, bytes);
  return true;
}

void ChunkedArray::forget(int64_t chunk) {
  const arrays::PartOnItsWay on_its_way(store_, array_);
  const std::lock_guard lock(mutex_);
  if (is_ending_) throw core::Error("conflict", "array '" + array_->info().id + "' is being committed");
  if (has_come_[static_cast<size_t>(chunk)]) fill(chunk);
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
  is_ending_ = false;
}

void ChunkedArray::fill(int64_t chunk) {
  const auto bytes = static_cast<size_t>(grid_.region_bytes(chunk));
  std::vector<std::byte> region(bytes);
  for (size_t at = 0; at < bytes; at += type_.fill.size())
    std::memcpy(region.data() + at, type_.fill.data(), type_.fill.size());
  put(chunk, region);
}

arrays::NewShards ChunkedArray::take_shards() {
  const std::lock_guard lock(mutex_);
  // Blobs are zero where nothing was written; what forget() took back has the fill value already.
  const bool is_filled = shards_.blobs && is_zero(type_.fill);
  for (int64_t chunk = 0; chunk < grid_.count() && !is_filled; ++chunk) {
    if (!has_come_[static_cast<size_t>(chunk)]) fill(chunk);
  }
  open_files_ = 0;
  return std::move(shards_);
}

void ChunkedArray::end_commit() {
  is_done_ = true;
  store_.pending().remove(array_);
}

}  // namespace meshd::zarr
