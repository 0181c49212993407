// Constant folding (LLVM, XLA): an op whose operands are constants is evaluated when the plan is made.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "service/partition/local_program.h"

namespace meshd::compile {

/// The constants of a local program that a pass has met on its way through it. One thread.
class ConstantFolder {
 public:
  explicit ConstantFolder(const partition::LocalProgram& program) : program_(program) {}

  /// Value `id` is this constant. What is beyond some MiB in all is not kept, and not folded further.
  void note(partition::LocalId id, ir::DenseAttr value);
  /// The constant that a value is; null: it is none that is known.
  [[nodiscard]] const ir::DenseAttr* find(partition::LocalId id) const;

  /// What the op gives of `operands`, values of its operands' types: its kernel's result, so bits are those of a run.
  /// Nothing where one of them is no constant, where the op is neither pointwise nor a broadcast, reshape, transpose,
  /// slice or iota, and for arrays that are larger than kMostFolded, or sharded, and not one element all over. Throws
  /// unsupported_dtype as the op's step would.
  [[nodiscard]] std::optional<ir::DenseAttr> fold(const partition::LocalOp& op,
                                                  std::span<const partition::LocalId> operands) const;

 private:
  const partition::LocalProgram& program_;
  std::map<partition::LocalId, ir::DenseAttr> values_;
  size_t bytes_ = 0;
};

/// Elements of a constant that is computed element by element.
inline constexpr int64_t kMostFolded = 1024;

}  // namespace meshd::compile
