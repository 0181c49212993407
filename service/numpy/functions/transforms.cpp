// Functions of functions: jit, vmap, derivatives, and those that are refused by name.
#include "service/numpy/functions/derivatives.h"
#include "service/numpy/functions/mapping.h"
#include "service/numpy/functions/shared.h"

namespace meshd::numpy {
namespace {

CallableRef callable(std::string name, std::function<Value(Tracer&, CallArguments)> call) {
  auto made = std::make_shared<Callable>();
  made->name = std::move(name);
  made->call = std::move(call);
  return made;
}

Value vmap(Tracer& t, const Arguments& a) {
  Mapping mapping{a["in_axes"], a["out_axes"]};
  if (!a["axis_size"].is_none()) mapping.axis_size = t.to_int(a["axis_size"], "axis_size");
  return callable("vmap", [function = a["fun"], mapping](Tracer& inner, const CallArguments& arguments) {
    return mapped_call(inner, function, mapping, arguments);
  });
}

using Derivative = std::function<Value(Tracer&, const Differentiated&, const CallArguments&)>;

// A function whose result is called with the arguments of the one that is differentiated.
FunctionRow derivative_row(std::string path, Derivative run) {
  const std::string name = path.substr(path.find('.') + 1);
  return {std::move(path), "fun, argnums=0, has_aux=False", [name, run](Tracer& t, const Arguments& a) -> Value {
            Differentiated what{a["fun"], t.to_ints(a["argnums"], "argnums"), a["argnums"].sequence() == nullptr,
                                t.to_bool(a["has_aux"], "has_aux")};
            if (what.argnums.empty()) t.refuse("argnums names at least one argument");
            return callable(name, [run, what = std::move(what)](Tracer& inner, const CallArguments& arguments) {
              return run(inner, what, arguments);
            });
          }};
}

// All of `primals` are differentiated, and derivatives are tuples like them.
Linearised linearised(Tracer& t, const std::string& name, const Value& function, const std::vector<Value>& primals,
                      bool has_aux) {
  Differentiated what{function, {}, false, has_aux};
  for (size_t i = 0; i < primals.size(); ++i) what.argnums.push_back(static_cast<int64_t>(i));
  if (primals.empty()) t.refuse(name + " takes arguments to differentiate with respect to");
  return {t, name, what, {primals, {}}};
}

Value vjp(Tracer& t, const Arguments& a) {
  const bool has_aux = t.to_bool(a["has_aux"], "has_aux");
  auto at = std::make_shared<Linearised>(linearised(t, "vjp", a["fun"], a.all("primals"), has_aux));
  const Value back = callable("the function that vjp gives", [at](Tracer& inner, const CallArguments& given) {
    if (given.positional.size() != 1 || !given.keywords.empty())
      inner.refuse("the function that vjp gives takes one argument, the cotangents of what the function gave");
    return at->pull_back(inner, given.positional[0]);
  });
  return has_aux ? tuple_of({at->value(), back, at->aux()}) : tuple_of({at->value(), back});
}

Value jvp(Tracer& t, const Arguments& a) {
  const bool has_aux = t.to_bool(a["has_aux"], "has_aux");
  const Linearised at = linearised(t, "jvp", a["fun"], t.to_items(a["primals"], "primals"), has_aux);
  const Value tangents = at.push_forward(t, tuple_of(t.to_items(a["tangents"], "tangents")));
  return has_aux ? tuple_of({at.value(), tangents, at.aux()}) : tuple_of({at.value(), tangents});
}

Value linearize(Tracer& t, const Arguments& a) {
  auto at = std::make_shared<Linearised>(linearised(t, "linearize", a["fun"], a.all("primals"), false));
  const Value forward = callable("the function that linearize gives", [at](Tracer& inner, const CallArguments& given) {
    if (!given.keywords.empty()) inner.refuse("the function that linearize gives takes no arguments with names");
    return at->push_forward(inner, tuple_of(given.positional));
  });
  return tuple_of({at->value(), forward});
}

Derivative jacobian(bool forward) {
  return [forward](Tracer& t, const Differentiated& what, const CallArguments& given) {
    return jacobian_of(t, what, forward, given);
  };
}

// The Jacobian of the Jacobian. Aux comes from the inner one.
Value hessian_of(Tracer& t, const Differentiated& what, const CallArguments& given) {
  Differentiated outer = what;
  outer.function = callable("jacrev", [what](Tracer& inner, const CallArguments& arguments) {
    return jacobian_of(inner, what, false, arguments);
  });
  return jacobian_of(t, outer, false, given);
}

// The function itself: what runs is compiled in any case.
Value as_it_is(Tracer&, const Arguments& a) {
  if (!a["fun"].is_none()) return a["fun"];
  // @jit(static_argnames=...): a decorator to be.
  return callable("jit", [](Tracer& t, const CallArguments& arguments) {
    if (arguments.positional.size() != 1) t.refuse("a decorator takes one function");
    return arguments.positional[0];
  });
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
      {"jax.vmap", "fun, in_axes=0, out_axes=0, axis_size=None", vmap},
      derivative_row("jax.grad", [](Tracer& t, const Differentiated& what,
                                    const CallArguments& given) { return gradient_of(t, what, false, given); }),
      derivative_row("jax.value_and_grad",
                     [](Tracer& t, const Differentiated& what, const CallArguments& given) {
                       return gradient_of(t, what, true, given);
                     }),
      derivative_row("jax.jacfwd", jacobian(true)),
      derivative_row("jax.jacrev", jacobian(false)),
      derivative_row("jax.jacobian", jacobian(false)),
      derivative_row("jax.hessian", hessian_of),
      {"jax.vjp", "fun, *primals, has_aux=False", vjp},
      {"jax.jvp", "fun, primals, tangents, has_aux=False", jvp},
      {"jax.linearize", "fun, *primals", linearize},
      refused("jax.pmap", "pmap (meshes and partition specs shard programs)"),
      refused("jax.shard_map", "shard_map (with_sharding_constraint shards programs)"),
      refused("jax.pure_callback", "pure_callback"),
  };
}

}  // namespace meshd::numpy
