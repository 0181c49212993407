// Writes ops of StableHLO into regions: what device_module is built from. Knows types and values, nothing of shardings.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "service/ir/program.h"
#include "service/tensor/dtype.h"

namespace meshd::partition {

/// One function under construction. One thread.
class OpWriter {
 public:
  explicit OpWriter(ir::Function& function) : function_(function) {}

  [[nodiscard]] ir::Function& function() { return function_; }
  [[nodiscard]] const ir::Type& type_of(ir::ValueId id) const { return function_.type_of(id); }

  /// Ops go to `region` as long as this lives.
  class Inside {
   public:
    Inside(OpWriter& writer, ir::Region& region) : writer_(writer), before_(std::exchange(writer.region_, &region)) {}
    ~Inside() { writer_.region_ = before_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    OpWriter& writer_;
    ir::Region* before_;
  };

  /// An op of the table. Throws internal for a name without a row.
  std::vector<ir::ValueId> op(const std::string& name, std::vector<ir::ValueId> operands,
                              const std::vector<ir::Type>& results, ir::AttributeList attributes = {},
                              std::vector<ir::Region> regions = {});
  ir::ValueId one(const std::string& name, std::vector<ir::ValueId> operands, const ir::Type& result,
                  ir::AttributeList attributes = {}, std::vector<ir::Region> regions = {});

  /// Integers of 64 bits: a scalar, or a list.
  ir::ValueId integer(int64_t value);
  ir::ValueId integers(const std::vector<int64_t>& values);
  ir::ValueId constant(ir::DenseAttr dense);
  ir::ValueId zero(tensor::DType dtype);
  ir::ValueId binary(const std::string& name, ir::ValueId left, ir::ValueId right);
  ir::ValueId broadcast(ir::ValueId scalar, const tensor::Dims& dims);
  /// Rows [0, limit) of one dimension.
  ir::ValueId cut(ir::ValueId value, size_t dim, int64_t limit);
  /// Zeros behind the rows of the dimensions, up to `dims`.
  ir::ValueId pad_to(ir::ValueId value, const tensor::Dims& dims);
  /// A block of `size` rows of one dimension from row `start` (a scalar of 64 bits).
  ir::ValueId block(ir::ValueId value, size_t dim, ir::ValueId start, int64_t size);
  ir::ValueId reshape(ir::ValueId value, const tensor::Dims& dims);

 private:
  ir::Function& function_;
  ir::Region* region_ = nullptr;
};

/// 3 : i64, as an attribute.
ir::Attribute integer_attribute(int64_t value);

}  // namespace meshd::partition
