#include "service/partition/lower/builder/builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "service/core/error.h"
#include "service/partition/moves.h"

namespace meshd::partition {

Builder::Builder(const Views& views, ir::Function function)
    : views_(views), function_(std::make_shared<ir::Function>(std::move(function))) {
  program_.views = views.views();
  program_.view_names = views.names();
}

LocalId Builder::add_value(const tensor::TensorType& logical, const ShardLayout& layout, sharding::SubAxisSet outer,
                           std::string name) {
  program_.values.push_back({ShardedType::of(view(layout.view), logical, layout, outer), std::move(name)});
  return static_cast<LocalId>(program_.values.size()) - 1;
}

Builder::Inside::Inside(Builder& builder, LocalBlock& block)
    : builder_(builder), before_(std::exchange(builder.block_, &block)) {
  builder_.sources_.enter();
}

Builder::Inside::~Inside() {
  builder_.sources_.leave();
  builder_.block_ = before_;
}

LocalOp& Builder::append(LocalOp op) {
  block_->ops.push_back(std::move(op));
  return block_->ops.back();
}

LocalId Builder::reshard(LocalId id, const ShardLayout& to, const ir::Location& location, const std::string& reason) {
  const ShardedType from = type(id);
  const bool is_same = from.layout.dims == to.dims;
  if (is_same && (from.layout.view == to.view || (from.varies == 0 && views_.covers(from.layout.view, to.view)))) {
    sources_.settle(id);
    return id;
  }
  if (const auto copy = sources_.copy(id, to)) {
    sources_.settle(*copy);
    return *copy;
  }

  const sharding::SubAxisSet kept = from.outer();
  if (from.layout.view != to.view && kept != 0) {
    ir::fail("unsupported_partition", location, "a manual computation over two meshes whose axes do not line up");
  }
  LocalId made = 0;
  if (const LocalOp* known = sources_.rematerialisation(id); known != nullptr && kept == 0) {
    made = add_value(from.logical(), to, 0, value(id).name);
    LocalOp again = *known;
    again.results = {made};
    sources_.rematerialise_by(made, again);
    append(std::move(again));
  } else {
    made = add_value(from.logical(), to, kept, value(id).name);
    append_reshard(nearest_source(id, to).first, made, location, reason);
    last().reads_neighbours = sources_.is_shifted(id);
    const bool changes_devices = !views_.covers(from.layout.view, to.view) || !views_.covers(to.view, from.layout.view);
    if (sources_.is_unruled(id) || changes_devices) last().reason += kUnruledEnd;
    sources_.add_source(made, id);
  }
  sources_.add_copy(id, to, made);
  return made;
}

LocalId Builder::defer(LocalId id, const ShardLayout& to, const ir::Location& location, const std::string& reason) {
  const size_t before = block_->ops.size();
  const LocalId made = reshard(id, to, location, reason);
  if (block_->ops.size() > before && is_last_reshard(made)) sources_.defer(made);
  return made;
}

void Builder::append_reshard(LocalId from, LocalId to, const ir::Location& location, const std::string& reason) {
  LocalOp op;
  op.kind = LocalKind::kReshard;
  op.name = "reshard";
  op.operands = {from};
  op.results = {to};
  op.location = location;
  op.reason = reason;
  append(std::move(op));
}

std::pair<LocalId, double> Builder::nearest_source(LocalId id, const ShardLayout& to) const {
  LocalId best = id;
  double least = sources_.is_deferred(id) ? std::numeric_limits<double>::infinity()
                                          : lacking_elements(view(to.view), type(id).logical_dims, layout(id), to);
  for (const LocalId other : sources_.same_values(id)) {
    if (type(other).outer() != type(id).outer() || layout(other).view != to.view || sources_.is_deferred(other))
      continue;
    const double lacking = lacking_elements(view(to.view), type(id).logical_dims, layout(other), to);
    if (lacking >= least) continue;
    least = lacking;
    best = other;
  }
  if (std::isinf(least)) least = lacking_elements(view(to.view), type(id).logical_dims, layout(id), to);
  return {best, least};
}

double Builder::lacking(LocalId id, const ShardLayout& to) const {
  return sources_.rematerialisation(id) != nullptr ? 0 : nearest_source(id, to).second;
}

LocalId Builder::vary(LocalId id, sharding::SubAxisSet varies, const ir::Location& location,
                      const std::string& reason) {
  const ShardedType from = type(id);
  if (from.varies == varies) return id;
  const LocalId made = add_value(from.logical(), from.layout, varies & ~from.layout.mask(), value(id).name);
  append_reshard(id, made, location, reason);
  return made;
}

void Builder::rewind(const Mark& mark) {
  program_.values.resize(mark.value_count);
  block_->ops.resize(mark.op_count);
  program_.effect_count = mark.effect_count;
  sources_.rewind(mark.value_count);
}

void Builder::mark_unruled(const Mark& mark) {
  for (size_t i = mark.op_count; i < block_->ops.size(); ++i) {
    std::string& reason = block_->ops[i].reason;
    if (!reason.ends_with(kUnruledEnd)) reason += kUnruledEnd;
  }
}

LocalProgram Builder::finish() {
  program_.function = function_;
  return std::move(program_);
}

}  // namespace meshd::partition
