// The builder of decompositions and per-shard lowerings: an ir::OpBuilder whose ops get the result types that their
// rows infer. Used by program/transform/specialise.h, the rows' decompositions and per-shard lowerings.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "service/ir/op_builder.h"
#include "service/ops/op_def.h"

namespace meshd::ops {

/// Integers of a value that is known before the program runs (sizes, constants, what is made of them), row-major.
using KnownValues = std::function<std::optional<std::vector<int64_t>>(ir::ValueId)>;

/// The integers of a - b where they are known though a and b are not: a is %b + %c, and %c is known.
using KnownDifferences = std::function<std::optional<std::vector<int64_t>>(ir::ValueId a, ir::ValueId b)>;

/// Appends ops that get the location of the op they replace.
class Writer : public ir::OpBuilder {
 public:
  /// `known` and `differences` may be empty: then nothing is known.
  Writer(ir::Function& function, std::vector<ir::Op>& out, const ir::Op& source, KnownValues known = {},
         KnownDifferences differences = {});

  /// An op of one result. `type` is its result's; where it is not given, the row infers it.
  ir::ValueId add(std::string_view name, std::vector<ir::ValueId> operands, ir::AttributeList attributes = {},
                  std::optional<ir::Type> type = std::nullopt);
  /// An op of any number of results, with regions over this function's values.
  std::vector<ir::ValueId> add(std::string_view name, std::vector<ir::ValueId> operands, ir::AttributeList attributes,
                               std::vector<ir::Type> types, std::vector<ir::Region> regions);

  /// A constant with one element repeated: `value` converted to `type`'s elements.
  ir::ValueId splat(const ir::Type& type, double value);
  /// `value` broadcast to `dims`: its dimension i is dimension `into[i]`.
  ir::ValueId broadcast(ir::ValueId value, const tensor::Dims& dims, const std::vector<int64_t>& into);
  ir::ValueId reshape(ir::ValueId value, const tensor::Dims& dims);
  ir::ValueId transpose(ir::ValueId value, const std::vector<int64_t>& permutation);

  /// Integers of a value where they are known before the program runs.
  [[nodiscard]] std::optional<std::vector<int64_t>> known(ir::ValueId id) const;
  [[nodiscard]] std::optional<std::vector<int64_t>> known_difference(ir::ValueId a, ir::ValueId b) const;

 private:
  const ir::Op& source_;
  KnownValues known_;
  KnownDifferences differences_;
};

}  // namespace meshd::ops
