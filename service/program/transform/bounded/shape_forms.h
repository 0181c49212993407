// Ops that pass sizes along, ask for them or set them, and those that give elements another shape.
#pragma once

#include "service/program/transform/bounded/bounded_op.h"

namespace meshd::program {

class ShapeForms : public BoundedOp {
 public:
  using BoundedOp::BoundedOp;
  /// Ops whose row says nothing of bounds: pointwise ones and barriers.
  BoundedResults by_body();
  BoundedResults pointwise();
  BoundedResults transpose();
  BoundedResults broadcast();
  BoundedResults get_size();
  BoundedResults set_size();
  /// PadToStatic of XLA: the padded value with zeros for padding, and each dimension's size.
  BoundedResults pad_to_static();
  /// SliceToDynamic of XLA, its inverse.
  BoundedResults slice_to_dynamic();
  BoundedResults dynamic_iota();
  BoundedResults dynamic_reshape();
  BoundedResults dynamic_broadcast();
  BoundedResults reshape();
  BoundedResults transform();
  BoundedResults matrices();
  BoundedResults lapack_call();

 private:
  /// An op of which the first dimensions of all operands and results are a batch, and alone may have sizes that depend
  /// on data. What it makes of zeros is padding.
  BoundedResults of_batch(size_t batch_rank);
  BoundedResults one_to_one();
  /// Sizes of a result whose shape is operand `shape`; `bounds` gets its padded dimensions.
  std::vector<ir::ValueId> sizes_from(size_t shape, tensor::Dims& bounds);
};

}  // namespace meshd::program
