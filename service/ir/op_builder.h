// Builds ops: MLIR's OpBuilder. Every stage that makes or rewrites a program writes its ops through it.
//
// A builder has a function, whose value table gets the results, an insertion point (the end of a list of ops), and a
// location that all its ops get. It appends only: to insert in front of other ops, build a list and splice it in once,
// because moving the ops behind at every insertion would take quadratic time.
//
// Example: the region of a reduction that adds, and the reduction of %x (4x8xf32) over its rows -> %sum (8xf32)
//
//   ir::OpBuilder builder(main, ops::code_of, out, op.location);
//   const ir::Type scalar = ir::Type::of({DType::kFloat32, {}});
//   const ir::ValueId zero = builder.constant(ir::splat_attr({DType::kFloat32, {}}, bytes_of(0.0F)));
//   const ir::ValueId sum = builder.create_one("stablehlo.reduce", {x, zero}, ir::Type::of({DType::kFloat32, {8}}),
//                                              {{"dimensions", ir::int_array_attr({0})}},
//                                              {builder.reducer("stablehlo.add", scalar)});
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "service/ir/program.h"

namespace meshd::ir {

/// The row of an op by its full name. A builder is given one, because ir has no table of ops. Throws for a name without
/// a row.
using OpCodeOf = OpCode (*)(std::string_view name);

/// One function under construction. The function and the list of ops outlive the builder, and the list does not move
/// while it is the insertion point. One thread.
class OpBuilder {
 public:
  /// Without an insertion point: a guard or region() gives one.
  OpBuilder(Function& function, OpCodeOf code_of) : function_(function), code_of_(code_of) {}
  /// Ops go to the end of `ops`, which are ops of `function`.
  OpBuilder(Function& function, OpCodeOf code_of, std::vector<Op>& ops, Location location = {})
      : function_(function), code_of_(code_of), ops_(&ops), location_(std::move(location)) {}

  [[nodiscard]] Function& function() { return function_; }
  [[nodiscard]] const Type& type(ValueId id) const { return function_.type_of(id); }
  [[nodiscard]] const Location& location() const { return location_; }
  void set_location(Location location) { location_ = std::move(location); }

  /// Moves the insertion point to the end of `ops` for its lifetime. Guards nest.
  class InsertionGuard {
   public:
    InsertionGuard(OpBuilder& builder, std::vector<Op>& ops)
        : builder_(builder), before_(std::exchange(builder.ops_, &ops)) {}
    ~InsertionGuard() { builder_.ops_ = before_; }
    InsertionGuard(const InsertionGuard&) = delete;
    InsertionGuard& operator=(const InsertionGuard&) = delete;

   private:
    OpBuilder& builder_;
    std::vector<Op>* before_;
  };

  /// An op whose results are new values of these types. Nothing is checked: what verifies is service/program.
  std::vector<ValueId> create(std::string_view name, std::vector<ValueId> operands, const std::vector<Type>& types,
                              AttributeList attributes = {}, std::vector<Region> regions = {});
  /// The same for one result.
  ValueId create_one(std::string_view name, std::vector<ValueId> operands, const Type& type,
                     AttributeList attributes = {}, std::vector<Region> regions = {});
  /// An op that defines `results`, values of the function that no other op defines (those of an op that it replaces).
  /// The reference is valid until the next op.
  Op& define(std::vector<ValueId> results, std::string_view name, std::vector<ValueId> operands,
             AttributeList attributes = {}, std::vector<Region> regions = {});

  /// A copy of an op as it is, its location too. The reference is valid until the next op.
  Op& insert(Op op) { return ops_->emplace_back(std::move(op)); }

  /// A stablehlo.constant; attribute.h has what makes splats and integers.
  ValueId constant(DenseAttr dense);
  /// The constant of this tensor type whose bytes are all zero.
  ValueId zero(const tensor::TensorType& type);
  /// A scalar of i64, and a vector of them.
  ValueId integer(int64_t value);
  ValueId integers(const std::vector<int64_t>& values);
  /// The index of each element along a dimension.
  ValueId iota(const tensor::TensorType& type, int64_t dim);
  /// a DIRECTION b, as booleans: "EQ", "LT", ...
  ValueId compare(ValueId a, std::string_view direction, ValueId b);
  /// By dimension, the elements from `start` to before `limit`, each `strides`-th; without strides all of them.
  ValueId slice(ValueId value, const std::vector<int64_t>& start, const std::vector<int64_t>& limit,
                std::vector<int64_t> strides = {});
  /// One value behind the other along a dimension; a single one as it is.
  ValueId concatenate(std::vector<ValueId> values, int64_t dim);

  /// A region with new arguments of these types. `body(arguments)` writes its ops, the terminator too, with this
  /// builder.
  template <typename Body>
  Region region(const std::vector<Type>& types, Body&& body) {
    Region made;
    for (const Type& type : types) made.arguments.push_back(function_.add_value(type));
    const InsertionGuard inside(*this, made.ops);
    body(made.arguments);
    return made;
  }
  /// The region (a, b) -> `name`(a, b) of two scalars and a result of one type.
  Region reducer(std::string_view name, Type scalar);

 private:
  Function& function_;
  OpCodeOf code_of_;
  std::vector<Op>* ops_ = nullptr;
  Location location_;
};

/// Replaces values that an op, its regions and the ops within them read and define. A value without an entry stays.
void rename_values(Op& op, const std::unordered_map<ValueId, ValueId>& names);

}  // namespace meshd::ir
