#include "service/numpy/functions/derivatives.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "service/numpy/functions/mapping.h"
#include "service/numpy/functions/table.h"
#include "service/numpy/functions/traced_function.h"
#include "service/program/gradient/gradient.h"
#include "service/tensor/shape.h"

namespace meshd::numpy {
namespace {

bool is_inexact(DType dtype) { return tensor::is_float(dtype) || tensor::is_complex(dtype); }

// The arguments that are differentiated, one by one and leaf by leaf.
struct Chosen {
  std::vector<Value> arguments;
  std::vector<Array> leaves;
};

Chosen chosen_of(Tracer& t, const std::string& name, const Differentiated& what, const CallArguments& given) {
  Chosen out;
  for (const int64_t number : what.argnums) {
    if (number < 0 || number >= static_cast<int64_t>(given.positional.size()))
      t.refuse(fmt::format("argnums {}, but there are {} positional arguments", number, given.positional.size()));
    out.arguments.push_back(map_leaves(given.positional[static_cast<size_t>(number)], [&](const Value& leaf) -> Value {
      const Array x = t.array(leaf);
      if (!is_inexact(x.dtype()))
        t.refuse(fmt::format("{} takes floats, got {}; argnums chooses other arguments", name, describe(Value(x))));
      out.leaves.push_back(x);
      return x;
    }));
  }
  return out;
}

// The function with its chosen arguments as parameters.
TracedFunction traced(Tracer& t, const std::string& name, const Differentiated& what, const Chosen& chosen,
                      const CallArguments& given, const std::function<void(const Value&)>& check) {
  std::vector<WeakType> types;
  std::vector<tensor::Dims> dims;
  for (const Array& leaf : chosen.leaves) {
    types.push_back({leaf.dtype(), leaf.weak});
    dims.push_back(leaf.dims());
  }
  return trace_function(t, types, dims, name, [&](const std::vector<Array>& parameters) {
    CallArguments arguments = given;
    size_t at = 0;
    for (size_t i = 0; i < what.argnums.size(); ++i)
      arguments.positional[static_cast<size_t>(what.argnums[i])] =
          map_leaves(chosen.arguments[i], [&](const Value&) -> Value { return parameters.at(at++); });
    Value made = t.call(what.function, std::move(arguments));
    const Sequence* both = made.sequence();
    if (what.has_aux && (both == nullptr || both->items.size() != 2))
      t.refuse("a function with has_aux gives (value, aux), got " + describe(made));
    check(what.has_aux ? both->items[0] : made);
    return made;
  });
}

Value one_or_all(std::vector<Value> values, bool one) {
  return one ? std::move(values[0]) : tuple_of(std::move(values));
}

// The values of a tree like `like`, each of its leaf's type.
std::vector<ir::ValueId> typed_leaves(Tracer& t, const Value& given, const Value& like, const std::string& what) {
  if (!same_structure(given, like))
    t.refuse(fmt::format("{} have the structure {}, expected {}", what, structure_text(given), structure_text(like)));
  const std::vector<Value> leaves = leaves_of(given);
  const std::vector<Value> wanted = leaves_of(like);
  std::vector<ir::ValueId> out;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Array& type = *wanted[i].array();
    if (t.dims_of(leaves[i]) != type.dims() ||
        (leaves[i].array() != nullptr && leaves[i].array()->dtype() != type.dtype()))
      t.refuse(fmt::format("{} are of the types of what they belong to: expected {}, got {}", what, describe(wanted[i]),
                           describe(leaves[i])));
    out.push_back(t.typed(leaves[i], type.type).id);
  }
  return out;
}

std::vector<size_t> numbers_from(size_t first, size_t count) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace

Value gradient_of(Tracer& t, const Differentiated& what, bool with_value, const CallArguments& given) {
  const Chosen chosen = chosen_of(t, "grad", what, given);
  const TracedFunction function = traced(t, "grad", what, chosen, given, [&](const Value& loss) {
    if (loss.array() == nullptr && !loss.is_number())
      t.refuse("grad takes a function that gives a scalar, got " + describe(loss));
    const Array scalar = t.array(loss);
    if (scalar.rank() != 0 || !tensor::is_float(scalar.dtype()))
      t.refuse("grad takes a function that gives a real scalar, got " + describe(Value(scalar)));
  });
  program::GradientRequest request;
  request.arguments = numbers_from(0, chosen.leaves.size());
  request.results = {0};
  request.keeps_results = true;
  std::vector<ir::ValueId> values;
  for (const Array& leaf : chosen.leaves) values.push_back(leaf.id);
  values.insert(values.end(), function.captured.begin(), function.captured.end());
  const std::vector<ir::ValueId> all = insert_main(t, program::gradient(function.module, request), values);
  std::vector<Value> results;
  for (const Array& result : function.results) results.emplace_back(t.array_of(all.at(results.size()), result.weak));
  size_t next = results.size();
  const Value outcome = with_arrays(function.made, results);
  std::vector<Value> gradients;
  for (const Value& argument : chosen.arguments)
    gradients.push_back(map_leaves(argument, [&](const Value&) -> Value { return t.array_of(all.at(next++)); }));
  const Value slopes = one_or_all(std::move(gradients), what.one_argnum);
  if (with_value) return tuple_of({outcome, slopes});
  return what.has_aux ? tuple_of({slopes, outcome.sequence()->items[1]}) : slopes;
}

struct Linearised::Parts {
  std::string name;
  TracedFunction function;
  std::vector<ir::ValueId> arguments;  // of the function's module
  size_t primal_count = 0;
  size_t value_count = 0;  // results that are the value's, not aux's
  Value value, aux, primals;

  // Takes the arguments of the function's module, then the cotangents of its value. Made at the first call.
  const ir::Module& pulled() {
    if (!pulled_) {
      program::GradientRequest request;
      request.arguments = numbers_from(0, primal_count);
      request.results = numbers_from(0, value_count);
      request.takes_cotangents = true;
      pulled_ = program::gradient(function.module, request);
    }
    return *pulled_;
  }

 private:
  std::optional<ir::Module> pulled_;
};

Linearised::Linearised(Tracer& t, std::string name, const Differentiated& what, const CallArguments& given)
    : parts_(std::make_shared<Parts>()) {
  Parts& parts = *parts_;
  parts.name = std::move(name);
  const Chosen chosen = chosen_of(t, parts.name, what, given);
  parts.function = traced(t, parts.name, what, chosen, given, [&](const Value& value) {
    for_each_leaf(value, [&](const Value& leaf) {
      if ((leaf.array() == nullptr && !leaf.is_number()) || !is_inexact(t.type_of(leaf).dtype))
        t.refuse(
            fmt::format("{} takes a function that gives floats, got {}; has_aux=True lets it give others beside them",
                        parts.name, describe(leaf)));
      ++parts.value_count;
    });
  });
  for (const Array& leaf : chosen.leaves) parts.arguments.push_back(leaf.id);
  parts.primal_count = parts.arguments.size();
  parts.arguments.insert(parts.arguments.end(), parts.function.captured.begin(), parts.function.captured.end());
  const std::vector<ir::ValueId> made = insert_main(t, parts.function.module, parts.arguments);
  std::vector<Value> results;
  for (const Array& result : parts.function.results)
    results.emplace_back(t.array_of(made.at(results.size()), result.weak));
  const Value outcome = with_arrays(parts.function.made, results);
  parts.value = what.has_aux ? outcome.sequence()->items[0] : outcome;
  if (what.has_aux) parts.aux = outcome.sequence()->items[1];
  parts.primals = one_or_all(chosen.arguments, what.one_argnum);
}

Linearised::~Linearised() = default;
Linearised::Linearised(Linearised&&) noexcept = default;
Linearised& Linearised::operator=(Linearised&&) noexcept = default;

const Value& Linearised::value() const { return parts_->value; }
const Value& Linearised::aux() const { return parts_->aux; }
const Value& Linearised::primals() const { return parts_->primals; }

Value Linearised::pull_back(Tracer& t, const Value& cotangents) const {
  Parts& parts = *parts_;
  std::vector<ir::ValueId> arguments = parts.arguments;
  for (const ir::ValueId id : typed_leaves(t, cotangents, parts.value, "the cotangents")) arguments.push_back(id);
  const std::vector<ir::ValueId> made = insert_main(t, parts.pulled(), arguments);
  size_t next = 0;
  return map_leaves(parts.primals, [&](const Value&) -> Value { return t.array_of(made.at(next++)); });
}

Value Linearised::push_forward(Tracer& t, const Value& tangents) const {
  Parts& parts = *parts_;
  const ir::Module& pulled = parts.pulled();
  // Pulling back is linear in the cotangents, so that its transpose is the same at all of them: at zeros.
  program::GradientRequest transposed;
  transposed.arguments = numbers_from(parts.arguments.size(), parts.value_count);
  transposed.results = numbers_from(0, parts.primal_count);
  transposed.takes_cotangents = true;
  std::vector<ir::ValueId> arguments = parts.arguments;
  for_each_leaf(parts.value,
                [&](const Value& leaf) { arguments.push_back(t.full_like(*leaf.array(), int64_t{0}).id); });
  for (const ir::ValueId id : typed_leaves(t, tangents, parts.primals, "the tangents")) arguments.push_back(id);
  const std::vector<ir::ValueId> made = insert_main(t, program::gradient(pulled, transposed), arguments);
  size_t next = 0;
  return map_leaves(parts.value, [&](const Value&) -> Value { return t.array_of(made.at(next++)); });
}

namespace {

// `tree` with zeros at its leaves, but for leaf `number`, which is `value`.
Value zeros_but(Tracer& t, const Value& tree, size_t number, const Value& value) {
  size_t at = 0;
  return map_leaves(tree, [&](const Value& leaf) -> Value {
    return at++ == number ? value : Value(t.full_like(*leaf.array(), int64_t{0}));
  });
}

// What `linear` gives for each element of leaf `number` of `tree`, the elements in front.
Value over_basis(Tracer& t, const Value& tree, size_t number,
                 const std::function<Value(Tracer&, const Value&)>& linear) {
  const Array leaf = *leaves_of(tree)[number].array();
  const int64_t count = tensor::element_count(leaf.type);
  const tensor::TensorType square{DType::kInt32, {count, count}};
  const Array identity = t.convert(t.compare("EQ", t.iota(square, 0), t.iota(square, 1)), leaf.dtype());
  tensor::Dims dims = leaf.dims();
  dims.insert(dims.begin(), count);
  auto row = std::make_shared<Callable>();
  row->name = "a row of a Jacobian";
  row->call = [&](Tracer& inner, CallArguments given) {
    return linear(inner, zeros_but(inner, tree, number, given.positional.at(0)));
  };
  return mapped_call(t, CallableRef(std::move(row)), {}, {{t.reshape(identity, dims)}, {}});
}

tensor::Dims joined_dims(const Array& a, const Array& b) {
  tensor::Dims out = a.dims();
  out.insert(out.end(), b.dims().begin(), b.dims().end());
  return out;
}

}  // namespace

Value jacobian_of(Tracer& t, const Differentiated& what, bool forward, const CallArguments& given) {
  const Linearised at(t, forward ? "jacfwd" : "jacrev", what, given);
  const std::vector<Value> values = leaves_of(at.value());
  const std::vector<Value> primals = leaves_of(at.primals());
  // By leaf of the value, then of the arguments.
  std::vector<std::vector<Value>> parts(values.size(), std::vector<Value>(primals.size()));
  for (size_t i = 0; i < (forward ? primals : values).size(); ++i) {
    const Value rows =
        forward ? over_basis(t, at.primals(), i,
                             [&](Tracer& inner, const Value& tangents) { return at.push_forward(inner, tangents); })
                : over_basis(t, at.value(), i,
                             [&](Tracer& inner, const Value& cotangents) { return at.pull_back(inner, cotangents); });
    const std::vector<Value> leaves = leaves_of(rows);
    for (size_t k = 0; k < leaves.size(); ++k) {
      Array made = *leaves[k].array();
      const Array& value = *values[forward ? k : i].array();
      const Array& primal = *primals[forward ? i : k].array();
      if (forward) {
        std::vector<int64_t> order(made.dims().size());
        std::iota(order.begin(), order.end(), 1);
        order.back() = 0;
        made = t.transpose(made, order);
      }
      parts[forward ? k : i][forward ? i : k] = t.reshape(made, joined_dims(value, primal));
    }
  }
  size_t next = 0;
  Value out = map_leaves(at.value(), [&](const Value&) {
    const std::vector<Value>& row = parts.at(next++);
    size_t leaf = 0;
    return map_leaves(at.primals(), [&](const Value&) { return row.at(leaf++); });
  });
  return what.has_aux ? tuple_of({std::move(out), at.aux()}) : out;
}

}  // namespace meshd::numpy
