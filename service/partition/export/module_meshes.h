// The meshes of the module that device_module writes, its symbols, and shardings over those meshes.
//
// Invariant: functions and meshes share one set of symbols, as the dialect asks for.
#pragma once

#include <map>
#include <set>
#include <string>

#include "service/ir/program.h"
#include "service/partition/local_program.h"

namespace meshd::partition {

/// One thread.
class ModuleMeshes {
 public:
  /// Adds the mesh of the first view to `module`: that of the manual computation. Without meshes it is one axis
  /// "device" over all devices.
  ModuleMeshes(const LocalProgram& local, ir::Module& module);

  /// The mesh of the manual computation.
  [[nodiscard]] const mesh::Mesh& mesh() const { return *mesh_; }
  /// `name`, or name_1, name_2, ... where that is taken.
  std::string fresh_symbol(const std::string& name);
  /// The sharding at the edge of the manual computation: the layout's in the first view, replicated in others.
  /// Example: mesh x=2, y=4 as sub-axes 0 and 1: {1;} of a 8x16 value is [{"y"}, {}].
  [[nodiscard]] sharding::TensorSharding edge_sharding(const ShardLayout& layout) const;
  /// Gives an argument or result of @main its sharding, over a mesh of the module. None where it has no mesh.
  void annotate(ir::Parameter& parameter, sharding::TensorSharding sharding);

 private:
  /// The symbol of the mesh in the module, which gets it where it lacks it.
  std::string add_mesh(const mesh::MeshRef& mesh, const std::string& name);

  ir::Module& module_;
  ViewNames view_;  // of the first view
  mesh::MeshRef mesh_;
  std::string mesh_name_;
  std::set<std::string> symbols_{"main"};
  std::map<std::string, int> numbers_;  // of the last symbol with that name
};

}  // namespace meshd::partition
