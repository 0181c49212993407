// What is known of values before a program runs.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "service/ir/program.h"
#include "service/ops/evaluate.h"

namespace meshd::program {

/// Whether values of a type have derivatives: floating-point and complex tensors.
bool has_cotangents(const ir::Type& type);

/// Which values depend on the arguments that are differentiated (activity analysis), which are integers known before
/// the program runs, and which were integers. Copies of ops have the facts of their originals.
class ValueFacts {
 public:
  /// `varied`: values of @main's arguments. Throws unsupported_op where loops within loops do not settle.
  ValueFacts(const ir::Function& function, const std::vector<ir::ValueId>& varied);

  /// Floating-point or complex, and a function of what is differentiated.
  [[nodiscard]] bool is_varied(ir::ValueId id) const {
    return static_cast<size_t>(id) < varied_.size() && varied_[static_cast<size_t>(id)];
  }
  /// Integers converted to another type.
  [[nodiscard]] bool is_from_integers(ir::ValueId id) const { return from_integers_.contains(id); }
  /// The integer of a scalar, where it is known.
  [[nodiscard]] std::optional<int64_t> known(ir::ValueId id) const;
  void copy(ir::ValueId from, ir::ValueId to);
  /// Ops that have been written since, of values whose facts are known.
  void add(const std::vector<ir::Op>& ops);

 private:
  void visit(const std::vector<ir::Op>& ops);
  void visit_while(const ir::Op& op);
  void visit_regions(const ir::Op& op);
  void visit_manual(const ir::Op& op);
  void visit_plain(const ir::Op& op);
  void fold(const ir::Op& op);
  void vary(ir::ValueId id);
  void know(ir::ValueId id, ir::ValueId like);

  const ir::Function& function_;
  std::vector<bool> varied_;
  std::unordered_map<ir::ValueId, ops::SmallValue> known_;
  std::unordered_set<ir::ValueId> from_integers_;
  bool changed_ = false;
};

}  // namespace meshd::program
