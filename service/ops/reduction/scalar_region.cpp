// Reducers, comparators, scatter and map bodies: a region of scalar ops becomes a tile program, one instruction an op;
// or text, to be compared (region_text.h).
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <string>
#include <unordered_map>

#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/reduction/region_text.h"

namespace meshd::ops {
namespace {

/// Compiles one region. One thread.
class RegionCompiler {
 public:
  explicit RegionCompiler(const ir::Function& function) : function_(function) {}

  kernels::TileProgram run(const ir::Region& region) {
    for (const ir::ValueId argument : region.arguments) {
      const ir::Type& type = function_.type_of(argument);
      if (!type.is_tensor())
        throw core::Error("unsupported_op",
                          fmt::format("a region of scalar ops takes tensors only, not {}", ir::to_string(type)));
      registers_[argument] = program_.add_register(type.dtype());
    }
    program_.input_count = static_cast<int>(region.arguments.size());
    for (const ir::Op& op : region.ops) compile(op);
    return std::move(program_);
  }

 private:
  uint16_t register_of(const ir::Op& op, ir::ValueId value) const {
    const auto found = registers_.find(value);
    if (found != registers_.end()) return found->second;
    ir::fail("unsupported_op", op.location,
             "'" + op.name + "' uses " + function_.values[static_cast<size_t>(value)].name +
                 " from outside of its region; only arguments and constants of the region are supported there");
  }

  void compile(const ir::Op& op) {
    const OpDef& def = ops::op(op.code);
    std::vector<uint16_t> operands;
    for (const ir::ValueId id : op.operands) operands.push_back(register_of(op, id));
    const OpInstance instance(function_, op);
    const OpView& view = instance.view;
    const Body body = body_of(def, view);
    if (const auto* math = std::get_if<ScalarMath>(&body)) {
      registers_[op.results[0]] = emit_scalar(*math, view, program_, operands);
      return;
    }
    const std::optional<Structural> role = role_of(body);
    if (role == Structural::kReturn) {
      program_.outputs = std::move(operands);
      return;
    }
    if (role == Structural::kConstant) {
      registers_[op.results[0]] = constant(op);
      return;
    }
    if (def.result_is_operand) {
      for (size_t i = 0; i < op.results.size(); ++i) registers_[op.results[i]] = operands[i];
      return;
    }
    ir::fail("unsupported_op", op.location, "'" + op.name + "' is not supported in a region of scalar ops");
  }

  uint16_t constant(const ir::Op& op) {
    const auto* dense = ir::find(op.attributes, "value")->as<ir::DenseAttr>();
    const auto size = static_cast<size_t>(tensor::size_bytes(dense->type.dtype));
    if (dense->bytes->size() != size)
      ir::fail("unsupported_op", op.location, "a constant in a region of scalar ops must be a scalar");
    std::array<std::byte, 16> element{};
    std::memcpy(element.data(), dense->bytes->data(), size);
    return program_.constant(dense->type.dtype, element.data());
  }

  const ir::Function& function_;
  kernels::TileProgram program_;
  std::unordered_map<ir::ValueId, uint16_t> registers_;
};

std::string text_of(const kernels::TileProgram& program) {
  std::string text = fmt::format("({}", program.input_count);
  for (const tensor::DType dtype : program.registers) text += fmt::format(",{}", static_cast<int>(dtype));
  for (const kernels::TileConstant& constant : program.constants) {
    text += fmt::format(";{}=", constant.reg);
    text.append(reinterpret_cast<const char*>(constant.element.data()), constant.element.size());
  }
  for (const kernels::TileInstruction& instruction : program.instructions) {
    text += fmt::format(";{}:{}.{}", static_cast<int>(instruction.op), instruction.exponent_bits,
                        instruction.mantissa_bits);
    const int count = kernels::used_operands(instruction);
    for (int k = 0; k < count; ++k) text += fmt::format(",{}", instruction.operands[static_cast<size_t>(k)]);
    text += fmt::format(">{}", instruction.result);
  }
  for (const uint16_t output : program.outputs) text += fmt::format("|{}", output);
  return text + ')';
}

}  // namespace

kernels::TileProgram compile_scalar_region(const ir::Function& function, const ir::Region& region) {
  return RegionCompiler(function).run(region);
}

std::optional<std::string> region_text(const ir::Function& function, const ir::Region& region) {
  try {
    return text_of(compile_scalar_region(function, region));
  } catch (const core::Error&) {  // whoever runs the op says what it is
    return std::nullopt;
  }
}

}  // namespace meshd::ops
