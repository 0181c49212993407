// Sharding propagation: given the shardings that a program's text and its caller fix, derives those of all other
// values, as Shardy does (shardy/dialect/sdy/transforms). Pure: a module in, a module with a sharding for every value
// out.
//
// Invariant: the module out computes what the module in computes; shardings change no value.
//
// Steps of propagate():
//   1. build_graph: the module becomes a graph of tensors and nodes, called functions become frames (graph.h).
//   2. split_constants: each use of a constant or scalar broadcast gets its own copy (import_steps.h, as 3 to 5).
//   3. add_edges: the values that a loop, branch, manual computation or call passes become data-flow edges.
//   4. apply_constraints: a closed sharding_constraint fixes its input.
//   5. Groups: members of a sharding group get one sharding.
//   6. run_rounds: shardings propagate through factor rules until nothing changes (driver.h).
//   7. unify_copies: copies of a function with the same shardings at their edges become alike inside (copies.h).
//   8. emit: the graph becomes a module again (emit.h).
// Steps 2 to 5 are in the order of Shardy's import pipeline (import/import_pipeline.cc).
//
// Example, mesh x=2, y=4: %0 = tanh %arg0; %1 = negate %0, 8x16, %arg0 annotated [{"x"}, {?}]
//   -> %0, %1 and the result of @main have [{"x"}, {}]. The origin of %arg0 is kArgument, that of %0 kRule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "service/ir/program.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::propagation {

/// What the caller fixes beyond the text, over meshes that the text declares (or any mesh where it declares none).
struct Options {
  /// By argument and result of @main; a seed takes the place of the text's annotation. Shorter lists mean "none"
  /// behind.
  std::vector<std::optional<sharding::TensorSharding>> argument_seeds;
  std::vector<std::optional<sharding::TensorSharding>> result_seeds;
};

/// What decided a value's sharding last.
enum class OriginKind : uint8_t { kNothing, kArgument, kResult, kAnnotation, kConstraint, kManual, kGroup, kRule };

struct Origin {
  OriginKind kind = OriginKind::kNothing;
  int32_t line = 0;    ///< of the op whose rule, constraint or annotation it was; 0 for arguments and results of @main
  int32_t number = 0;  ///< argument or result number of @main
};

/// A program whose every value has its sharding.
///
/// `module` computes what the input computes. Uses are rearranged as propagation left them: a constant (or scalar
/// broadcast) whose uses have different shardings is there once for each; users of a value read the result of a
/// constraint that took its place; a value that a called function shards otherwise passes an sdy.reshard; dead ops are
/// dropped. The in_shardings and out_shardings of sdy.manual_computation are complete. Module::inlined_calls lists the
/// arguments and results of each copy of a function, in the ids of this module.
///
/// Shardings are closed, without priorities and replicated axes; none means replicated.
/// Inside a manual computation they hold free axes only. Axes of size one do not appear.
struct Propagated {
  ir::ModuleRef module;
  std::vector<std::optional<sharding::TensorSharding>> values;   ///< by ValueId of module->main()
  std::vector<std::optional<sharding::TensorSharding>> results;  ///< of @main; the returned value may differ
  std::vector<Origin> origins;                                   ///< by ValueId
  std::vector<Origin> result_origins;
  /// By entry of Module::inlined_calls: equal text where copies of a function are sharded alike.
  std::vector<std::string> call_signatures;

  [[nodiscard]] const std::optional<sharding::TensorSharding>& of(ir::ValueId id) const {
    return values[static_cast<size_t>(id)];
  }
};

/// Propagates through `inlined`, a verified module out of inline_calls (only @main). Throws invalid_program for a
/// sharding group across the edge of a manual computation or over values of different shapes, unsupported_attribute for
/// more than 64 different priorities. Any thread.
Propagated propagate(const ir::Module& inlined, const Options& options = {});

}  // namespace meshd::propagation
