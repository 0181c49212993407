#include "tests/support/interpreter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "service/core/error.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/evaluate.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/op_def.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"

namespace meshd::test {
namespace {

using Values = std::map<ir::ValueId, Value>;

class Interpreter {
 public:
  explicit Interpreter(const ir::Module& module) : module_(module) {}

  std::vector<Value> call(const ir::Function& function, std::vector<Value> arguments) {
    Values values;
    return region(function, function.body, std::move(arguments), values);
  }

 private:
  std::vector<Value> region(const ir::Function& function, const ir::Region& body, std::vector<Value> arguments,
                            Values& values) {
    for (size_t i = 0; i < body.arguments.size(); ++i) {
      arguments.at(i).type = function.type_of(body.arguments[i]);
      values[body.arguments[i]] = std::move(arguments[i]);
    }
    for (const ir::Op& op : body.ops) {
      std::vector<Value> operands;
      for (const ir::ValueId id : op.operands) operands.push_back(values.at(id));
      const ops::Body how = ops::body_of(ops::op(op.code), view_of(function, op, operands));
      if (const auto* structural = std::get_if<ops::Structural>(&how);
          structural != nullptr && *structural == ops::Structural::kReturn) {
        return operands;
      }
      std::vector<Value> results = run(function, op, how, std::move(operands), values);
      for (size_t i = 0; i < op.results.size(); ++i) values[op.results[i]] = std::move(results.at(i));
    }
    return {};
  }

  ops::OpView view_of(const ir::Function& function, const ir::Op& op, const std::vector<Value>& operands) {
    operand_types_.clear();
    for (const Value& operand : operands) operand_types_.push_back(operand.type);
    result_types_ = function.types_of(op.results);
    return {operand_types_, result_types_, &op.attributes, op.regions, &function, &op.location};
  }

  [[noreturn]] static void fail_not_interpreted(const ir::Op& op) {
    const std::string target = ir::string_or(op.attributes, "call_target_name", "");
    ir::fail("unsupported_op", op.location,
             "'" + op.name + "'" + (target.empty() ? "" : " @" + target) + " is not interpreted");
  }

  std::vector<Value> run(const ir::Function& function, const ir::Op& op, const ops::Body& how,
                         std::vector<Value> operands, Values& values) {
    const ops::OpView view = view_of(function, op, operands);
    if (const auto* math = std::get_if<ops::ScalarMath>(&how)) return {pointwise(*math, view, operands)};
    if (const auto* kernel = std::get_if<ops::LocalKernel>(&how)) return local(*kernel, view, operands);
    if (const auto* structural = std::get_if<ops::Structural>(&how)) {
      return control(function, op, *structural, std::move(operands), values);
    }
    fail_not_interpreted(op);
  }

  std::vector<Value> control(const ir::Function& function, const ir::Op& op, ops::Structural kind,
                             std::vector<Value> operands, Values& values) {
    using enum ops::Structural;
    const auto attribute = [&op](std::string_view name) { return ir::string_or(op.attributes, name, ""); };
    switch (kind) {
      case kConstant:
        return {constant(*ir::find(op.attributes, "value")->as<ir::DenseAttr>())};
      case kCall:
        return call(*module_.find_function(attribute("callee")), std::move(operands));
      case kComposite:
        return call(*module_.find_function(attribute("decomposition")), std::move(operands));
      case kWhile:
        while (true) {
          if (region(function, op.regions[0], operands, values).at(0).bytes.at(0) == std::byte{0}) return operands;
          operands = region(function, op.regions[1], std::move(operands), values);
        }
      case kIf:
        return region(function, op.regions[operands[0].bytes.at(0) != std::byte{0} ? 0 : 1], {}, values);
      case kCase: {
        int32_t index = 0;
        std::memcpy(&index, operands[0].bytes.data(), sizeof(index));
        const auto count = static_cast<int32_t>(op.regions.size());
        return region(function, op.regions[static_cast<size_t>(index < 0 || index >= count ? count - 1 : index)], {},
                      values);
      }
      case kOptimizationBarrier:
      case kShardingConstraint:
      case kReshard:
      case kPropagationBarrier:
        return operands;
      case kNamedComputation:
        return region(function, op.regions[0], std::move(operands), values);
      case kShardingGroup:
        return {};
      case kAfterAll:
        return {Value{ir::Type::token(), {}, {}}};
      case kTuple:
        return {Value{function.type_of(op.results[0]), {}, std::move(operands)}};
      case kGetTupleElement:
        return {operands[0].elements.at(static_cast<size_t>(ir::int_or(op.attributes, "index", 0)))};
      case kPartitionId:
      case kReplicaId:
        return {Value{function.type_of(op.results[0]), std::vector<std::byte>(4), {}}};
      default:
        fail_not_interpreted(op);
    }
  }

  static Value constant(const ir::DenseAttr& dense) {
    Value out{
        ir::Type::of(dense.type), std::vector<std::byte>(static_cast<size_t>(tensor::byte_count(dense.type))), {}};
    for (size_t at = 0; at < out.bytes.size(); at += dense.bytes->size()) {
      std::memcpy(out.bytes.data() + at, dense.bytes->data(), std::min(dense.bytes->size(), out.bytes.size() - at));
    }
    return out;
  }

  static Value pointwise(const ops::ScalarMath& math, const ops::OpView& view, const std::vector<Value>& operands) {
    kernels::TileProgram program;
    std::vector<uint16_t> registers;
    for (const Value& operand : operands) registers.push_back(program.add_register(operand.type.dtype()));
    program.input_count = static_cast<int>(operands.size());
    program.outputs = {ops::emit_scalar(math, view, program, registers)};
    Value out{
        view.results[0], std::vector<std::byte>(static_cast<size_t>(tensor::byte_count(view.results[0].tensor))), {}};
    constexpr int64_t kLanes = 64;
    kernels::TileScratch scratch(program, kLanes);
    const int64_t count = tensor::element_count(out.type.tensor);
    const int64_t out_size = tensor::size_bytes(out.type.dtype());
    for (int64_t start = 0; start < count; start += kLanes) {
      const int64_t lanes = std::min(kLanes, count - start);
      for (size_t i = 0; i < operands.size(); ++i) {
        const int64_t size = tensor::size_bytes(operands[i].type.dtype());
        const bool broadcast = operands[i].type.rank() == 0;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          std::memcpy(scratch.reg(registers[i]) + lane * size,
                      operands[i].bytes.data() + (broadcast ? 0 : (start + lane) * size), static_cast<size_t>(size));
        }
      }
      kernels::run_tile(program, scratch, lanes);
      std::memcpy(out.bytes.data() + start * out_size, scratch.reg(program.outputs[0]),
                  static_cast<size_t>(lanes * out_size));
    }
    return out;
  }

  static std::vector<Value> local(const ops::LocalKernel& kernel, const ops::OpView& view,
                                  const std::vector<Value>& operands) {
    const ops::PreparedKernel prepared = kernel.prepare(view);
    std::vector<Value> results;
    std::vector<const std::byte*> in;
    std::vector<std::byte*> out;
    for (const Value& operand : operands) in.push_back(operand.bytes.data());
    for (const ir::Type& type : view.results) {
      results.push_back({type, std::vector<std::byte>(static_cast<size_t>(tensor::byte_count(type.tensor))), {}});
    }
    for (Value& result : results) out.push_back(result.bytes.data());
    ops::run_kernel(prepared, in, out);
    return results;
  }

  const ir::Module& module_;
  std::vector<ir::Type> operand_types_;
  std::vector<ir::Type> result_types_;
};

}  // namespace

std::vector<Value> interpret(const ir::Module& module, std::vector<Value> arguments) {
  // As the engine has it: calls are copied in, and ops that other ops say are written as those.
  ir::Module flat = program::inline_calls(module);
  if (program::has_more_than_plain_ops(flat)) flat = program::specialise(flat);
  return Interpreter(flat).call(flat.main(), std::move(arguments));
}

}  // namespace meshd::test
