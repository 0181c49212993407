// Ops that go by indices or order: gathers, scatters and sorts.
#pragma once

#include "service/ops/movement/gather_scatter.h"
#include "service/program/transform/bounded/bounded_op.h"

namespace meshd::program {

class IndexForms : public BoundedOp {
 public:
  using BoundedOp::BoundedOp;
  BoundedResults gather();
  BoundedResults dynamic_gather();
  BoundedResults scatter();
  /// Padding is sorted behind everything else: its places are one more input, which the comparator looks at first.
  BoundedResults sort();

 private:
  /// Index tuples held to where windows of these sizes are whole within what is real of the operand.
  ir::ValueId held_indices(const ops::WindowDims& numbers, const std::vector<ir::ValueId>& window_sizes);
  /// `real`: the windows' sizes where they depend on data.
  BoundedResults gather_of(const std::vector<int64_t>& windows, std::vector<ir::ValueId> real,
                           ir::AttributeList attributes);
};

}  // namespace meshd::program
