// jax.lax's control flow, what a program does beside computing, and shardings.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/near_names.h"
#include "service/numpy/functions/shared.h"
#include "service/numpy/syntax/mistakes.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::numpy {
namespace {

Value call(Tracer& t, const Value& function, std::vector<Value> arguments) {
  return t.call(function, std::move(arguments));
}

Value cond(Tracer& t, const Arguments& a) {
  const Value& test = a["pred"];
  const std::vector<Value>& operands = a.all("operands");
  if (test.array() == nullptr) return call(t, a[t.truth(test, "cond") ? "true_fun" : "false_fun"], operands);
  if (test.array()->rank() != 0) t.refuse("the predicate of cond is a scalar, got " + describe(test));
  const auto side = [&](const char* name) {
    return [&t, &a, &operands, name] { return std::vector<Value>{call(t, a[name], operands)}; };
  };
  return t.branch(t.convert(*test.array(), DType::kBool), {side("true_fun"), side("false_fun")},
                  {"what cond gives"})[0];
}

Value switch_on(Tracer& t, const Arguments& a) {
  const std::vector<Value> branches = t.to_items(a["branches"], "branches");
  const std::vector<Value>& operands = a.all("operands");
  if (branches.empty()) t.refuse("switch takes at least one branch");
  const auto last = static_cast<int64_t>(branches.size()) - 1;
  if (a["index"].array() == nullptr) {
    const int64_t index = std::clamp<int64_t>(t.to_int(a["index"], "index"), 0, last);
    return call(t, branches[static_cast<size_t>(index)], operands);
  }
  if (a["index"].array()->rank() != 0) t.refuse("the index of switch is a scalar, got " + describe(a["index"]));
  Array index = t.convert(*a["index"].array(), DType::kInt32);
  index = t.minimum(t.maximum(index, t.full_like(index, int64_t{0})), t.full_like(index, last));
  std::vector<std::function<std::vector<Value>()>> sides;
  for (const Value& branch : branches)
    sides.emplace_back([&t, branch, &operands] { return std::vector<Value>{call(t, branch, operands)}; });
  return t.branch(index, sides, {"what switch gives"})[0];
}

Value while_loop(Tracer& t, const Arguments& a) {
  return t.loop(
      {a["init_val"]}, {"the carried value"},
      [&](const std::vector<Value>& now) { return call(t, a["cond_fun"], now); },
      [&](const std::vector<Value>& now) { return std::vector<Value>{call(t, a["body_fun"], now)}; })[0];
}

Value fori_loop(Tracer& t, const Arguments& a) {
  return t.counted_loop(a["lower"], a["upper"], int64_t{1}, {a["init_val"]}, {"the carried value"},
                        [&](const Value& index, const std::vector<Value>& now) {
                          return std::vector<Value>{call(t, a["body_fun"], {index, now[0]})};
                        })[0];
}

// The size that all leaves have in front.
int64_t leading_size(Tracer& t, const Value& tree, const char* what) {
  std::optional<int64_t> size;
  for_each_leaf(tree, [&](const Value& leaf) {
    const tensor::Dims dims = t.dims_of(leaf);
    if (dims.empty()) t.refuse(std::string(what) + " goes over a dimension that a scalar does not have");
    if (size && *size != dims[0])
      t.refuse(fmt::format("{} goes over leading dimensions of different sizes, {} and {}", what, *size, dims[0]));
    size = dims[0];
  });
  if (!size) t.refuse(std::string(what) + " has nothing to go over");
  return *size;
}

Value row_of(Tracer& t, const Value& tree, const Value& index) {
  return map_leaves(tree, [&](const Value& leaf) { return t.subscript(Value(t.array(leaf)), index); });
}

Value scan(Tracer& t, const Arguments& a) {
  Value xs = a["xs"];
  const bool has_xs = !xs.is_none();
  if (!has_xs && a["length"].is_none()) t.refuse("scan without xs needs 'length'");
  const int64_t count = has_xs ? leading_size(t, xs, "scan") : t.to_int(a["length"], "length");
  if (has_xs && !a["length"].is_none() && t.to_int(a["length"], "length") != count)
    t.refuse("length is not the size of xs");
  const bool reverse = t.to_bool(a["reverse"], "reverse");
  if (has_xs) xs = map_leaves(xs, [&](const Value& leaf) { return Value(t.array(leaf)); });
  const auto step = [&](const Value& carry, const Value& x) {
    const Value made = call(t, a["f"], {carry, x});
    const Sequence* both = made.sequence();
    if (both == nullptr || both->items.size() != 2)
      t.refuse("the function of scan gives (carry, y), got " + describe(made));
    return std::pair(both->items[0], both->items[1]);
  };
  if (count < 0) t.refuse("length is at least 0");
  const Value zero = t.full({DType::kInt32, {}}, int64_t{0});
  const auto x_at = [&](const Value& index) { return has_xs ? row_of(t, xs, index) : Value(); };
  if (count == 0 && has_xs) t.unsupported("scan over no elements");
  const Value kind = t.traced_aside([&] { return step(a["init"], x_at(zero)).second; });
  const Value stacked = map_leaves(kind, [&](const Value& leaf) -> Value {
    const Array& y = *leaf.array();
    tensor::Dims dims = y.dims();
    dims.insert(dims.begin(), count);
    return t.full({y.dtype(), dims}, int64_t{0});
  });
  const std::vector<Value> made =
      t.counted_loop(int64_t{0}, count, int64_t{1}, {a["init"], stacked}, {"the carry of scan", "the results of scan"},
                     [&](const Value& index, const std::vector<Value>& now) {
                       const Value at = reverse ? t.binary("-", count - 1, index) : index;
                       const auto [carry, y] = step(now[0], x_at(at));
                       std::vector<Value> rows;
                       for_each_leaf(y, [&](const Value& leaf) { rows.push_back(leaf); });
                       size_t next = 0;
                       const Value results = map_leaves(now[1], [&](const Value& leaf) -> Value {
                         const Array& all = *leaf.array();
                         Array row = t.convert(t.array(rows.at(next++)), all.dtype());
                         tensor::Dims dims = row.dims();
                         dims.insert(dims.begin(), 1);
                         std::vector<Array> starts(all.dims().size(), t.full({DType::kInt32, {}}, int64_t{0}));
                         starts[0] = t.convert(t.array(at), DType::kInt32);
                         return t.dynamic_update_slice(all, t.reshape(row, dims), starts);
                       });
                       return std::vector<Value>{carry, results};
                     });
  return tuple_of(made);
}

Value mapped(Tracer& t, const Arguments& a) {
  auto step = std::make_shared<Callable>();
  step->name = "map";
  step->call = [function = a["f"]](Tracer& inner, CallArguments arguments) {
    return tuple_of({arguments.positional[0], inner.call(function, std::vector<Value>{arguments.positional[1]})});
  };
  const Value made = t.call(*t.globals().find("lax.scan"), std::vector<Value>{CallableRef(step), int64_t{0}, a["xs"]});
  return made.sequence()->items[1];
}

// P('x', None, ('y', 'z')).
Value partition_spec(Tracer& t, const Arguments& a) {
  auto made = std::make_shared<Spec>();
  for (const Value& dim : a.all("axes")) {
    std::vector<std::string> names;
    if (dim.as<std::string>() != nullptr) names.push_back(*dim.as<std::string>());
    if (dim.sequence() != nullptr) {
      for (const Value& name : dim.sequence()->items) names.push_back(t.to_text(name, "an axis of a partition spec"));
    } else if (!dim.is_none() && names.empty()) {
      t.refuse("a partition spec has names of axes, tuples of them, and None, got " + describe(dim));
    }
    made->dims.push_back(std::move(names));
  }
  return SpecRef(std::move(made));
}

Array constrained(Tracer& t, const Array& x, const Spec& spec) {
  if (t.mesh() == nullptr || t.mesh()->axes.empty())
    fail("invalid_spec", t.place(),
         "with_sharding_constraint needs a mesh; the request names it (\"mesh\"), or brings an array that is on one");
  if (static_cast<int64_t>(spec.dims.size()) > x.rank())
    fail("invalid_spec", t.place(),
         fmt::format("a partition spec of {} dimensions for an array of shape {}", spec.dims.size(),
                     shape_text(x.dims())));
  sharding::TensorSharding made = sharding::fully_replicated("mesh", t.mesh(), x.rank());
  std::vector<std::string> used;
  for (size_t d = 0; d < spec.dims.size(); ++d) {
    for (const std::string& name : spec.dims[d]) {
      const auto axis = t.mesh()->axis_index(name);
      if (!axis) {
        std::vector<std::string> known;
        for (const mesh::Axis& each : t.mesh()->axes) known.push_back(each.name);
        fail("invalid_spec", t.place(),
             "the mesh " + mesh::to_text(*t.mesh()) + " has no axis '" + name + "'" + core::did_you_mean(name, known));
      }
      if (std::find(used.begin(), used.end(), name) != used.end())
        fail("invalid_spec", t.place(), "axis '" + name + "' shards two dimensions");
      used.push_back(name);
      made.dims[d].axes.push_back({*axis, 1, 0});
    }
  }
  return t.op("sdy.sharding_constraint", {x}, {{"sharding", {ir::ShardingAttr{{std::move(made)}, false}}}}, x.type);
}

Value with_sharding_constraint(Tracer& t, const Arguments& a) {
  const auto* spec = a["shardings"].as<SpecRef>();
  if (spec == nullptr)
    t.refuse("with_sharding_constraint takes a partition spec P(...), got " + describe(a["shardings"]));
  return map_leaves(a["x"], [&](const Value& leaf) -> Value {
    const Array x = t.array(leaf);
    Array out = constrained(t, x, **spec);
    out.weak = x.weak;
    return out;
  });
}

/// The fields of a format text, in order: what is before the format of each, "" for the next value.
std::vector<std::string> fields_of(std::string_view text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    if (i + 1 < text.size() && text[i + 1] == '{') {
      ++i;
      continue;
    }
    const size_t end = text.find('}', i);
    if (end == std::string_view::npos) break;
    const std::string_view inside = text.substr(i + 1, end - i - 1);
    out.emplace_back(inside.substr(0, inside.find_first_of("!:.[")));
    i = end;
  }
  return out;
}

/// The value of a field: by name, by its number, or the next one; null where there is none, as for the braces of an
/// f-string that are no field.
const Value* value_of_field(const Arguments& a, const std::string& field, size_t& next) {
  const std::vector<Value>& values = a.all("values");
  const bool is_number =
      !field.empty() && field.size() < 4 && field.find_first_not_of("0123456789") == std::string::npos;
  if (field.empty() || is_number) {
    const size_t at = is_number ? std::stoul(field) : next++;
    return at < values.size() ? &values[at] : nullptr;
  }
  for (const auto& item : (*a["named"].as<DictRef>())->items) {
    if (item.first == field) return &item.second;
  }
  return nullptr;
}

// The values in the order of the fields of the text, so that whoever fills them from left to right is right, and behind
// them those without a field.
Value log(Tracer& t, const Arguments& a) {
  const std::string text = t.to_text(a["text"], "the text of log");
  std::vector<Array> values;
  const auto add = [&](const Value& value) {
    for_each_leaf(value, [&](const Value& leaf) { values.push_back(t.array(leaf)); });
  };
  size_t next = 0;
  const std::vector<std::string> fields = fields_of(text);
  const auto has_field = [&](const std::string& name) {
    return std::find(fields.begin(), fields.end(), name) != fields.end();
  };
  for (const std::string& field : fields) {
    if (const Value* value = value_of_field(a, field, next)) add(*value);
  }
  const std::vector<Value>& given = a.all("values");
  for (size_t i = next; i < given.size(); ++i) {
    if (!has_field(std::to_string(i))) add(given[i]);
  }
  for (const auto& item : (*a["named"].as<DictRef>())->items) {
    if (item.first != "ordered" && !has_field(item.first)) add(item.second);
  }
  t.log(text, values);
  return None{};
}

Value tree_map(Tracer& t, const Arguments& a) {
  std::vector<std::vector<Value>> others;
  for (const Value& tree : a.all("rest")) {
    if (!same_structure(tree, a["tree"]))
      t.refuse("tree.map takes trees of one structure, got " + structure_text(a["tree"]) + " and " +
               structure_text(tree));
    std::vector<Value> leaves;
    for_each_leaf(tree, [&](const Value& leaf) { leaves.push_back(leaf); });
    others.push_back(std::move(leaves));
  }
  size_t at = 0;
  return map_leaves(a["tree"], [&](const Value& leaf) {
    std::vector<Value> arguments{leaf};
    for (const auto& leaves : others) arguments.push_back(leaves[at]);
    ++at;
    return call(t, a["f"], std::move(arguments));
  });
}

}  // namespace

std::vector<FunctionRow> control_functions() {
  return {
      {"lax.cond", "pred, true_fun, false_fun, *operands", cond},
      {"lax.switch", "index, branches, *operands", switch_on},
      {"lax.while_loop", "cond_fun, body_fun, init_val", while_loop},
      {"lax.fori_loop", "lower, upper, body_fun, init_val", fori_loop},
      {"lax.scan", "f, init, xs=None, length=None, reverse=False, unroll=1", scan},
      {"lax.map", "f, xs", mapped},
      {"lax.with_sharding_constraint", "x, shardings", with_sharding_constraint},
      {"jax.sharding.PartitionSpec", "*axes", partition_spec},
      {"jax.debug.log", "text, *values, **named", log, true},
      {"jax.debug.print", "text, *values, **named", log, true},
      {"jax.tree.map", "f, tree, *rest", tree_map},
      {"jax.tree.leaves", "tree",
       [](Tracer& t, const Arguments& a) {
         std::vector<Value> leaves;
         for_each_leaf(a["tree"], [&](const Value& leaf) { leaves.push_back(leaf); });
         return list_of(std::move(leaves), t.region_depth());
       }},
  };
}

}  // namespace meshd::numpy
