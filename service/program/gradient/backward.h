// The backward pass over a list of ops: from cotangents of what they make to cotangents of what they read. Private to
// gradient.
//
// Ops run once forward, as they are, and cotangents are made behind them, from the last op to the first. Values of the
// forward pass are read where a rule needs them. Regions are other scopes, so what their backward pass reads is
// computed in it again:
//
// - case, if: a second one with the same index, whose branches compute the branch and then its cotangents.
// - manual_computation: a second one, which takes the cotangents of the results as well. The replicas of a result over
//   manual axes are equal: each gets an equal part of the cotangent. The cotangent of an operand that is replicated
//   over manual axes is the sum of its replicas' (an all_reduce).
// - while of a known number of iterations: a second loop, which counts down. An iteration computes the body once more,
//   from carried values that the first loop saves in arrays with an entry for each iteration, and then the body's
//   cotangents. Only those carried values are saved that the backward body reads, and that neither stay the same nor
//   count. So a loop that collects results (scan) does not save what it has collected in each iteration.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "service/ops/rewrites/derivative.h"
#include "service/program/analysis/value_facts.h"

namespace meshd::program {

/// The sums of what has been given for each value so far.
using Cotangents = std::unordered_map<ir::ValueId, ir::ValueId>;

class Backward {
 public:
  Backward(ir::Function& function, ValueFacts& facts) : function_(function), facts_(facts) {}

  /// `forward` are ops whose values exist when those of `out` run; loops among them get further results where the
  /// backward pass needs these. Appends to `out` what makes the cotangents of values that `forward` reads, given those
  /// of values that it makes. Throws unsupported_op naming op and line.
  void run(std::vector<ir::Op>& forward, Cotangents& sums, std::vector<ir::Op>& out);

 private:
  struct Loop;

  void plain(const ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out);
  /// Where the op's row writes it as others: these, and then their cotangents.
  bool as_others(const ir::Op& op, const ops::Derivative& derivative, Cotangents& sums, std::vector<ir::Op>& out);
  void branches(const ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out);
  void manual(const ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out);
  /// Returns ops that have to be in front of the loop.
  std::vector<ir::Op> loop(ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out);
  ir::Region backward_body(Loop& loop);
  std::vector<ir::Op> save_carried(Loop& loop, const ir::Region& backward);
  void restore_carried(const Loop& loop, ir::Region& body);
  void run_backward_loop(const Loop& loop, ir::Region body, Cotangents& sums, std::vector<ir::Op>& out);

  void give(Cotangents& sums, ir::ValueId id, ops::Contribution part, ops::Writer& writer);
  /// The sum of a value, or zeros.
  ir::ValueId sum_or_zero(const Cotangents& sums, ir::ValueId id, ops::Writer& writer);
  /// A copy of ops with values of their own; `names` has what they read under other names, and gets the new ones.
  std::vector<ir::Op> copy(const std::vector<ir::Op>& ops, std::unordered_map<ir::ValueId, ir::ValueId>& names);
  /// Varied values that regions read and do not define, in the order in which they are read.
  [[nodiscard]] std::vector<ir::ValueId> captured(const std::vector<const ir::Region*>& regions) const;
  /// Drops what the cotangents do not need. Throws where they need an effect, which would happen twice.
  void clean(ir::Region& region, const ir::Op& source) const;

  ir::Function& function_;
  ValueFacts& facts_;
};

}  // namespace meshd::program
