// Words for tests of op rows: types from their text, an op instance that owns what an OpView points to, tensors of
// numbers.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/error.h"
#include "service/ops/op_def.h"

namespace meshd::test {

/// "2x3xf32" -> tensor<2x3xf32>; "token" -> !stablehlo.token; "?" is a dynamic dimension.
inline ir::Type type(std::string_view text) {
  if (text == "token") return ir::Type::token();
  tensor::TensorType out;
  size_t at = text.find('x');
  while (at != std::string_view::npos && (std::isdigit(text[0]) != 0 || text[0] == '?')) {
    out.dims.push_back(text[0] == '?' ? tensor::kDynamicDim : std::stoll(std::string(text.substr(0, at))));
    text.remove_prefix(at + 1);
    at = text.find('x');
  }
  out.dtype = tensor::dtype_from_stablehlo(text).value();
  return ir::Type::of(std::move(out));
}

inline std::vector<ir::Type> types(std::initializer_list<std::string_view> texts) {
  std::vector<ir::Type> out;
  for (const std::string_view text : texts) out.push_back(type(text));
  return out;
}

template <typename T>
ir::Attribute attribute(T value) {
  return ir::Attribute{std::move(value)};
}

/// dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>.
inline ir::Attribute dense(const std::vector<std::vector<int64_t>>& rows) {
  const auto columns = static_cast<int64_t>(rows.empty() ? 0 : rows[0].size());
  std::vector<std::byte> bytes;
  for (const auto& row : rows) {
    const auto* begin = reinterpret_cast<const std::byte*>(row.data());
    bytes.insert(bytes.end(), begin, begin + row.size() * sizeof(int64_t));
  }
  ir::DenseAttr out;
  out.type = {tensor::DType::kInt64, {static_cast<int64_t>(rows.size()), columns}};
  out.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return attribute(std::move(out));
}

/// A scalar constant.
template <typename T>
ir::Attribute scalar(tensor::DType dtype, T value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  ir::DenseAttr out;
  out.type = {dtype, {}};
  out.splat = true;
  out.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return attribute(std::move(out));
}

/// One op, owning what its view points to.
struct Instance {
  std::vector<ir::Type> operands = {};
  std::vector<ir::Type> results = {};
  ir::AttributeList attributes = {};
  std::vector<ir::Region> regions = {};
  ir::Function function = {};
  ir::Location location{.line = 7, .column = 3, .calls = {}, .name = {}};

  [[nodiscard]] ops::OpView view() const { return {operands, results, &attributes, regions, &function, &location}; }
};

/// Appends an op to a region of `function` and gives its result.
inline ir::ValueId append(ir::Function& function, ir::Region& region, std::string_view name,
                          std::vector<ir::ValueId> operands, std::vector<ir::Type> results,
                          ir::AttributeList attributes = {}) {
  ir::Op op;
  op.name = name;
  op.code = ops::code_of(*ops::find_op(name));
  op.operands = std::move(operands);
  op.attributes = std::move(attributes);
  op.location = {.line = static_cast<int32_t>(10 + region.ops.size()), .column = 5, .calls = {}, .name = {}};
  for (ir::Type& result : results) op.results.push_back(function.add_value(std::move(result), "%r"));
  const ir::ValueId first = op.results.empty() ? ir::kNoValue : op.results[0];
  region.ops.push_back(std::move(op));
  return first;
}

/// A region of two scalars of `dtype` that returns `op` of them.
inline ir::Region binary_region(ir::Function& function, std::string_view op, const ir::Type& scalar_type) {
  ir::Region region;
  region.arguments = {function.add_value(scalar_type, "%a"), function.add_value(scalar_type, "%b")};
  const ir::ValueId result = append(function, region, op, region.arguments, {scalar_type});
  append(function, region, "stablehlo.return", {result}, {});
  return region;
}

/// What `run` throws, as its client text; empty when it throws nothing.
template <typename Run>
std::string error_of(Run&& run) {
  try {
    run();
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
  return {};
}

}  // namespace meshd::test
