#include "api/codecs/runs/assignment_codec.h"

#include "api/codecs/runs/trees.h"

namespace meshd::api {
namespace {

// A list with an entry for each value; or, where the program has a tree, a prefix of it.
std::vector<std::optional<jobs::NamedSpec>> read_specs(const Json* list, const std::string& pointer,
                                                       const std::optional<Json>& tree, core::Diagnostics& wrong) {
  std::vector<std::optional<jobs::NamedSpec>> out;
  if (list == nullptr) return out;
  if (tree) {
    for (const TreeLeaf& leaf : flatten_specs(*list, *tree, Leaves::kStars, pointer))
      out.push_back(leaf.value.is_null() ? std::nullopt : read_spec(leaf.value, leaf.pointer, wrong));
    return out;
  }
  each_entry(*list, pointer, wrong, [&](size_t, const Json& item, const std::string& place) {
    // Some generated clients drop nulls from lists; an object without fields means the same.
    const auto* object = item.as<JsonObject>();
    const bool open = item.is_null() || (object != nullptr && object->empty());
    out.push_back(open ? std::nullopt : read_spec(item, place, wrong));
  });
  return out;
}

}  // namespace

void read_assignment(const AssignmentInput& in, jobs::JobRequest& out, MeshFinder& meshes, core::Diagnostics& wrong,
                     const ProgramTrees& trees) {
  if (in.mesh != nullptr && !in.mesh->is_null()) out.mesh = read_mesh_choice(*in.mesh, "/mesh", meshes, wrong);
  if (in.meshes != nullptr) {
    if (const JsonObject* object = expect_object(*in.meshes, "/meshes", wrong)) {
      for (const auto& [name, value] : *object) {
        if (!has_room(wrong)) break;
        const std::string symbol = name.starts_with("@") ? name.substr(1) : name;
        if (auto mesh = read_mesh_choice(value, "/meshes/" + pointer_token(name), meshes, wrong))
          out.meshes.emplace(symbol, std::move(*mesh));
      }
    }
  }
  out.in_specs = read_specs(in.in_shardings, "/in_shardings", trees.arguments, wrong);
  out.out_specs = read_specs(in.out_shardings, "/out_shardings", trees.results, wrong);
}

}  // namespace meshd::api
