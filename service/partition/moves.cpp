#include "service/partition/moves.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "service/core/checked_math.h"
#include "service/ops/op_def.h"
#include "service/partition/local_walk.h"
#include "service/partition/shard_layout.h"
#include "service/tensor/dtype.h"

namespace meshd::partition {
namespace {

int64_t local_bytes(const ShardedType& type) {
  return core::checked_mul(core::checked_product(type.local.dims), tensor::size_bytes(type.local.dtype));
}

// What a device lacks of its new shard: the most over devices whose old shard is full.
int64_t lacking_bytes(const LocalProgram& program, const ShardedType& from, const ShardedType& to) {
  const sharding::MeshView& from_view = program.view(from.layout.view);
  const sharding::MeshView& to_view = program.view(to.layout.view);
  const std::vector<int64_t> position_of = from_view.position_of_flat(program.device_count());
  // Only sub-axes that shard one of the two count; one coordinate of the others suffices.
  const sharding::SubAxisSet sharded = from.layout.mask() | to.layout.mask();
  const bool same_view = from.layout.view == to.layout.view;
  const int64_t count = same_view ? from_view.distinct_count(sharded) : to_view.position_count();
  int64_t most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const tensor::Dims there = to_view.coordinates(same_view ? sharded : to_view.all(), i);
    // A device that the old mesh does not reach lacks all of its new shard.
    const int64_t position = same_view ? i : position_of[static_cast<size_t>(to_view.flat(i))];
    const tensor::Dims here = same_view || position < 0 ? there : from_view.coordinates(from_view.all(), position);
    bool full = true;
    int64_t wanted = 1;
    int64_t common = position < 0 ? 0 : 1;
    for (size_t d = 0; d < from.rank(); ++d) {
      const auto [c, e] = to.rows(to_view, d, there);
      wanted *= e - c;
      if (position < 0) continue;
      const auto [a, b] = from.rows(from_view, d, here);
      full = full && b - a == from.local.dims[d];
      common *= std::max<int64_t>(0, std::min(b, e) - std::max(a, c));
    }
    if (full) most = std::max(most, wanted - common);
  }
  return most * tensor::size_bytes(to.local.dtype);
}

// Bytes that an exchange sends a device, for each operand: those of the device that lacks most of all operands
// together; and the sub-axes of the dimensions along which some device lacks rows.
struct Fetched {
  std::vector<int64_t> bytes;
  std::vector<sharding::SubAxisSet> axes;
};

Fetched fetched_by(const LocalProgram& program, const LocalOp& op) {
  const ShardedType& to = program.type(op.results[0]);
  const sharding::MeshView& view = program.view(to.layout.view);
  const size_t sources = op.halos.size();
  sharding::SubAxisSet sharded = to.layout.mask();
  for (size_t i = 0; i < sources; ++i) sharded |= program.type(op.operands[i]).layout.mask();
  Fetched out{std::vector<int64_t>(sources, 0), std::vector<sharding::SubAxisSet>(sources, 0)};
  int64_t most = 0;
  for (int64_t device = 0; device < view.distinct_count(sharded); ++device) {
    const tensor::Dims here = view.coordinates(sharded, device);
    std::vector<int64_t> lacking;
    for (size_t i = 0; i < sources; ++i) {
      const ShardedType& from = program.type(op.operands[i]);
      int64_t wanted = 1;
      int64_t common = 1;
      for (size_t d = 0; d < to.rank(); ++d) {
        const auto [begin, end] = from.rows(view, d, here);
        const int64_t part = sharding::part_index(view, to.sub_axes(d), here);
        const HaloRows read = rows_read(op.halos[i][d], part, to.local.dims[d]);
        const int64_t held = read.within(begin, end).count;
        if (held < read.count) out.axes[i] |= mask_of(to.sub_axes(d));
        wanted *= read.count;
        common *= held;
      }
      lacking.push_back((wanted - common) * tensor::size_bytes(to.local.dtype));
    }
    const int64_t all = std::accumulate(lacking.begin(), lacking.end(), int64_t{0});
    if (all <= most) continue;
    most = all;
    out.bytes = std::move(lacking);
  }
  return out;
}

MoveKind kind_of(const ShardedType& from, const ShardedType& to, int64_t bytes) {
  if (from.layout.view != to.layout.view) return MoveKind::kReshard;
  const sharding::SubAxisSet before = from.layout.mask();
  const sharding::SubAxisSet after = to.layout.mask();
  if (bytes == 0) return MoveKind::kAllSlice;
  if (before == after) {
    return local_bytes(from) == local_bytes(to) && from.local.dims == to.local.dims ? MoveKind::kCollectivePermute
                                                                                    : MoveKind::kAllToAll;
  }
  if ((before & after) == after) {
    for (size_t d = 0; d < from.rank(); ++d) {
      const auto& a = from.sub_axes(d);
      const auto& b = to.sub_axes(d);
      if (b.size() > a.size() || !std::equal(b.begin(), b.end(), a.begin())) return MoveKind::kReshard;
    }
    return MoveKind::kAllGather;
  }
  return sharding::SubAxisSet{before & ~after} != 0 && local_bytes(from) == local_bytes(to)
             ? MoveKind::kCollectivePermute
             : MoveKind::kReshard;
}

class Finder {
 public:
  explicit Finder(const LocalProgram& program) : program_(program), users_(program.values.size()) {
    const auto leave = [&](const LocalBlock& block) {
      for (const LocalId id : block.results) users_[static_cast<size_t>(id)].push_back(nullptr);
    };
    leave(program.body);
    walk(program.body, [&](const LocalOp& op) {
      for (const LocalId id : op.operands) users_[static_cast<size_t>(id)].push_back(&op);
      for (const LocalBlock& inner : op.blocks) leave(inner);
    });
  }

  std::vector<Move> run() {
    visit(program_.body, 0);
    return std::move(out_);
  }

 private:
  // Sub-axes of a reduction by which every user slices the result: then it is a reduce_scatter.
  [[nodiscard]] sharding::SubAxisSet scattered(const LocalOp& op, LocalId id) const {
    const auto& users = users_[static_cast<size_t>(id)];
    sharding::SubAxisSet common = op.reduced;
    const ShardLayout& layout = program_.type(id).layout;
    for (const LocalOp* user : users) {
      if (user == nullptr || user->kind != LocalKind::kReshard) return 0;
      const ShardLayout& to = program_.type(user->results[0]).layout;
      if (to.view != layout.view) return 0;
      common &= to.mask() & ~layout.mask();
    }
    return users.empty() ? 0 : common;
  }

  void visit(const LocalBlock& block, int depth) {
    for (const LocalOp& op : block.ops) {
      if (op.kind == LocalKind::kReshard) reshard(op, depth);
      if (op.kind == LocalKind::kHalo) halo(op, depth);
      if (op.kind == LocalKind::kReduceShards) reduce(op, depth);
      if (op.kind == LocalKind::kGroup) group(op, depth);
      for (const LocalBlock& inner : op.blocks) visit(inner, depth + (op.kind == LocalKind::kWhile ? 1 : 0));
    }
  }

  Move& add(const LocalOp& op, LocalId from, LocalId to, int depth) {
    Move& made = out_.emplace_back();
    made.from = from;
    made.to = to;
    made.op = op.name;
    made.reason = op.reason;
    made.location = op.location;
    made.loop_depth = depth;
    made.cause = op.reason == kWritten                                ? MoveCause::kText
                 : op.reason.ends_with(kUnruledEnd)                   ? MoveCause::kUnruled
                 : op.reads_neighbours || op.kind == LocalKind::kHalo ? MoveCause::kNeighbours
                                                                      : MoveCause::kSharding;
    return made;
  }

  void reshard(const LocalOp& op, int depth) {
    LocalId source = op.operands[0];
    const ShardedType& to = program_.type(op.results[0]);
    const ShardedType& from = program_.type(source);
    if (from.layout == to.layout) return;  // what every device has already
    Move& made = add(op, source, op.results[0], depth);
    made.bytes = lacking_bytes(program_, from, to);
    made.kind = kind_of(from, to, made.bytes);
    const sharding::SubAxisSet before = from.layout.mask();
    const sharding::SubAxisSet after = to.layout.mask();
    made.axes = before & ~after;
    if (made.kind == MoveKind::kAllSlice) made.axes = after & ~before;
    if (made.axes == 0 || from.layout.view != to.layout.view) made.axes = before;
  }

  void halo(const LocalOp& op, int depth) {
    const Fetched fetched = fetched_by(program_, op);
    for (size_t i = 0; i < op.halos.size(); ++i) {
      Move& made = add(op, op.operands[i], op.results[0], depth);
      made.kind = fetched.axes[i] == 0 ? MoveKind::kAllSlice : MoveKind::kHaloExchange;
      made.axes = fetched.axes[i] != 0 ? fetched.axes[i] : program_.type(op.results[0]).layout.mask();
      made.bytes = fetched.bytes[i];
    }
  }

  void reduce(const LocalOp& op, int depth) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      Move& made = add(op, op.operands[i], op.results[i], depth);
      const sharding::MeshView& view = program_.view_of(op.results[i]);
      const int64_t ways = view.distinct_count(op.reduced);
      const sharding::SubAxisSet apart = scattered(op, op.results[i]);
      const int64_t local = local_bytes(program_.type(op.results[i]));
      made.axes = op.reduced;
      made.kind = apart == 0 ? MoveKind::kAllReduce : MoveKind::kReduceScatter;
      // A reduction where every device ends with 1 of `kept` parts: what it receives to reduce its part of `ways`,
      // and the rest of what it keeps from those that reduced it.
      const int64_t kept = view.distinct_count(apart);
      made.bytes = (local - local / ways) + (local / kept - local / ways);
      if (op.def != nullptr) made.cause = MoveCause::kText;
    }
  }

  void group(const LocalOp& op, int depth) {
    for (size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
      const ShardedType& from = program_.type(op.operands[i]);
      const ShardedType& to = program_.type(op.results[i]);
      Move& made = add(op, op.operands[i], op.results[i], depth);
      made.kind = MoveKind::kGroup;
      made.cause = MoveCause::kText;
      const int64_t ways = op.groups.empty() ? 1 : static_cast<int64_t>(op.groups.front().size());
      const int64_t before = local_bytes(from);
      const int64_t after = local_bytes(to);
      const bool pairs = std::get_if<ops::GroupKernel>(&op.def->body)->is_permutation;
      made.bytes = pairs ? after : after > before ? after - before : before - before / std::max<int64_t>(ways, 1);
    }
  }

  const LocalProgram& program_;
  std::vector<std::vector<const LocalOp*>> users_;  // null: leaves its block
  std::vector<Move> out_;
};

std::vector<sharding::AxisRef> axes_of(const ViewNames& names, const std::vector<int>& sub_axes) {
  std::vector<sharding::AxisRef> out;
  for (const int sub_axis : sub_axes) out.push_back(names.sub_axes[static_cast<size_t>(sub_axis)]);
  return sharding::canonical_axes(std::move(out), *names.axes);
}

}  // namespace

std::string_view name(MoveKind kind) {
  switch (kind) {
    case MoveKind::kAllGather:
      return "all_gather";
    case MoveKind::kAllSlice:
      return "all_slice";
    case MoveKind::kAllToAll:
      return "all_to_all";
    case MoveKind::kCollectivePermute:
      return "collective_permute";
    case MoveKind::kHaloExchange:
      return "halo_exchange";
    case MoveKind::kReshard:
      return "reshard";
    case MoveKind::kAllReduce:
      return "all_reduce";
    case MoveKind::kReduceScatter:
      return "reduce_scatter";
    case MoveKind::kGroup:
      return "collective";
  }
  return "";
}

std::vector<Move> find_moves(const LocalProgram& program) { return Finder(program).run(); }

sharding::TensorSharding layout_sharding(const LocalProgram& program, LocalId id) {
  const ShardLayout& layout = program.type(id).layout;
  const ViewNames& names = program.view_names[static_cast<size_t>(layout.view)];
  auto sharding = sharding::fully_replicated(names.mesh, names.axes, static_cast<int64_t>(layout.dims.size()));
  for (size_t d = 0; d < layout.dims.size() && names.axes != nullptr; ++d)
    sharding.dims[d].axes = axes_of(names, layout.dims[d]);
  return sharding;
}

std::string layout_text(const LocalProgram& program, LocalId id) {
  const ViewNames& names = program.view_names[static_cast<size_t>(program.type(id).layout.view)];
  return names.axes == nullptr ? std::string() : sharding::to_sdy(layout_sharding(program, id));
}

std::string axes_text(const LocalProgram& program, LocalId id, sharding::SubAxisSet sub_axes) {
  const ViewNames& names = program.view_names[static_cast<size_t>(program.type(id).layout.view)];
  if (names.axes == nullptr || sub_axes == 0) return "{}";
  auto sharding = sharding::fully_replicated(names.mesh, names.axes, 1);
  sharding.dims[0].axes = axes_of(names, list_of(sub_axes));
  const std::string text = sharding::to_sdy(sharding);
  return text.substr(text.find('[') + 1, text.rfind(']') - text.find('[') - 1);
}

}  // namespace meshd::partition
