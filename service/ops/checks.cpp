#include "service/ops/checks.h"

#include <fmt/core.h>

#include <utility>

#include "service/core/error.h"

namespace meshd::ops {
namespace {

bool compatible_dims(int64_t a, int64_t b) { return a == b || a == tensor::kDynamicDim || b == tensor::kDynamicDim; }

}  // namespace

void reject(const OpView& view, core::ErrorCode code, const std::string& message) {
  if (view.location != nullptr) ir::fail(code, *view.location, message);
  throw core::Error(code, message);
}

void reject(const OpView& view, const std::string& message) { reject(view, "invalid_program", message); }

const ir::AttributeList& attributes_of(const OpView& view) {
  static const ir::AttributeList kNone;
  return view.attributes != nullptr ? *view.attributes : kNone;
}

std::string operand_text(const OpView& view, size_t index) {
  return index < view.operands.size() ? ir::to_string(view.operands[index]) : "nothing";
}

bool compatible_shapes(const tensor::Dims& a, const tensor::Dims& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!compatible_dims(a[i], b[i])) return false;
  }
  return true;
}

bool compatible(const ir::Type& a, const ir::Type& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a == b;
  return a.dtype() == b.dtype() && a.quantization == b.quantization && compatible_shapes(a.dims(), b.dims());
}

tensor::Dims merged(const tensor::Dims& a, const tensor::Dims& b) {
  tensor::Dims out = a;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == tensor::kDynamicDim) out[i] = b[i];
  }
  return out;
}

void expect_operand_count(const OpView& view, std::string_view op, size_t count) {
  if (view.operands.size() == count) return;
  reject(view, fmt::format("{}: expects {}{}, got {}", op, count, count == 1 ? " operand" : " operands",
                           view.operands.size()));
}

void expect_tensor(const OpView& view, std::string_view op, size_t operand) {
  if (operand < view.operands.size() && view.operands[operand].is_tensor()) return;
  reject(view, fmt::format("{} I{}: operand {} must be a tensor, got {}", op, operand + 1, operand,
                           operand_text(view, operand)));
}

void expect_tensor_operands(const OpView& view, std::string_view op, size_t count) {
  expect_operand_count(view, op, count);
  for (size_t i = 0; i < count; ++i) expect_tensor(view, op, i);
}

std::vector<ir::Type> agree(const OpView& view, std::string_view constraint, std::vector<ir::Type> inferred) {
  if (view.results.empty()) return inferred;
  if (view.results.size() != inferred.size()) {
    reject(view,
           fmt::format("{}: gives {} results, the text declares {}", constraint, inferred.size(), view.results.size()));
  }
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (compatible(inferred[i], view.results[i])) continue;
    reject(view, fmt::format("{}: result {} is {}, the text declares {}", constraint, i, ir::to_string(inferred[i]),
                             ir::to_string(view.results[i])));
  }
  return {view.results.begin(), view.results.end()};
}

std::vector<ir::Type> declared(const OpView& view, std::string_view op, size_t count) {
  if (view.results.size() != count) {
    reject(view, fmt::format("{}: has {}{}, the text declares {}", op, count, count == 1 ? " result" : " results",
                             view.results.size()));
  }
  return {view.results.begin(), view.results.end()};
}

void expect_inputs_and_inits(const OpView& view, const std::string& op, const InputLabels& labels) {
  const auto label = [&](std::string_view name) { return op + " " + std::string(name) + ": "; };
  const size_t count = input_count(view);
  if (count == 0 || view.operands.size() % 2 != 0) {
    reject(view, fmt::format("{}expects as many init values as inputs, and one at least, got {} operands",
                             label(labels.count), view.operands.size()));
  }
  for (size_t i = 0; i < view.operands.size(); ++i) expect_tensor(view, op, i);
  for (size_t i = 0; i < count; ++i) {
    if (!compatible_shapes(view.operands[i].dims(), view.operands[0].dims())) {
      reject(view, fmt::format("{}inputs must have one shape (input 0 is {}, input {} is {})", label(labels.shapes),
                               operand_text(view, 0), i, operand_text(view, i)));
    }
    const ir::Type& init = view.operands[count + i];
    if (init.dtype() != view.operands[i].dtype() || init.rank() != 0) {
      reject(view, fmt::format("{}init value {} must be a scalar of its input's type (input {}, init value {})",
                               label(labels.init), i, operand_text(view, i), operand_text(view, count + i)));
    }
  }
}

void expect_comparator(const OpView& view, std::string_view label, size_t count) {
  const std::vector<ir::Type> arguments = argument_types(view, view.regions[0]);
  const std::vector<ir::Type> returned = returned_types(view, view.regions[0]);
  bool fits = arguments.size() == 2 * count && returned.size() == 1 && are_scalars(arguments) &&
              are_scalars(returned) && returned[0].dtype() == tensor::DType::kBool;
  for (size_t i = 0; fits && i < arguments.size(); ++i) fits = arguments[i].dtype() == view.operands[i / 2].dtype();
  if (fits) return;
  reject(view, fmt::format("{}: the comparator must take two scalars of each input's type and return one boolean, got "
                           "{} -> {}",
                           label, types_text(arguments), types_text(returned)));
}

std::vector<ir::Type> argument_types(const OpView& view, const ir::Region& region) {
  return view.function->types_of(region.arguments);
}

std::vector<ir::Type> returned_types(const OpView& view, const ir::Region& region) {
  if (region.ops.empty()) return {};
  return view.function->types_of(region.ops.back().operands);
}

std::string call_text(const OpView& view) {
  return fmt::format("custom_call @{}", ir::string_or(attributes_of(view), "call_target_name", ""));
}

std::string types_text(const std::vector<ir::Type>& types) {
  std::string out = "(";
  for (size_t i = 0; i < types.size(); ++i) out += fmt::format("{}{}", i == 0 ? "" : ", ", ir::to_string(types[i]));
  return out + ")";
}

}  // namespace meshd::ops
