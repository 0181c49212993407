#include "service/partition/lower/builder/views.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::partition {
namespace {

bool is_empty(const mesh::MeshRef& mesh) { return mesh == nullptr || mesh->is_empty(); }

// Product of the sizes of the axes behind `axis`: the distance of its neighbours.
int64_t minor_stride(const mesh::Mesh& mesh, int axis) {
  int64_t stride = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < mesh.axes.size(); ++i) stride *= mesh.axes[i].size;
  return stride;
}

// Strides of the ends of an axis or part: it runs from the first (exclusive, minor) to the second (major).
std::pair<int64_t, int64_t> ends_of(const mesh::Mesh& mesh, const sharding::AxisRef& axis) {
  const int64_t size = mesh.axes[static_cast<size_t>(axis.axis)].size;
  const int64_t stride = minor_stride(mesh, axis.axis);
  if (axis.is_whole()) return {stride, stride * size};
  const int64_t behind = size / (axis.pre * axis.size);
  return {stride * behind, stride * behind * axis.size};
}

// Keeps the strides that form a chain of divisors from 1 to `total`.
std::vector<int64_t> chain(std::vector<int64_t> strides, int64_t total) {
  strides.push_back(1);
  strides.push_back(total);
  std::sort(strides.begin(), strides.end());
  strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
  std::vector<int64_t> out;
  for (const int64_t stride : strides) {
    if (out.empty() || (stride % out.back() == 0 && total % stride == 0)) out.push_back(stride);
  }
  if (out.back() != total) out.back() = total;
  return out;
}

bool is_divisor_chain(const std::vector<int64_t>& strides) {
  for (size_t i = 1; i < strides.size(); ++i) {
    if (strides[i] % strides[i - 1] != 0) return false;
  }
  return true;
}

// The devices of the positions; empty where position i is device i of `device_count`.
std::vector<int64_t> flat_order(const mesh::Mesh& mesh, int64_t device_count) {
  std::vector<int64_t> order;
  for (int64_t position = 0; position < mesh.position_count(); ++position) order.push_back(mesh.device_at(position));
  bool iota = static_cast<int64_t>(order.size()) == device_count;
  for (size_t i = 0; i < order.size(); ++i) iota = iota && order[i] == static_cast<int64_t>(i);
  if (iota) order.clear();
  return order;
}

}  // namespace

Views::Views(int64_t device_count) : device_count_(device_count) {}

const Views::Entry* Views::find(const mesh::MeshRef& mesh) const {
  for (const Entry& entry : entries_) {
    if (entry.mesh == mesh || (entry.mesh->axes == mesh->axes && entry.mesh->device_ids == mesh->device_ids))
      return &entry;
  }
  return nullptr;
}

Views::Entry* Views::find_or_add(const mesh::MeshRef& mesh, const std::string& name) {
  if (const Entry* found = find(mesh)) return const_cast<Entry*>(found);
  for (int64_t position = 0; position < mesh->position_count(); ++position) {
    if (mesh->device_at(position) < device_count_) continue;
    throw core::Error("too_few_devices", fmt::format("the program's mesh {} is over device {}, the run has {} devices",
                                                     mesh::to_sdy(*mesh), mesh->device_at(position), device_count_));
  }
  entries_.push_back({mesh, name, {}, 0});
  Entry& entry = entries_.back();
  int64_t stride = 1;
  for (size_t i = mesh->axes.size(); i-- > 0;) {
    stride *= mesh->axes[i].size;
    entry.splits.push_back(stride);
  }
  return &entry;
}

void Views::add(const mesh::MeshRef& mesh) {
  if (!is_empty(mesh)) find_or_add(mesh, {});
}

void Views::add(const sharding::TensorSharding& sharding) {
  if (is_empty(sharding.mesh)) return;
  Entry* entry = find_or_add(sharding.mesh, sharding.mesh_name);
  const auto add_axis = [&](const sharding::AxisRef& axis) {
    if (axis.is_whole()) return;
    const auto [low, high] = ends_of(*sharding.mesh, axis);
    entry->splits.push_back(low);
    entry->splits.push_back(high);
  };
  for (const sharding::DimSharding& dim : sharding.dims) std::for_each(dim.axes.begin(), dim.axes.end(), add_axis);
  std::for_each(sharding.unreduced.begin(), sharding.unreduced.end(), add_axis);
}

void Views::finish() {
  const auto is_over_all = [&](const Entry& entry) { return entry.mesh->position_count() == device_count_; };
  for (Entry& entry : entries_) {
    if (is_over_all(entry)) place(entry);
  }
  if (views_.empty()) {
    splits_.push_back(chain({}, device_count_));
    views_.push_back({});
  }
  for (Entry& entry : entries_) {
    if (!is_over_all(entry)) place(entry);
  }
  for (size_t v = 0; v < views_.size(); ++v) {
    const std::vector<int64_t>& splits = splits_[v];
    for (size_t i = splits.size(); i-- > 1;) views_[v].sub_axis_sizes.push_back(splits[i] / splits[i - 1]);
    if (views_[v].sub_axis_sizes.size() > 60)
      throw core::Error("unsupported_partition", "the mesh has more than 60 axes and parts of axes");
    std::vector<int64_t>& devices = devices_of_.emplace_back();
    for (int64_t p = 0; p < views_[v].position_count(); ++p) devices.push_back(views_[v].flat(p));
    std::sort(devices.begin(), devices.end());
  }
}

void Views::place(Entry& entry) {
  const std::vector<int64_t> own = chain(entry.splits, entry.mesh->position_count());
  const std::vector<int64_t> order = flat_order(*entry.mesh, device_count_);
  for (size_t v = 0; v < splits_.size(); ++v) {
    // Lists of the same devices in the same order, all split points in one chain of divisors.
    if (views_[v].flat_of_position != order || splits_[v].back() != own.back()) continue;
    std::vector<int64_t> both = splits_[v];
    both.insert(both.end(), own.begin(), own.end());
    std::sort(both.begin(), both.end());
    both.erase(std::unique(both.begin(), both.end()), both.end());
    if (!is_divisor_chain(both)) continue;
    splits_[v] = std::move(both);
    entry.view = static_cast<int>(v);
    return;
  }
  splits_.push_back(own);
  views_.push_back({{}, order});
  entry.view = static_cast<int>(views_.size()) - 1;
}

bool Views::covers(int outer, int inner) const {
  const std::vector<int64_t>& all = devices_of_[static_cast<size_t>(outer)];
  const std::vector<int64_t>& some = devices_of_[static_cast<size_t>(inner)];
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

std::vector<ViewNames> Views::names() const {
  std::vector<ViewNames> out(views_.size());
  for (size_t e = entries_.size(); e-- > 0;) {
    ViewNames& names = out[static_cast<size_t>(entries_[e].view)];
    names.mesh = entries_[e].name;
    names.axes = entries_[e].mesh;
  }
  for (size_t v = 0; v < out.size(); ++v) {
    if (out[v].axes == nullptr) continue;
    const mesh::Mesh& mesh = *out[v].axes;
    int64_t major_end = mesh.position_count();
    for (const int64_t size : views_[v].sub_axis_sizes) {
      // Sub-axes are the finest split, so each is part of one axis.
      for (size_t a = 0; a < mesh.axes.size(); ++a) {
        const int64_t low = minor_stride(mesh, static_cast<int>(a));
        const int64_t high = low * mesh.axes[a].size;
        if (major_end > high || major_end / size < low) continue;
        const bool is_axis = size == mesh.axes[a].size;
        out[v].sub_axes.push_back({static_cast<int>(a), is_axis ? 1 : high / major_end, is_axis ? 0 : size});
        break;
      }
      major_end /= size;
    }
  }
  return out;
}

int Views::view_of(const mesh::MeshRef& mesh) const {
  if (is_empty(mesh)) return 0;
  const Entry* entry = find(mesh);
  return entry == nullptr ? 0 : entry->view;
}

std::vector<int> Views::sub_axes_of(const mesh::MeshRef& mesh, const sharding::AxisRef& axis) const {
  const auto [low, high] = ends_of(*mesh, axis);
  const sharding::MeshView& view = views_[static_cast<size_t>(view_of(mesh))];
  std::vector<int> sub_axes;
  int64_t major_end = view.position_count();
  bool starts = high == major_end;
  bool ends = low == high;
  for (size_t a = 0; a < view.sub_axis_sizes.size(); ++a) {
    const int64_t minor_end = major_end / view.sub_axis_sizes[a];
    starts = starts || major_end == high;
    if (major_end <= high && minor_end >= low && major_end > low) sub_axes.push_back(static_cast<int>(a));
    if (minor_end == low) ends = true;
    major_end = minor_end;
  }
  if (!starts || !ends) return {};
  return sub_axes;
}

ShardLayout resolve_layout(const Views& views, const sharding::TensorSharding& sharding) {
  ShardLayout out = replicated(sharding.rank(), views.view_of(sharding.mesh));
  if (sharding.mesh == nullptr || sharding.mesh->axes.empty()) return out;
  sharding::SubAxisSet used = 0;
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (const sharding::AxisRef& axis : sharding.dims[d].axes) {
      const std::vector<int> sub_axes = views.sub_axes_of(sharding.mesh, axis);
      if (sub_axes.empty() && sharding::axis_size(axis, *sharding.mesh) > 1)
        break;  // what is behind would change its meaning
      if (used & mask_of(sub_axes)) break;
      used |= mask_of(sub_axes);
      out.dims[d].insert(out.dims[d].end(), sub_axes.begin(), sub_axes.end());
    }
  }
  return out;
}

}  // namespace meshd::partition
