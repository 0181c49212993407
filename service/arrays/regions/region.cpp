#include "service/arrays/regions/region.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "service/core/error.h"
#include "service/kernels/movement/movement.h"

namespace meshd::arrays {
namespace {

// Location of a global index: the shard, the element in it, and how many elements follow there without a gap.
struct Place {
  int64_t shard = 0;
  int64_t element = 0;
  int64_t run = 1;
};

Place locate_index(const sharding::Layout& layout, std::span<const int64_t> index) {
  Place place;
  for (size_t d = 0; d < index.size(); ++d) {
    const int64_t part = index[d] / layout.shard_dims[d];
    const int64_t inside = index[d] - part * layout.shard_dims[d];
    place.shard = place.shard * layout.part_counts[d] + part;
    place.element = place.element * layout.shard_dims[d] + inside;
  }
  return place;
}

// Number of elements of a region that are contiguous in one shard from `index` (of the array) on: to the end of the
// shard's part of the last dimension, and beyond it through dimensions that both region and shard contain in full.
// `region_index` is the same place within the region.
int64_t run_length(const sharding::Layout& layout, std::span<const Slice> slices, std::span<const int64_t> index,
                   std::span<const int64_t> region_index) {
  int64_t run = 1;
  for (size_t d = index.size(); d-- > 0;) {
    const int64_t count = slices[d].count();
    if (slices[d].step != 1 && count > 1) break;
    const int64_t part = index[d] / layout.shard_dims[d];
    // The stop of a single element with a step may be beyond it.
    const int64_t stop = count == 1 ? index[d] + 1 : slices[d].stop;
    run *= std::min({(part + 1) * layout.shard_dims[d], layout.global_dims[d], stop}) - index[d];
    const bool whole = count == layout.global_dims[d] && layout.part_counts[d] == 1;
    if (!whole || region_index[d] != 0) break;
  }
  return run;
}

// Where an element of a region is in the array.
tensor::Dims array_index(std::span<const Slice> slices, std::span<const int64_t> region_index) {
  tensor::Dims index(region_index.size());
  for (size_t d = 0; d < index.size(); ++d) index[d] = slices[d].start + region_index[d] * slices[d].step;
  return index;
}

int64_t parse_number(std::string_view text, std::string_view whole) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw core::Error("invalid_query", "slice: '" + std::string(whole) + "' is not start:stop:step with whole numbers");
  }
  return value;
}

Slice parse_field(std::string_view field, int64_t size) {
  std::vector<std::string_view> parts;
  std::string_view rest = field;
  for (;;) {
    const size_t colon = rest.find(':');
    parts.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (parts.size() > 3)
    throw core::Error("invalid_query", "slice: '" + std::string(field) + "' has more than two colons");
  const auto from_end = [&](int64_t value) { return value < 0 ? value + size : value; };
  if (parts.size() == 1) {
    const int64_t at = from_end(parse_number(parts[0], field));
    if (at < 0 || at >= size) {
      throw core::Error("invalid_query", fmt::format("slice: index {} is outside of a dimension of {}", field, size));
    }
    return {at, at + 1, 1};
  }
  Slice slice{0, size, 1};
  if (!parts[0].empty()) slice.start = std::clamp<int64_t>(from_end(parse_number(parts[0], field)), 0, size);
  if (!parts[1].empty()) slice.stop = std::clamp<int64_t>(from_end(parse_number(parts[1], field)), 0, size);
  if (parts.size() == 3 && !parts[2].empty()) slice.step = parse_number(parts[2], field);
  if (slice.step < 1)
    throw core::Error("invalid_query", "slice: '" + std::string(field) + "' needs a step of at least 1");
  return slice;
}

}  // namespace

tensor::Dims unravel(int64_t element, std::span<const int64_t> dims) {
  tensor::Dims index(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = element % dims[d];
    element /= dims[d];
  }
  return index;
}

std::vector<Slice> full_slices(std::span<const int64_t> dims) {
  std::vector<Slice> out;
  for (const int64_t dim : dims) out.push_back({0, dim, 1});
  return out;
}

std::vector<Slice> parse_slices(std::string_view text, std::span<const int64_t> dims) {
  std::vector<Slice> out = full_slices(dims);
  if (text.empty()) return out;
  size_t d = 0;
  for (;; ++d) {
    const size_t comma = text.find(',');
    if (d >= dims.size()) {
      throw core::Error("invalid_query", fmt::format("slice: more fields than the array's {} dimensions", dims.size()));
    }
    out[d] = parse_field(text.substr(0, comma), dims[d]);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return out;
}

tensor::Dims slice_dims(std::span<const Slice> slices) {
  tensor::Dims dims;
  for (const Slice& slice : slices) dims.push_back(slice.count());
  return dims;
}

ScatterWriter::ScatterWriter(const sharding::Layout& layout, int64_t element_bytes, ShardBuffers shards)
    : layout_(layout),
      element_bytes_(element_bytes),
      shards_(std::move(shards)),
      slices_(full_slices(layout.global_dims)),
      total_(core::checked_mul(tensor::element_count(layout.global_dims), element_bytes)) {}

ScatterWriter::ScatterWriter(const sharding::Layout& layout, int64_t element_bytes, NewShards& shards)
    : ScatterWriter(layout, element_bytes, shards.memory) {
  if (shards.blobs) blobs_ = &*shards.blobs;
}

void ScatterWriter::locate() {
  const tensor::Dims index = unravel(done_ / element_bytes_, layout_.global_dims);
  const Place place = locate_index(layout_, index);
  shard_ = static_cast<size_t>(place.shard);
  at_ = place.element * element_bytes_;
  run_left_ = run_length(layout_, slices_, index, index) * element_bytes_;
}

std::span<std::byte> ScatterWriter::destination() {
  if (done_ == total_ || blobs_ != nullptr) return {};
  if (run_left_ == 0) locate();
  return {shards_[shard_]->data() + at_, static_cast<size_t>(run_left_)};
}

void ScatterWriter::advance(size_t bytes) {
  const auto count = static_cast<int64_t>(bytes);
  done_ += count;
  at_ += count;
  run_left_ -= count;
}

void ScatterWriter::write(std::span<const std::byte> bytes) {
  if (static_cast<int64_t>(bytes.size()) > remaining()) {
    throw core::Error("malformed_body", fmt::format("the body has more than the array's {} bytes", total_));
  }
  while (!bytes.empty()) {
    if (run_left_ == 0) locate();
    const size_t count = std::min(static_cast<size_t>(run_left_), bytes.size());
    if (blobs_ != nullptr) {
      blobs_->write(shard_, at_, bytes.first(count));
    } else {
      std::memcpy(shards_[shard_]->data() + at_, bytes.data(), count);
    }
    advance(count);
    bytes = bytes.subspan(count);
  }
}

void for_each_run(const sharding::Layout& layout, std::span<const Slice> slices, const RunVisitor& visit) {
  const tensor::Dims dims = slice_dims(slices);
  const int64_t count = tensor::element_count(dims);
  for (int64_t done = 0; done < count;) {
    const tensor::Dims region_index = unravel(done, dims);
    const tensor::Dims index = array_index(slices, region_index);
    const Place place = locate_index(layout, index);
    const int64_t run = run_length(layout, slices, index, region_index);
    visit(done, place.shard, place.element, run);
    done += run;
  }
}

void write_region(const sharding::Layout& layout, int64_t element_bytes, std::span<const Slice> slices,
                  const ByteSource& bytes, const std::function<std::byte*(int64_t)>& shard) {
  for_each_run(layout, slices, [&](int64_t element, int64_t number, int64_t place, int64_t run) {
    bytes(element * element_bytes, {shard(number) + place * element_bytes, static_cast<size_t>(run * element_bytes)});
  });
}

GatherReader::GatherReader(std::shared_ptr<const sharding::Layout> layout, int64_t element_bytes, ReadableShards shards,
                           std::vector<Slice> slices)
    : layout_(std::move(layout)),
      element_bytes_(element_bytes),
      shards_(std::move(shards)),
      slices_(std::move(slices)),
      dims_(slice_dims(slices_)),
      total_(core::checked_mul(tensor::element_count(dims_), element_bytes)),
      most_pages_(std::min({shards_.blobs.size(), kMostPages, shards_in_turn()})),
      page_of_shard_(shards_.blobs.size()) {}

// Shards that row-major order takes in turn: those along the dimensions behind the first that has more than one index.
size_t GatherReader::shards_in_turn() const {
  const auto first = std::find_if(dims_.begin(), dims_.end(), [](int64_t size) { return size != 1; });
  size_t shards = 1;
  for (auto d = static_cast<size_t>(first - dims_.begin()) + 1; d < dims_.size(); ++d)
    shards *= static_cast<size_t>(layout_->part_counts[d]);
  return shards;
}

int64_t GatherReader::page_memory() const { return static_cast<int64_t>(most_pages_) * storage::BlobStore::kPageBytes; }

GatherReader::Run GatherReader::run_at(int64_t element) const {
  const tensor::Dims region_index = unravel(element, dims_);
  const tensor::Dims index = array_index(slices_, region_index);
  const Place place = locate_index(*layout_, index);
  return {static_cast<size_t>(place.shard), place.element * element_bytes_,
          run_length(*layout_, slices_, index, region_index) * element_bytes_};
}

std::optional<std::vector<std::span<const std::byte>>> GatherReader::pieces(size_t limit) const {
  if (!shards_.blobs.empty() || !actual_.empty()) return std::nullopt;
  std::vector<std::span<const std::byte>> out;
  for (int64_t done = 0; done < total_;) {
    if (out.size() == limit) return std::nullopt;
    const Run run = run_at(done / element_bytes_);
    out.emplace_back(shards_.memory[run.shard]->data() + run.offset, static_cast<size_t>(run.bytes));
    done += run.bytes;
  }
  return out;
}

size_t GatherReader::read(std::span<std::byte> out) {
  size_t filled = 0;
  while (filled < out.size() && done_ < total_) {
    Run run = run_at(done_ / element_bytes_);
    const int64_t begun = done_ % element_bytes_;
    run.offset += begun;
    run.bytes -= begun;
    const std::span<std::byte> to = out.subspan(filled, std::min(static_cast<size_t>(run.bytes), out.size() - filled));
    if (shards_.blobs.empty()) {
      std::memcpy(to.data(), shards_.memory[run.shard]->data() + run.offset, to.size());
    } else {
      read_blob(run.shard, run.offset, to);
    }
    if (!actual_.empty()) zero_padding(done_, to);
    filled += to.size();
    done_ += static_cast<int64_t>(to.size());
  }
  if (done_ == total_) std::vector<Page>().swap(pages_);
  return filled;
}

void GatherReader::zero_padding(int64_t first_byte, std::span<std::byte> bytes) const {
  const int64_t end = first_byte + static_cast<int64_t>(bytes.size());
  for (int64_t at = first_byte; at < end;) {
    const int64_t element = at / element_bytes_;
    const tensor::Dims index = unravel(element, dims_);
    // Up to the end of the first dimension that the place is beyond, or of the row up to its padding.
    int64_t row = 1;
    int64_t stop = 0;
    bool is_padding = false;
    for (size_t d = dims_.size(); d-- > 0; row *= dims_[d]) {
      const bool is_beyond = index[d] >= actual_[d];
      if (!is_beyond && d + 1 < dims_.size()) continue;
      stop = element - element % row + ((is_beyond ? dims_[d] : actual_[d]) - index[d]) * row;
      is_padding = is_beyond;
    }
    const int64_t next = std::min(stop * element_bytes_, end);
    if (is_padding) std::memset(bytes.data() + (at - first_byte), 0, static_cast<size_t>(next - at));
    at = next;
  }
}

void GatherReader::read_blob(size_t shard, int64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const int64_t number = offset / storage::BlobStore::kPageBytes;
    const int64_t skip = offset % storage::BlobStore::kPageBytes;
    const Page& page = page_of(shard, number);
    const size_t count = std::min(out.size(), page.bytes.size() - static_cast<size_t>(skip));
    std::memcpy(out.data(), page.bytes.data() + skip, count);
    out = out.subspan(count);
    offset += static_cast<int64_t>(count);
  }
}

GatherReader::Page& GatherReader::page_of(size_t shard, int64_t number) {
  size_t& place = page_of_shard_[shard];
  if (place >= pages_.size() || pages_[place].shard != shard) {
    if (pages_.size() < most_pages_) {
      place = pages_.size();
      pages_.emplace_back();
    } else {
      const auto oldest = std::min_element(pages_.begin(), pages_.end(),
                                           [](const Page& a, const Page& b) { return a.last_use < b.last_use; });
      place = static_cast<size_t>(oldest - pages_.begin());
    }
    pages_[place].shard = shard;
    pages_[place].bytes.clear();
  }
  Page& page = pages_[place];
  page.last_use = ++uses_;
  if (page.bytes.empty() || page.number != number) {
    const storage::BlobReader& blob = *shards_.blobs[shard];
    const int64_t start = number * storage::BlobStore::kPageBytes;
    page.bytes.resize(static_cast<size_t>(std::min(storage::BlobStore::kPageBytes, blob.length() - start)));
    page.number = -1;
    blob.read(start, page.bytes);
    page.number = number;
  }
  return page;
}

void copy_between(const sharding::Layout& from, ShardBuffers shards, const sharding::Layout& to, ShardBuffers into,
                  int64_t element_bytes) {
  GatherReader reader(std::make_shared<const sharding::Layout>(from), element_bytes, std::move(shards),
                      full_slices(to.global_dims));
  ScatterWriter writer(to, element_bytes, std::move(into));
  while (writer.remaining() > 0) writer.advance(reader.read(writer.destination()));
}

void GatherReader::seek(int64_t byte) { done_ = std::clamp<int64_t>(byte, 0, total_); }

void to_row_major(const tensor::TensorType& type, const std::byte* columns, std::byte* out) {
  tensor::Dims strides(type.dims.size(), 1);
  for (size_t d = 1; d < strides.size(); ++d) strides[d] = strides[d - 1] * type.dims[d - 1];
  kernels::StridedCopy(type.dims, tensor::row_major_strides(type.dims), strides, tensor::size_bytes(type.dtype))
      .run(out, columns);
}

std::shared_ptr<const sharding::Layout> unsharded_layout(const tensor::Dims& dims) {
  auto out = std::make_shared<sharding::Layout>();
  out->global_dims = out->shard_dims = dims;
  out->part_counts.assign(dims.size(), 1);
  return out;
}

}  // namespace meshd::arrays
