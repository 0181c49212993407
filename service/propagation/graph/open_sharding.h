// A sharding during propagation: like sharding::TensorSharding, with the mesh as a number of a table.
#pragma once

#include <optional>
#include <vector>

#include "service/ir/program.h"
#include "service/propagation/graph/axis_list.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::propagation {

/// A sharding; `mesh` is a row of MeshTable. Value.
struct OpenSharding {
  int mesh = 0;
  std::vector<sharding::DimSharding> dims;
  AxisList replicated;
  AxisList unreduced;
  sharding::ReductionKind unreduced_kind = sharding::ReductionKind::kSum;

  friend bool operator==(const OpenSharding&, const OpenSharding&) = default;
  [[nodiscard]] bool is_closed() const;
  /// Every dimension open, no axis anywhere.
  [[nodiscard]] bool is_blank() const;
  /// No axes in dimensions, replicated or unreduced.
  [[nodiscard]] bool has_no_axes() const;
};

/// Meshes of a program, one row for each content: shardings propagate within a row. Built once, then read.
class MeshTable {
 public:
  /// Row of this mesh; of several names for one mesh the first counts. A mesh without name is given one, as Shardy
  /// does.
  int intern(const std::string& name, const mesh::MeshRef& mesh);
  [[nodiscard]] const mesh::Mesh& mesh(int row) const { return *rows_[static_cast<size_t>(row)].mesh; }
  /// The sharding with axes of size one left out.
  OpenSharding read(const sharding::TensorSharding& sharding);
  /// Closed, without priorities and replicated axes.
  [[nodiscard]] sharding::TensorSharding write(const OpenSharding& sharding) const;
  /// All meshes under the names that write() uses.
  [[nodiscard]] std::vector<ir::NamedMesh> named() const;

 private:
  struct Row {
    std::string name;
    mesh::MeshRef mesh;
  };
  std::string free_name(const mesh::Mesh& mesh) const;
  std::vector<Row> rows_;
};

}  // namespace meshd::propagation
