#include "service/program/gspmd_sharding.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "service/core/error.h"
#include "service/program/limits.h"

namespace meshd::program {
namespace {

/// Reads the notation from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<GspmdSharding> all() {
    std::vector<GspmdSharding> out;
    if (text_.substr(0, 2) == "{{") {
      ++at_;
      do {
        out.push_back(one());
        space();
      } while (accept(","));
      expect("}");
    } else {
      out.push_back(one());
    }
    if (at_ != text_.size()) wrong("nothing behind the sharding");
    return out;
  }

 private:
  [[noreturn]] void wrong(const std::string& expected) const {
    throw core::Error("invalid_spec", "sharding \"" + std::string(text_) + "\": expected " + expected +
                                          " at character " + std::to_string(at_ + 1));
  }

  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool accept(std::string_view word) {
    space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void expect(std::string_view word) {
    if (!accept(word)) wrong("'" + std::string(word) + "'");
  }

  int64_t number() {
    space();
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > kMaxAxisSize) wrong("a smaller number");
    }
    if (at_ == begin) wrong("a number");
    return value;
  }

  std::vector<int64_t> numbers(std::string_view open, std::string_view close) {
    std::vector<int64_t> out;
    expect(open);
    do {
      if (static_cast<int64_t>(out.size()) == kMaxRank) wrong("fewer dimensions");
      out.push_back(number());
    } while (accept(","));
    expect(close);
    return out;
  }

  GspmdSharding one() {
    GspmdSharding out;
    expect("{");
    if (accept("replicated")) {
      out.kind = GspmdKind::kReplicated;
    } else if (accept("maximal")) {
      out.kind = GspmdKind::kMaximal;
      expect("device=");
      out.device = number();
    } else if (accept("manual")) {
      out.kind = GspmdKind::kManual;
    } else if (accept("unknown")) {
      out.kind = GspmdKind::kUnknown;
    } else if (accept("devices=")) {
      out.kind = GspmdKind::kTiled;
      tiles(out);
    } else {
      wrong("replicated, maximal, manual, unknown or devices=");
    }
    if (accept("shard_as") || accept("shard_like")) out.group = number();
    expect("}");
    return out;
  }

  void tiles(GspmdSharding& out) {
    out.tile = numbers("[", "]");
    check_product(out.tile);
    if (accept("<=")) {
      out.reshape = numbers("[", "]");
      check_product(out.reshape);
      if (accept("T")) {
        for (const int64_t dim : numbers("(", ")")) out.transpose.push_back(static_cast<int>(dim));
      }
    } else {
      device_list(out);
    }
    if (out.transpose.empty()) {
      out.transpose.resize(out.reshape.size());
      std::iota(out.transpose.begin(), out.transpose.end(), 0);
    }
    std::vector<int> sorted = out.transpose;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != static_cast<int>(i) || sorted.size() != out.reshape.size()) wrong("a permutation behind 'T'");
    }
    const auto product = [](const std::vector<int64_t>& sizes) {
      return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    };
    if (product(out.tile) != product(out.reshape)) wrong("as many devices as tiles");
    if (accept("last_tile_dim_replicate")) out.subgroups = {GspmdSubgroup::kReplicated};
    if (accept("last_tile_dims={")) {
      do {
        if (accept("manual")) {
          out.subgroups.push_back(GspmdSubgroup::kManual);
        } else if (accept("replicated")) {
          out.subgroups.push_back(GspmdSubgroup::kReplicated);
        } else {
          wrong("manual or replicated");
        }
      } while (accept(","));
      expect("}");
    }
    if (out.subgroups.size() > out.tile.size()) wrong("no more subgroups than tile dimensions");
  }

  void check_product(const std::vector<int64_t>& sizes) const {
    int64_t count = 1;
    for (const int64_t size : sizes) {
      if (size < 1 || count > kMaxAxisSize / size) wrong("sizes from 1, and fewer devices");
      count *= size;
    }
  }

  /// A written list of devices, where it is an iota of two dimensions transposed (or not at all).
  void device_list(GspmdSharding& out) {
    std::vector<int64_t> devices;
    do devices.push_back(number());
    while (accept(","));
    const auto count = static_cast<int64_t>(devices.size());
    for (int64_t minor = 1; minor <= count; ++minor) {
      if (count % minor != 0) continue;
      const int64_t major = count / minor;
      bool same = true;
      for (int64_t i = 0; same && i < count; ++i)
        same = devices[static_cast<size_t>(i)] == i % major * minor + i / major;
      if (!same) continue;
      out.reshape = {major, minor};
      out.transpose = {1, 0};
      return;
    }
    throw core::Error("unsupported_attribute",
                      "sharding \"" + std::string(text_) +
                          "\": a list of devices is supported where it is an iota, transposed or not");
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// Cuts of a list of sizes: prefix products, 1 left out.
std::vector<int64_t> prefix_products(std::span<const int64_t> sizes) {
  std::vector<int64_t> out;
  int64_t product = 1;
  for (const int64_t size : sizes) out.push_back(product *= size);
  return out;
}

[[noreturn]] void no_common_axes() {
  throw core::Error("unsupported_attribute",
                    "the program's shardings cut the devices in ways that have no common axes");
}

/// Adds the places (as pre-sizes of the flat list of devices) at which this sharding needs the devices cut.
void add_cuts(const GspmdSharding& sharding, std::set<int64_t>& cuts) {
  const std::vector<int64_t> ends = prefix_products(sharding.reshape);
  cuts.insert(ends.begin(), ends.end());
  // In transposed order the tile dimensions cut in turn; a cut inside of a dimension of `reshape` is one of the flat
  // list too.
  std::vector<int64_t> sizes;
  for (const int dim : sharding.transpose) sizes.push_back(sharding.reshape[static_cast<size_t>(dim)]);
  for (const int64_t tile_end : prefix_products(sharding.tile)) {
    int64_t before = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (tile_end > before && tile_end < before * sizes[i]) {
        if (tile_end % before != 0 || sizes[i] % (tile_end / before) != 0) no_common_axes();
        const auto dim = static_cast<size_t>(sharding.transpose[i]);
        const int64_t start = dim == 0 ? 1 : ends[dim - 1];
        cuts.insert(start * (tile_end / before));
      }
      before *= sizes[i];
    }
  }
}

/// Axes of each tile dimension.
std::vector<std::vector<int>> tile_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  // Axes of each dimension of `reshape`, then in transposed order, then dealt out to the tile dimensions.
  std::vector<std::vector<int>> by_reshape;
  int axis = 0;
  for (const int64_t size : sharding.reshape) {
    std::vector<int>& axes = by_reshape.emplace_back();
    for (int64_t left = size; left > 1; ++axis) {
      const int64_t cut = mesh.axes.at(static_cast<size_t>(axis)).size;
      if (left % cut != 0) no_common_axes();
      left /= cut;
      axes.push_back(axis);
    }
  }
  std::vector<int> order;
  for (const int dim : sharding.transpose) {
    const std::vector<int>& axes = by_reshape[static_cast<size_t>(dim)];
    order.insert(order.end(), axes.begin(), axes.end());
  }
  std::vector<std::vector<int>> out;
  size_t next = 0;
  for (const int64_t size : sharding.tile) {
    std::vector<int>& axes = out.emplace_back();
    for (int64_t left = size; left > 1; ++next) {
      const int64_t cut = next < order.size() ? mesh.axes[static_cast<size_t>(order[next])].size : 0;
      if (cut == 0 || left % cut != 0) no_common_axes();
      left /= cut;
      axes.push_back(order[next]);
    }
  }
  return out;
}

}  // namespace

int64_t GspmdSharding::device_count() const {
  return std::accumulate(reshape.begin(), reshape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<GspmdSharding> parse_gspmd(std::string_view text) { return Reader(text).all(); }

mesh::Mesh gspmd_mesh(std::span<const GspmdSharding> shardings, int64_t device_count) {
  std::set<int64_t> cuts{device_count};
  for (const GspmdSharding& sharding : shardings) {
    if (sharding.kind != GspmdKind::kTiled) continue;
    if (sharding.device_count() != device_count) {
      throw core::Error("unsupported_attribute", "one sharding is over " + std::to_string(sharding.device_count()) +
                                                     " devices, another over " + std::to_string(device_count));
    }
    add_cuts(sharding, cuts);
  }
  mesh::Mesh out;
  int64_t before = 1;
  for (const int64_t cut : cuts) {
    if (cut == 1) continue;
    if (cut % before != 0) no_common_axes();
    out.axes.push_back({"_axis_" + std::to_string(out.axes.size()), cut / before});
    before = cut;
  }
  return out;
}

sharding::TensorSharding to_sdy_sharding(const GspmdSharding& sharding, std::string mesh_name, mesh::MeshRef mesh,
                                         int64_t rank, std::span<const int64_t> open_dims) {
  sharding::TensorSharding out = sharding.kind == GspmdKind::kUnknown
                                     ? sharding::fully_open(std::move(mesh_name), std::move(mesh), rank)
                                     : sharding::fully_replicated(std::move(mesh_name), std::move(mesh), rank);
  for (const int64_t dim : open_dims) {
    if (dim >= 0 && dim < rank) out.dims[static_cast<size_t>(dim)].open = true;
  }
  if (sharding.kind != GspmdKind::kTiled) return out;
  const auto tensor_dims = static_cast<int64_t>(sharding.tile.size() - sharding.subgroups.size());
  if (tensor_dims != rank) {
    throw core::Error("invalid_spec", "the sharding has " + std::to_string(tensor_dims) +
                                          " dimensions, but the rank is " + std::to_string(rank));
  }
  const std::vector<std::vector<int>> axes = tile_axes(sharding, *out.mesh);
  for (size_t dim = 0; dim < out.dims.size(); ++dim) {
    for (const int axis : axes[dim]) out.dims[dim].axes.push_back({axis, 1, 0});
  }
  return out;
}

std::vector<std::string> gspmd_manual_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  std::vector<int> numbers;
  if (sharding.kind == GspmdKind::kManual) {
    numbers.resize(mesh.axes.size());
    std::iota(numbers.begin(), numbers.end(), 0);
  } else if (sharding.kind == GspmdKind::kTiled) {
    const std::vector<std::vector<int>> axes = tile_axes(sharding, mesh);
    const size_t first = axes.size() - sharding.subgroups.size();
    for (size_t i = 0; i < sharding.subgroups.size(); ++i) {
      if (sharding.subgroups[i] != GspmdSubgroup::kManual) continue;
      numbers.insert(numbers.end(), axes[first + i].begin(), axes[first + i].end());
    }
    std::sort(numbers.begin(), numbers.end());
  }
  std::vector<std::string> out;
  for (const int number : numbers) out.push_back(mesh.axes[static_cast<size_t>(number)].name);
  return out;
}

}  // namespace meshd::program
