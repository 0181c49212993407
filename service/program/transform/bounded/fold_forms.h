// Ops that fold elements: reductions, windows, dot products and convolutions. What padding holds is replaced by what
// changes no result first.
#pragma once

#include "service/ops/linalg/dot.h"
#include "service/program/transform/bounded/bounded_op.h"

namespace meshd::program {

class FoldForms : public BoundedOp {
 public:
  using BoundedOp::BoundedOp;
  BoundedResults reduce();
  BoundedResults reduce_window();
  BoundedResults dot() { return product(ops::dot_dims(view_)); }
  BoundedResults dot_general() { return product(ops::dot_general_dims(view_)); }
  BoundedResults convolution();
  /// The input with its padding and holes first, as long as the result's bounds need it, then windows without either.
  BoundedResults dynamic_convolution();

 private:
  BoundedResults product(const ops::DotDims& pairs);
  BoundedResults convolution_of(const BoundedValue& lhs, const ir::AttributeList& attributes);
};

}  // namespace meshd::program
