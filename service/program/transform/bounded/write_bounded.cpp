#include "service/program/transform/bounded/write_bounded.h"

#include <array>

#include "service/ops/linalg/custom_calls.h"
#include "service/ops/linalg/dynamic_calls.h"
#include "service/program/transform/bounded/fold_forms.h"
#include "service/program/transform/bounded/index_forms.h"
#include "service/program/transform/bounded/part_forms.h"
#include "service/program/transform/bounded/shape_forms.h"

namespace meshd::program {
namespace {

using ops::BoundedForm;

template <class Forms>
Forms class_of(BoundedResults (Forms::*)());

template <auto kForm>
BoundedResults write(const ir::Op& op, const std::vector<BoundedValue>& operands, ops::Writer& writer) {
  return (decltype(class_of(kForm))(op, operands, writer).*kForm)();
}

struct FormRow {
  BoundedForm form;
  BoundedResults (*write)(const ir::Op&, const std::vector<BoundedValue>&, ops::Writer&);
};
constexpr std::array kForms = {
    FormRow{BoundedForm::kByBody, write<&ShapeForms::by_body>},
    FormRow{BoundedForm::kPointwise, write<&ShapeForms::pointwise>},
    FormRow{BoundedForm::kBroadcasting, write<&ShapeForms::pointwise>},
    FormRow{BoundedForm::kGetSize, write<&ShapeForms::get_size>},
    FormRow{BoundedForm::kSetSize, write<&ShapeForms::set_size>},
    FormRow{BoundedForm::kPadToStatic, write<&ShapeForms::pad_to_static>},
    FormRow{BoundedForm::kSliceToDynamic, write<&ShapeForms::slice_to_dynamic>},
    FormRow{BoundedForm::kReduce, write<&FoldForms::reduce>},
    FormRow{BoundedForm::kReduceWindow, write<&FoldForms::reduce_window>},
    FormRow{BoundedForm::kDot, write<&FoldForms::dot>},
    FormRow{BoundedForm::kDotGeneral, write<&FoldForms::dot_general>},
    FormRow{BoundedForm::kConvolution, write<&FoldForms::convolution>},
    FormRow{BoundedForm::kDynamicConvolution, write<&FoldForms::dynamic_convolution>},
    FormRow{BoundedForm::kTranspose, write<&ShapeForms::transpose>},
    FormRow{BoundedForm::kBroadcast, write<&ShapeForms::broadcast>},
    FormRow{BoundedForm::kDynamicBroadcast, write<&ShapeForms::dynamic_broadcast>},
    FormRow{BoundedForm::kReshape, write<&ShapeForms::reshape>},
    FormRow{BoundedForm::kDynamicReshape, write<&ShapeForms::dynamic_reshape>},
    FormRow{BoundedForm::kDynamicIota, write<&ShapeForms::dynamic_iota>},
    FormRow{BoundedForm::kReverse, write<&PartForms::reverse>},
    FormRow{BoundedForm::kSlice, write<&PartForms::slice>},
    FormRow{BoundedForm::kRealDynamicSlice, write<&PartForms::real_dynamic_slice>},
    FormRow{BoundedForm::kDynamicSlice, write<&PartForms::dynamic_slice>},
    FormRow{BoundedForm::kDynamicUpdateSlice, write<&PartForms::dynamic_update_slice>},
    FormRow{BoundedForm::kConcatenate, write<&PartForms::concatenate>},
    FormRow{BoundedForm::kPad, write<&PartForms::pad>},
    FormRow{BoundedForm::kDynamicPad, write<&PartForms::dynamic_pad>},
    FormRow{BoundedForm::kGather, write<&IndexForms::gather>},
    FormRow{BoundedForm::kDynamicGather, write<&IndexForms::dynamic_gather>},
    FormRow{BoundedForm::kScatter, write<&IndexForms::scatter>},
    FormRow{BoundedForm::kSort, write<&IndexForms::sort>},
    FormRow{BoundedForm::kTransform, write<&ShapeForms::transform>},
    FormRow{BoundedForm::kMatrices, write<&ShapeForms::matrices>},
    FormRow{BoundedForm::kLapackCall, write<&ShapeForms::lapack_call>},
};

consteval bool are_in_order() {
  for (size_t i = 0; i < kForms.size(); ++i) {
    if (kForms[i].form != static_cast<BoundedForm>(i)) return false;
  }
  return static_cast<size_t>(BoundedForm::kLapackCall) + 1 == kForms.size();
}
static_assert(are_in_order(), "a row each, in the order of the enumerators");

}  // namespace

BoundedResults write_bounded(const ir::Op& op, const std::vector<BoundedValue>& operands, ops::Writer& writer) {
  // What such a call is without its shapes has not been checked.
  ops::OpView view;
  view.attributes = &op.attributes;
  if (ops::has_shape_operands(view)) return std::nullopt;
  return kForms[static_cast<size_t>(ops::bounded_form(op))].write(op, operands, writer);
}

}  // namespace meshd::program
