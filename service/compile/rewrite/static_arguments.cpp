#include "service/compile/rewrite/static_arguments.h"

#include <fmt/core.h>

#include "service/compile/rewrite/specialised.h"
#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/ir/op_builder.h"
#include "service/ops/op_def.h"

namespace meshd::compile {
namespace {

// Positions in the text's argument list that are static, with their values.
using Constants = std::map<size_t, const tensor::DenseValue*>;

// Removes the parameters from the signature; a body begins with the constants.
void bind(ir::Function& function, const Constants& constants) {
  std::vector<ir::Parameter> arguments;
  std::vector<ir::ValueId> values;
  std::vector<ir::Op> ops;
  ir::OpBuilder builder(function, ops::code_of, ops);
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    const auto found = constants.find(i);
    const ir::ValueId id = function.body.arguments[i];
    if (found == constants.end()) {
      arguments.push_back(std::move(function.arguments[i]));
      values.push_back(id);
      continue;
    }
    const tensor::DenseValue& given = *found->second;
    function.values[static_cast<size_t>(id)].type = ir::Type::of(given.type);
    builder.set_location(function.arguments[i].location);
    builder.define({id}, "stablehlo.constant", {},
                   {{"value",
                     {ir::DenseAttr{given.type, false,
                                    std::make_shared<const std::vector<std::byte>>(given.bytes().begin(),
                                                                                   given.bytes().end())}}}});
  }
  function.arguments = std::move(arguments);
  function.body.arguments = std::move(values);
  function.body.ops.insert(function.body.ops.begin(), std::make_move_iterator(ops.begin()),
                           std::make_move_iterator(ops.end()));
}

ir::ModuleRef bound(const ir::Module& module, const Constants& constants) {
  auto made = std::make_shared<ir::Module>(module);
  for (ir::Function& function : made->functions) {
    if (function.name == module.main().name) bind(function, constants);
  }
  return made;
}

}  // namespace

std::string static_id(const ParsedProgram& parsed, const std::map<size_t, tensor::DenseValue>& values) {
  std::string key;
  for (const auto& [position, value] : values) {
    const tensor::TensorType& wanted = parsed.argument(position).type.tensor;
    if (!fits(value.type, wanted)) {
      throw core::Error("invalid_argument",
                        fmt::format("static argument {}: expected tensor<{}>, got tensor<{}>", position,
                                    tensor::to_string(wanted), tensor::to_string(value.type)));
    }
    key += fmt::format("{}:{}:{};", position, tensor::to_string(value.type),
                       std::string(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size()));
  }
  return parsed.id + "," + core::digest_id("static", key);
}

ParsedRef with_static(std::string id, const ParsedProgram& parsed, const std::map<size_t, tensor::DenseValue>& values) {
  auto made = std::make_shared<ParsedProgram>(parsed);
  made->id = std::move(id);
  made->derivation.emplace_back(StaticStep{values});
  Constants constants;
  for (const auto& [position, value] : values) constants.emplace(parsed.arguments[position], &value);
  made->module = bound(*parsed.module, constants);
  made->flat = bound(*parsed.flat, constants);
  made->arguments.clear();
  const std::vector<ir::Parameter>& arguments = made->module->main().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_token) made->arguments.push_back(i);
  }
  return made;
}

}  // namespace meshd::compile
