#include "service/partition/lower/builder.h"

#include <algorithm>
#include <string>

#include "service/core/error.h"
#include "service/ir/op_builder.h"
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
    : builder_(builder), before_(std::exchange(builder.block_, &block)) {}

Builder::Inside::~Inside() {
  builder_.resharded_.erase(builder_.block_);
  builder_.block_ = before_;
}

LocalOp& Builder::append(LocalOp op) {
  block_->ops.push_back(std::move(op));
  return block_->ops.back();
}

LocalId Builder::reshard(LocalId id, const ShardLayout& to, const ir::Location& location, const std::string& reason) {
  const ShardedType from = type(id);
  const bool is_same = from.layout.dims == to.dims;
  if (is_same && (from.layout.view == to.view || from.varies == 0)) return id;
  Key key{id, to.dims};
  key.second.push_back({to.view});
  auto& known = resharded_[block_];
  if (const auto found = known.find(key); found != known.end()) return found->second;

  const sharding::SubAxisSet kept = from.outer();
  if (from.layout.view != to.view && kept != 0) {
    ir::fail("unsupported_partition", location, "a manual computation over two meshes whose axes do not line up");
  }
  LocalId made = 0;
  if (const auto recipe = rematerialisations_.find(id); recipe != rematerialisations_.end() && kept == 0) {
    made = add_value(from.logical(), to, 0, value(id).name);
    LocalOp again = recipe->second;
    again.results = {made};
    rematerialise_by(made, recipe->second);
    append(std::move(again));
  } else {
    made = add_value(from.logical(), to, kept, value(id).name);
    append_reshard(nearest_source(id, to).first, made, location, reason);
    last().reads_neighbours = shifted_.contains(id);
    if (unruled_.contains(id)) last().reason += kUnruledEnd;
    resharded_from_.insert_or_assign(made, id);
  }
  resharded_[block_].emplace(std::move(key), made);
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
  std::vector<LocalId> same{id};
  for (auto from = resharded_from_.find(id); from != resharded_from_.end(); from = resharded_from_.find(from->second))
    same.push_back(from->second);
  const size_t chain = same.size();
  if (const auto known = resharded_.find(block_); known != resharded_.end()) {
    for (size_t i = 0; i < chain; ++i) {
      for (auto copy = known->second.lower_bound({same[i], {}});
           copy != known->second.end() && copy->first.first == same[i]; ++copy)
        same.push_back(copy->second);
    }
  }
  LocalId best = id;
  double least = lacking_elements(view(to.view), type(id).logical_dims, layout(id), to);
  for (const LocalId other : same) {
    if (type(other).outer() != type(id).outer() || layout(other).view != to.view) continue;
    const double lacking = lacking_elements(view(to.view), type(id).logical_dims, layout(other), to);
    if (lacking >= least) continue;
    least = lacking;
    best = other;
  }
  return {best, least};
}

double Builder::lacking(LocalId id, const ShardLayout& to) const {
  return is_rematerialisable(id) ? 0 : nearest_source(id, to).second;
}

LocalId Builder::vary(LocalId id, sharding::SubAxisSet varies, const ir::Location& location,
                      const std::string& reason) {
  const ShardedType from = type(id);
  if (from.varies == varies) return id;
  const LocalId made = add_value(from.logical(), from.layout, varies & ~from.layout.mask(), value(id).name);
  append_reshard(id, made, location, reason);
  return made;
}

LocalId Builder::alias(LocalId id, const ir::Location& location) {
  const LocalValue like = value(id);
  program_.values.push_back(like);
  const auto made = static_cast<LocalId>(program_.values.size()) - 1;
  LocalOp op;
  op.kind = LocalKind::kView;
  op.name = "view";
  op.operands = {id};
  op.results = {made};
  op.location = location;
  append(std::move(op));
  return made;
}

const ir::DenseAttr* Builder::constant_of(LocalId id) const {
  const auto recipe = rematerialisations_.find(id);
  if (recipe == rematerialisations_.end()) return nullptr;
  const LocalOp& op = recipe->second;
  if (op.kind == LocalKind::kConstant) {
    const ir::Attribute* found = ir::find(op.attributes, "value");
    return found == nullptr ? nullptr : found->as<ir::DenseAttr>();
  }
  const bool repeats = op.kind == LocalKind::kOp && op.def != nullptr && op.def->fuse.read != nullptr &&
                       op.operands.size() == 1 && type(op.operands[0]).rank() == 0;
  return repeats ? constant_of(op.operands[0]) : nullptr;
}

LocalId Builder::add_scalar(tensor::DType dtype, const std::vector<std::byte>& element, int view_number,
                            const ir::Location& location) {
  LocalOp op;
  op.kind = LocalKind::kConstant;
  op.name = "stablehlo.constant";
  op.attributes = {{"value", {ir::splat_attr({dtype, {}}, element)}}};
  op.location = location;
  const LocalId made = add_value({dtype, {}}, replicated(0, view_number), 0);
  op.results = {made};
  rematerialise_by(made, op);
  append(std::move(op));
  return made;
}

LocalId Builder::mask(LocalId id, const std::vector<std::byte>& element, const ir::Location& location,
                      const std::string& reason) {
  const LocalValue masked = value(id);
  const ShardedType& type = masked.type;
  if (!type.is_padded(view(type.layout.view))) return id;
  const LocalId fill = add_scalar(type.local.dtype, element, type.layout.view, location);
  const LocalId made = add_value(type.logical(), type.layout, type.outer(), masked.name);
  LocalOp op;
  op.kind = LocalKind::kMask;
  op.name = "mask";
  op.operands = {id, fill};
  op.results = {made};
  op.location = location;
  op.reason = reason;
  append(std::move(op));
  return made;
}

ir::Region Builder::reducer(kernels::ScalarOp op, tensor::DType dtype) {
  // Looks up the pointwise rows by scalar operation instead of by name.
  const std::span<const ops::OpDef> rows = ops::all_ops();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ops::OpDef& candidate) {
    const auto* math = std::get_if<ops::ScalarMath>(&candidate.body);
    return math != nullptr && math->op == op && math->op_of == nullptr;
  });
  if (row == rows.end()) throw core::Error("internal", "no row for a reducer");
  return ir::OpBuilder(*function_, ops::code_of).reducer(row->name, ir::Type::of({dtype, {}}));
}

tensor::DType Builder::bits_dtype(tensor::DType dtype) {
  if (dtype == tensor::DType::kBool || tensor::is_integer(dtype)) return dtype;
  const int64_t bytes = tensor::size_bytes(dtype) / (tensor::is_complex(dtype) ? 2 : 1);
  switch (bytes) {
    case 1:
      return tensor::DType::kUint8;
    case 2:
      return tensor::DType::kUint16;
    case 4:
      return tensor::DType::kUint32;
    case 8:
      return tensor::DType::kUint64;
    default:
      throw core::Error("internal", "no integer has the bits of " + std::string(tensor::name(dtype)));
  }
}

void Builder::rewind(const Mark& mark) {
  program_.values.resize(mark.value_count);
  block_->ops.resize(mark.op_count);
  program_.effect_count = mark.effect_count;
  for (std::set<LocalId>* ids : {&shifted_, &unruled_})
    std::erase_if(*ids, [&](LocalId id) { return static_cast<size_t>(id) >= mark.value_count; });
  std::erase_if(resharded_from_,
                [&](const auto& entry) { return static_cast<size_t>(entry.first) >= mark.value_count; });
  std::erase_if(rematerialisations_,
                [&](const auto& entry) { return static_cast<size_t>(entry.first) >= mark.value_count; });
  for (auto& [block, known] : resharded_) {
    std::erase_if(known, [&](const auto& entry) {
      return static_cast<size_t>(entry.second) >= mark.value_count ||
             static_cast<size_t>(entry.first.first) >= mark.value_count;
    });
  }
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
