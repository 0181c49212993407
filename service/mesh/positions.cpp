#include "service/mesh/positions.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::mesh {
namespace {

int64_t size_of(int64_t size) { return size; }
int64_t size_of(const Axis& axis) { return axis.size; }

template <typename Item>
Positions count(std::span<const Item> items) {
  Positions out{1, std::nullopt, {}};
  int64_t strides = 1;  // the product of the sizes other than 0
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t size = size_of(items[i]);
    const int64_t counted = std::max<int64_t>(size, 1);
    if (size < 0) {
      out.fault = i;
      out.problem = fmt::format("an axis has at least size 0, got {}", size);
      return out;
    }
    // By division: the product itself may not fit.
    if (counted > kMaxPositions / strides) {
      out.fault = i;
      out.problem = fmt::format("the mesh has more than {} positions, the most that a mesh has: {}{}", kMaxPositions,
                                strides > 1 ? fmt::format("{} times ", strides) : "", size);
      return out;
    }
    strides *= counted;
    if (size == 0) out.count = 0;
  }
  if (out.count != 0) out.count = strides;
  return out;
}

}  // namespace

Positions count_positions(std::span<const int64_t> sizes) { return count(sizes); }
Positions count_positions(std::span<const Axis> axes) { return count(axes); }

void require_positions(const Mesh& mesh, std::string_view pointer) {
  const auto none = std::find_if(mesh.axes.begin(), mesh.axes.end(), [](const Axis& axis) { return axis.size == 0; });
  if (none == mesh.axes.end()) return;
  const std::string detail = "mesh axis '" + none->name + "' has size 0: the mesh is empty and nothing runs on it";
  std::vector<core::Diagnostic> diagnostics;
  if (!pointer.empty()) diagnostics.push_back({std::string(pointer), detail});
  throw core::Error("empty_mesh", detail, std::move(diagnostics));
}

}  // namespace meshd::mesh
