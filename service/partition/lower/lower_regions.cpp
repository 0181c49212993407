// Ops with regions: loops and branches keep their carried values in one layout all the way round; manual
// computations are a change of view at their edges, and their bodies run as they stand.
#include <algorithm>

#include "service/partition/lower/lowering.h"

namespace meshd::partition {
namespace {

// Widening what loop values vary over ends after as many rounds as there are sub-axes; this is far above.
constexpr int kMostLoopRounds = 64;

const std::vector<sharding::TensorSharding>& shardings_of(const ir::Op& op, std::string_view name) {
  const ir::Attribute* found = ir::find(op.attributes, name);
  const auto* list = found == nullptr ? nullptr : found->as<ir::ShardingAttr>();
  if (list == nullptr) ir::fail("invalid_program", op.location, "'" + op.name + "' needs " + std::string(name));
  return list->shardings;
}

std::vector<std::string> manual_axis_names(const ir::Op& op) {
  std::vector<std::string> names;
  const ir::Attribute* found = ir::find(op.attributes, "manual_axes");
  const auto* list = found == nullptr ? nullptr : found->as<ir::ArrayAttr>();
  if (list == nullptr) ir::fail("invalid_program", op.location, "'" + op.name + "' needs manual_axes");
  for (const ir::Attribute& entry : list->values) {
    if (const auto* text = entry.as<ir::StringAttr>()) names.push_back(text->value);
  }
  return names;
}

}  // namespace

void Lowering::define_arguments(const ir::Region& region, const std::vector<LocalId>& values) {
  size_t next = 0;
  for (const ir::ValueId argument : region.arguments) {
    if (!is_token(argument)) define(argument, values[next++]);
  }
}

void Lowering::lower_while(const ir::Op& op, const Scope& scope) {
  std::vector<size_t> carried;
  std::vector<ShardLayout> layouts;
  std::vector<sharding::SubAxisSet> varies;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (is_token(op.results[i])) continue;
    carried.push_back(i);
    const LocalId init = local(op.operands[i]);
    ShardLayout layout = wanted(op.results[i], scope);
    if (builder_.type(init).outer() != 0 && layout.view != builder_.layout(init).view) {
      layout = replicated(static_cast<int64_t>(layout.dims.size()), builder_.layout(init).view);
    }
    varies.push_back(builder_.type(init).outer() | layout.mask());
    layouts.push_back(std::move(layout));
  }

  const Builder::Mark mark = builder_.mark();
  for (int round = 0;; ++round) {
    if (round == kMostLoopRounds) throw core::Error("internal", "a loop's placement does not settle");
    LocalOp loop;
    loop.kind = LocalKind::kWhile;
    loop.name = op.name;
    loop.location = op.location;
    loop.blocks.resize(2);
    std::vector<sharding::SubAxisSet> wider = varies;
    const auto make_values = [&](std::vector<LocalId>& out) {
      for (size_t c = 0; c < carried.size(); ++c) {
        const ir::ValueId result = op.results[carried[c]];
        out.push_back(builder_.add_value(module_main_.type_of(result).tensor, layouts[c],
                                         varies[c] & ~layouts[c].mask(),
                                         module_main_.values[static_cast<size_t>(result)].name));
      }
    };
    for (size_t c = 0; c < carried.size(); ++c) {
      const LocalId init =
          builder_.reshard(local(op.operands[carried[c]]), layouts[c], op.location, "carried value of " + op.name);
      loop.operands.push_back(builder_.vary(init, varies[c], op.location, "carried value of " + op.name));
    }
    sharding::SubAxisSet condition_varies = 0;
    {
      const Builder::Inside inside(builder_, loop.blocks[0]);
      make_values(loop.blocks[0].arguments);
      define_arguments(op.regions[0], loop.blocks[0].arguments);
      std::vector<ir::ValueId> returned;
      lower_block(op.regions[0], scope, returned);
      const LocalId condition = reshard_to_replicated(returned.front(), scope, op.location, "condition of " + op.name);
      condition_varies = builder_.type(condition).varies;
      loop.blocks[0].results = {condition};
    }
    {
      const Builder::Inside inside(builder_, loop.blocks[1]);
      make_values(loop.blocks[1].arguments);
      define_arguments(op.regions[1], loop.blocks[1].arguments);
      std::vector<ir::ValueId> returned;
      lower_block(op.regions[1], scope, returned);
      for (size_t c = 0; c < carried.size(); ++c) {
        LocalId next =
            builder_.reshard(local(returned[carried[c]]), layouts[c], op.location, "carried value of " + op.name);
        wider[c] |= builder_.type(next).varies | condition_varies;
        if (wider[c] == varies[c]) next = builder_.vary(next, varies[c], op.location, "carried value of " + op.name);
        loop.blocks[1].results.push_back(next);
      }
    }
    if (wider != varies) {
      varies = std::move(wider);
      builder_.rewind(mark);
      continue;
    }
    make_values(loop.results);
    for (size_t c = 0; c < carried.size(); ++c) define(op.results[carried[c]], loop.results[c]);
    builder_.append(std::move(loop));
    return;
  }
}

void Lowering::lower_case(const ir::Op& op, const Scope& scope) {
  LocalOp branch;
  branch.kind = LocalKind::kCase;
  branch.name = op.name;
  branch.location = op.location;
  branch.operands = {reshard_to_replicated(op.operands.front(), scope, op.location, "index of " + op.name)};
  branch.blocks.resize(op.regions.size());
  std::vector<size_t> kept;
  std::vector<ShardLayout> layouts;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (is_token(op.results[i])) continue;
    kept.push_back(i);
    layouts.push_back(wanted(op.results[i], scope));
  }
  std::vector<sharding::SubAxisSet> varies(kept.size(), builder_.type(branch.operands.front()).varies);
  for (size_t b = 0; b < op.regions.size(); ++b) {
    const Builder::Inside inside(builder_, branch.blocks[b]);
    std::vector<ir::ValueId> returned;
    lower_block(op.regions[b], scope, returned);
    for (size_t r = 0; r < kept.size(); ++r) {
      const LocalId source = local(returned[kept[r]]);
      if (builder_.type(source).outer() != 0 && layouts[r].view != builder_.layout(source).view) {
        layouts[r] = replicated(static_cast<int64_t>(layouts[r].dims.size()), builder_.layout(source).view);
      }
      const LocalId value = builder_.reshard(source, layouts[r], op.location, "result of " + op.name);
      varies[r] |= builder_.type(value).varies;
      branch.blocks[b].results.push_back(value);
    }
  }
  for (LocalBlock& block : branch.blocks) {
    const Builder::Inside inside(builder_, block);
    for (size_t r = 0; r < kept.size(); ++r) {
      LocalId value = builder_.reshard(block.results[r], layouts[r], op.location, "result of " + op.name);
      block.results[r] = builder_.vary(value, varies[r], op.location, "result of " + op.name);
    }
  }
  for (size_t r = 0; r < kept.size(); ++r) {
    const ir::ValueId result = op.results[kept[r]];
    branch.results.push_back(builder_.add_value(module_main_.type_of(result).tensor, layouts[r],
                                                varies[r] & ~layouts[r].mask(),
                                                module_main_.values[static_cast<size_t>(result)].name));
    define(result, branch.results.back());
  }
  builder_.append(std::move(branch));
}

void Lowering::lower_inline_region(const ir::Op& op, const Scope& scope) {
  if (op.regions.empty()) ir::fail("unsupported_op", op.location, "'" + op.name + "' without a body");
  const ir::Region& region = op.regions.front();
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    if (!is_token(region.arguments[i])) define(region.arguments[i], local(op.operands[i]));
  }
  std::vector<ir::ValueId> returned;
  lower_block(region, scope, returned);
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!is_token(op.results[i])) define(op.results[i], local(returned[i]));
  }
}

void Lowering::lower_manual(const ir::Op& op, const Scope& scope) {
  const auto& in = shardings_of(op, "in_shardings");
  const auto& out = shardings_of(op, "out_shardings");
  const std::vector<std::string> axis_names = manual_axis_names(op);
  mesh::MeshRef mesh;
  for (const auto* list : {&in, &out}) {
    for (const sharding::TensorSharding& sharding : *list) {
      if (mesh == nullptr && sharding.mesh != nullptr && !sharding.mesh->axes.empty()) mesh = sharding.mesh;
    }
  }
  Scope inner = scope;
  inner.inside_manual = true;
  if (mesh != nullptr) {
    inner.view = views_.view_of(mesh);
    if (scope.manual != 0 && inner.view != scope.view) {
      ir::fail("unsupported_partition", op.location,
               "nested manual computations over meshes whose axes do not line up");
    }
    for (const std::string& name : axis_names) {
      const auto axis = mesh->axis_index(name);
      if (!axis)
        ir::fail("invalid_program", op.location, "manual axis '" + name + "' is not an axis of " + mesh::to_sdy(*mesh));
      inner.manual |= mask_of(views_.sub_axes_of(mesh, {*axis, 1, 0}));
    }
  }
  const sharding::MeshView& view = builder_.view(inner.view);
  const sharding::SubAxisSet fresh = inner.manual & ~scope.manual;

  // Free axes inside: kept where they divide what a manual shard holds, so that both views of the bytes agree.
  const auto free_places = [&](ir::ValueId inside_value) {
    ShardLayout layout = wanted(inside_value, inner);
    const tensor::Dims& dims = module_main_.type_of(inside_value).dims();
    for (size_t d = 0; d < dims.size(); ++d) {
      if (layout.view != inner.view || dims[d] % sharding::part_count(view, layout.dims[d]) != 0)
        layout.dims[d].clear();
    }
    layout.view = inner.view;
    return layout;
  };
  // The manual sub-axes of a sharding in front, the free ones behind.
  const auto outside_places = [&](const sharding::TensorSharding& sharding, const ShardLayout& free, int64_t rank) {
    ShardLayout manual = replicated(rank, inner.view);
    if (sharding.mesh != nullptr && !sharding.mesh->axes.empty())
      manual = resolve_layout(views_, sharding).without(~fresh);
    manual.view = inner.view;
    for (size_t d = 0; d < manual.dims.size(); ++d) {
      manual.dims[d].insert(manual.dims[d].end(), free.dims[d].begin(), free.dims[d].end());
    }
    return manual;
  };
  const auto as_view = [&](LocalId from, LocalId to) {
    LocalOp made;
    made.kind = LocalKind::kView;
    made.name = "view";
    made.operands = {from};
    made.results = {to};
    made.location = op.location;
    builder_.append(std::move(made));
  };

  const ir::Region& body = op.regions.front();
  for (size_t i = 0; i < body.arguments.size(); ++i) {
    if (is_token(body.arguments[i])) continue;
    if (i < in.size() && !in[i].unreduced.empty()) {
      ir::fail("unsupported_attribute", op.location, "unreduced axes of an operand of a manual computation");
    }
    const ir::Type& inside_type = module_main_.type_of(body.arguments[i]);
    const ShardLayout free = free_places(body.arguments[i]);
    const ShardLayout outside = outside_places(in[i], free, inside_type.rank());
    const LocalId operand = builder_.reshard(local(op.operands[i]), outside, op.location,
                                             "operand " + std::to_string(i) + " of " + op.name);
    const LocalId inside = builder_.add_value(inside_type.tensor, free, builder_.type(operand).varies,
                                              module_main_.values[static_cast<size_t>(body.arguments[i])].name);
    if (builder_.type(inside).local != builder_.type(operand).local) {
      ir::fail("invalid_program", op.location,
               "manual computation: operand " + std::to_string(i) + " has local type " +
                   ir::to_string(builder_.value(operand).local_type()) + ", its body expects " +
                   ir::to_string(builder_.value(inside).local_type()));
    }
    as_view(operand, inside);
    define(body.arguments[i], inside);
  }

  std::vector<ir::ValueId> returned;
  lower_block(body, inner, returned);

  for (size_t i = 0; i < op.results.size(); ++i) {
    if (is_token(op.results[i])) continue;
    const ir::Type& type = module_main_.type_of(op.results[i]);
    const ShardLayout free = free_places(returned[i]);
    const ShardLayout outside = outside_places(out[i], free, type.rank());
    LocalId value =
        builder_.reshard(local(returned[i]), free, op.location, "result " + std::to_string(i) + " of " + op.name);
    sharding::SubAxisSet summed = 0;
    for (const sharding::AxisRef& axis : out[i].unreduced) summed |= mask_of(views_.sub_axes_of(out[i].mesh, axis));
    summed &= fresh;
    if (summed != 0) {
      value = builder_.vary(value, builder_.type(value).varies | summed, op.location, "unreduced result");
      LocalOp sum;
      sum.kind = LocalKind::kReduceShards;
      sum.name = "all_reduce";
      sum.reduced = summed;
      sum.operands = {value};
      sum.location = op.location;
      sum.reason = "unreduced result " + std::to_string(i) + " of " + op.name;
      const kernels::ScalarOp reducer = out[i].unreduced_kind == sharding::ReductionKind::kSum ? kernels::ScalarOp::kAdd
                                        : out[i].unreduced_kind == sharding::ReductionKind::kMax
                                            ? kernels::ScalarOp::kMaximum
                                            : kernels::ScalarOp::kMinimum;
      sum.regions.push_back(builder_.reducer(reducer, type.dtype()));
      const ir::Type inside_type = module_main_.type_of(returned[i]);
      const LocalId reduced = builder_.add_value(inside_type.tensor, free, builder_.type(value).outer() & ~summed);
      sum.results = {reduced};
      builder_.append(std::move(sum));
      value = reduced;
    }
    const sharding::SubAxisSet varies = outside.mask() | (builder_.type(value).varies & ~fresh);
    value = builder_.vary(value, varies, op.location, "result " + std::to_string(i) + " of " + op.name);
    const LocalId whole_value = builder_.add_value(type.tensor, outside, varies & ~outside.mask(),
                                                   module_main_.values[static_cast<size_t>(op.results[i])].name);
    if (builder_.type(whole_value).local != builder_.type(value).local) {
      ir::fail("invalid_program", op.location,
               "manual computation: result " + std::to_string(i) + " has local type " +
                   ir::to_string(builder_.value(value).local_type()) + " inside, " +
                   ir::to_string(builder_.value(whole_value).local_type()) + " outside");
    }
    as_view(value, whole_value);
    define(op.results[i], whole_value);
  }
}

}  // namespace meshd::partition
