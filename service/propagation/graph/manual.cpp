#include "service/propagation/graph/manual.h"

#include <algorithm>

namespace meshd::propagation {
namespace {

bool is_manual_axis(const AxisRef& axis, const std::vector<int>& manual_axes) {
  return std::binary_search(manual_axes.begin(), manual_axes.end(), axis.axis);
}

void drop_manual(AxisList& axes, const std::vector<int>& manual_axes) {
  axes.erase(std::remove_if(axes.begin(), axes.end(), [&](const AxisRef& a) { return is_manual_axis(a, manual_axes); }),
             axes.end());
}

void drop_free(AxisList& axes, const std::vector<int>& manual_axes) {
  axes.erase(
      std::remove_if(axes.begin(), axes.end(), [&](const AxisRef& a) { return !is_manual_axis(a, manual_axes); }),
      axes.end());
}

bool mentions(const OpenSharding& sharding, int axis) {
  const auto has = [axis](const AxisList& axes) {
    return std::any_of(axes.begin(), axes.end(), [axis](const AxisRef& a) { return a.axis == axis; });
  };
  return has(sharding.replicated) || has(sharding.unreduced) ||
         std::any_of(sharding.dims.begin(), sharding.dims.end(), [&](const auto& dim) { return has(dim.axes); });
}

}  // namespace

OpenSharding with_all_manual_axes(OpenSharding outer, const std::vector<int>& manual_axes) {
  for (const int axis : manual_axes) {
    if (!mentions(outer, axis)) outer.replicated.push_back({axis, 1, 0});
  }
  std::sort(outer.replicated.begin(), outer.replicated.end());
  return outer;
}

OpenSharding without_manual_axes(OpenSharding outer, const std::vector<int>& manual_axes) {
  for (sharding::DimSharding& dim : outer.dims) drop_manual(dim.axes, manual_axes);
  drop_manual(outer.replicated, manual_axes);
  drop_manual(outer.unreduced, manual_axes);
  return outer;
}

OpenSharding with_free_axes(const OpenSharding& outer, const OpenSharding& inner, const std::vector<int>& manual_axes) {
  OpenSharding out = outer;
  out.mesh = inner.mesh;
  for (size_t i = 0; i < out.dims.size() && i < inner.dims.size(); ++i) {
    AxisList axes = outer.dims[i].axes;
    drop_free(axes, manual_axes);
    axes.insert(axes.end(), inner.dims[i].axes.begin(), inner.dims[i].axes.end());
    out.dims[i] = {std::move(axes), inner.dims[i].open, inner.dims[i].priority};
  }
  return out;
}

}  // namespace meshd::propagation
