#include "service/program/gspmd/device_order.h"

#include <algorithm>
#include <utility>

namespace meshd::program {
namespace {

/// Split points of a list of sizes: prefix products.
std::vector<int64_t> prefix_products(std::span<const int64_t> sizes) {
  std::vector<int64_t> out;
  int64_t product = 1;
  for (const int64_t size : sizes) out.push_back(product *= size);
  return out;
}

}  // namespace

std::optional<Iota> as_iota(std::vector<int64_t> order) {
  // From the minor end: as far as the steps are even they are one dimension; then the same of what is left.
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size; minor first
  while (order.size() > 1) {
    const int64_t stride = order[1] - order[0];
    size_t size = 1;
    while (size < order.size() && order[size] == order[0] + static_cast<int64_t>(size) * stride) ++size;
    if (stride < 1 || order[0] != 0 || order.size() % size != 0) return std::nullopt;
    std::vector<int64_t> outer;
    for (size_t i = 0; i < order.size(); i += size) {
      for (size_t k = 1; k < size; ++k) {
        if (order[i + k] != order[i] + static_cast<int64_t>(k) * stride) return std::nullopt;
      }
      outer.push_back(order[i]);
    }
    dims.emplace_back(stride, static_cast<int64_t>(size));
    order = std::move(outer);
  }
  Iota out;
  std::vector<std::pair<int64_t, int64_t>> sorted = dims;
  std::sort(sorted.rbegin(), sorted.rend());
  int64_t covered = 1;
  for (size_t i = sorted.size(); i-- > 0; covered *= sorted[i].second) {
    if (sorted[i].first != covered) return std::nullopt;
  }
  for (const auto& [stride, size] : sorted) out.reshape.push_back(size);
  for (size_t i = dims.size(); i-- > 0;) {
    const auto found = std::find(sorted.begin(), sorted.end(), dims[i]);
    out.transpose.push_back(static_cast<int>(found - sorted.begin()));
  }
  if (out.reshape.empty()) out = {{1}, {0}};
  return out;
}

Iota merged(const Iota& iota) {
  std::vector<int> kept;  // dimensions of `reshape` in transposed order
  for (const int dim : iota.transpose) {
    if (iota.reshape[static_cast<size_t>(dim)] > 1) kept.push_back(dim);
  }
  std::vector<int> in_order = kept;
  std::sort(in_order.begin(), in_order.end());
  // For each kept dimension the one that follows it, in text and transposed: then they are one.
  std::vector<std::pair<int, int64_t>> runs;  // first dimension, size; transposed order
  for (size_t i = 0; i < kept.size(); ++i) {
    const int64_t size = iota.reshape[static_cast<size_t>(kept[i])];
    const auto place = std::find(in_order.begin(), in_order.end(), kept[i]);
    if (i > 0 && place != in_order.begin() && *(place - 1) == kept[i - 1]) {
      runs.back().second *= size;
    } else {
      runs.emplace_back(kept[i], size);
    }
  }
  if (runs.empty()) return {{1}, {0}};
  std::vector<std::pair<int, int64_t>> sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  Iota out;
  for (const auto& [first, size] : sorted) out.reshape.push_back(size);
  for (const auto& run : runs)
    out.transpose.push_back(static_cast<int>(std::find(sorted.begin(), sorted.end(), run) - sorted.begin()));
  return out;
}

std::vector<int64_t> written_out(const Iota& iota) {
  const size_t rank = iota.reshape.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * iota.reshape[i];
  std::vector<int64_t> out{0};
  for (const int dim : iota.transpose) {
    std::vector<int64_t> longer;
    const auto d = static_cast<size_t>(dim);
    longer.reserve(out.size() * static_cast<size_t>(iota.reshape[d]));
    for (const int64_t base : out) {
      for (int64_t k = 0; k < iota.reshape[d]; ++k) longer.push_back(base + k * strides[d]);
    }
    out = std::move(longer);
  }
  return out;
}

bool add_splits(const Iota& iota, const std::vector<int64_t>& tile, std::set<int64_t>& splits) {
  const std::vector<int64_t> ends = prefix_products(iota.reshape);
  splits.insert(ends.begin(), ends.end());
  // In transposed order the tile dimensions are split points one after another; one inside of a dimension of `reshape`
  // is one of the flat list too.
  std::vector<int64_t> sizes;
  for (const int dim : iota.transpose) sizes.push_back(iota.reshape[static_cast<size_t>(dim)]);
  for (const int64_t tile_end : prefix_products(tile)) {
    int64_t before = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (tile_end > before && tile_end < before * sizes[i]) {
        if (tile_end % before != 0 || sizes[i] % (tile_end / before) != 0) return false;
        const auto dim = static_cast<size_t>(iota.transpose[i]);
        const int64_t start = dim == 0 ? 1 : ends[dim - 1];
        splits.insert(start * (tile_end / before));
      }
      before *= sizes[i];
    }
  }
  return true;
}

bool can_hold_axes(const std::set<int64_t>& splits) {
  int64_t before = 1;
  for (const int64_t split : splits) {
    if (split % before != 0) return false;
    before = split;
  }
  return true;
}

}  // namespace meshd::program
