// What `jax.export` writes around a portable artifact (Exported.serialize()): a FlatBuffer with the module, the trees
// of arguments and results, the arguments that the module does not have because the function does not use them, and the
// platforms that it was lowered for.
//
// Example: jax.export.export(jax.jit(f))(x, {"a": y, "b": z}).serialize(), where f does not use z, has the in_tree
// ["*", {"a": "*", "b": "-"}].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "service/core/memory_ledger.h"

namespace meshd::program {

struct Exported {
  std::string_view module;  ///< bytecode, in `bytes` or `copy`
  /// Trees as JSON: lists (tuples and nodes of other classes are lists), objects, null, "*" for each value that the
  /// module takes or gives, and "-" for an argument that it does not have. Keyword arguments are an object behind the
  /// positional ones, if there are any.
  std::string in_tree;
  std::string out_tree;
  /// The number of "cpu" among several platforms.
  std::optional<int64_t> platform_index;
  std::string copy;  ///< of bytes that do not begin where numbers may be read
};

/// Nothing where the bytes are no Exported. Throws unsupported_format for one that is not for this server: of other
/// platforms or a calling convention that is not known. Pure; any thread. `memory` holds what is copied.
std::optional<Exported> read_exported(std::string_view bytes, core::MemoryReservation* memory);

}  // namespace meshd::program
