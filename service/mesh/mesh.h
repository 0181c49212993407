// A mesh: named axes over devices. With device ids it is concrete, without it is abstract. Plain values; compared by
// content. JAX: jax/_src/mesh.py; Shardy: sdy.mesh.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::mesh {

struct Axis {
  std::string name;
  int64_t size = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

enum class AxisType : uint8_t { kAuto, kExplicit, kManual };

/// Axes in order, and optionally their devices. Immutable by convention once shared.
struct Mesh {
  std::vector<Axis> axes;
  /// Row-major device ids, one for each position. Empty means: abstract, or in program text: iota order.
  std::vector<int64_t> device_ids;
  /// Empty means all auto. Part of a stored mesh's identity, ignored when meshes are matched.
  std::vector<AxisType> axis_types;

  friend bool operator==(const Mesh&, const Mesh&) = default;

  /// count_positions (positions.h) of the axes, for none 1 (a scalar mesh). Throws invalid_mesh for sizes at fault.
  [[nodiscard]] int64_t position_count() const;
  /// Index of the axis with this name, or nothing.
  [[nodiscard]] std::optional<int> axis_index(std::string_view name) const;
  /// Shardy's maximal mesh: no axes and exactly one device id. Its values are on that device.
  [[nodiscard]] bool is_maximal() const { return axes.empty() && device_ids.size() == 1; }
  /// No axes and no device: shardings over it are replicated.
  [[nodiscard]] bool is_empty() const { return axes.empty() && device_ids.empty(); }
  /// Device id of a position: its own list where there is one, else the position itself.
  [[nodiscard]] int64_t device_at(int64_t position) const {
    return device_ids.empty() ? position : device_ids[static_cast<size_t>(position)];
  }
};

using MeshRef = std::shared_ptr<const Mesh>;

/// `x`, `y`: axis names sorted, back-quoted, comma separated, as messages show them (behaviour M32).
std::string quoted_sorted(std::vector<std::string> names);
/// Mesh('x': 4, 'y': 2)
std::string to_text(const Mesh& mesh);
/// Shardy's grammar: <["x"=4, "y"=2]>, with device_ids=[...] where they are not iota.
std::string to_sdy(const Mesh& mesh);

}  // namespace meshd::mesh
