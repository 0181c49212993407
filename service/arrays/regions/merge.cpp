#include "service/arrays/regions/merge.h"

#include <algorithm>

#include "service/core/checked_math.h"

namespace meshd::arrays {
namespace {

constexpr int64_t kPieceBytes = int64_t{256} << 10;

// Collects pieces of several sources, so that short ones are not given out one by one.
class Pieces {
 public:
  explicit Pieces(const std::function<void(std::span<const std::byte>)>& out) : out_(out), bytes_(kPieceBytes) {}
  void take(const ByteSource& source, int64_t offset, int64_t count) {
    while (count > 0) {
      const int64_t next = std::min(count, kPieceBytes - filled_);
      source(offset, std::span(bytes_).subspan(static_cast<size_t>(filled_), static_cast<size_t>(next)));
      filled_ += next;
      offset += next;
      count -= next;
      if (filled_ == kPieceBytes) flush();
    }
  }
  void flush() {
    if (filled_ > 0) out_(std::span(bytes_).first(static_cast<size_t>(filled_)));
    filled_ = 0;
  }

 private:
  const std::function<void(std::span<const std::byte>)>& out_;
  std::vector<std::byte> bytes_;
  int64_t filled_ = 0;
};

}  // namespace

std::optional<RegionInShard> region_in_shard(const sharding::Layout& layout, std::span<const Slice> slices,
                                             int64_t shard) {
  RegionInShard out;
  out.slices.resize(slices.size());
  out.first.resize(slices.size());
  for (size_t d = slices.size(); d-- > 0;) {
    const Slice& slice = slices[d];
    const int64_t part = shard % layout.part_counts[d];
    shard /= layout.part_counts[d];
    const int64_t begin = part * layout.shard_dims[d];
    const int64_t end = std::min(begin + layout.shard_dims[d], layout.global_dims[d]);
    // Rounded up, without a sum that a large step makes overflow.
    const int64_t skipped = slice.start >= begin ? 0 : (begin - slice.start - 1) / slice.step + 1;
    if (skipped >= slice.count()) return std::nullopt;
    out.first[d] = skipped;
    out.slices[d] = {slice.start + skipped * slice.step, std::min(slice.stop, end), slice.step};
    if (out.slices[d].count() == 0) return std::nullopt;
  }
  return out;
}

void merge_shard(const sharding::Layout& layout, int64_t element_bytes, std::span<const Slice> slices,
                 const RegionInShard& part, const ByteSource& before, const ByteSource& region,
                 const std::function<void(std::span<const std::byte>)>& out) {
  const tensor::Dims region_dims = slice_dims(slices);
  const tensor::Dims part_dims = slice_dims(part.slices);
  const int64_t shard_bytes = core::checked_mul(tensor::element_count(layout.shard_dims), element_bytes);
  Pieces pieces(out);
  int64_t done = 0;  // bytes of the shard
  for_each_run(layout, part.slices, [&](int64_t element, int64_t /*shard*/, int64_t place, int64_t run) {
    int64_t from = 0;  // of the run in the region
    const tensor::Dims index = unravel(element, part_dims);
    for (size_t d = 0; d < part_dims.size(); ++d) from = from * region_dims[d] + part.first[d] + index[d];
    pieces.take(before, done, place * element_bytes - done);
    pieces.take(region, from * element_bytes, run * element_bytes);
    done = (place + run) * element_bytes;
  });
  pieces.take(before, done, shard_bytes - done);
  pieces.flush();
}

}  // namespace meshd::arrays
