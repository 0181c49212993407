// Checks of infer functions with common messages for all families. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Throws with the op's line and column where they are known.
[[noreturn]] void reject(const OpView& view, const std::string& message);
[[noreturn]] void reject(const OpView& view, core::ErrorCode code, const std::string& message);

/// The op's attributes; an empty list where it has none.
const ir::AttributeList& attributes_of(const OpView& view);

/// "tensor<2x3xf32>" of operand `index`; "nothing" when there is no such operand. For messages.
std::string operand_text(const OpView& view, size_t index);

/// Same dtype, quantised alike, same rank, and each dimension equal or dynamic on one side.
bool compatible(const ir::Type& a, const ir::Type& b);
/// Same rank, and each dimension equal or dynamic on one side.
bool compatible_shapes(const tensor::Dims& a, const tensor::Dims& b);
/// Dimensions of two compatible shapes with dynamic ones filled in from the other.
tensor::Dims merged(const tensor::Dims& a, const tensor::Dims& b);

/// Throws "NAME: expects MIN operands, got N" unless the count fits; `op` is the mnemonic.
void expect_operand_count(const OpView& view, std::string_view op, size_t count);
/// Throws "NAME I1: operand K must be a tensor, got TYPE".
void expect_tensor(const OpView& view, std::string_view op, size_t operand);
/// Both, of each operand.
void expect_tensor_operands(const OpView& view, std::string_view op, size_t count);

/// The declared results, after checking that there are as many as inferred and that each is compatible; what was
/// inferred when nothing is declared. `constraint` is the label of the specification: "add C1".
std::vector<ir::Type> agree(const OpView& view, std::string_view constraint, std::vector<ir::Type> inferred);
/// The declared results of an op whose result type cannot be inferred; throws when there are not `count`.
std::vector<ir::Type> declared(const OpView& view, std::string_view op, size_t count);

/// "8", or "?" for a dynamic one. For messages.
inline std::string dim_text(int64_t dim) { return dim == tensor::kDynamicDim ? "?" : std::to_string(dim); }
/// `like` with other dimensions.
inline ir::Type with_dims(const ir::Type& like, tensor::Dims dims) {
  return ir::Type::of({like.dtype(), std::move(dims)});
}
inline bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Labels in the specification of what inputs and init values must be.
struct InputLabels {
  std::string_view count, shapes, init;
};
/// How many inputs an op has whose operands are N inputs, then N init values.
inline size_t input_count(const OpView& view) { return view.operands.size() / 2; }
/// As many init values as inputs, inputs of one shape, each init value a scalar of its input's type.
void expect_inputs_and_inits(const OpView& view, const std::string& op, const InputLabels& labels);

/// A tensor of rank 0.
inline bool is_scalar(const ir::Type& type) { return type.is_tensor() && type.rank() == 0; }
inline bool are_scalars(const std::vector<ir::Type>& types) {
  return std::all_of(types.begin(), types.end(), is_scalar);
}

/// The first region takes two scalars of the type of each of `count` inputs, and returns one boolean.
void expect_comparator(const OpView& view, std::string_view label, size_t count);

std::vector<ir::Type> argument_types(const OpView& view, const ir::Region& region);
/// Types of what a region returns; empty when it has no terminator.
std::vector<ir::Type> returned_types(const OpView& view, const ir::Region& region);

/// "custom_call @TARGET". For messages.
std::string call_text(const OpView& view);
/// "(tensor<f32>, tensor<2xi32>)". For messages.
std::string types_text(const std::vector<ir::Type>& types);

}  // namespace meshd::ops
