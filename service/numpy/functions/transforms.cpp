// Functions of functions: jit, vmap, and those that are refused by name.
#include <algorithm>

#include "service/numpy/functions/derivatives.h"
#include "service/numpy/functions/shared.h"

namespace meshd::numpy {
namespace {

// So many rows are traced one by one; more of them in a loop.
constexpr int64_t kMostUnrolledRows = 8;

// The axis of each leaf of an argument: an int or None for all of them, or a tree like the argument.
void add_axes(Tracer& t, const Value& axes, const Value& argument, std::vector<std::optional<int64_t>>& out) {
  if (axes.sequence() != nullptr || axes.is<DictRef>()) {
    if (!same_structure(axes, argument))
      t.refuse("in_axes " + structure_text(axes) + " has not the structure of its argument, " +
               structure_text(argument));
    for_each_leaf(axes, [&](const Value& axis) { out.emplace_back(t.to_int(axis, "an axis of vmap")); });
    return;
  }
  for_each_leaf(argument, [&](const Value&) {
    out.push_back(axes.is_none() ? std::nullopt : std::optional(t.to_int(axes, "an axis of vmap")));
  });
}

Array to_front(Tracer& t, const Array& x, int64_t axis) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != axis) order.push_back(i);
  }
  order.insert(order.begin(), axis);
  return t.transpose(x, order);
}

// f over the leading axes of its arguments: a loop whose body is f of one row.
Value mapped_call(Tracer& t, const Value& function, const Value& in_axes, const CallArguments& given) {
  if (!given.keywords.empty()) t.unsupported("arguments with names for a function that vmap made");
  std::vector<Value> arguments = given.positional;
  std::vector<std::optional<int64_t>> axes;
  if (in_axes.sequence() != nullptr) {
    if (in_axes.sequence()->items.size() != arguments.size())
      t.refuse("in_axes has " + std::to_string(in_axes.sequence()->items.size()) + " entries for " +
               std::to_string(arguments.size()) + " arguments");
    for (size_t i = 0; i < arguments.size(); ++i) add_axes(t, in_axes.sequence()->items[i], arguments[i], axes);
  } else {
    for (const Value& argument : arguments) add_axes(t, in_axes, argument, axes);
  }
  std::optional<int64_t> rows;
  size_t leaf_number = 0;
  for (Value& argument : arguments) {
    argument = map_leaves(argument, [&](const Value& leaf) -> Value {
      const std::optional<int64_t> axis = axes.at(leaf_number++);
      if (!axis) return leaf;
      const Array x = t.array(leaf);
      const Array front = to_front(t, x, t.axis_of(*axis, x.rank()));
      if (rows && *rows != front.dims()[0])
        t.refuse("vmap goes over axes of different sizes, " + std::to_string(*rows) + " and " +
                 std::to_string(front.dims()[0]));
      rows = front.dims()[0];
      return front;
    });
  }
  if (!rows) t.refuse("vmap goes over no axis: in_axes is None for every argument");
  if (*rows == 0) t.unsupported("vmap over no rows");
  const auto row = [&](const Value& index) {
    std::vector<Value> out;
    size_t at = 0;
    for (const Value& argument : arguments) {
      out.push_back(
          map_leaves(argument, [&](const Value& leaf) { return axes.at(at++) ? t.subscript(leaf, index) : leaf; }));
    }
    return t.call(function, std::move(out));
  };
  const auto as_row = [&](const Value& leaf) {
    const Array x = t.array(leaf);
    tensor::Dims dims = x.dims();
    dims.insert(dims.begin(), 1);
    return t.reshape(x, dims);
  };
  if (*rows <= kMostUnrolledRows) {
    std::vector<std::vector<Array>> columns;
    Value kind;
    for (int64_t i = 0; i < *rows; ++i) {
      kind = row(i);
      size_t at = 0;
      for_each_leaf(kind, [&](const Value& leaf) {
        if (columns.size() <= at) columns.emplace_back();
        columns[at++].push_back(as_row(leaf));
      });
    }
    size_t at = 0;
    return map_leaves(kind, [&](const Value&) -> Value { return t.concatenate(columns[at++], 0); });
  }
  const Value zero = t.full({DType::kInt32, {}}, int64_t{0});
  const Value kind = t.traced_aside([&] { return row(zero); });
  const Value stacked = map_leaves(kind, [&](const Value& leaf) -> Value {
    const Array& y = *leaf.array();
    tensor::Dims dims = y.dims();
    dims.insert(dims.begin(), *rows);
    return t.full({y.dtype(), dims}, int64_t{0}, y.weak);
  });
  return t.counted_loop(int64_t{0}, *rows, int64_t{1}, {stacked}, {"the results of vmap"},
                        [&](const Value& index, const std::vector<Value>& now) {
                          std::vector<Value> leaves;
                          for_each_leaf(row(index), [&](const Value& leaf) { leaves.push_back(leaf); });
                          size_t at = 0;
                          return std::vector<Value>{map_leaves(now[0], [&](const Value& leaf) -> Value {
                            const Array& all = *leaf.array();
                            std::vector<Array> starts(all.dims().size(), t.full({DType::kInt32, {}}, int64_t{0}));
                            starts[0] = t.convert(t.array(index), DType::kInt32);
                            return t.dynamic_update_slice(
                                all, t.convert(as_row(leaves.at(at++)), all.dtype(), all.weak), starts);
                          })};
                        })[0];
}

Value vmap(Tracer& t, const Arguments& a) {
  if (!a["out_axes"].is<int64_t>() || *a["out_axes"].as<int64_t>() != 0)
    t.unsupported("vmap with out_axes that are not 0");
  auto made = std::make_shared<Callable>();
  made->name = "vmap";
  made->call = [function = a["fun"], axes = a["in_axes"]](Tracer& inner, CallArguments arguments) {
    return mapped_call(inner, function, axes, arguments);
  };
  return CallableRef(std::move(made));
}

FunctionRow derivative_row(std::string path, bool with_value) {
  return {std::move(path), "fun, argnums=0, has_aux=False", [with_value](Tracer& t, const Arguments& a) -> Value {
            const std::vector<int64_t> argnums = t.to_ints(a["argnums"], "argnums");
            if (argnums.empty()) t.refuse("argnums names at least one argument");
            auto made = std::make_shared<Callable>();
            made->name = "grad";
            made->call = [function = a["fun"], argnums, with_value, is_one = a["argnums"].sequence() == nullptr,
                          has_aux = t.to_bool(a["has_aux"], "has_aux")](Tracer& inner, CallArguments arguments) {
              return differentiated(inner, function, argnums, is_one, has_aux, with_value, arguments);
            };
            return CallableRef(std::move(made));
          }};
}

// The function itself: what runs is compiled in any case.
Value as_it_is(Tracer&, const Arguments& a) {
  if (!a["fun"].is_none()) return a["fun"];
  // @jit(static_argnames=...): a decorator to be.
  auto made = std::make_shared<Callable>();
  made->name = "jit";
  made->call = [](Tracer& t, CallArguments arguments) {
    if (arguments.positional.size() != 1) t.refuse("a decorator takes one function");
    return arguments.positional[0];
  };
  return CallableRef(std::move(made));
}

FunctionRow refused(std::string path, std::string what) {
  return {std::move(path), "*args, **kwargs",
          [what](Tracer& t, const Arguments&) -> Value { t.unsupported(what + " is not supported yet"); }};
}

}  // namespace

std::vector<FunctionRow> transform_functions() {
  return {
      {"jax.jit", "fun=None, **options", as_it_is},
      {"jax.checkpoint", "fun=None, **options", as_it_is},
      {"jax.vmap", "fun, in_axes=0, out_axes=0", vmap},
      derivative_row("jax.grad", false),
      derivative_row("jax.value_and_grad", true),
      refused("jax.jacfwd", "jacfwd (derivatives)"),
      refused("jax.jacrev", "jacrev (derivatives)"),
      refused("jax.jvp", "jvp (derivatives)"),
      refused("jax.vjp", "vjp (derivatives)"),
      refused("jax.hessian", "hessian (derivatives)"),
      refused("jax.pmap", "pmap (meshes and partition specs shard programs)"),
      refused("jax.shard_map", "shard_map (with_sharding_constraint shards programs)"),
      refused("jax.pure_callback", "pure_callback"),
  };
}

}  // namespace meshd::numpy
