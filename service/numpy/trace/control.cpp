// Control flow on arrays: branches and loops become regions. What a branch gives is joined leaf by leaf, and what a
// loop carries keeps its types; a weak type gives way to the other side, as in jax.lax.cond and while_loop.
#include <fmt/core.h>

#include <algorithm>

#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {
namespace {

bool is_data(const Value& leaf) { return leaf.is_number() || leaf.array() != nullptr; }

std::vector<Value> all_leaves(const std::vector<Value>& values) {
  std::vector<Value> out;
  for (const Value& value : values) {
    const std::vector<Value> more = leaves_of(value);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

// The values with these leaves in place of theirs.
std::vector<Value> with_leaves(const std::vector<Value>& values, const std::vector<Value>& leaves) {
  size_t at = 0;
  std::vector<Value> out;
  for (const Value& value : values) out.push_back(map_leaves(value, [&](const Value&) { return leaves[at++]; }));
  return out;
}

bool is_same(const Value& a, const Value& b) {
  if (a.array() != nullptr && b.array() != nullptr) return a.array()->id == b.array()->id;
  return is_same_static(a, b);
}

}  // namespace

std::optional<WeakType> agreed(WeakType a, WeakType b) {
  if (a.dtype == b.dtype) return WeakType{a.dtype, a.weak && b.weak};
  if (!a.weak && !b.weak) return std::nullopt;
  return promoted(a, b);
}

void Tracer::restore(State state) {
  rest_ = std::move(state.rest);
  calls_ = std::move(state.calls);
  token_ = state.token;
  logged_.resize(state.logged);
  depth_ = state.depth;
}

Value Tracer::traced_aside(const std::function<Value()>& body) {
  const State before = state();
  const Place place = this->place();
  ir::Region dropped;
  Value out;
  {
    const InsideRegion inside(*this, dropped);
    out = map_leaves(body(), [&](const Value& leaf) { return is_data(leaf) ? Value(array(leaf)) : leaf; });
  }
  restore(before);
  set_place(place);
  return out;
}

Array Tracer::leaf_of_type(const Value& value, WeakType type) {
  if (value.is_number()) return full({type.dtype, {}}, value, type.weak);
  return convert(*value.array(), type.dtype, type.weak);
}

std::vector<Value> Tracer::branch(const Array& index, const std::vector<std::function<std::vector<Value>()>>& branches,
                                  const std::vector<std::string>& names) {
  std::vector<Branch> traced(branches.size());
  const ir::ValueId token = token_;
  const Place place = this->place();
  for (size_t i = 0; i < branches.size(); ++i) {
    const InsideRegion inside(*this, traced[i].region);
    traced[i].results = branches[i]();
    traced[i].token = std::exchange(token_, token);
  }
  set_place(place);
  return joined(traced, index, names);
}

std::vector<Value> Tracer::joined(std::vector<Branch>& branches, const Array& index,
                                  const std::vector<std::string>& names) {
  std::vector<Value> out = branches[0].results;
  // What is a result of the op: for each branch its leaf, and the type that all get.
  struct Leaf {
    std::vector<Value> sides;
    WeakType type;
    size_t place = 0;
  };
  std::vector<Leaf> leaves;
  std::vector<Value> joint;
  for (size_t k = 0; k < out.size(); ++k) {
    for (const Branch& branch : branches) step(node_count(branch.results[k]) / 8);
    for (const Branch& branch : branches) {
      if (branch.results[k].is<Undefined>()) out[k] = branch.results[k];
    }
    for (Branch& branch : branches) {
      if (out[k].is<Undefined>()) branch.results[k] = out[k];
      if (same_structure(branch.results[k], out[k])) continue;
      refuse(fmt::format("the branches give {} different structures: {} and {}", names[k], structure_text(out[k]),
                         structure_text(branch.results[k])));
    }
    std::vector<std::vector<Value>> sides;
    for (const Branch& branch : branches) sides.push_back(leaves_of(branch.results[k]));
    for (size_t i = 0; i < sides[0].size(); ++i) {
      Leaf leaf;
      bool same = true;
      for (const auto& side : sides) {
        leaf.sides.push_back(side[i]);
        same = same && is_same(side[i], sides[0][i]);
      }
      leaf.place = joint.size();
      joint.push_back(sides[0][i]);
      if (same || leaf.sides[0].is<Undefined>()) continue;
      leaf.type = is_data(leaf.sides[0]) ? type_of(leaf.sides[0]) : WeakType{};
      for (const Value& side : leaf.sides) {
        if (!is_data(side))
          refuse(fmt::format("the branches give {} different values that are no arrays: {} and {}", names[k],
                             describe(leaf.sides[0]), describe(leaf.sides.back())));
        const auto type = agreed(leaf.type, type_of(side));
        if (!type || dims_of(side) != dims_of(leaf.sides[0])) {
          refuse(fmt::format(
              "the branches give {} different types: {} and {}; convert one with .astype, or jnp.broadcast_to",
              names[k], describe(leaf.sides[0]), describe(side)));
        }
        leaf.type = *type;
      }
      leaves.push_back(std::move(leaf));
    }
  }
  std::vector<ir::Region> regions;
  for (size_t b = 0; b < branches.size(); ++b) {
    const InsideRegion inside(*this, branches[b].region);
    std::vector<ir::ValueId> results;
    for (const Leaf& leaf : leaves) results.push_back(leaf_of_type(leaf.sides[b], leaf.type).id);
    if (has_effects_) results.push_back(branches[b].token);
    writer().create("stablehlo.return", std::move(results), {});
  }
  std::vector<ir::Type> types;
  for (const Leaf& leaf : leaves) types.push_back(ir::Type::of({leaf.type.dtype, dims_of(leaf.sides[0])}));
  if (has_effects_) types.push_back(ir::Type::token());
  for (Branch& branch : branches) regions.push_back(std::move(branch.region));
  const std::vector<ir::ValueId> made =
      index.dtype() == DType::kBool ? writer().create("stablehlo.if", {index.id}, types, {}, std::move(regions))
                                    : writer().create("stablehlo.case", {index.id}, types, {}, std::move(regions));
  for (size_t i = 0; i < leaves.size(); ++i) joint[leaves[i].place] = array_of(made[i], leaves[i].type.weak);
  if (has_effects_) token_ = made.back();
  return with_leaves(out, joint);
}

std::optional<std::vector<Value>> Tracer::try_loop(
    const std::vector<Value>& carried, const std::vector<std::string>& names, std::vector<WeakType>& types,
    const std::function<Value(const std::vector<Value>&)>& test,
    const std::function<std::vector<Value>(const std::vector<Value>&)>& body) {
  const std::vector<Value> leaves = all_leaves(carried);
  std::vector<ir::Type> carried_types;
  std::vector<ir::ValueId> initial;
  std::vector<std::string> owners;  // the name that each leaf is a part of
  for (size_t k = 0; k < carried.size(); ++k) owners.insert(owners.end(), leaves_of(carried[k]).size(), names[k]);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!is_data(leaves[i])) continue;
    const Array made = leaf_of_type(leaves[i], types[i]);
    initial.push_back(made.id);
    carried_types.push_back(ir::Type::of(made.type));
  }
  if (has_effects_) {
    initial.push_back(token_);
    carried_types.push_back(ir::Type::token());
  }
  const auto values_of = [&](const std::vector<ir::ValueId>& ids) {
    std::vector<Value> now = leaves;
    size_t at = 0;
    for (size_t i = 0; i < now.size(); ++i) {
      if (is_data(leaves[i])) now[i] = array_of(ids[at++], types[i].weak);
    }
    return with_leaves(carried, now);
  };
  bool agrees = true;
  const Place place = this->place();
  std::vector<ir::Region> regions;
  const ir::ValueId token = token_;
  regions.push_back(region(carried_types, [&](const std::vector<ir::ValueId>& ids) {
    if (has_effects_) token_ = ids.back();
    const Value verdict = test(values_of(ids));
    if (!is_data(verdict) || !dims_of(verdict).empty())
      refuse("the test of a loop has to be a scalar, got " + describe(verdict));
    return std::vector<ir::ValueId>{convert(array(verdict), DType::kBool).id};
  }));
  regions.push_back(region(carried_types, [&](const std::vector<ir::ValueId>& ids) {
    if (has_effects_) token_ = ids.back();
    const std::vector<Value> results = body(values_of(ids));
    for (size_t k = 0; k < carried.size(); ++k) {
      if (const auto* undefined = results[k].as<Undefined>()) refuse(undefined->why);
      if (same_structure(results[k], carried[k])) continue;
      refuse(fmt::format("a loop on arrays changes the structure of '{}' from {} to {}", names[k],
                         structure_text(carried[k]), structure_text(results[k])));
    }
    const std::vector<Value> after = all_leaves(results);
    std::vector<ir::ValueId> out;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!is_data(leaves[i])) {
        if (!is_same_static(leaves[i], after[i]))
          refuse(
              fmt::format("a loop on arrays changes '{}', which is {} and no array", owners[i], describe(leaves[i])));
        continue;
      }
      if (!is_data(after[i]) || dims_of(after[i]) != dims_of(leaves[i])) {
        refuse(fmt::format("a loop on arrays changes the shape of '{}': it begins as {} and becomes {}", owners[i],
                           describe(leaves[i]), describe(after[i])));
      }
      const WeakType type = type_of(after[i]);
      const auto both = agreed(types[i], type);
      // A strong type stays; a weak one gives way, and the body is traced again with the other.
      if (!both || (!types[i].weak && both->dtype != types[i].dtype)) {
        refuse(
            fmt::format("a loop on arrays changes the type of '{}': it begins as {} and becomes {}; let it begin with "
                        "the other type",
                        owners[i], describe(leaves[i]), describe(after[i])));
      }
      if (types[i].weak && !(*both == types[i])) {
        types[i] = *both;
        agrees = false;
      }
      if (agrees) out.push_back(leaf_of_type(after[i], types[i]).id);
    }
    if (has_effects_) out.push_back(token_);
    return out;
  }));
  token_ = token;
  if (!agrees) return std::nullopt;
  set_place(place);  // the loop's, where the body has been
  const std::vector<ir::ValueId> made =
      writer().create("stablehlo.while", std::move(initial), carried_types, {}, std::move(regions));
  if (has_effects_) token_ = made.back();
  return values_of(made);
}

std::vector<Value> Tracer::loop(std::vector<Value> carried, const std::vector<std::string>& names,
                                const std::function<Value(const std::vector<Value>&)>& test,
                                const std::function<std::vector<Value>(const std::vector<Value>&)>& body) {
  for (const Value& value : carried) step(node_count(value));
  std::vector<WeakType> types;
  for (const Value& leaf : all_leaves(carried)) types.push_back(is_data(leaf) ? type_of(leaf) : WeakType{});
  const Place place = this->place();
  // Types only become stronger or wider, so that this ends.
  constexpr int kMostAttempts = 8;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const State before = state();
    auto made = try_loop(carried, names, types, test, body);
    set_place(place);
    if (made) return std::move(*made);
    restore(before);
  }
  refuse("the types that a loop carries do not settle");
}

std::vector<Value> Tracer::counted_loop(const Value& start, const Value& stop, const Value& step,
                                        std::vector<Value> carried, std::vector<std::string> names,
                                        const std::function<std::vector<Value>(Value, const std::vector<Value>&)>& body,
                                        EarlyEnd* end) {
  const int64_t stride = to_int(step, "the step of a loop's range");
  if (stride == 0) refuse("the step of a range cannot be 0");
  std::vector<Array> bounds = promoted_arrays({start, stop});
  if (!tensor::is_integer(bounds[0].dtype()) || bounds[0].rank() != 0 || bounds[1].rank() != 0)
    refuse(fmt::format("a range takes whole numbers, got {} and {}", describe(start), describe(stop)));
  carried.insert(carried.begin(), Value(bounds[0]));
  names.insert(names.begin(), "the index");
  std::vector<Value> made = loop(
      std::move(carried), names,
      [&](const std::vector<Value>& now) {
        const Array in_range = compare(stride > 0 ? "LT" : "GT", *now[0].array(), bounds[1]);
        if (end == nullptr) return Value(in_range);
        return Value(logical_and(in_range, logical_not(convert(array(now[1 + end->broken]), DType::kBool))));
      },
      [&](const std::vector<Value>& now) {
        std::vector<Value> out = body(now[0], {now.begin() + 1, now.end()});
        out.insert(out.begin(), binary("+", now[0], stride));
        return out;
      });
  if (end != nullptr) end->index = binary("-", made[0], stride);
  made.erase(made.begin());
  return made;
}

}  // namespace meshd::numpy
