#include "service/partition/lower/structure/lower_regions.h"

#include "service/kernels/elementwise/scalar_op.h"
#include "service/partition/lower/lowering.h"

namespace meshd::partition {
namespace {

// Widening what loop values vary over ends after as many rounds as there are sub-axes; this is far above.
constexpr int kMostLoopRounds = 64;

void define_arguments(LoweringContext& context, const ir::Region& region, const std::vector<LocalId>& values) {
  size_t next = 0;
  for (const ir::ValueId argument : region.arguments) {
    if (!is_token(context, argument)) context.define(argument, values[next++]);
  }
}

}  // namespace

void lower_while(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  Builder& builder = context.builder;
  std::vector<size_t> carried;
  std::vector<ShardLayout> layouts;
  std::vector<sharding::SubAxisSet> varies;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (is_token(context, op.results[i])) continue;
    carried.push_back(i);
    const LocalId init = context.local(op.operands[i]);
    ShardLayout layout = wanted(context, op.results[i], scope);
    if (builder.type(init).outer() != 0 && layout.view != builder.layout(init).view) {
      layout = replicated(static_cast<int64_t>(layout.dims.size()), builder.layout(init).view);
    }
    varies.push_back(builder.type(init).outer() | layout.mask());
    layouts.push_back(std::move(layout));
  }

  const Builder::Mark mark = builder.mark();
  for (int round = 0;; ++round) {
    if (round == kMostLoopRounds) throw core::Error("internal", "a loop's placement does not settle");
    LocalOp loop;
    loop.kind = LocalKind::kWhile;
    loop.name = op.name;
    loop.location = op.location;
    loop.blocks.resize(2);
    if (!op.results.empty()) {
      const auto trips = context.input.trip_counts.find(op.results.front());
      if (trips != context.input.trip_counts.end()) loop.trip_count = trips->second;
    }
    std::vector<sharding::SubAxisSet> wider = varies;
    const auto make_values = [&](std::vector<LocalId>& out) {
      for (size_t c = 0; c < carried.size(); ++c) {
        const ir::ValueId result = op.results[carried[c]];
        out.push_back(context.add_value(result, layouts[c], varies[c] & ~layouts[c].mask()));
      }
    };
    for (size_t c = 0; c < carried.size(); ++c) {
      const LocalId init = builder.reshard(context.local(op.operands[carried[c]]), layouts[c], op.location,
                                           "carried value of " + op.name);
      loop.operands.push_back(builder.vary(init, varies[c], op.location, "carried value of " + op.name));
    }
    sharding::SubAxisSet condition_varies = 0;
    {
      const Builder::Inside inside(builder, loop.blocks[0]);
      make_values(loop.blocks[0].arguments);
      define_arguments(context, op.regions[0], loop.blocks[0].arguments);
      const std::vector<ir::ValueId> returned = lower_block(context, op.regions[0], scope);
      const LocalId condition =
          reshard_to_replicated(context, returned.front(), scope, op.location, "condition of " + op.name);
      condition_varies = builder.type(condition).varies;
      loop.blocks[0].results = {condition};
    }
    {
      const Builder::Inside inside(builder, loop.blocks[1]);
      make_values(loop.blocks[1].arguments);
      define_arguments(context, op.regions[1], loop.blocks[1].arguments);
      const std::vector<ir::ValueId> returned = lower_block(context, op.regions[1], scope);
      for (size_t c = 0; c < carried.size(); ++c) {
        LocalId next = builder.reshard(context.local(returned[carried[c]]), layouts[c], op.location,
                                       "carried value of " + op.name);
        wider[c] |= builder.type(next).varies | condition_varies;
        if (wider[c] == varies[c]) next = builder.vary(next, varies[c], op.location, "carried value of " + op.name);
        loop.blocks[1].results.push_back(next);
      }
    }
    if (wider != varies) {
      varies = std::move(wider);
      builder.rewind(mark);
      continue;
    }
    make_values(loop.results);
    for (size_t c = 0; c < carried.size(); ++c) context.define(op.results[carried[c]], loop.results[c]);
    builder.append(std::move(loop));
    return;
  }
}

void lower_case(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  Builder& builder = context.builder;
  LocalOp branch;
  branch.kind = LocalKind::kCase;
  branch.name = op.name;
  branch.location = op.location;
  branch.operands = {reshard_to_replicated(context, op.operands.front(), scope, op.location, "index of " + op.name)};
  branch.blocks.resize(op.regions.size());
  std::vector<size_t> kept;
  std::vector<ShardLayout> layouts;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (is_token(context, op.results[i])) continue;
    kept.push_back(i);
    layouts.push_back(wanted(context, op.results[i], scope));
  }
  std::vector<sharding::SubAxisSet> varies(kept.size(), builder.type(branch.operands.front()).varies);
  for (size_t b = 0; b < op.regions.size(); ++b) {
    const Builder::Inside inside(builder, branch.blocks[b]);
    const std::vector<ir::ValueId> returned = lower_block(context, op.regions[b], scope);
    for (size_t r = 0; r < kept.size(); ++r) {
      const LocalId source = context.local(returned[kept[r]]);
      if (builder.type(source).outer() != 0 && layouts[r].view != builder.layout(source).view) {
        layouts[r] = replicated(static_cast<int64_t>(layouts[r].dims.size()), builder.layout(source).view);
      }
      const LocalId value = builder.reshard(source, layouts[r], op.location, "result of " + op.name);
      varies[r] |= builder.type(value).varies;
      branch.blocks[b].results.push_back(value);
    }
  }
  for (LocalBlock& block : branch.blocks) {
    const Builder::Inside inside(builder, block);
    for (size_t r = 0; r < kept.size(); ++r) {
      LocalId value = builder.reshard(block.results[r], layouts[r], op.location, "result of " + op.name);
      block.results[r] = builder.vary(value, varies[r], op.location, "result of " + op.name);
    }
  }
  for (size_t r = 0; r < kept.size(); ++r) {
    const ir::ValueId result = op.results[kept[r]];
    branch.results.push_back(context.add_value(result, layouts[r], varies[r] & ~layouts[r].mask()));
    context.define(result, branch.results.back());
  }
  builder.append(std::move(branch));
}

void lower_inline_region(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  if (op.regions.empty()) ir::fail("unsupported_op", op.location, "'" + op.name + "' without a body");
  const ir::Region& region = op.regions.front();
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    if (!is_token(context, region.arguments[i])) context.define(region.arguments[i], context.local(op.operands[i]));
  }
  const std::vector<ir::ValueId> returned = lower_block(context, region, scope);
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!is_token(context, op.results[i])) context.define(op.results[i], context.local(returned[i]));
  }
}

}  // namespace meshd::partition
