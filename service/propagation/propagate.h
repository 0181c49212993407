// Given the shardings that a program's text and its caller fix, those of all other values: Shardy's propagation, with
// the steps that its import makes before. Pure: a module in, a module with a sharding for every value out.
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

/// Who decided a value's sharding last.
enum class OriginKind : uint8_t { kNothing, kArgument, kResult, kAnnotation, kConstraint, kManual, kGroup, kRule };

struct Origin {
  OriginKind kind = OriginKind::kNothing;
  int32_t line = 0;    ///< of the op whose rule, constraint or annotation it was; 0 for arguments and results of @main
  int32_t number = 0;  ///< argument or result number of @main
};

/// A program whose every value has its sharding.
///
/// `module` means what the input means, with uses rearranged as propagation saw them: a constant (or scalar broadcast)
/// whose uses want different shardings stands there once for each, users of a value come after a constraint that took
/// its place, values that are sharded otherwise inside of a called function pass an sdy.reshard, ops that nobody uses
/// are gone. sdy.manual_computation has its in_shardings and out_shardings filled up, and
/// Module::inlined_calls what each copy of a function takes and gives, both in the ids of this module.
///
/// Shardings are closed, without priorities and replicated axes; none means: nothing known, treat as replicated.
/// Inside a manual computation they hold free axes only. Axes of size one do not appear.
struct Propagated {
  ir::ModuleRef module;
  std::vector<std::optional<sharding::TensorSharding>> values;   ///< by ValueId of module->main()
  std::vector<std::optional<sharding::TensorSharding>> results;  ///< of @main, which returned values may have to reach
  std::vector<Origin> origins;                                   ///< by ValueId
  std::vector<Origin> result_origins;

  [[nodiscard]] const std::optional<sharding::TensorSharding>& of(ir::ValueId id) const {
    return values[static_cast<size_t>(id)];
  }
};

/// Propagates through `inlined`, a verified module out of inline_calls (only @main). Throws invalid_program for a
/// sharding group across the edge of a manual computation or over values of different shapes, unsupported_attribute for
/// more than 64 different priorities. Any thread.
Propagated propagate(const ir::Module& inlined, const Options& options = {});

}  // namespace meshd::propagation
