// One op with an operand or a result whose size depends on data, and what all forms of such ops need to be written over
// padded values. The forms are in shape_forms, part_forms, fold_forms and index_forms; write_bounded chooses one.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"
#include "service/ops/scalar_facts.h"
#include "service/program/transform/bounded/bounded_values.h"

namespace meshd::program {

/// By result; nothing where the op cannot be written so.
using BoundedResults = std::optional<std::vector<BoundedValue>>;

class BoundedOp {
 public:
  /// `operands`: by operand of `op`; tokens are whole values. All three outlive this.
  BoundedOp(const ir::Op& op, const std::vector<BoundedValue>& operands, ops::Writer& writer);
  BoundedOp(const BoundedOp&) = delete;  // view_ points into it
  BoundedOp& operator=(const BoundedOp&) = delete;

 protected:
  [[nodiscard]] const tensor::Dims& dims(size_t operand) const { return operand_types_[operand].dims(); }
  [[nodiscard]] const ir::Type& result_type(size_t i = 0) const { return result_types_[i]; }
  [[nodiscard]] const std::vector<ir::Type>& result_types() const { return result_types_; }
  [[nodiscard]] std::vector<int64_t> ints(std::string_view name) const { return ir::ints(op_.attributes, name); }
  [[nodiscard]] std::vector<int64_t> ints(std::string_view name, size_t count, int64_t otherwise) const {
    return ir::ints_or(op_.attributes, name, std::vector<int64_t>(count, otherwise));
  }
  static bool is_dynamic(const ir::Type& type, size_t d) { return type.dims()[d] == tensor::kDynamicDim; }
  static bool has(const std::vector<int64_t>& list, int64_t value);
  /// Dimension `d` of a result: what its type says, a bound or a size; `otherwise` where it has neither.
  int64_t bound_of(const ir::Type& type, size_t d, int64_t otherwise = tensor::kDynamicDim) const;
  /// The op on padded operands, its result types inferred.
  std::vector<ir::ValueId> same_op(std::vector<ir::ValueId> operands, const std::vector<ir::Type>& types = {});
  ir::ValueId same_op_with(std::vector<ir::ValueId> operands, std::string_view name, std::vector<int64_t> values);
  std::vector<ir::ValueId> padded() const;
  static BoundedResults one(ir::ValueId padded, std::vector<ir::ValueId> sizes);
  [[nodiscard]] std::vector<int64_t> all_dims(size_t operand) const;
  /// Places from the first of `count` elements to behind the last where they stand `apart`.
  ir::ValueId spaced_size(ir::ValueId count, int64_t apart);
  /// Inputs of one shape may have different bounds.
  std::vector<ir::ValueId> unified(size_t count);
  [[nodiscard]] ir::ValueId size_among(size_t count, size_t d) const;
  /// What changes no result with the initial value: zero or one for sums and products, else the initial value, which
  /// StableHLO lets an implementation use any number of times.
  ir::ValueId filling(ops::Neutral neutral, ir::ValueId init);
  void mask_inputs(std::vector<ir::ValueId>& operands, size_t count, const std::vector<int64_t>& which);
  /// How many windows there are over so many elements.
  ir::ValueId window_count(ir::ValueId count, int64_t window, int64_t stride, int64_t window_dilation,
                           int64_t base_dilation, ir::ValueId padding);
  std::vector<ir::Type> infer(const std::vector<ir::ValueId>& operands);

  const ir::Op& op_;
  const ops::OpDef& def_;
  const std::vector<BoundedValue>& in_;
  ops::Writer& writer_;
  BoundedWriter w_;
  std::vector<ir::Type> operand_types_;  ///< of the padded values
  std::vector<ir::Type> result_types_;   ///< of the text
  ops::OpView view_;                     ///< of the op over padded operands
};

}  // namespace meshd::program
