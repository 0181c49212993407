#include "service/ops/structure/shape_assertion.h"

#include <fmt/core.h>

#include <charconv>
#include <cstring>
#include <vector>

#include "service/core/error.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"

namespace meshd::ops {
namespace {

using tensor::DType;

int64_t integer_at(const std::byte* element, DType dtype) {
  if (dtype == DType::kInt64) {
    int64_t value = 0;
    std::memcpy(&value, element, sizeof(value));
    return value;
  }
  int32_t value = 0;
  std::memcpy(&value, element, sizeof(value));
  return value;
}

}  // namespace

std::string with_values(std::string_view message, std::span<const int64_t> values) {
  std::string out;
  while (!message.empty()) {
    const size_t open = message.find('{');
    out += message.substr(0, open);
    if (open == std::string_view::npos) break;
    message.remove_prefix(open);
    size_t index = 0;
    const auto [stop, error] = std::from_chars(message.data() + 1, message.data() + message.size(), index);
    const bool closed = error == std::errc{} && stop != message.data() + message.size() && *stop == '}';
    if (closed && index < values.size()) {
      out += std::to_string(values[index]);
      message.remove_prefix(static_cast<size_t>(stop - message.data()) + 1);
    } else {
      out += '{';
      message.remove_prefix(1);
    }
  }
  return out;
}

void check_shape_assertion(const OpView& view) {
  declared(view, call_text(view), 0);
  if (view.operands.empty() || view.operands[0] != ir::Type::of({DType::kBool, {}}))
    reject(view, fmt::format("{}: operand 0 must be tensor<i1>, got {}", call_text(view), operand_text(view, 0)));
  for (size_t i = 1; i < view.operands.size(); ++i) {
    const bool fits =
        view.operands[i] == ir::Type::of({DType::kInt32, {}}) || view.operands[i] == ir::Type::of({DType::kInt64, {}});
    if (fits) continue;
    reject(view, fmt::format("{}: operand {} must be tensor<i32> or tensor<i64>, got {}", call_text(view), i,
                             operand_text(view, i)));
  }
}

PreparedKernel prepare_shape_assertion(const OpView& local) {
  std::vector<DType> dtypes;
  for (size_t i = 1; i < local.operands.size(); ++i) dtypes.push_back(local.operands[i].dtype());
  PreparedKernel kernel;
  kernel.run = [dtypes, message = ir::string_or(attributes_of(local), "error_message",
                                                "a shape does not fit the program")](const KernelCall& call) {
    if (call.operands[0][0] != std::byte{0}) return;
    std::vector<int64_t> values;
    for (size_t i = 0; i < dtypes.size(); ++i) values.push_back(integer_at(call.operands[i + 1], dtypes[i]));
    throw core::Error("invalid_argument", with_values(message, values));
  };
  return kernel;
}

}  // namespace meshd::ops
