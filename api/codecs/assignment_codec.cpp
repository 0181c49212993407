#include "api/codecs/assignment_codec.h"

#include <fmt/core.h>

#include "api/codecs/trees.h"

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
  if (!list->is_array()) wrong.add(pointer, fmt::format("expected a list, got {}", list->kind_name()));
  list->each([&](size_t i, const Json& item) {
    // Some generated clients drop nulls from lists; an object without fields means the same.
    const auto* object = item.as<JsonObject>();
    const bool open = item.is_null() || (object != nullptr && object->empty());
    out.push_back(open ? std::nullopt : read_spec(item, entry_pointer(pointer, i), wrong));
    return has_room(wrong);
  });
  return out;
}

}  // namespace

void read_assignment(const AssignmentInput& in, jobs::JobRequest& out, core::Diagnostics& wrong,
                     const ProgramTrees& trees) {
  if (in.mesh != nullptr && !in.mesh->is_null()) out.mesh = read_mesh(*in.mesh, "/mesh", wrong);
  if (in.meshes != nullptr) {
    if (const auto* object = in.meshes->as<JsonObject>()) {
      for (const auto& [name, value] : *object) {
        if (!has_room(wrong)) break;
        const std::string symbol = name.starts_with("@") ? name.substr(1) : name;
        if (auto mesh = read_mesh(value, "/meshes/" + pointer_token(name), wrong))
          out.meshes.emplace(symbol, std::move(*mesh));
      }
    } else {
      wrong.add("/meshes", fmt::format("expected an object, got {}", in.meshes->kind_name()));
    }
  }
  out.in_specs = read_specs(in.in_shardings, "/in_shardings", trees.arguments, wrong);
  out.out_specs = read_specs(in.out_shardings, "/out_shardings", trees.results, wrong);
}

}  // namespace meshd::api
