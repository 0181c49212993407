// Writing ops in place of another one. Internal to the stage that expands (program/transform/specialise.h) and to the rows that
// expand. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Integers of a value that is known before the program runs (sizes, constants, what is made of them), row-major.
using KnownValues = std::function<std::optional<std::vector<int64_t>>(ir::ValueId)>;

/// Appends ops that get the place in the text of the op they stand for.
class Writer {
 public:
  Writer(ir::Function& function, std::vector<ir::Op>& out, const ir::Op& source, KnownValues known);

  /// An op of one result. `type` is its result's; where it is not given, the row infers it.
  ir::ValueId add(std::string_view name, std::vector<ir::ValueId> operands, ir::AttributeList attributes = {},
                  std::optional<ir::Type> type = std::nullopt);
  /// An op of any number of results, with regions over this function's values.
  std::vector<ir::ValueId> add(std::string_view name, std::vector<ir::ValueId> operands, ir::AttributeList attributes,
                               std::vector<ir::Type> types, std::vector<ir::Region> regions);

  /// A constant with one element repeated: `value` converted to `type`'s elements.
  ir::ValueId splat(const ir::Type& type, double value);
  /// A constant of these bytes.
  ir::ValueId constant(const ir::Type& type, std::vector<std::byte> bytes, bool is_splat);
  /// A vector of i64.
  ir::ValueId integers(const std::vector<int64_t>& values);
  /// `value` broadcast to `dims`: its dimension i is dimension `into[i]`.
  ir::ValueId broadcast(ir::ValueId value, const tensor::Dims& dims, const std::vector<int64_t>& into);
  ir::ValueId reshape(ir::ValueId value, const tensor::Dims& dims);
  ir::ValueId transpose(ir::ValueId value, const std::vector<int64_t>& permutation);

  [[nodiscard]] const ir::Type& type(ir::ValueId id) const { return function_.type_of(id); }
  /// Integers of a value where they are known before the program runs.
  [[nodiscard]] std::optional<std::vector<int64_t>> known(ir::ValueId id) const { return known_(id); }
  [[nodiscard]] const ir::Op& source() const { return source_; }
  [[nodiscard]] ir::Function& function() { return function_; }

 private:
  ir::Function& function_;
  std::vector<ir::Op>& out_;
  const ir::Op& source_;
  KnownValues known_;
};

/// Replaces the values that an op and its regions use and give.
void rename_values(ir::Op& op, const std::unordered_map<ir::ValueId, ir::ValueId>& names);

/// Attributes in a line.
ir::Attribute int_array(std::vector<int64_t> values);
ir::Attribute integer(int64_t value);

}  // namespace meshd::ops
