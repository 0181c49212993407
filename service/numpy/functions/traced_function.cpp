#include "service/numpy/functions/traced_function.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "service/ir/op_builder.h"
#include "service/ir/region_utils.h"
#include "service/ir/walk.h"
#include "service/ops/op_def.h"
#include "service/program/transform/specialise.h"

namespace meshd::numpy {

namespace {

// Makes the values that `function`, whose body was written in `written_in`, has of its own and numbers from 0: a table
// of all those of the program would double with each function that is traced and inserted.
void take_own_values(ir::Function& function, const ir::Function& written_in) {
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  const auto take = [&](ir::ValueId id) { names[id] = function.add_value(ir::Type(written_in.type_of(id))); };
  for (const ir::ValueId id : function.body.arguments) take(id);
  ir::walk(function.body, [&](const ir::Op& op) {
    for (const ir::ValueId id : op.results) take(id);
    for (const ir::Region& region : op.regions) {
      for (const ir::ValueId id : region.arguments) take(id);
    }
  });
  for (ir::ValueId& id : function.body.arguments) id = names[id];
  for (ir::Op& op : function.body.ops) ir::rename_values(op, names);
}

}  // namespace

TracedFunction trace_function(Tracer& t, const std::vector<WeakType>& types, const std::vector<tensor::Dims>& dims,
                              std::string_view what, const std::function<Value(const std::vector<Array>&)>& body) {
  if (t.has_effects()) t.unsupported(std::string(what) + " in a program that logs");
  ir::Function& here = t.writer().function();
  std::vector<Array> parameters;
  std::vector<ir::ValueId> fresh;
  for (size_t i = 0; i < types.size(); ++i) {
    fresh.push_back(here.add_value(ir::Type::of({types[i].dtype, dims[i]})));
    parameters.push_back(t.array_of(fresh.back(), types[i].weak));
  }
  TracedFunction out;
  ir::Module module;
  ir::Function& main = module.functions.emplace_back();
  main.name = "main";
  main.is_public = true;
  std::vector<ir::ValueId> results;
  {
    const ArrayBuilder::InsideRegion inside(t, main.body);
    out.made = map_leaves(body(parameters), [&](const Value& leaf) {
      if (leaf.array() == nullptr && !leaf.is_number()) return leaf;
      out.results.push_back(t.array(leaf));
      results.push_back(out.results.back().id);
      return Value(out.results.back());
    });
  }
  ir::OpBuilder(main, ops::code_of, main.body.ops, t.writer().location()).create("func.return", results, {});
  const ir::Region* const bodies[] = {&main.body};
  out.captured = ir::used_values_defined_above(bodies);
  std::erase_if(out.captured, [&](ir::ValueId id) { return std::find(fresh.begin(), fresh.end(), id) != fresh.end(); });
  for (const auto* list : {&fresh, &out.captured}) {
    for (const ir::ValueId id : *list) {
      main.body.arguments.push_back(id);
      main.arguments.emplace_back().type = here.type_of(id);
    }
  }
  for (const ir::ValueId id : results) main.results.emplace_back().type = here.type_of(id);
  take_own_values(main, here);
  out.module = program::specialise(module);
  return out;
}

std::vector<ir::ValueId> insert_main(Tracer& t, const ir::Module& module, const std::vector<ir::ValueId>& arguments) {
  const ir::Function& function = module.main();
  ir::Function& here = t.writer().function();
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  for (size_t i = 0; i < arguments.size(); ++i) names[function.body.arguments[i]] = arguments[i];
  for (size_t i = 0; i < function.values.size(); ++i) {
    const auto id = static_cast<ir::ValueId>(i);
    if (names.count(id) == 0) names[id] = here.add_value(function.values[i].type);
  }
  std::vector<ir::ValueId> results;
  for (const ir::Op& op : function.body.ops) {
    ir::Op copy = op;
    ir::rename_values(copy, names);
    if (&op == &function.body.ops.back()) {
      results = copy.operands;
    } else {
      t.count_op();
      t.writer().insert(std::move(copy));
    }
  }
  return results;
}

Value with_arrays(const Value& made, const std::vector<Value>& leaves) {
  size_t at = 0;
  return map_leaves(made, [&](const Value& leaf) { return leaf.array() == nullptr ? leaf : leaves.at(at++); });
}

}  // namespace meshd::numpy
