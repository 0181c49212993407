#include "service/ops/evaluate.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"

namespace meshd::ops {
namespace {

bool is_small(const ir::Type& type) {
  if (!type.is_tensor()) return false;
  int64_t count = 1;
  for (const int64_t size : type.dims()) {
    if (size == tensor::kDynamicDim || size > kMostSmallElements) return false;
    count *= size;
    if (count > kMostSmallElements) return false;
  }
  return true;
}

SmallValue constant(const ir::DenseAttr& dense) {
  const auto size = static_cast<size_t>(tensor::byte_count(dense.type));
  std::vector<std::byte> bytes(size);
  for (size_t at = 0; at < size && !dense.bytes->empty(); at += dense.bytes->size()) {
    std::memcpy(bytes.data() + at, dense.bytes->data(), std::min(dense.bytes->size(), size - at));
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

SmallValue pointwise_value(const ScalarMath& math, const OpView& view, std::span<const SmallValue> operands) {
  kernels::TileProgram program;
  std::vector<uint16_t> registers;
  for (const ir::Type& type : view.operands) registers.push_back(program.add_register(type.dtype()));
  program.input_count = static_cast<int>(operands.size());
  program.outputs = {emit_scalar(math, view, program, registers)};
  const int64_t count = tensor::element_count(view.results[0].dims());
  kernels::TileScratch scratch(program, kMostSmallElements);
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t size = tensor::size_bytes(view.operands[i].dtype());
    const bool repeated = view.operands[i].rank() == 0;
    for (int64_t lane = 0; lane < count; ++lane) {
      std::memcpy(scratch.reg(registers[i]) + lane * size, operands[i]->data() + (repeated ? 0 : lane * size),
                  static_cast<size_t>(size));
    }
  }
  kernels::run_tile(program, scratch, count);
  std::vector<std::byte> bytes(static_cast<size_t>(tensor::byte_count(view.results[0].tensor)));
  std::memcpy(bytes.data(), scratch.reg(program.outputs[0]), bytes.size());
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

std::vector<SmallValue> local(const LocalKernel& kernel, const OpView& view, std::span<const SmallValue> operands) {
  const PreparedKernel prepared = kernel.prepare(view);
  std::vector<const std::byte*> in;
  for (const SmallValue& operand : operands) in.push_back(operand == nullptr ? nullptr : operand->data());
  std::vector<std::vector<std::byte>> made;
  for (const ir::Type& type : view.results) made.emplace_back(static_cast<size_t>(tensor::byte_count(type.tensor)));
  std::vector<std::byte*> out;
  for (std::vector<std::byte>& bytes : made) out.push_back(bytes.data());
  run_kernel(prepared, in, out);
  std::vector<SmallValue> results;
  for (std::vector<std::byte>& bytes : made)
    results.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  return results;
}

}  // namespace

void run_kernel(const PreparedKernel& kernel, std::span<const std::byte* const> operands,
                std::span<std::byte* const> results) {
  constexpr size_t kAlignment = 64;
  const auto memory_of = [](int64_t bytes) {
    const size_t size = (static_cast<size_t>(bytes) / kAlignment + 1) * kAlignment;
    return std::unique_ptr<void, void (*)(void*)>(std::aligned_alloc(kAlignment, size), std::free);
  };
  const auto scratch = memory_of(kernel.scratch_bytes);
  const auto workspace = memory_of(kernel.workspace_bytes);
  kernel.run({.operands = operands.data(),
              .results = results.data(),
              .begin = 0,
              .end = kernel.work_count,
              .scratch = static_cast<std::byte*>(scratch.get()),
              .workspace = static_cast<std::byte*>(workspace.get())});
}

std::optional<std::vector<SmallValue>> evaluate_small(const OpDef& def, const OpView& view,
                                                      std::span<const SmallValue> operands) {
  const bool shapes_only = def.reads_shapes_only;
  if ((!shapes_only && !std::all_of(view.operands.begin(), view.operands.end(), is_small)) ||
      !std::all_of(view.results.begin(), view.results.end(), is_small)) {
    return std::nullopt;
  }
  const Body body = body_of(def, view);
  if (const auto* math = std::get_if<ScalarMath>(&body)) return std::vector{pointwise_value(*math, view, operands)};
  if (role_of(body) == Structural::kConstant) {
    const auto* dense = ir::find(attributes_of(view), "value")->as<ir::DenseAttr>();
    return std::vector{constant(*dense)};
  }
  if (def.result_is_operand && view.operands.size() == view.results.size())
    return std::vector<SmallValue>(operands.begin(), operands.end());
  const auto* kernel = std::get_if<LocalKernel>(&body);
  if (kernel == nullptr || kernel->prepare == nullptr || !view.regions.empty() || def.has_effect || def.is_random)
    return std::nullopt;
  return local(*kernel, view, operands);
}

std::vector<int64_t> integers_of(const ir::Type& type, const std::vector<std::byte>& bytes) {
  ir::DenseAttr dense;
  dense.type = type.tensor;
  dense.bytes = std::make_shared<const std::vector<std::byte>>(bytes);
  return ir::dense_ints(dense);
}

}  // namespace meshd::ops
