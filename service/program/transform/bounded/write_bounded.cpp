#include "service/program/transform/bounded/write_bounded.h"

#include "service/ops/linalg/custom_calls.h"
#include "service/program/transform/bounded/fold_forms.h"
#include "service/program/transform/bounded/index_forms.h"
#include "service/program/transform/bounded/part_forms.h"
#include "service/program/transform/bounded/shape_forms.h"

namespace meshd::program {

BoundedResults write_bounded(const ir::Op& op, const std::vector<BoundedValue>& operands, ops::Writer& writer) {
  using ops::BoundedForm;
  switch (ops::bounded_form(op)) {
    case BoundedForm::kByBody:
      return ShapeForms(op, operands, writer).by_body();
    case BoundedForm::kPointwise:
    case BoundedForm::kBroadcasting:
      return ShapeForms(op, operands, writer).pointwise();
    case BoundedForm::kGetSize:
      return ShapeForms(op, operands, writer).get_size();
    case BoundedForm::kSetSize:
      return ShapeForms(op, operands, writer).set_size();
    case BoundedForm::kPadToStatic:
      return ShapeForms(op, operands, writer).pad_to_static();
    case BoundedForm::kSliceToDynamic:
      return ShapeForms(op, operands, writer).slice_to_dynamic();
    case BoundedForm::kTranspose:
      return ShapeForms(op, operands, writer).transpose();
    case BoundedForm::kBroadcast:
      return ShapeForms(op, operands, writer).broadcast();
    case BoundedForm::kDynamicBroadcast:
      return ShapeForms(op, operands, writer).dynamic_broadcast();
    case BoundedForm::kReshape:
      return ShapeForms(op, operands, writer).reshape();
    case BoundedForm::kDynamicReshape:
      return ShapeForms(op, operands, writer).dynamic_reshape();
    case BoundedForm::kDynamicIota:
      return ShapeForms(op, operands, writer).dynamic_iota();
    case BoundedForm::kReverse:
      return PartForms(op, operands, writer).reverse();
    case BoundedForm::kSlice:
      return PartForms(op, operands, writer).slice();
    case BoundedForm::kRealDynamicSlice:
      return PartForms(op, operands, writer).real_dynamic_slice();
    case BoundedForm::kDynamicSlice:
      return PartForms(op, operands, writer).dynamic_slice();
    case BoundedForm::kDynamicUpdateSlice:
      return PartForms(op, operands, writer).dynamic_update_slice();
    case BoundedForm::kConcatenate:
      return PartForms(op, operands, writer).concatenate();
    case BoundedForm::kPad:
      return PartForms(op, operands, writer).pad();
    case BoundedForm::kDynamicPad:
      return PartForms(op, operands, writer).dynamic_pad();
    case BoundedForm::kReduce:
      return FoldForms(op, operands, writer).reduce();
    case BoundedForm::kReduceWindow:
      return FoldForms(op, operands, writer).reduce_window();
    case BoundedForm::kDot:
      return FoldForms(op, operands, writer).dot();
    case BoundedForm::kDotGeneral:
      return FoldForms(op, operands, writer).dot_general();
    case BoundedForm::kConvolution:
      return FoldForms(op, operands, writer).convolution();
    case BoundedForm::kDynamicConvolution:
      return FoldForms(op, operands, writer).dynamic_convolution();
    case BoundedForm::kGather:
      return IndexForms(op, operands, writer).gather();
    case BoundedForm::kDynamicGather:
      return IndexForms(op, operands, writer).dynamic_gather();
    case BoundedForm::kScatter:
      return IndexForms(op, operands, writer).scatter();
    case BoundedForm::kSort:
      return IndexForms(op, operands, writer).sort();
    case BoundedForm::kTransform:
      return ShapeForms(op, operands, writer).transform();
    case BoundedForm::kMatrices:
      return ShapeForms(op, operands, writer).matrices();
    case BoundedForm::kLapackCall:
      return ShapeForms(op, operands, writer).lapack_call();
  }
  return std::nullopt;
}

}  // namespace meshd::program
