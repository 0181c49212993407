// Runs one row of the op table on arrays, as the executor would: infer, prepare, then work items in pieces. For unit
// tests of rows.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "service/ops/kernel_interface.h"
#include "service/ops/op_def.h"

namespace meshd::test {

/// A tensor with its bytes, row-major.
struct Array {
  tensor::TensorType type;
  std::vector<std::byte> bytes;

  template <typename T>
  static Array of(tensor::DType dtype, tensor::Dims dims, const std::vector<T>& values) {
    Array out{{dtype, std::move(dims)}, std::vector<std::byte>(values.size() * sizeof(T))};
    if (!values.empty()) std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
    EXPECT_EQ(static_cast<int64_t>(out.bytes.size()), tensor::byte_count(out.type));
    return out;
  }
  static Array zeros(tensor::TensorType type) {
    std::vector<std::byte> bytes(static_cast<size_t>(tensor::byte_count(type)));
    return {std::move(type), std::move(bytes)};
  }
  template <typename T>
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};

inline Array f32(tensor::Dims dims, const std::vector<float>& values) {
  return Array::of(tensor::DType::kFloat32, std::move(dims), values);
}
inline Array i32(tensor::Dims dims, const std::vector<int32_t>& values) {
  return Array::of(tensor::DType::kInt32, std::move(dims), values);
}
/// 0, 1, 2, ... as f32.
inline Array counting(tensor::Dims dims) {
  std::vector<float> values(static_cast<size_t>(tensor::element_count(dims)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return f32(std::move(dims), values);
}

inline ir::Attribute ints_attribute(std::vector<int64_t> values) {
  return {ir::IntArrayAttr{std::move(values), "i64"}};
}
inline ir::Attribute int_attribute(int64_t value) { return {ir::IntegerAttr{value, "i64"}}; }

/// One op instance that can be run.
struct Instance {
  const ops::OpDef* def = nullptr;
  ir::AttributeList attributes = {};
  std::vector<ir::Region> regions = {};
  const ir::Function* function = nullptr;
  std::vector<ir::Type> declared = {};  ///< result types that the text writes; empty: inferred
  bool skip_infer = false;              ///< `declared` are local types, which infer need not agree with

  [[nodiscard]] ops::OpView view(const std::vector<ir::Type>& operands, const std::vector<ir::Type>& results) const {
    return {
        .operands = operands, .results = results, .attributes = &attributes, .regions = regions, .function = function};
  }
  [[nodiscard]] std::vector<ir::Type> infer(const std::vector<ir::Type>& operands) const {
    return skip_infer ? declared : def->infer(view(operands, declared));
  }
  [[nodiscard]] std::string rule(const std::vector<ir::Type>& operands) const {
    const std::vector<ir::Type> results = infer(operands);
    return sharding::to_sdy(def->rule(view(operands, results)));
  }

  enum class Cut { kOneCall, kItemByItem, kBackwards };

  /// Infers, prepares, runs. Results begin as garbage. With `in_place`, the pairs that the kernel allows share memory.
  [[nodiscard]] std::vector<Array> run(const std::vector<Array>& operands, Cut cut = Cut::kOneCall,
                                       bool in_place = false, const std::vector<int64_t>& result_offsets = {}) const {
    std::vector<ir::Type> types;
    for (const Array& operand : operands) types.push_back(ir::Type::of(operand.type));
    const std::vector<ir::Type> result_types = infer(types);
    const ops::PreparedKernel kernel = std::get<ops::LocalKernel>(def->body).prepare(view(types, result_types));
    std::vector<Array> results;
    for (const ir::Type& type : result_types) {
      results.push_back(Array::zeros(type.tensor));
      for (std::byte& b : results.back().bytes) b = std::byte{0xA5};
    }
    std::vector<const std::byte*> operand_data;
    std::vector<std::byte*> result_data;
    for (const Array& operand : operands) operand_data.push_back(operand.bytes.data());
    for (Array& result : results) result_data.push_back(result.bytes.data());
    if (in_place) {
      EXPECT_FALSE(kernel.in_place.empty());
      for (const auto& [from, to] : kernel.in_place) {
        results[static_cast<size_t>(to)].bytes = operands[static_cast<size_t>(from)].bytes;
        result_data[static_cast<size_t>(to)] = results[static_cast<size_t>(to)].bytes.data();
        operand_data[static_cast<size_t>(from)] = result_data[static_cast<size_t>(to)];
      }
    }
    // What is read before it is written shows.
    std::vector<std::byte> scratch(static_cast<size_t>(kernel.scratch_bytes) + 64, std::byte{0xFF});
    std::vector<std::byte> workspace(static_cast<size_t>(kernel.workspace_bytes) + 64, std::byte{0xFF});
    const auto aligned = [](std::vector<std::byte>& bytes) {
      return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    };
    ops::KernelCall call;
    call.operands = operand_data.data();
    call.results = result_data.data();
    call.scratch = aligned(scratch);
    call.workspace = aligned(workspace);
    call.result_offsets = result_offsets.empty() ? nullptr : result_offsets.data();
    const auto work_items = [&](int64_t begin, int64_t end) {
      call.begin = begin;
      call.end = end;
      kernel.run(call);
    };
    if (cut == Cut::kOneCall) {
      work_items(0, kernel.work_count);
    } else {
      std::vector<int64_t> ends = kernel.barriers;
      ends.push_back(kernel.work_count);
      int64_t begin = 0;
      for (const int64_t end : ends) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t work_item = cut == Cut::kBackwards ? begin + end - 1 - i : i;
          work_items(work_item, work_item + 1);
        }
        begin = end;
      }
    }
    return results;
  }
};

/// Visits all indices of `dims` in row-major order.
template <typename Visit>
void for_each_index(const tensor::Dims& dims, Visit&& visit) {
  for (const int64_t size : dims) {
    if (size == 0) return;
  }
  tensor::Dims index(dims.size(), 0);
  for (;;) {
    visit(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// Row-major position of an index.
inline int64_t position(const tensor::Dims& dims, const tensor::Dims& index) {
  int64_t out = 0;
  for (size_t d = 0; d < dims.size(); ++d) out = out * dims[d] + index[d];
  return out;
}

}  // namespace meshd::test
