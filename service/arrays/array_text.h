// Serialisation of an array's sharding for its row: text that is written and read here only.
#pragma once

#include <string>
#include <string_view>

#include "service/sharding/tensor_sharding.h"

namespace meshd::arrays {

/// {"dims": [["x"], ["y:1:2"]], "mesh_name": "mesh"}: axis names, parts of axes as name:pre:size.
std::string sharding_to_text(const sharding::TensorSharding& sharding);
/// The sharding over `mesh`. Throws Error internal when the text is not ours.
sharding::TensorSharding sharding_from_text(std::string_view text, mesh::MeshRef mesh);

}  // namespace meshd::arrays
