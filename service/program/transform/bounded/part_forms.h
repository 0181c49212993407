// Ops that take parts of tensors, put them together or move their elements: slices, padding, concatenation, reversal.
#pragma once

#include "service/program/transform/bounded/bounded_op.h"

namespace meshd::program {

class PartForms : public BoundedOp {
 public:
  using BoundedOp::BoundedOp;
  BoundedResults reverse();
  BoundedResults slice();
  BoundedResults real_dynamic_slice();
  BoundedResults dynamic_slice();
  BoundedResults dynamic_update_slice();
  BoundedResults concatenate();
  BoundedResults pad();
  BoundedResults dynamic_pad();

 private:
  /// An index along dimension `d` of operand 0 such that `count` elements from there on are real.
  ir::ValueId start_within(ir::ValueId index, size_t d, ir::ValueId count);
};

}  // namespace meshd::program
