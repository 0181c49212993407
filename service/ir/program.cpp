#include "service/ir/program.h"

#include <fmt/core.h>

#include <utility>

#include "service/core/error.h"

namespace meshd::ir {

std::vector<Type> Function::types_of(const std::vector<ValueId>& ids) const {
  std::vector<Type> types;
  types.reserve(ids.size());
  for (const ValueId id : ids) types.push_back(type_of(id));
  return types;
}

const Function* Module::find_function(std::string_view function_name) const {
  for (const Function& function : functions) {
    if (function.name == function_name) return &function;
  }
  return nullptr;
}

const Function& Module::main() const {
  const Function* entry = find_function("main");
  if (entry == nullptr) throw core::Error("invalid_program", "the module has no function @main");
  return *entry;
}

Function& Module::main() { return const_cast<Function&>(std::as_const(*this).main()); }

const NamedMesh* Module::find_mesh(std::string_view mesh_name) const {
  for (const NamedMesh& mesh : meshes) {
    if (mesh.name == mesh_name) return &mesh;
  }
  return nullptr;
}

void fail(core::ErrorCode code, const Location& location, const std::string& message) {
  const std::string place = fmt::format("line {}, column {}: ", location.line, location.column);
  throw core::Error(code, place + message, {{{}, message, location.line, location.column}});
}

}  // namespace meshd::ir
