#include "service/compile/rewrite/specialised.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/program/transform/specialise.h"

namespace meshd::compile {
namespace {

bool is_dynamic(const tensor::TensorType& type) {
  return std::count(type.dims.begin(), type.dims.end(), tensor::kDynamicDim) != 0;
}

}  // namespace

bool fits(const tensor::TensorType& given, const tensor::TensorType& declared) {
  return given.dtype == declared.dtype &&
         std::equal(given.dims.begin(), given.dims.end(), declared.dims.begin(), declared.dims.end(),
                    [](int64_t size, int64_t wanted) { return size == wanted || wanted == tensor::kDynamicDim; });
}

bool has_dynamic_arguments(const ParsedProgram& parsed) {
  return std::any_of(parsed.arguments.begin(), parsed.arguments.end(),
                     [&](size_t i) { return is_dynamic(parsed.signature().arguments[i].type.tensor); });
}

std::string specialised_id(const ParsedProgram& parsed, const std::vector<tensor::TensorType>& arguments) {
  std::string id = parsed.id;
  for (const tensor::TensorType& type : arguments) id += fmt::format(",{}", tensor::to_string(type));
  return id;
}

ParsedRef specialised(std::string id, const ParsedProgram& parsed, const std::vector<tensor::TensorType>& arguments) {
  auto made = std::make_shared<ParsedProgram>(parsed);
  made->id = std::move(id);
  made->flat = std::make_shared<const ir::Module>(program::specialise(*parsed.flat, arguments));
  made->is_specialised = true;
  made->derivation.emplace_back(SpecialiseStep{arguments});
  return made;
}

}  // namespace meshd::compile
