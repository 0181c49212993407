// Loop fusion and reduction fusion: which ops of one block become one step. The kinds are XLA's (loop fusion, input
// fusion of a reduction, multi-output fusion); the decision is one forward pass over the block with ranks.
//
// Invariant: fusing makes no cycle. The rank (op, depth) of a fusion is the earliest place where it can run: behind op
// number `op` of the block, a step of its own (-1: the block's start); `depth` counts the fusions in a row behind it.
// A member of a fusion is read only by members and by what has a greater rank.
//
// 1. Classify ops: pointwise; read through an indexing map (movement ops); iota; reduction; other, a step of its own.
// 2. Loop fusion, in program order: each pointwise op starts a fusion and merges with those of its operands, unless
//    a. local dims, shard table or sub-axes of dims differ (another iteration space);
//    b. it would have more than 64 ops, or read more than 24 values;
//    c. it would read a value of its own through an indexing map, which has to be stored first;
//    d. a reader outside has no greater rank than the merged fusion: one would wait for the other.
// 3. Reduction fusion: a reduction takes those pointwise producers whose readers are all its own (XLA's input fusion).
// 4. Build, from the last step to the first, so that each step's stored outputs are those that later steps read. A
//    movement op that has no reader from memory leaves no step; one that keeps the bytes in order becomes an alias. A
//    transform reads reals themselves where a conversion makes them complex (Fuse::of_converted).
// 5. Order: as the text, by the last op of each step; earlier where another step needs its result (topological order).
//
// Example, one shard, values 4x4xf32, each op with its number and rank:
//   0 (-1,0)  p = add x, y
//   1 (1,0)   d = dot_general p, w
//   2 (1,1)   q = tanh d
//   3 (1,1)   r = multiply q, p
// 3 is fused with 2. They are not fused with 0: op 1 reads p, and its rank (1,0) is not greater than (1,1).
// Out: three steps: add (p is stored), dot_general, "fused tanh multiply (2 ops)".
#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "service/compile/plan/fused_builder.h"
#include "service/core/error.h"
#include "service/ops/checks.h"

namespace meshd::compile {
namespace {

using partition::LocalKind;

// The earliest place where a step can run: behind which op of the block (-1: at its start; depth 0 is the op itself),
// and as which in a row of fusions behind it.
struct Rank {
  int32_t op = -1;
  int32_t depth = 0;
  friend auto operator<=>(const Rank&, const Rank&) = default;
  [[nodiscard]] Rank next() const { return {op, depth + 1}; }
};

struct Fusion {
  std::vector<int32_t> members;  // nodes, ascending
  Rank rank;
  bool is_gone = false;
};

class BlockFuser {
 public:
  BlockFuser(PlanBuilder& builder, const std::vector<const LocalOp*>& ops, const std::vector<LocalId>& live_out,
             bool fuse)
      : builder_(builder), fuse_(fuse) {
    for (const LocalOp* op : ops) {
      const auto number = static_cast<int32_t>(nodes_.size());
      nodes_.push_back(classify(*op));
      for (const LocalId id : op->results) producers_[id] = number;
      for (const LocalId id : op->operands) users_[id].push_back(number);
      for (const partition::LocalBlock& block : op->blocks) {
        partition::for_each_use(block, [&](LocalId id) { users_[id].push_back(number); });
      }
    }
    for (LocalId id : live_out) {
      need({id});
      for (; id >= 0; id = builder_.value(id).alias_of) live_.insert(id);
    }
  }

  std::vector<BuilderStep> run() {
    for (int32_t n = 0; n < static_cast<int32_t>(nodes_.size()); ++n) {
      if (nodes_[static_cast<size_t>(n)].kind == NodeKind::kPoint) fuse_loop(n);
      if (nodes_[static_cast<size_t>(n)].kind == NodeKind::kReduce) fuse_reduction(n);
    }
    build();
    return order();
  }

 private:
  Node classify(const LocalOp& op) {
    Node node;
    node.op = &op;
    if (op.kind == LocalKind::kMask) {
      node.kind = NodeKind::kPoint;
      return node;
    }
    if (op.kind != LocalKind::kOp || op.results.size() != 1) {
      if (op.kind == LocalKind::kOp && op.def != nullptr && op.def->fuse.reduce_dims != nullptr &&
          !op.operands.empty()) {
        return reduction(op, std::move(node));
      }
      return node;
    }
    const LocalView local(*builder_.program, op);
    const ops::Body body = ops::body_of(*op.def, local.view);
    if (std::holds_alternative<ops::ScalarMath>(body)) {
      node.kind = NodeKind::kPoint;
    } else if (op.def->fuse.read != nullptr) {
      node.kind = NodeKind::kRead;
      node.read = indexing_map_of(*op.def, local);
    } else if (op.def->fuse.iota_dim != nullptr) {
      node.kind = NodeKind::kIota;
      node.iota_dim = op.def->fuse.iota_dim(local.view);
    } else if (op.def->fuse.reduce_dims != nullptr) {
      return reduction(op, std::move(node));
    }
    return node;
  }

  /// The body computes in the elements' types. One that does not is left to the op's own kernel.
  static bool keeps_types(const ops::OpView& view) {
    const std::vector<ir::Type> arguments = ops::argument_types(view, view.regions[0]);
    return std::equal(arguments.begin(), arguments.end(), view.operands.begin(), view.operands.end(),
                      [](const ir::Type& argument, const ir::Type& operand) {
                        return argument.is_tensor() && argument.dtype() == operand.dtype();
                      });
  }

  Node reduction(const LocalOp& op, Node node) {
    const LocalView local(*builder_.program, op);
    if (!keeps_types(local.view)) return node;
    node.kind = NodeKind::kReduce;
    node.dims = op.def->fuse.reduce_dims(local.view);
    return node;
  }

  Node& node(int32_t n) { return nodes_[static_cast<size_t>(n)]; }
  [[nodiscard]] int32_t producer(LocalId id) const { return producers_(id); }
  [[nodiscard]] LocalId result(int32_t n) const { return nodes_[static_cast<size_t>(n)].op->results[0]; }

  [[nodiscard]] bool same_space(LocalId a, LocalId b) const {
    const BuilderValue& left = builder_.value(a);
    const BuilderValue& right = builder_.value(b);
    return left.type.local.dims == right.type.local.dims && left.table == right.table &&
           left.type.layout.dims == right.type.layout.dims;
  }

  // What a value is read from, through indexing maps and aliases: its own step's result, or a value from outside.
  // Programs have long chains of these, and each is walked once.
  LocalId origin(LocalId id) {
    std::vector<LocalId> passed;
    while (origins_(id) < 0) {
      passed.push_back(id);
      const int32_t n = producer(id);
      const LocalId alias_of = builder_.value(id).alias_of;
      if (n >= 0 && node(n).kind == NodeKind::kRead) {
        id = node(n).op->operands[0];
      } else if (n < 0 && alias_of >= 0) {
        id = alias_of;
      } else {
        origins_[id] = id;
      }
    }
    const LocalId found = origins_(id);
    for (const LocalId each : passed) origins_[each] = found;
    return found;
  }

  // The earliest place where a value can be read: that of the step that computes its origin.
  Rank rank_of(LocalId id) {
    const int32_t n = producer(origin(id));
    if (n < 0 || node(n).kind == NodeKind::kIota) return {};
    return node_rank(n).next();
  }

  // Whether `wanted(node)` is true for one of those before `limit` that read a value, through indexing maps and
  // aliases.
  template <typename Wanted>
  bool any_reader(LocalId id, int32_t limit, const Wanted& wanted) {
    std::vector<LocalId> open = {id};
    while (!open.empty()) {
      const LocalId read = open.back();
      open.pop_back();
      for (const int32_t user : users_(read)) {
        if (user >= limit) break;
        if (node(user).kind == NodeKind::kRead) {
          open.push_back(result(user));
        } else if (wanted(user)) {
          return true;
        }
      }
      const std::vector<LocalId>& names = builder_.names(read);
      open.insert(open.end(), names.begin(), names.end());
    }
    return false;
  }

  Rank node_rank(int32_t n) {
    const int32_t group = node(n).group;
    return group >= 0 ? fusions_[static_cast<size_t>(group)].rank : Rank{n, 0};
  }

  void fuse_loop(int32_t n) {
    Fusion made;
    made.members = {n};
    for (const LocalId id : node(n).op->operands) made.rank = std::max(made.rank, rank_of(id));
    const auto number = static_cast<int32_t>(fusions_.size());
    fusions_.push_back(std::move(made));
    node(n).group = number;
    if (!fuse_) return;
    for (const LocalId id : node(n).op->operands) {
      const int32_t from = producer(id);
      if (from < 0 || node(from).kind != NodeKind::kPoint) continue;
      const int32_t other = node(from).group;
      if (other != node(n).group && same_space(id, result(n))) merge(other, node(n).group, n);
    }
  }

  // Step 2. Merges fusion `a` into `b` if no step outside has to run between them; `now` is the op that is added.
  void merge(int32_t a, int32_t b, int32_t now) {
    const std::vector<int32_t>& left = fusions_[static_cast<size_t>(a)].members;
    const std::vector<int32_t>& right = fusions_[static_cast<size_t>(b)].members;
    if (left.size() + right.size() > kernels::kMostFusedInstructions) return;
    Fusion merged;
    std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(merged.members));
    const auto inside = [&](int32_t n) { return node(n).group == a || node(n).group == b; };
    std::set<LocalId> reads;
    for (const int32_t member : merged.members) {
      for (const LocalId id : node(member).op->operands) {
        if (producer(id) >= 0 && inside(producer(id))) continue;
        if (splat_of(builder_, builder_.memory_of(id)) != nullptr) continue;
        reads.insert(id);
        // A value of the fusion that is read through an indexing map has to be stored first.
        if (comes_from(id, inside)) return;
        merged.rank = std::max(merged.rank, rank_of(id));
      }
    }
    if (reads.size() > kernels::kMostFusedInputs) return;
    const auto is_before = [&](int32_t reader) { return !inside(reader) && node_rank(reader) <= merged.rank; };
    for (const int32_t member : merged.members) {
      if (any_reader(result(member), now, is_before)) return;
    }
    for (const int32_t member : left) node(member).group = b;
    fusions_[static_cast<size_t>(a)].is_gone = true;
    fusions_[static_cast<size_t>(b)] = std::move(merged);
  }

  template <typename Inside>
  bool comes_from(LocalId id, const Inside& inside) {
    const int32_t n = producer(origin(id));
    return n >= 0 && node(n).kind == NodeKind::kPoint && inside(n);
  }

  // Step 3. A reduction computes the pointwise values that only it reads.
  void fuse_reduction(int32_t n) {
    if (!fuse_) return;
    const LocalOp& op = *node(n).op;
    const LocalId space = op.operands[0];
    std::vector<int32_t> taken;
    std::vector<LocalId> open(op.operands.begin(), op.operands.begin() + static_cast<int64_t>(op.operands.size() / 2));
    while (!open.empty() && taken.size() < kernels::kMostFusedInstructions) {
      const LocalId id = open.back();
      open.pop_back();
      const int32_t from = producer(id);
      if (from < 0 || node(from).kind != NodeKind::kPoint || live_.contains(id)) continue;
      if (!builder_.names(id).empty()) continue;
      if (!same_space(id, space) || std::find(taken.begin(), taken.end(), from) != taken.end()) continue;
      const bool only_here = std::all_of(users_(id).begin(), users_(id).end(), [&](int32_t user) {
        return user == n || std::find(taken.begin(), taken.end(), user) != taken.end();
      });
      if (!only_here) continue;
      taken.push_back(from);
      for (const LocalId operand : node(from).op->operands) open.push_back(operand);
      // A value that was refused because not all of its readers were members yet is tried again.
      for (const int32_t member : taken) {
        for (const LocalId operand : node(member).op->operands) {
          if (std::find(open.begin(), open.end(), operand) == open.end() && producer(operand) >= 0 &&
              std::find(taken.begin(), taken.end(), producer(operand)) == taken.end() && member != from) {
            open.push_back(operand);
          }
        }
      }
    }
    std::sort(taken.begin(), taken.end());
    for (const int32_t member : taken) {
      std::vector<int32_t>& members = fusions_[static_cast<size_t>(node(member).group)].members;
      members.erase(std::remove(members.begin(), members.end(), member), members.end());
      if (members.empty()) fusions_[static_cast<size_t>(node(member).group)].is_gone = true;
      node(member).group = -1;
    }
    taken_[n] = std::move(taken);
  }

  // Step 4. From the last to the first: which values of a step are stored depends on the steps behind it.
  void build() {
    std::vector<std::pair<Rank, int32_t>> units;  // fusions as n >= 0, ops as ~n
    for (int32_t n = 0; n < static_cast<int32_t>(nodes_.size()); ++n) {
      const bool is_fused = node(n).kind == NodeKind::kPoint;
      const bool lazy = node(n).kind == NodeKind::kRead || node(n).kind == NodeKind::kIota;
      if (is_fused) continue;
      units.emplace_back(lazy ? rank_of(result(n)) : Rank{n, 0}, ~n);
    }
    for (size_t c = 0; c < fusions_.size(); ++c) {
      if (!fusions_[c].is_gone) units.emplace_back(fusions_[c].rank, static_cast<int32_t>(c));
    }
    // A movement op sorts before the fusions of its rank, which read it: it is built after them.
    std::stable_sort(units.begin(), units.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
      if (unit->second >= 0) {
        build_fusion(unit->second);
      } else {
        build_op(~unit->second);
      }
    }
  }

  void need(const std::vector<LocalId>& ids) {
    for (LocalId id : ids) {
      while (true) {
        stored_.insert(id);
        if (builder_.value(id).alias_of < 0) break;
        id = builder_.value(id).alias_of;
      }
    }
  }

  void build_fusion(int32_t c) {
    const Fusion& fusion = fusions_[static_cast<size_t>(c)];
    std::vector<LocalId> outputs;
    for (const int32_t member : fusion.members) {
      if (stored_.contains(result(member))) outputs.push_back(result(member));
    }
    if (outputs.empty()) return;
    FusedBuilder fused(builder_, nodes_, producers_, outputs[0]);
    for (const int32_t member : fusion.members) fused.add(node(member));
    need(fused.operands());
    made_.push_back({fused.finish(outputs), fusion.members.back()});
    need(made_.back().step.operands);
  }

  void build_op(int32_t n) {
    Node& self = node(n);
    const bool is_read =
        std::any_of(self.op->results.begin(), self.op->results.end(), [&](LocalId id) { return stored_.contains(id); });
    if ((self.kind == NodeKind::kRead || self.kind == NodeKind::kIota) && !is_read) return;
    if (self.kind == NodeKind::kRead && is_same_bytes(self)) {
      // An alias of the operand's bytes: no step.
      BuilderValue& value = builder_.value(result(n));
      value.alias_of = self.op->operands[0];
      value.alias_map = builder_.tables.projection(value.table, builder_.value(value.alias_of).table);
      need({value.alias_of});
      return;
    }
    BuilderStep step;
    if (self.kind == NodeKind::kReduce) {
      FusedBuilder fused(builder_, nodes_, producers_, self.op->operands[0]);
      for (const int32_t member : taken_[n]) fused.add(node(member));
      fused.reduce(self);
      step = fused.finish(self.op->results);
      step.table = builder_.value(self.op->results[0]).table;
    } else {
      step = make_unfused(*self.op);
      fill_large_splats(step);
    }
    need(step.operands);
    made_.push_back({std::move(step), n});
  }

  // The conversion that makes operand 0 of an op which can read what was there before it; null: there is none.
  const LocalOp* conversion_before(const LocalOp& op) {
    if (!fuse_ || op.kind != LocalKind::kOp || op.def == nullptr || op.def->fuse.of_converted == nullptr)
      return nullptr;
    const int32_t from = producer(op.operands[0]);
    return from >= 0 && is_conversion(node(from)) ? node(from).op : nullptr;
  }

  // The op reads what its operand was before a conversion, where it can; the conversion is for others.
  BuilderStep make_unfused(const LocalOp& op) {
    const LocalOp* const conversion = conversion_before(op);
    if (conversion == nullptr) return make_step(builder_, op);
    LocalView local(*builder_.program, op);
    local.operands[0] = LocalView(*builder_.program, *conversion).operands[0];
    std::optional<ops::PreparedKernel> kernel = op.def->fuse.of_converted(local.view);
    if (!kernel) return make_step(builder_, op);
    BuilderStep step = make_step(builder_, op, std::move(kernel));
    step.operands[0] = conversion->operands[0];
    const int32_t line = conversion->location.line;
    note_producer(step, conversion->name, line > 0 ? std::vector{line} : std::vector<int32_t>());
    return step;
  }

  [[nodiscard]] bool is_conversion(const Node& node) const {
    if (node.kind != NodeKind::kPoint || node.op->def == nullptr) return false;
    const ops::Body body = ops::body_of(*node.op->def, LocalView(*builder_.program, *node.op).view);
    const auto* const math = std::get_if<ops::ScalarMath>(&body);
    return math != nullptr && math->op == kernels::ScalarOp::kConvert && math->emit == nullptr;
  }

  [[nodiscard]] bool is_same_bytes(const Node& self) const {
    const LocalId from = self.op->operands[0];
    const LocalId to = self.op->results[0];
    if (builder_.value(from).bytes != builder_.value(to).bytes) return false;
    if (self.read.same_bytes) return true;
    int last = -1;
    for (size_t d = 0; d < self.read.dims.size(); ++d) {
      if (builder_.value(from).type.local.dims[d] == 1) continue;
      const ops::IndexingMap::Dim& dim = self.read.dims[d];
      if (dim.result_dim <= last || dim.start != 0 || dim.step != 1) return false;
      last = dim.result_dim;
    }
    return true;
  }

  // A large splat constant is written where it is needed, not kept with the plan.
  void fill_large_splats(BuilderStep& step) {
    if (step.kind != StepKind::kKernel) return;
    for (LocalId& id : step.operands) {
      if (splat_of(builder_, id) == nullptr || builder_.value(id).bytes <= kMostSplatBytes) continue;
      const LocalId filled = builder_.add_like(id, builder_.value(id).name);
      BuilderStep fill = make_fill(builder_, id, filled);
      fill.location = step.location;
      fills_.emplace(filled, std::move(fill));
      id = filled;
    }
  }

  // Step 5. Each step at the place of its last op, earlier where another step needs its result.
  std::vector<BuilderStep> order() {
    std::stable_sort(made_.begin(), made_.end(), [](const Made& a, const Made& b) { return a.last < b.last; });
    OfValues<int32_t> maker(-1);
    for (size_t i = 0; i < made_.size(); ++i) {
      for (const LocalId id : made_[i].step.results) maker[id] = static_cast<int32_t>(i);
      if (made_[i].step.op == nullptr) continue;
      for (const LocalId id : made_[i].step.op->results) maker[id] = static_cast<int32_t>(i);
    }
    std::vector<BuilderStep> out;
    for (size_t i = 0; i < made_.size(); ++i) place(static_cast<int32_t>(i), maker, out);
    return out;
  }

  void place(int32_t first, const OfValues<int32_t>& maker, std::vector<BuilderStep>& out) {
    std::vector<int32_t> stack = {first};
    while (!stack.empty()) {
      Made& made = made_[static_cast<size_t>(stack.back())];
      if (made.is_placed) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      for_each_operand(made.step, [&](LocalId id) {
        while (maker(id) < 0 && builder_.value(id).alias_of >= 0) id = builder_.value(id).alias_of;
        const int32_t from = maker(id);
        if (from >= 0 && from != stack[before - 1] && !made_[static_cast<size_t>(from)].is_placed)
          stack.push_back(from);
      });
      if (stack.size() != before) {
        // What it waited for is placed when it is seen again.
        if (std::exchange(made.is_waiting, true)) throw core::Error("internal", "fused steps wait for each other");
        continue;
      }
      for (const LocalId id : made.step.operands) {
        const auto fill = fills_.find(id);
        if (fill == fills_.end()) continue;
        out.push_back(std::move(fill->second));
        fills_.erase(fill);
      }
      made.is_placed = true;
      out.push_back(std::move(made.step));
      stack.pop_back();
    }
  }

  static constexpr int64_t kMostSplatBytes = int64_t{1} << 16;

  struct Made {
    BuilderStep step;
    int32_t last = 0;
    bool is_waiting = false;
    bool is_placed = false;
  };

  PlanBuilder& builder_;
  bool fuse_;
  std::vector<Node> nodes_;
  Producers producers_{-1};
  OfValues<LocalId> origins_{-1};  // of those that were asked for
  OfValues<std::vector<int32_t>> users_;
  std::unordered_set<LocalId> live_;
  std::unordered_set<LocalId> stored_;
  std::vector<Fusion> fusions_;
  std::map<int32_t, std::vector<int32_t>> taken_;
  std::map<LocalId, BuilderStep> fills_;
  std::vector<Made> made_;
};

}  // namespace

std::vector<BuilderStep> fuse_block(PlanBuilder& builder, const std::vector<const LocalOp*>& ops,
                                    const std::vector<LocalId>& live_out, bool fuse) {
  return BlockFuser(builder, ops, live_out, fuse).run();
}

}  // namespace meshd::compile
