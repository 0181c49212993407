#include "service/program/op_facts.h"

#include <algorithm>

#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/ops/op_constraints.h"
#include "service/ops/op_def.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"

namespace meshd::program {
namespace {

/// The instance of `def` that an example shows, with its types.
struct Instance {
  ir::ModuleRef module;
  const ir::Op* op = nullptr;
  std::vector<ir::Type> operands;
  std::vector<ir::Type> results;

  [[nodiscard]] ops::OpView view() const {
    return {operands, results, &op->attributes, op->regions, &module->main(), &op->location, op};
  }
};

/// Written in other ops by legalize_quantized, for all types.
bool is_conversion(const ops::OpDef& def) { return def.quantized.form == ops::QuantizedForm::kConvert; }

/// Nothing where the text is refused or does not have the op in @main.
std::optional<Instance> instance_of(const std::string& text, std::string_view name) {
  try {
    Instance out;
    out.module = parse_stablehlo(text);
    const ir::Function& main = out.module->main();
    out.op = ir::first_op(main.body, [&](const ir::Op& op) { return op.name == name; });
    if (out.op == nullptr) return std::nullopt;
    out.operands = main.types_of(out.op->operands);
    out.results = main.types_of(out.op->results);
    return out;
  } catch (const core::Error&) {
    return std::nullopt;
  }
}

/// Whether the instance has a kernel; a decomposed op has one if its parts do.
bool is_ready(const ops::OpDef& def, const Instance& instance) {
  try {
    if (def.expand == nullptr) {
      ops::check_runnable(def, instance.view());
      return true;
    }
    const ir::Module flat = specialise(inline_calls(*instance.module));
    const ir::Function& main = flat.main();
    for (const ir::Op& op : main.body.ops) {
      ops::OpInstance part(main, op);
      part.view.op = &op;
      ops::check_runnable(ops::op(op.code), part.view);
    }
    return true;
  } catch (const core::Error&) {
    return false;
  }
}

std::string_view how(const ops::OpDef& def) {
  if (def.expand != nullptr || is_conversion(def)) return "composed";
  if (std::holds_alternative<ops::ScalarMath>(def.body)) return "pointwise";
  if (std::holds_alternative<ops::LocalKernel>(def.body)) return "kernel";
  if (std::holds_alternative<ops::GroupKernel>(def.body)) return "collective";
  if (std::holds_alternative<ops::Structural>(def.body)) return "structural";
  return "refused";
}

/// `text` with one element type for another in all tensor types.
std::string replaced(const std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool is_type = at > 0 && (text[at - 1] == '<' || text[at - 1] == 'x') &&
                         text.compare(at, from.size(), from) == 0 && text.compare(at + from.size(), 1, ">") == 0;
    if (is_type) {
      out += to;
      at += from.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

/// 1.000000e+00 as 1, everywhere.
std::string without_points(std::string text) {
  constexpr std::string_view kExponent = "e+00";
  for (size_t end = text.find(kExponent); end != std::string::npos; end = text.find(kExponent, end)) {
    const size_t point = text.find_last_not_of("0123456789", end - 1);
    if (point == std::string::npos || text[point] != '.') {
      end += kExponent.size();
      continue;
    }
    text.erase(point, end + kExponent.size() - point);
    end = point;
  }
  return text;
}

/// An example as it would be written for elements of `to` in place of `from`: types, the parts of complex ones, numbers
/// and kinds of comparison.
std::vector<std::string> variants(std::string text, tensor::DType from, tensor::DType to) {
  constexpr std::string_view kMark = "@";
  const auto word = [](tensor::DType dtype) { return tensor::row(dtype).stablehlo; };
  text = replaced(text, word(from), kMark);
  if (tensor::is_complex(from)) text = replaced(text, word(part_of(from)), word(part_of(to)));
  text = replaced(text, kMark, word(to));
  const char* kind = tensor::is_float(to) ? ", FLOAT" : tensor::is_signed_integer(to) ? ", SIGNED" : ", UNSIGNED";
  std::string compared = text;
  for (const std::string_view other : {", SIGNED", ", FLOAT"}) {
    const size_t at = compared.find(other);
    if (at != std::string::npos) compared.replace(at, other.size(), kind);
  }
  return {text, without_points(text), compared};
}

std::vector<std::string_view> dtypes_of(const ops::OpDef& def, const Instance& example) {
  const auto& types = example.operands.empty() ? example.results : example.operands;
  const auto is_tensor = [](const ir::Type& type) { return type.is_tensor(); };
  // A condition in front is not what an op is about.
  auto first = std::find_if(types.begin(), types.end(), [&](const ir::Type& type) {
    return is_tensor(type) && type.dtype() != tensor::DType::kBool;
  });
  if (first == types.end()) first = std::find_if(types.begin(), types.end(), is_tensor);
  if (first == types.end()) return {};
  std::vector<std::string_view> out;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    for (const std::string& text : variants(std::string(def.example), first->dtype(), row.dtype)) {
      const auto instance = instance_of(text, def.name);
      if (!instance || !is_ready(def, *instance)) continue;
      out.push_back(row.name);
      break;
    }
  }
  return out;
}

}  // namespace

std::vector<OpFacts> all_op_facts() {
  std::vector<OpFacts> out;
  for (const ops::OpDef& def : ops::all_ops()) {
    OpFacts facts;
    facts.def = &def;
    facts.how = how(def);
    facts.runs = facts.how != "refused";
    facts.constraints = ops::constraints_of(def);
    if (const auto example = instance_of(std::string(def.example), def.name)) {
      if (facts.runs && facts.how != "structural" && facts.how != "collective") facts.dtypes = dtypes_of(def, *example);
      const auto rule = ops::rule_of(def, example->view());
      if (rule) facts.sharding_rule = sharding::to_sdy(*rule);
    }
    out.push_back(std::move(facts));
  }
  return out;
}

}  // namespace meshd::program
