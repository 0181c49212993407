#include "service/program/verify/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "service/core/error.h"
#include "service/ops/op_def.h"
#include "service/ops/quantized.h"
#include "service/program/analysis/call_graph.h"
#include "service/program/limits.h"

namespace meshd::program {
namespace {

using FunctionIndex = std::unordered_map<std::string_view, const ir::Function*>;

bool compatible(const ir::Type& a, const ir::Type& b) {
  if (a.kind != b.kind) return false;
  if (a.is_token()) return true;
  if (a.kind == ir::TypeKind::kTuple) {
    if (a.elements.size() != b.elements.size()) return false;
    for (size_t i = 0; i < a.elements.size(); ++i) {
      if (!compatible(a.elements[i], b.elements[i])) return false;
    }
    return true;
  }
  if (a.dtype() != b.dtype() || a.rank() != b.rank() || a.quantization != b.quantization) return false;
  for (size_t i = 0; i < a.dims().size(); ++i) {
    const bool dynamic = a.dims()[i] == tensor::kDynamicDim || b.dims()[i] == tensor::kDynamicDim;
    if (!dynamic && a.dims()[i] != b.dims()[i]) return false;
  }
  return true;
}

bool has_quantized(const std::vector<ir::Type>& types) {
  return std::any_of(types.begin(), types.end(), [](const ir::Type& type) { return ir::has_quantized(type); });
}

void verify_size(const ir::Type& type, const ir::Location& where) {
  if (type.kind == ir::TypeKind::kTuple) {
    for (const ir::Type& element : type.elements) verify_size(element, where);
  }
  if (!type.is_tensor()) return;
  if (tensor::sizes_fit(type.tensor)) return;
  ir::fail("invalid_program", where, fmt::format("the size of {} does not fit in 63 bits", to_string(type)));
}

/// Walks a region with the set of values that are defined so far.
const ir::Op* undefined_use(const ir::Region& region, std::vector<bool>& defined) {
  std::vector<ir::ValueId> own = region.arguments;
  for (const ir::ValueId id : region.arguments) defined[static_cast<size_t>(id)] = true;
  for (const ir::Op& op : region.ops) {
    for (const ir::ValueId id : op.operands) {
      if (!defined[static_cast<size_t>(id)]) return &op;
    }
    for (const ir::Region& nested : op.regions) {
      if (const ir::Op* found = undefined_use(nested, defined)) return found;
    }
    for (const ir::ValueId id : op.results) defined[static_cast<size_t>(id)] = true;
    own.insert(own.end(), op.results.begin(), op.results.end());
  }
  for (const ir::ValueId id : own) defined[static_cast<size_t>(id)] = false;
  return nullptr;
}

class FunctionVerifier {
 public:
  FunctionVerifier(const ir::Function& function, const FunctionIndex& functions)
      : function_(function), functions_(functions) {}

  void run() {
    for (const ir::Parameter& argument : function_.arguments) verify_size(argument.type, argument.location);
    for (const ir::Parameter& argument : function_.arguments) {
      if (argument.aliases_output && (*argument.aliases_output < 0 ||
                                      *argument.aliases_output >= static_cast<int64_t>(function_.results.size()))) {
        ir::fail("invalid_program", argument.location,
                 fmt::format("tf.aliasing_output is {}, but @{} has {} results", *argument.aliases_output,
                             function_.name, function_.results.size()));
      }
    }
    region(function_.body, function_.location, "function @" + function_.name);
    const ir::Op& last = function_.body.ops.back();
    if (!ops::op(last.code).ends_function) {
      ir::fail("invalid_program", last.location,
               "function @" + function_.name + " must end in 'func.return', got '" + last.name + "'");
    }
    const std::vector<ir::Type> returned = function_.types_of(last.operands);
    if (returned.size() != function_.results.size()) {
      ir::fail("invalid_program", last.location,
               fmt::format("@{} returns {} values, but its type has {}", function_.name, returned.size(),
                           function_.results.size()));
    }
    for (size_t i = 0; i < returned.size(); ++i) {
      if (returned[i] == function_.results[i].type) continue;
      ir::fail("invalid_program", last.location,
               fmt::format("value {} that @{} returns is {}, but its type says {}", i, function_.name,
                           to_string(returned[i]), to_string(function_.results[i].type)));
    }
  }

 private:
  void region(const ir::Region& region, const ir::Location& where, const std::string& owner) {
    if (region.ops.empty())
      ir::fail("invalid_program", where, "a region of " + owner + " is empty: it must end in a return");
    for (size_t i = 0; i < region.ops.size(); ++i) {
      const ir::Op& op = region.ops[i];
      const bool is_return = ops::role_of(ops::op(op.code).body) == ops::Structural::kReturn;
      const bool is_last = i + 1 == region.ops.size();
      if (is_return && !is_last)
        ir::fail("invalid_program", op.location, "'" + op.name + "' must be the last op of its region");
      if (!is_return && is_last) {
        ir::fail("invalid_program", op.location,
                 "a region of " + owner + " must end in a return, got '" + op.name + "'");
      }
      verify_op(op);
    }
  }

  void verify_op(const ir::Op& op) {
    const ops::OpDef& def = ops::op(op.code);
    for (const ir::Region& nested : op.regions) region(nested, op.location, "'" + op.name + "'");
    signature(op, def.signature);
    for (const ir::ValueId id : op.results) verify_size(function_.type_of(id), op.location);
    try {
      if (def.infer != nullptr) infer(op, def);
    } catch (const core::Error& error) {
      if (!error.diagnostics().empty() && error.diagnostics()[0].line > 0) throw;
      ir::fail(error.code(), op.location, error.detail());
    }
    if (!callee_of(op).empty()) call(op);
  }

  void signature(const ir::Op& op, const ops::Signature& signature) const {
    const auto count = static_cast<int>(op.operands.size());
    if (count < signature.operand_min || (signature.operand_max >= 0 && count > signature.operand_max)) {
      std::string expected = std::to_string(signature.operand_min);
      if (signature.operand_max < 0) {
        expected += " or more";
      } else if (signature.operand_max != signature.operand_min) {
        expected += fmt::format(" to {}", signature.operand_max);
      }
      ir::fail("invalid_program", op.location, fmt::format("'{}' takes {} operands, got {}", op.name, expected, count));
    }
    if (signature.region_count >= 0 && op.regions.size() != static_cast<size_t>(signature.region_count)) {
      ir::fail("invalid_program", op.location,
               fmt::format("'{}' has {} regions, got {}", op.name, signature.region_count, op.regions.size()));
    }
    for (const ops::AttributeSpec& spec : signature.attributes) {
      if (spec.required && ir::find(op.attributes, spec.name) == nullptr) {
        ir::fail("invalid_program", op.location, "'" + op.name + "' needs attribute '" + std::string(spec.name) + "'");
      }
    }
  }

  void infer(const ir::Op& op, const ops::OpDef& def) const {
    const ops::OpInstance instance(function_, op);
    if (has_quantized(instance.operands) || has_quantized(instance.results) || has_quantized_scalars(op, def))
      return infer_quantized(op, def, instance);
    expect_declared(op, def.infer(instance.view), instance.results);
  }

  /// Whether the op has regions on scalars that are quantised, whatever its operands are.
  [[nodiscard]] bool has_quantized_scalars(const ir::Op& op, const ops::OpDef& def) const {
    if (def.region_arguments == ops::RegionArguments::kOther) return false;
    const auto is_quantized = [&](ir::ValueId id) { return function_.type_of(id).is_quantized(); };
    return std::any_of(op.regions.begin(), op.regions.end(), [&](const ir::Region& region) {
      return std::any_of(region.arguments.begin(), region.arguments.end(), is_quantized) ||
             std::any_of(region.ops.back().operands.begin(), region.ops.back().operands.end(), is_quantized);
    });
  }

  static void infer_quantized(const ir::Op& op, const ops::OpDef& def, const ops::OpInstance& instance) {
    ops::OpView view = instance.view;
    view.op = &op;
    ops::check_quantized(view, def);
    view.op = nullptr;
    std::vector<ir::Type> operands = instance.operands;
    std::vector<ir::Type> declared = instance.results;
    for (auto* types : {&operands, &declared}) {
      for (ir::Type& type : *types) type = ops::type_for_infer(std::move(type), def.quantized);
    }
    view.operands = operands;
    view.results = declared;
    expect_declared(op, def.infer(view), declared);
  }

  static void expect_declared(const ir::Op& op, const std::vector<ir::Type>& inferred,
                              const std::vector<ir::Type>& declared) {
    if (inferred.size() != declared.size()) {
      ir::fail("invalid_program", op.location,
               fmt::format("'{}' has {} results, got {}", op.name, inferred.size(), declared.size()));
    }
    for (size_t i = 0; i < inferred.size(); ++i) {
      if (compatible(inferred[i], declared[i])) continue;
      ir::fail("invalid_program", op.location,
               fmt::format("result {} of '{}' must be {}, but is declared as {}", i, op.name, to_string(inferred[i]),
                           to_string(declared[i])));
    }
  }

  void call(const ir::Op& op) const {
    const ir::Function& callee = *functions_.at(callee_of(op));
    const auto compare = [&](const std::vector<ir::ValueId>& values, const std::vector<ir::Parameter>& parameters,
                             const char* what) {
      if (values.size() != parameters.size()) {
        ir::fail("invalid_program", op.location,
                 fmt::format("@{} has {} {}s, got {}", callee.name, parameters.size(), what, values.size()));
      }
      for (size_t i = 0; i < values.size(); ++i) {
        if (function_.type_of(values[i]) == parameters[i].type) continue;
        ir::fail("invalid_program", op.location,
                 fmt::format("{} {} of @{} is {}, got {}", what, i, callee.name, to_string(parameters[i].type),
                             to_string(function_.type_of(values[i]))));
      }
    };
    compare(op.operands, callee.arguments, "argument");
    compare(op.results, callee.results, "result");
  }

  const ir::Function& function_;
  const FunctionIndex& functions_;
};

}  // namespace

const ir::Op* first_undefined_use(const ir::Function& function) {
  std::vector<bool> defined(function.values.size());
  return undefined_use(function.body, defined);
}

void verify(const ir::Module& module) {
  static_cast<void>(module.main());
  verify_meshes(module);
  callees_first(module);
  FunctionIndex functions;
  for (const ir::Function& function : module.functions) functions.emplace(function.name, &function);
  for (const ir::Function& function : module.functions) {
    if (const ir::Op* op = first_undefined_use(function)) {
      ir::fail("invalid_program", op->location, "'" + op->name + "' uses a value that is not defined above it");
    }
    try {
      FunctionVerifier(function, functions).run();
      verify_shardings(function);
    } catch (const core::Error& error) {
      if (error.diagnostics().empty()) ir::fail(error.code(), function.location, error.detail());
      throw;
    }
  }
}

}  // namespace meshd::program
