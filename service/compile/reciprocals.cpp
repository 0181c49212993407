#include "service/compile/reciprocals.h"

#include <map>

#include "service/kernels/scalar_op.h"
#include "service/ops/op_def.h"

namespace meshd::compile {
namespace {

using tensor::DType;

// 1 as bytes of the dtypes that are rewritten.
std::optional<std::vector<std::byte>> one_of(DType dtype) {
  const double one = 1;
  std::vector<std::byte> out(static_cast<size_t>(tensor::size_bytes(dtype)));
  if (!tensor::is_float(dtype)) return std::nullopt;
  const auto* operand = reinterpret_cast<const std::byte*>(&one);
  const kernels::ScalarKernel convert =
      kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, DType::kFloat64, dtype);
  if (convert == nullptr) return std::nullopt;
  convert(&operand, out.data(), 1);
  return out;
}

class Rewriter {
 public:
  Rewriter(ir::Function& main, std::vector<std::optional<sharding::TensorSharding>>& shardings)
      : main_(main), shardings_(shardings) {}

  void rewrite(ir::Region& region) {
    std::vector<ir::Op> out;
    out.reserve(region.ops.size());
    for (ir::Op& op : region.ops) {
      for (ir::Region& inner : op.regions) rewrite(inner);
      if (const Broadcast* by = divisor_of(op)) {
        multiply(op, *by, out);
      } else {
        out.push_back(std::move(op));
      }
      const ir::Op& last = out.back();
      if (last.name == "stablehlo.broadcast_in_dim")
        broadcasts_[last.results.front()] = {last.operands.front(), last.attributes};
    }
    region.ops = std::move(out);
  }

 private:
  struct Broadcast {
    ir::ValueId source = ir::kNoValue;
    ir::AttributeList attributes;
  };

  const Broadcast* divisor_of(const ir::Op& op) const {
    if (op.name != "stablehlo.divide") return nullptr;
    const auto found = broadcasts_.find(op.operands[1]);
    if (found == broadcasts_.end()) return nullptr;
    const ir::Type& small = main_.type_of(found->second.source);
    const ir::Type& large = main_.type_of(op.results.front());
    const bool grows = small.rank() > 0 && tensor::element_count(small.tensor) < tensor::element_count(large.tensor);
    return grows && one_of(small.dtype()) ? &found->second : nullptr;
  }

  ir::ValueId add_value(const ir::Type& type, ir::ValueId like) {
    const ir::ValueId made = main_.add_value(type);
    shardings_.resize(main_.values.size());
    shardings_[static_cast<size_t>(made)] = shardings_[static_cast<size_t>(like)];
    return made;
  }

  static ir::Op op_named(std::string_view name, std::vector<ir::ValueId> operands, ir::ValueId result,
                         const ir::Location& location) {
    ir::Op op;
    op.name = std::string(name);
    op.code = ops::code_of(*ops::find_op(name));
    op.operands = std::move(operands);
    op.results = {result};
    op.location = location;
    return op;
  }

  void multiply(ir::Op& divide, const Broadcast& by, std::vector<ir::Op>& out) {
    const ir::Type small = main_.type_of(by.source);
    const ir::Type large = main_.type_of(divide.results.front());
    ir::DenseAttr ones;
    ones.type = small.tensor;
    ones.splat = true;
    ones.bytes = std::make_shared<const std::vector<std::byte>>(*one_of(small.dtype()));
    const ir::ValueId one = add_value(small, by.source);
    const ir::ValueId reciprocal = add_value(small, by.source);
    const ir::ValueId spread = add_value(large, divide.operands[1]);
    out.push_back(op_named("stablehlo.constant", {}, one, divide.location));
    out.back().attributes = {{"value", ir::Attribute{ones}}};
    out.push_back(op_named("stablehlo.divide", {one, by.source}, reciprocal, divide.location));
    out.push_back(op_named("stablehlo.broadcast_in_dim", {reciprocal}, spread, divide.location));
    out.back().attributes = by.attributes;
    out.push_back(
        op_named("stablehlo.multiply", {divide.operands[0], spread}, divide.results.front(), divide.location));
  }

  ir::Function& main_;
  std::vector<std::optional<sharding::TensorSharding>>& shardings_;
  std::map<ir::ValueId, Broadcast> broadcasts_;
};

}  // namespace

void multiply_by_reciprocals(ir::Module& module, std::vector<std::optional<sharding::TensorSharding>>& shardings) {
  for (ir::Function& function : module.functions) {
    if (function.name != "main") continue;
    shardings.resize(function.values.size());
    Rewriter(function, shardings).rewrite(function.body);
  }
}

}  // namespace meshd::compile
