// jax.grad and jax.value_and_grad: the function is traced aside, its ops are differentiated (program/gradient), and
// what came of it takes their place.
#include "service/numpy/functions/derivatives.h"

#include <algorithm>
#include <unordered_map>

#include "service/ir/op_builder.h"
#include "service/ir/region_utils.h"
#include "service/ops/op_def.h"
#include "service/program/gradient/gradient.h"
#include "service/program/transform/specialise.h"

namespace meshd::numpy {
namespace {

// Copies the body of a function into the one that is traced; `values` are its arguments. Gives its results.
std::vector<ir::ValueId> insert_body(Tracer& t, const ir::Function& function, const std::vector<ir::ValueId>& values) {
  ir::Function& here = t.writer().function();
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  for (size_t i = 0; i < values.size(); ++i) names[function.body.arguments[i]] = values[i];
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
      t.writer().insert(std::move(copy));
    }
  }
  return results;
}

}  // namespace

Value differentiated(Tracer& t, const Value& function, const std::vector<int64_t>& argnums, bool one_argnum,
                     bool has_aux, bool with_value, const CallArguments& given) {
  ir::Function& here = t.writer().function();
  std::vector<ir::ValueId> actual;  // what the function is differentiated at
  std::vector<ir::ValueId> fresh;
  CallArguments arguments = given;
  for (const int64_t number : argnums) {
    if (number < 0 || number >= static_cast<int64_t>(arguments.positional.size()))
      t.refuse("argnums " + std::to_string(number) + ", but there are " + std::to_string(arguments.positional.size()) +
               " positional arguments");
    Value& argument = arguments.positional[static_cast<size_t>(number)];
    argument = map_leaves(argument, [&](const Value& leaf) -> Value {
      const Array x = t.array(leaf);
      if (!tensor::is_float(x.dtype()))
        t.refuse("grad takes real floats, got " + describe(Value(x)) + "; argnums chooses other arguments");
      actual.push_back(x.id);
      fresh.push_back(here.add_value(ir::Type::of(x.type)));
      return t.array_of(fresh.back(), x.weak);
    });
  }
  ir::Module module;
  ir::Function& main = module.functions.emplace_back();
  main.name = "main";
  main.is_public = true;
  Value made;
  std::vector<ir::ValueId> results;
  {
    const ArrayBuilder::InsideRegion inside(t, main.body);
    made = t.call(function, arguments);
    const Sequence* both = made.sequence();
    if (has_aux && (both == nullptr || both->items.size() != 2))
      t.refuse("a function with has_aux gives (value, aux), got " + describe(made));
    const Value& loss = has_aux ? both->items[0] : made;
    if (loss.array() == nullptr && !loss.is_number())
      t.refuse("grad takes a function that gives a scalar, got " + describe(loss));
    const Array scalar = t.array(loss);
    if (scalar.rank() != 0 || !tensor::is_float(scalar.dtype()))
      t.refuse("grad takes a function that gives a real scalar, got " + describe(Value(scalar)));
    made = map_leaves(made, [&](const Value& leaf) -> Value { return t.array(leaf); });
    for_each_leaf(made, [&](const Value& leaf) { results.push_back(leaf.array()->id); });
  }
  ir::OpBuilder(main, ops::code_of, main.body.ops, t.writer().location()).create("func.return", results, {});
  const ir::Region* const bodies[] = {&main.body};
  std::vector<ir::ValueId> captured = ir::used_values_defined_above(bodies);
  std::erase_if(captured, [&](ir::ValueId id) { return std::find(fresh.begin(), fresh.end(), id) != fresh.end(); });
  main.values = here.values;
  std::vector<ir::ValueId> values = actual;
  values.insert(values.end(), captured.begin(), captured.end());
  for (const auto* list : {&fresh, &captured}) {
    for (const ir::ValueId id : *list) {
      if (main.type_of(id).is_token()) t.unsupported("derivatives in a program that logs");
      main.body.arguments.push_back(id);
      main.arguments.emplace_back().type = main.type_of(id);
    }
  }
  for (const ir::ValueId id : results) main.results.emplace_back().type = main.type_of(id);
  program::GradientRequest request;
  for (size_t i = 0; i < fresh.size(); ++i) request.arguments.push_back(i);
  request.results = {0};
  request.keeps_results = true;
  const ir::Module gradient = program::gradient(program::specialise(module), request);
  const std::vector<ir::ValueId> all = insert_body(t, gradient.main(), values);
  size_t next = 0;
  const Value outcome =
      map_leaves(made, [&](const Value& leaf) -> Value { return t.array_of(all.at(next++), leaf.array()->weak); });
  std::vector<Value> gradients;
  for (const int64_t number : argnums)
    gradients.push_back(map_leaves(given.positional[static_cast<size_t>(number)],
                                   [&](const Value&) -> Value { return t.array_of(all.at(next++)); }));
  const Value slopes = one_argnum ? gradients[0] : tuple_of(gradients);
  if (with_value) return tuple_of({outcome, slopes});
  return has_aux ? tuple_of({slopes, outcome.sequence()->items[1]}) : slopes;
}

}  // namespace meshd::numpy
