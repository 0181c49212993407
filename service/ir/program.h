// A program as plain data: modules, functions, regions, ops, values. Immutable once verified; stages make new ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/ir/attribute.h"
#include "service/ir/type.h"
#include "service/mesh/mesh.h"

namespace meshd::ir {

/// Index of a value in its function's table.
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

/// Row number in the op table (service/ops); opaque to ir.
using OpCode = uint16_t;

/// 1-based place in the program text where the op begins; `calls` are the lines of the calls that led here, outermost
/// first, filled when calls are inlined, and `frame` is the innermost of them in Module::inlined_calls (-1: in @main
/// itself). `name` is that of loc("..."), for messages.
struct Location {
  int32_t line = 0;
  int32_t column = 0;
  std::vector<int32_t> calls;
  int32_t frame = -1;
  std::string name;
};

struct Op;

/// One block: arguments and ops in order; the last op is the terminator (return), whose operands are the region's
/// results.
struct Region {
  std::vector<ValueId> arguments;
  std::vector<Op> ops;
};

/// One op. `name` is its full name in text ("stablehlo.add"); `code` its row.
struct Op {
  OpCode code = 0;
  std::string name;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  AttributeList attributes;
  std::vector<Region> regions;
  Location location;
};

/// What is known of a value: its type and its name in the text ("%0", "%cst#1").
struct Value {
  Type type;
  std::string name;
};

/// A function argument or result as the signature writes it.
struct Parameter {
  Type type;
  std::optional<sharding::TensorSharding> sharding;  ///< sdy.sharding, or what mhlo.sharding came to
  std::optional<int64_t> aliases_output;  ///< tf.aliasing_output, in result numbers of the text (tokens counted)
  bool is_donor = false;                  ///< jax.buffer_donor
  bool is_token = false;                  ///< !stablehlo.token, or i1[0] with jax.token
  std::string result_info;                ///< jax.result_info
  std::string quantized;                  ///< the quantised element type of the text; `type` is of its storage integers
  /// Of a result whose size depends on data, in what specialise() made: for each dimension the place of its size among
  /// the elements of the last result, -1 where `type` says it. `type` has the bounds.
  std::vector<int64_t> size_places;
  bool is_sizes = false;     ///< the last result: the sizes of other results, for nobody else
  AttributeList attributes;  ///< all of them, as written
  Location location;
};

/// A function. Ops in nested regions share its value table.
struct Function {
  std::string name;
  bool is_public = false;
  std::vector<Parameter> arguments;
  std::vector<Parameter> results;
  AttributeList attributes;
  Region body;
  std::vector<Value> values;
  Location location;

  ValueId add_value(Type type, std::string value_name = {}) {
    values.push_back({std::move(type), std::move(value_name)});
    return static_cast<ValueId>(values.size() - 1);
  }
  [[nodiscard]] const Type& type_of(ValueId id) const { return values[static_cast<size_t>(id)].type; }
  [[nodiscard]] std::vector<Type> types_of(const std::vector<ValueId>& ids) const;
};

/// A mesh that the module declares.
struct NamedMesh {
  std::string name;
  mesh::MeshRef mesh;
  Location location;
};

/// A call whose body was copied into @main by inline_calls: its arguments and results. Propagation treats the edge of a
/// function as Shardy does (a value may be sharded otherwise inside), and :explain reports functions by it.
struct InlinedCall {
  std::string callee;
  bool callee_is_public = false;
  int32_t parent = -1;             ///< the call whose copy contains this call; -1: @main
  Location location;               ///< of the call itself; `calls` leads to it
  std::vector<ValueId> arguments;  ///< what the call was given; inside the copy these same values are used
  std::vector<ValueId> results;    ///< what replaces the call's results
  /// as the callee's signature annotates them
  std::vector<std::optional<sharding::TensorSharding>> argument_shardings;
  /// the call's own sdy.sharding, else the signature's
  std::vector<std::optional<sharding::TensorSharding>> result_shardings;
};

/// A module. `functions` in text order; @main is the entry.
struct Module {
  std::string name;
  AttributeList attributes;
  std::vector<NamedMesh> meshes;
  std::vector<Function> functions;
  /// Filled by inline_calls, outer calls before inner ones.
  std::vector<InlinedCall> inlined_calls;
  /// mhlo.num_partitions; 1: none.
  int64_t num_partitions = 1;
  int64_t num_replicas = 1;

  [[nodiscard]] const Function* find_function(std::string_view function_name) const;
  /// Throws invalid_program where there is none.
  [[nodiscard]] const Function& main() const;
  [[nodiscard]] Function& main();
  [[nodiscard]] const NamedMesh* find_mesh(std::string_view mesh_name) const;
};

using ModuleRef = std::shared_ptr<const Module>;

/// Throws core::Error with line and column of `location` in its diagnostics and "line L, column C: " before the
/// message.
[[noreturn]] void fail(core::ErrorCode code, const Location& location, const std::string& message);

}  // namespace meshd::ir
