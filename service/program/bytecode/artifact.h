// Artifacts: MLIR bytecode of StableHLO, VHLO's portable artifacts, and what jax.export writes around one, as StableHLO
// text. The text is what is kept and verified: a program has one meaning, whether it comes as bytecode or as text.
//
// Example: what `module.operation.write_bytecode(file)` and `stablehlo.serialize_portable_artifact(module, "1.0.0")`
// write becomes
//   "builtin.module"() <{sym_name = "jit_f"}> ({
//     "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main", ...}> ({
//     ^bb0(%arg0: tensor<2xf32>):
//       %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("jit(f)/add")
//       "func.return"(%0) : (tensor<2xf32>) -> ()
//     }) : () -> ()
//   }) : () -> ()
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "service/core/memory_ledger.h"
#include "service/program/limits.h"

namespace meshd::program {

/// How an artifact is read.
struct BytecodeOptions {
  /// The number of the platform that the program runs on, among those that it was exported for: the constant that takes
  /// the place of @main's argument "_platform_index".
  std::optional<int64_t> platform_index;
  int64_t limit_bytes = kMaxTextBytes;  ///< of the text
  /// Holds what reading takes and, afterwards, the text. Null: it is not counted.
  core::MemoryReservation* memory = nullptr;
};

/// A program that came as an artifact.
struct ArtifactProgram {
  std::string text;
  std::string in_tree, out_tree;  ///< JSON (exported.h); empty: the artifact has none
};

/// What the artifact is; text is itself. Throws what text_of_bytecode and read_exported throw; unsupported_format for
/// files that are known and are no artifacts (SavedModels, ONNX, TorchScript, HLO), with what to send instead;
/// program_syntax for all others. Pure; any thread.
ArtifactProgram read_artifact(std::string_view bytes, core::MemoryReservation* memory = nullptr);

/// True for bytes that begin as MLIR bytecode does.
bool is_bytecode(std::string_view bytes);

/// The text. Throws program_syntax with the byte where the artifact is wrong, unsupported_* for what is not read here,
/// body_too_large for text beyond the limit, memory_full. Pure; any thread.
std::string text_of_bytecode(std::string_view bytes, const BytecodeOptions& options = {});

}  // namespace meshd::program
