#include "service/partition/shard_layout.h"

#include <algorithm>

namespace meshd::partition {

sharding::SubAxisSet mask_of(std::span<const int> sub_axes) {
  sharding::SubAxisSet mask = 0;
  for (const int sub_axis : sub_axes) mask |= sharding::SubAxisSet{1} << sub_axis;
  return mask;
}

std::vector<int> list_of(sharding::SubAxisSet mask) {
  std::vector<int> out;
  for (int sub_axis = 0; mask != 0; ++sub_axis, mask >>= 1) {
    if (mask & 1) out.push_back(sub_axis);
  }
  return out;
}

sharding::SubAxisSet ShardLayout::mask() const {
  sharding::SubAxisSet all = 0;
  for (const auto& dim : dims) all |= mask_of(dim);
  return all;
}

ShardLayout ShardLayout::without(sharding::SubAxisSet drop) const {
  ShardLayout out{view, dims};
  for (auto& dim : out.dims) std::erase_if(dim, [&](int sub_axis) { return drop >> sub_axis & 1; });
  return out;
}

ShardLayout replicated(int64_t rank, int view) {
  return {view, std::vector<std::vector<int>>(static_cast<size_t>(rank))};
}

tensor::Dims local_dims(const sharding::MeshView& view, std::span<const int64_t> logical_dims,
                        const ShardLayout& layout) {
  tensor::Dims out(logical_dims.begin(), logical_dims.end());
  for (size_t d = 0; d < out.size(); ++d) out[d] = core::ceil_div(out[d], sharding::part_count(view, layout.dims[d]));
  return out;
}

double lacking_elements(const sharding::MeshView& view, std::span<const int64_t> logical_dims, const ShardLayout& from,
                        const ShardLayout& to) {
  double wanted = 1;
  double common = from.view == to.view ? 1 : 0;
  for (size_t d = 0; d < logical_dims.size(); ++d) {
    const std::vector<int>& a = from.dims[d];
    const std::vector<int>& b = to.dims[d];
    const auto rows = [&](const std::vector<int>& sub_axes) {
      return static_cast<double>(core::ceil_div(logical_dims[d], sharding::part_count(view, sub_axes)));
    };
    wanted *= rows(b);
    if (from.view != to.view) continue;
    // Where neither list begins with the other, some device has nothing of its new rows.
    const auto [end_a, end_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    const bool nested = end_a == a.end() || end_b == b.end();
    common *= nested ? rows(a.size() > b.size() ? a : b) : 0;
  }
  return wanted - common;
}

}  // namespace meshd::partition
