#include "service/program/gspmd_sharding.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "service/core/error.h"
#include "service/program/gspmd_text.h"
#include "service/program/limits.h"

namespace meshd::program {
namespace {

std::string in_brackets(const std::vector<int64_t>& numbers) {
  constexpr size_t kShown = 16;
  std::string out = "[";
  for (size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(numbers[i]);
  }
  return out + (numbers.size() > kShown ? ",...]" : "]");
}

/// Devices of an order that no axes say.
constexpr int64_t kMaxWrittenOut = 4096;

/// Dimensions of an iota and their permutation.
struct Iota {
  std::vector<int64_t> reshape;
  std::vector<int> transpose;
};

/// The transposed iota that `order` (a permutation) is, or nothing.
/// Example: 0,4,1,5,2,6,3,7 -> reshape {2,4}, transpose {1,0}.
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

/// Cuts of a list of sizes: prefix products.
std::vector<int64_t> prefix_products(std::span<const int64_t> sizes) {
  std::vector<int64_t> out;
  int64_t product = 1;
  for (const int64_t size : sizes) out.push_back(product *= size);
  return out;
}

/// Adds the places (as pre-sizes of the positions) at which this sharding needs the devices cut. False when a tile
/// dimension ends where no axis can.
bool add_cuts(const Iota& iota, const std::vector<int64_t>& tile, std::set<int64_t>& cuts) {
  const std::vector<int64_t> ends = prefix_products(iota.reshape);
  cuts.insert(ends.begin(), ends.end());
  // In transposed order the tile dimensions cut in turn; a cut inside of a dimension of `reshape` is one of the flat
  // list too.
  std::vector<int64_t> sizes;
  for (const int dim : iota.transpose) sizes.push_back(iota.reshape[static_cast<size_t>(dim)]);
  for (const int64_t tile_end : prefix_products(tile)) {
    int64_t before = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (tile_end > before && tile_end < before * sizes[i]) {
        if (tile_end % before != 0 || sizes[i] % (tile_end / before) != 0) return false;
        const auto dim = static_cast<size_t>(iota.transpose[i]);
        const int64_t start = dim == 0 ? 1 : ends[dim - 1];
        cuts.insert(start * (tile_end / before));
      }
      before *= sizes[i];
    }
  }
  return true;
}

/// Each cut must divide the next for axes to lie between them.
bool is_chain(const std::set<int64_t>& cuts) {
  int64_t before = 1;
  for (const int64_t cut : cuts) {
    if (cut % before != 0) return false;
    before = cut;
  }
  return true;
}

/// The same order with fewer dimensions: sizes of one left out, neighbours that stay neighbours merged.
/// Example: <=[4,1,2,3]T(2,3,0,1) -> {4,6}, {1,0}.
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

/// The devices in the order that the iota says.
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

/// Whether whole axes can say the tiles over the iota.
bool has_axes(const Iota& iota, const std::vector<int64_t>& tile) {
  std::set<int64_t> cuts;
  return add_cuts(iota, tile, cuts) && is_chain(cuts);
}

/// Holds what was read to the rules of shardings.
class Checker {
 public:
  explicit Checker(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] GspmdSharding check(GspmdWords words) const {
    GspmdSharding out;
    if (words.kinds.size() > 1) wrong("is both " + words.kinds[0] + " and " + words.kinds[1]);
    if (words.alike.size() > 1) wrong("is in " + std::to_string(words.alike.size()) + " sharding groups, one expected");
    if (!words.alike.empty()) out.group = words.alike[0];
    const std::string kind = words.kinds.empty() ? "devices=" : words.kinds[0];
    if (!words.kinds.empty() && (!words.tile.empty() || !words.groups.empty()))
      wrong("is " + kind + " and has tiles of devices: one of the two is expected");
    if (kind == "maximal") {
      if (words.device.size() != 1)
        wrong("is maximal with " + std::to_string(words.device.size()) + " devices, expected device= once");
      out.device = words.device[0];
    } else if (!words.device.empty()) {
      wrong("has device= and is not maximal");
    }
    if (kind == "replicated") out.kind = GspmdKind::kReplicated;
    if (kind == "maximal") out.kind = GspmdKind::kMaximal;
    if (kind == "manual") out.kind = GspmdKind::kManual;
    if (kind == "unknown") out.kind = GspmdKind::kUnknown;
    if (kind == "unreduced") out.kind = GspmdKind::kUnreduced;
    if (words.kinds.empty()) tiled(std::move(words), out);
    return out;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const { throw core::Error("invalid_spec", name_ + " " + what); }

  void tiled(GspmdWords words, GspmdSharding& out) const {
    out.kind = GspmdKind::kTiled;
    if (words.tile.empty()) wrong("has neither a kind nor devices=[...]");
    const int64_t tiles = product("tiles", words.tile);
    for (const std::string& group : words.groups) {
      if (group == "replicated") {
        out.subgroups.push_back(GspmdSubgroup::kReplicated);
      } else if (group == "manual") {
        out.subgroups.push_back(GspmdSubgroup::kManual);
      } else if (group == "unreduced") {
        out.subgroups.push_back(GspmdSubgroup::kUnreduced);
      } else if (group == "maximal") {
        throw core::Error("unsupported_attribute", name_ +
                                                       " has a subgroup that is maximal, supported are manual, "
                                                       "replicated and unreduced");
      } else {
        wrong("has a subgroup '" + group + "', expected manual, replicated or unreduced");
      }
    }
    if (out.subgroups.size() > words.tile.size()) {
      wrong("has " + std::to_string(out.subgroups.size()) + " subgroups, but " + std::to_string(words.tile.size()) +
            " tile dimensions");
    }
    out.tile = std::move(words.tile);
    if (!words.reshape.empty()) {
      iota(words, tiles, out);
    } else {
      list(std::move(words.devices), tiles, out);
    }
  }

  [[nodiscard]] int64_t product(const char* what, const std::vector<int64_t>& sizes) const {
    int64_t count = 1;
    for (const int64_t size : sizes) {
      if (size < 1 || count > kMaxAxisSize / size) {
        wrong(std::string("has ") + what + " " + in_brackets(sizes) + ", expected sizes from 1 and at most " +
              std::to_string(kMaxAxisSize) + " devices");
      }
      count *= size;
    }
    return count;
  }

  void iota(const GspmdWords& words, int64_t tiles, GspmdSharding& out) const {
    const int64_t count = product("devices", words.reshape);
    if (count != tiles) {
      wrong("has tiles " + in_brackets(out.tile) + " for " + std::to_string(tiles) +
            " devices, but <=" + in_brackets(words.reshape) + " are " + std::to_string(count));
    }
    Iota iota{words.reshape, std::vector<int>(words.reshape.size())};
    std::iota(iota.transpose.begin(), iota.transpose.end(), 0);
    if (!words.transpose.empty()) {
      std::vector<int64_t> sorted = words.transpose;
      std::sort(sorted.begin(), sorted.end());
      if (!std::equal(sorted.begin(), sorted.end(), iota.transpose.begin(), iota.transpose.end())) {
        wrong("transposes by T" + in_brackets(words.transpose) + ", which is no permutation of the " +
              std::to_string(words.reshape.size()) + " dimensions <=" + in_brackets(words.reshape));
      }
      iota.transpose.assign(words.transpose.begin(), words.transpose.end());
    }
    take(merged(iota), out);
  }

  /// An order whose tiles no axes say is kept as a list: its mesh lists its devices.
  void take(Iota iota, GspmdSharding& out) const {
    if (has_axes(iota, out.tile)) {
      out.reshape = std::move(iota.reshape);
      out.transpose = std::move(iota.transpose);
      return;
    }
    const int64_t count = out.device_count();
    if (count > kMaxWrittenOut) {
      throw core::Error("unsupported_attribute",
                        name_ + " has tiles that cut no dimension of <=" + in_brackets(iota.reshape) +
                            " evenly; that is supported for " + std::to_string(kMaxWrittenOut) + " devices, here are " +
                            std::to_string(count));
    }
    out.devices = written_out(iota);
  }

  void list(std::vector<int64_t> devices, int64_t tiles, GspmdSharding& out) const {
    const auto count = static_cast<int64_t>(devices.size());
    if (count != tiles) {
      wrong("has tiles " + in_brackets(out.tile) + " for " + std::to_string(tiles) + " devices, but lists " +
            std::to_string(count));
    }
    std::vector<int64_t> sorted = devices;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) wrong("lists device " + std::to_string(*twice) + " more than once");
    if (sorted.front() < 0) wrong("lists device " + std::to_string(sorted.front()) + ", expected numbers from 0");
    if (sorted.back() >= count) {
      throw core::Error("unsupported_attribute",
                        name_ + " lists device " + std::to_string(sorted.back()) + " among " + std::to_string(count) +
                            " devices; supported are lists of all devices from 0 to " + std::to_string(count - 1));
    }
    if (std::optional<Iota> iota = as_iota(devices)) {
      take(std::move(*iota), out);
    } else {
      out.devices = std::move(devices);
    }
  }

  std::string name_;  ///< of the sharding, for messages
};

/// The sharding's devices as an iota over the positions of a mesh whose devices lie in `order` (empty: 0..n-1); nothing
/// where no transposition says it.
std::optional<Iota> over(const GspmdSharding& sharding, const std::vector<int64_t>& order) {
  if (sharding.devices.empty() != order.empty()) return std::nullopt;
  if (order.empty()) return Iota{sharding.reshape, sharding.transpose};
  if (order.size() != sharding.devices.size()) return std::nullopt;
  std::vector<int64_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) position[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  std::vector<int64_t> positions;
  positions.reserve(order.size());
  for (const int64_t device : sharding.devices) positions.push_back(position[static_cast<size_t>(device)]);
  return as_iota(std::move(positions));
}

/// Axes of each tile dimension; nothing where they are no whole axes of the mesh.
std::optional<std::vector<std::vector<int>>> tile_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  const std::optional<Iota> iota = over(sharding, mesh.device_ids);
  if (!iota) return std::nullopt;
  // Axes of each dimension of `reshape`, then in transposed order, then dealt out to the tile dimensions.
  std::vector<std::vector<int>> by_reshape;
  size_t axis = 0;
  for (const int64_t size : iota->reshape) {
    std::vector<int>& axes = by_reshape.emplace_back();
    for (int64_t left = size; left > 1; ++axis) {
      const int64_t cut = axis < mesh.axes.size() ? mesh.axes[axis].size : 0;
      if (cut == 0 || left % cut != 0) return std::nullopt;
      left /= cut;
      axes.push_back(static_cast<int>(axis));
    }
  }
  std::vector<int> order;
  for (const int dim : iota->transpose) {
    const std::vector<int>& axes = by_reshape[static_cast<size_t>(dim)];
    order.insert(order.end(), axes.begin(), axes.end());
  }
  std::vector<std::vector<int>> out;
  size_t next = 0;
  for (const int64_t size : sharding.tile) {
    std::vector<int>& axes = out.emplace_back();
    for (int64_t left = size; left > 1; ++next) {
      const int64_t cut = next < order.size() ? mesh.axes[static_cast<size_t>(order[next])].size : 0;
      if (cut == 0 || left % cut != 0) return std::nullopt;
      left /= cut;
      axes.push_back(order[next]);
    }
  }
  return out;
}

/// tile_axes of a sharding that fits.
std::vector<std::vector<int>> fitting_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  auto axes = tile_axes(sharding, mesh);
  if (!axes) {
    throw core::Error("unsupported_attribute",
                      "tiles " + in_brackets(sharding.tile) + " are no whole axes of the mesh " + mesh::to_text(mesh));
  }
  return std::move(*axes);
}

/// A mesh in the making.
struct Draft {
  std::vector<int64_t> order;  ///< of its devices; empty is 0..n-1
  std::set<int64_t> cuts;

  /// Takes the sharding in where it fits.
  bool take(const GspmdSharding& sharding) {
    const std::optional<Iota> iota = over(sharding, order);
    std::set<int64_t> more = cuts;
    if (!iota || !add_cuts(*iota, sharding.tile, more) || !is_chain(more)) return false;
    cuts = std::move(more);
    return true;
  }

  [[nodiscard]] mesh::Mesh finish() const {
    mesh::Mesh out;
    int64_t before = 1;
    for (const int64_t cut : cuts) {
      if (cut == 1) continue;
      out.axes.push_back({"_axis_" + std::to_string(out.axes.size()), cut / before});
      before = cut;
    }
    out.device_ids = order;
    return out;
  }
};

}  // namespace

int64_t GspmdSharding::device_count() const {
  return std::accumulate(tile.begin(), tile.end(), int64_t{1}, std::multiplies<>());
}

std::vector<GspmdSharding> parse_gspmd(std::string_view text) {
  const bool binary =
      text.empty() || std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
  const Checker checker(binary ? "the sharding in wire form (OpSharding)" : quoted_gspmd(text));
  std::vector<GspmdSharding> out;
  for (GspmdWords& words : binary ? read_gspmd_bytes(text) : read_gspmd_text(text))
    out.push_back(checker.check(std::move(words)));
  return out;
}

std::vector<mesh::Mesh> gspmd_meshes(std::span<const GspmdSharding> shardings, int64_t device_count) {
  constexpr size_t kMaxDrafts = 16;
  std::vector<Draft> drafts;
  for (const GspmdSharding& sharding : shardings) {
    if (sharding.kind != GspmdKind::kTiled) continue;
    if (sharding.device_count() != device_count) {
      throw core::Error("unsupported_attribute", "one sharding is over " + std::to_string(sharding.device_count()) +
                                                     " devices, another over " + std::to_string(device_count));
    }
    if (std::any_of(drafts.begin(), drafts.end(), [&](Draft& draft) { return draft.take(sharding); })) continue;
    if (drafts.size() == kMaxDrafts) {
      throw core::Error("unsupported_attribute", "the program's shardings need more than " +
                                                     std::to_string(kMaxDrafts) +
                                                     " meshes: they cut the devices in ways that have no common axes");
    }
    // A mesh of its own fits always: parse_gspmd gives axes or a list.
    drafts.push_back({sharding.devices, {device_count}});
    drafts.back().take(sharding);
  }
  if (drafts.empty()) drafts.push_back({{}, {device_count}});
  std::vector<mesh::Mesh> out;
  for (const Draft& draft : drafts) out.push_back(draft.finish());
  return out;
}

mesh::Mesh gspmd_mesh(std::span<const GspmdSharding> shardings, int64_t device_count) {
  std::vector<mesh::Mesh> meshes = gspmd_meshes(shardings, device_count);
  if (meshes.size() != 1) {
    throw core::Error("unsupported_attribute",
                      "the shardings cut the devices in ways that have no common axes: they need " +
                          std::to_string(meshes.size()) + " meshes, one is expected");
  }
  return std::move(meshes[0]);
}

bool fits(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  return sharding.kind != GspmdKind::kTiled || tile_axes(sharding, mesh).has_value();
}

sharding::TensorSharding to_sdy_sharding(const GspmdSharding& sharding, std::string mesh_name, mesh::MeshRef mesh,
                                         int64_t rank, std::span<const int64_t> open_dims) {
  sharding::TensorSharding out = sharding.kind == GspmdKind::kUnknown
                                     ? sharding::fully_open(std::move(mesh_name), std::move(mesh), rank)
                                     : sharding::fully_replicated(std::move(mesh_name), std::move(mesh), rank);
  for (const int64_t dim : open_dims) {
    if (dim >= 0 && dim < rank) out.dims[static_cast<size_t>(dim)].open = true;
  }
  if (sharding.kind == GspmdKind::kUnreduced) {
    for (size_t axis = 0; axis < out.mesh->axes.size(); ++axis) out.unreduced.push_back({static_cast<int>(axis), 1, 0});
  }
  if (sharding.kind != GspmdKind::kTiled) return out;
  const size_t tensor_dims = sharding.tile.size() - sharding.subgroups.size();
  if (static_cast<int64_t>(tensor_dims) != rank) {
    throw core::Error("invalid_spec", "the sharding has " + std::to_string(tensor_dims) +
                                          " dimensions, but the rank is " + std::to_string(rank));
  }
  const std::vector<std::vector<int>> axes = fitting_axes(sharding, *out.mesh);
  for (size_t dim = 0; dim < out.dims.size(); ++dim) {
    for (const int axis : axes[dim]) out.dims[dim].axes.push_back({axis, 1, 0});
  }
  for (size_t i = 0; i < sharding.subgroups.size(); ++i) {
    if (sharding.subgroups[i] != GspmdSubgroup::kUnreduced) continue;
    for (const int axis : axes[tensor_dims + i]) out.unreduced.push_back({axis, 1, 0});
  }
  std::sort(out.unreduced.begin(), out.unreduced.end());
  return out;
}

std::vector<std::string> gspmd_manual_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  std::vector<int> numbers;
  if (sharding.kind == GspmdKind::kManual) {
    numbers.resize(mesh.axes.size());
    std::iota(numbers.begin(), numbers.end(), 0);
  } else if (sharding.kind == GspmdKind::kTiled) {
    const std::vector<std::vector<int>> axes = fitting_axes(sharding, mesh);
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
