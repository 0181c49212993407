// How ops take quantised types: what rows say of it, and what the verifier checks.
#pragma once

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Checks an op of which an operand or a result is quantised, with the labels of StableHLO's specification. Throws
/// unsupported_type where the op takes no such types, invalid_program where they do not fit together.
void check_quantized(const OpView& view, const OpDef& def);

/// A type as infer gets it once check_quantized() has passed: floats where the op computes on them, integers where it
/// moves what check_quantized() has compared. Where values pass through and where they are converted, the type itself:
/// infer compares the parameters too. Regions keep their types.
ir::Type type_for_infer(ir::Type type, const QuantizedTypes& types);

/// Every operand and every result that is no boolean is quantised alike but for scales and zero points (baseline
/// types).
void check_baseline_types(const OpView& view);
/// The same, and where operands are quantised per axis, so is the result, over the same dimension.
void check_quantized_sum(const OpView& view);
void check_quantized_reshape(const OpView& view);
void check_quantized_transpose(const OpView& view);
void check_quantized_broadcast(const OpView& view);
void check_quantized_dot_general(const OpView& view);
void check_quantized_convolution(const OpView& view);

/// A scalar function of each element.
inline constexpr QuantizedTypes kQuantizedMath{.form = QuantizedForm::kExpressed, .check = check_baseline_types};
/// The sum, which alone of them takes parameters per axis.
inline constexpr QuantizedTypes kQuantizedSum{
    .form = QuantizedForm::kExpressed, .per_axis = true, .check = check_quantized_sum};
/// Other functions of floats.
inline constexpr QuantizedTypes kQuantizedComputed{.form = QuantizedForm::kExpressed};
/// Elements are moved; operand k and result k are quantised alike.
inline constexpr QuantizedTypes kQuantizedMoved{.form = QuantizedForm::kStorage, .same = SameQuantized::kEach};
/// Elements are combined by a region on quantised scalars.
inline constexpr QuantizedTypes kQuantizedReduced{.form = QuantizedForm::kStorage, .same = SameQuantized::kReduced};
/// Elements of several operands are joined in one result.
inline constexpr QuantizedTypes kQuantizedJoined{.form = QuantizedForm::kStorage, .same = SameQuantized::kAll};
/// Elements of the first two operands are joined, at places that the other operands say.
inline constexpr QuantizedTypes kQuantizedInserted{
    .form = QuantizedForm::kStorage, .same = SameQuantized::kAll, .element_operands = 2};
/// Values pass through as they are: control flow, calls, tuples, shardings.
inline constexpr QuantizedTypes kQuantizedHeld{.form = QuantizedForm::kStorage, .per_axis = true};

}  // namespace meshd::ops
