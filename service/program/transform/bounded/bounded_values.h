// Values whose sizes depend on data, as static values: one of the bound's shape, whose elements beyond the size are
// padding (any bits), and a scalar of i32 for each dimension that has a bound. What the forms of bounded_op.h write ops
// with.
//
// Example: %0 of type tensor<?x2xf32, #stablehlo.bounds<4, ?>> with three rows
//   padded  tensor<4x2xf32>, rows 0 to 2; row 3 is padding
//   sizes   {%n, none}, %n = 3
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "service/ops/rewrites/writer.h"

namespace meshd::program {

struct BoundedValue {
  ir::ValueId padded = ir::kNoValue;
  std::vector<ir::ValueId> sizes;  ///< by dimension; kNoValue: the size is that of `padded`

  [[nodiscard]] bool is_bounded() const {
    for (const ir::ValueId size : sizes) {
      if (size != ir::kNoValue) return true;
    }
    return false;
  }
};

/// By the value of the text.
using BoundedValues = std::unordered_map<ir::ValueId, BoundedValue>;

/// Writes what bounded ops have in common. Sizes are scalars of i32.
class BoundedWriter {
 public:
  explicit BoundedWriter(ops::Writer& writer) : writer_(writer) {}

  [[nodiscard]] const ir::Type& type(ir::ValueId id) const { return writer_.type(id); }
  [[nodiscard]] const tensor::Dims& dims(ir::ValueId id) const { return type(id).dims(); }
  /// A value without padding.
  [[nodiscard]] BoundedValue whole(ir::ValueId id) const {
    return {id, std::vector<ir::ValueId>(dims(id).size(), ir::kNoValue)};
  }

  // Scalars, or values of one shape.
  ir::ValueId number(int64_t value, tensor::DType dtype = tensor::DType::kInt32);
  ir::ValueId binary(std::string_view mnemonic, ir::ValueId a, ir::ValueId b);
  ir::ValueId compare(std::string_view direction, ir::ValueId a, ir::ValueId b);
  ir::ValueId select(ir::ValueId which, ir::ValueId a, ir::ValueId b);
  ir::ValueId convert(ir::ValueId value, tensor::DType dtype);
  /// A number of the text, of any integer type, as a size of at most `bound` elements.
  ir::ValueId size_of_number(ir::ValueId number, int64_t bound);
  /// At least 0 and at most `bound`.
  ir::ValueId clamped(ir::ValueId size, int64_t bound);
  /// ceil(a / b) of what is not negative; b is positive.
  ir::ValueId ceil_div(ir::ValueId a, ir::ValueId b);
  /// Element `at` of a vector of integers, as i32 that is held within its range.
  ir::ValueId element(ir::ValueId vector, int64_t at);

  /// How many elements the dimension has.
  ir::ValueId size(const BoundedValue& value, size_t dim);

  ir::ValueId iota(const tensor::Dims& dims, size_t dim, tensor::DType dtype = tensor::DType::kInt32);
  ir::ValueId spread(ir::ValueId scalar, const tensor::Dims& dims) { return writer_.broadcast(scalar, dims, {}); }
  /// The booleans of `dims` that are true at what is no padding along `which`.
  ir::ValueId inside(const BoundedValue& value, const std::vector<int64_t>& which);
  /// The padded value with `fill` (a scalar) in place of the padding along dimensions `which` that have some.
  ir::ValueId masked(const BoundedValue& value, const std::vector<int64_t>& which, ir::ValueId fill);
  /// The same with zeros.
  ir::ValueId zeroed(const BoundedValue& value, const std::vector<int64_t>& which);

  /// More or less padding: dimension d has dims[d] elements.
  ir::ValueId resized(ir::ValueId value, const tensor::Dims& dims);
  /// A value as one whose dimensions with `bounds` have sizes, the others none (kDynamicDim).
  BoundedValue as_bounded(const BoundedValue& value, const tensor::Dims& bounds);
  /// result[.., i, ..] = value[.., indices[i], ..] along a dimension; indices are clamped to it.
  ir::ValueId take(ir::ValueId value, size_t dim, ir::ValueId indices);
  /// Row-major elements of `value` without its padding, as a value of other sizes.
  BoundedValue reshaped(const BoundedValue& value, const tensor::Dims& dims, std::vector<ir::ValueId> sizes);
  /// dynamic_pad along one dimension, with a result of `bound` elements.
  BoundedValue padded_along(const BoundedValue& value, size_t dim, ir::ValueId fill, ir::ValueId low, ir::ValueId high,
                            ir::ValueId interior, int64_t bound);

  ops::Writer& writer() { return writer_; }

 private:
  ops::Writer& writer_;
};

/// Whether reshaping between these bounds keeps each element at its row-major place, wherever the sizes end: dimensions
/// go together in groups, and only the first of a group has a size of its own. Example: {8, 4} <-> {32} with 8 and 32
/// bounded. Pairs of {first operand dim, first result dim} of the groups with such a dimension go to `groups`.
struct ReshapeGroup {
  size_t from = 0, from_end = 0, to = 0, to_end = 0;
};
std::optional<std::vector<ReshapeGroup>> reshape_groups(const tensor::Dims& from, const tensor::Dims& to);

}  // namespace meshd::program
