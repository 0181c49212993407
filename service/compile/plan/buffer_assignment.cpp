#include "service/compile/plan/buffer_assignment.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "service/compile/plan/liveness.h"
#include "service/core/error.h"
#include "service/kernels/movement/movement.h"
#include "service/tensor/buffer.h"

namespace meshd::compile {
namespace {

// Values that share one slot.
struct Shared {
  std::vector<LiveRange> lives;  // in the order of time; no two overlap
  int64_t reserved_from = kForever;
  int64_t reserved_to = -kForever;
  TableId table = 0;
  int64_t bytes = 0;
  int64_t argument = -1;
  bool is_writable = true;
  bool leaves = false;                    // is a result
  std::vector<LocalId> exchanged;         // values whose slots are exchanged with this one
  std::vector<const BuilderStep*> loops;  // that carry it: no two variables of a loop may share a slot
};

// The rules of buffer_assignment.h, in its order.
class Planner {
 public:
  Planner(PlanBuilder& builder, const std::vector<bool>& donated)
      : builder_(builder),
        donated_(donated),
        lives_(analyze_liveness(builder)),
        parent_(builder.values.size(), -1),
        sets_(builder.values.size()) {}

  BufferAssignment run() {
    make_sets();
    each_loop(builder_.body, [&](const BuilderStep& step) {
      for (const BuilderStep::Carry& carry : step.carries) {
        for (const LocalId id : {carry.variable, carry.back}) set(id).loops.push_back(&step);
      }
    });
    each_loop(builder_.body, [&](BuilderStep& step) { share_initial(step); });
    share_donated();
    each_loop(builder_.body, [&](BuilderStep& step) { share_carried(step); });
    share_copies(builder_.body);
    for (const Liveness::Pair& pair : lives_.in_place) unite(pair.from, pair.to);
    mark_exchanges();
    give_donated();
    return emit();
  }

 private:
  // ---- sets

  void make_sets() {
    for (LocalId id = 0; id < static_cast<LocalId>(builder_.values.size()); ++id) {
      const auto& lives = lives_.of[static_cast<size_t>(id)];
      if (lives.empty()) continue;
      const BuilderValue& value = builder_.value(id);
      parent_[static_cast<size_t>(id)] = id;
      Shared& made = sets_[static_cast<size_t>(id)];
      made.lives = lives;
      std::sort(made.lives.begin(), made.lives.end(), starts_before);
      made.table = value.table;
      made.bytes = value.bytes;
      made.argument = value.argument;
      made.is_writable = value.argument < 0 || donated_[static_cast<size_t>(value.argument)];
      const auto [from, to] = lives_.reserved[static_cast<size_t>(id)];
      if (to >= from) {
        made.reserved_from = from;
        made.reserved_to = to;
      }
    }
    for (const LocalId id : builder_.results) {
      if (const LocalId root = builder_.memory_of(id); is_stored(root)) set(root).leaves = true;
    }
  }

  [[nodiscard]] bool is_stored(LocalId id) const { return parent_[static_cast<size_t>(id)] >= 0; }

  LocalId find(LocalId id) {
    while (parent_[static_cast<size_t>(id)] != id) {
      auto& up = parent_[static_cast<size_t>(id)];
      up = parent_[static_cast<size_t>(up)];
      id = up;
    }
    return id;
  }
  Shared& set(LocalId id) { return sets_[static_cast<size_t>(find(id))]; }

  bool same_shards(TableId a, TableId b) {
    return a == b || builder_.tables[a].shard_of_device == builder_.tables[b].shard_of_device;
  }

  [[nodiscard]] bool meet(const LiveRange& a, const LiveRange& b) const {
    if (a.start > b.end || b.start > a.end) return false;
    const bool a_first = a.end == b.start && lives_.may_touch.contains({a.value, b.value, b.start});
    const bool b_first = b.end == a.start && lives_.may_touch.contains({b.value, a.value, a.start});
    return !a_first && !b_first;
  }

  static bool starts_before(const LiveRange& a, const LiveRange& b) {
    return std::pair(a.start, a.end) < std::pair(b.start, b.end);
  }

  // True when a range of one list meets one of the other. Each of the shorter list looks at its neighbours only.
  [[nodiscard]] bool any_meet(const std::vector<LiveRange>& a, const std::vector<LiveRange>& b) const {
    if (a.size() < b.size()) return any_meet(b, a);
    return std::any_of(b.begin(), b.end(), [&](const LiveRange& y) {
      auto x =
          std::upper_bound(a.begin(), a.end(), y.end, [](int64_t end, const LiveRange& r) { return end < r.start; });
      while (x != a.begin() && (--x)->end >= y.start) {
        if (meet(*x, y)) return true;
      }
      return false;
    });
  }

  // Unites the sets of two values if no two live ranges of them overlap.
  bool unite(LocalId a, LocalId b) {
    if (!is_stored(a) || !is_stored(b)) return false;
    const LocalId left = find(a);
    const LocalId right = find(b);
    if (left == right) return true;
    Shared& to = sets_[static_cast<size_t>(left)];
    Shared& from = sets_[static_cast<size_t>(right)];
    if (to.bytes != from.bytes || !to.is_writable || !from.is_writable || !same_shards(to.table, from.table))
      return false;
    if (to.argument >= 0 && from.argument >= 0) return false;
    for (const BuilderStep* loop : to.loops) {
      if (std::find(from.loops.begin(), from.loops.end(), loop) != from.loops.end()) return false;
    }
    if (any_meet(to.lives, from.lives)) return false;
    parent_[static_cast<size_t>(right)] = left;
    const auto added = to.lives.insert(to.lives.end(), from.lives.begin(), from.lives.end());
    std::inplace_merge(std::upper_bound(to.lives.begin(), added, *added, starts_before), added, to.lives.end(),
                       starts_before);
    to.exchanged.insert(to.exchanged.end(), from.exchanged.begin(), from.exchanged.end());
    to.loops.insert(to.loops.end(), from.loops.begin(), from.loops.end());
    to.reserved_from = std::min(to.reserved_from, from.reserved_from);
    to.reserved_to = std::max(to.reserved_to, from.reserved_to);
    to.argument = std::max(to.argument, from.argument);
    to.leaves = to.leaves || from.leaves;
    from = {};
    return true;
  }

  // ---- sharing

  template <typename F>
  void each_loop(BuilderBlock& block, const F& f) {
    for (BuilderStep& step : block.steps) {
      for (BuilderBlock& inner : step.blocks) each_loop(inner, f);
      if (step.kind == StepKind::kWhile) f(step);
    }
  }

  void share_initial(BuilderStep& step) {
    for (const BuilderStep::Carry& carry : step.carries) {
      for (const Liveness::Pair& pair : pairs_into(carry.variable)) unite(pair.from, pair.to);
    }
  }

  std::vector<Liveness::Pair> pairs_into(LocalId value) {
    if (into_.empty()) {
      for (const Liveness::Pair& pair : lives_.in_place) into_[pair.to].push_back(pair);
    }
    const auto found = into_.find(value);
    return found == into_.end() ? std::vector<Liveness::Pair>{} : found->second;
  }

  void share_donated() {
    for (const partition::LocalParameter& argument : builder_.program->arguments) {
      const auto number = static_cast<size_t>(builder_.value(argument.value).argument);
      if (!donated_[number] || argument.aliases < 0) continue;
      const auto [root, map] = builder_.root(builder_.results[static_cast<size_t>(argument.aliases)]);
      if (map == kIdentity) unite(argument.value, root);
    }
  }

  void share_carried(BuilderStep& step) {
    for (BuilderStep::Carry& carry : step.carries) {
      const auto [result, map] = builder_.root(carry.body_result);
      const bool has_same_layout = map == kIdentity && is_stored(result) &&
                                   same_shards(builder_.value(result).table, builder_.value(carry.variable).table);
      if (has_same_layout && unite(result, carry.variable)) {
        carry.in_place = true;
        drop(carry.back);
        continue;
      }
      set(carry.variable).exchanged.push_back(carry.back);
      set(carry.back).exchanged.push_back(carry.variable);
      if (has_same_layout) unite(result, carry.back);
    }
  }

  void share_copies(BuilderBlock& block) {
    for (BuilderStep& step : block.steps) {
      for (BuilderBlock& inner : step.blocks) {
        if (step.kind == StepKind::kCase) {
          for (const BuilderStep& copy : inner.steps) {
            if (copy.is_copy && may_touch(copy)) unite(builder_.memory_of(copy.operands[0]), copy.results[0]);
          }
        }
        share_copies(inner);
      }
    }
  }

  bool may_touch(const BuilderStep& copy) {
    return lives_.may_touch.contains({builder_.memory_of(copy.operands[0]), copy.results[0], copy.begin});
  }

  void drop(LocalId id) {
    parent_[static_cast<size_t>(id)] = -1;
    sets_[static_cast<size_t>(id)] = {};
  }

  // Slots that are exchanged must live equally long, and if one may leave the run, each may.
  void mark_exchanges() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (LocalId id = 0; id < static_cast<LocalId>(parent_.size()); ++id) {
        if (!is_stored(id) || find(id) != id) continue;
        Shared& mine = sets_[static_cast<size_t>(id)];
        for (const LocalId partner : mine.exchanged) {
          Shared& other = set(partner);
          const auto [from, to] = hull(mine);
          const bool leaves = mine.leaves || mine.argument >= 0;
          if (from >= other.reserved_from && to <= other.reserved_to && (!leaves || other.leaves)) continue;
          other.reserved_from = std::min(from, other.reserved_from);
          other.reserved_to = std::max(to, other.reserved_to);
          other.leaves = other.leaves || leaves;
          changed = true;
        }
      }
    }
  }

  static std::pair<int64_t, int64_t> hull(const Shared& shared) {
    std::pair<int64_t, int64_t> out{shared.reserved_from, shared.reserved_to};
    for (const LiveRange& life : shared.lives) {
      out.first = std::min(out.first, life.start);
      out.second = std::max(out.second, life.end);
    }
    return out;
  }

  // A result without an argument's memory may take that of any donated argument that is read no more.
  void give_donated() {
    for (const partition::LocalParameter& argument : builder_.program->arguments) {
      const LocalId id = argument.value;
      if (!is_stored(id) || !donated_[static_cast<size_t>(builder_.value(id).argument)]) continue;
      if (set(id).lives.size() != 1) continue;
      for (const LocalId result : builder_.results) {
        const auto [root, map] = builder_.root(result);
        if (!is_stored(root) || map != kIdentity || set(root).argument >= 0) continue;
        const auto [from, to] = hull(set(root));
        if (from <= hull(set(id)).second || !set(root).exchanged.empty()) continue;
        if (unite(id, root)) break;
      }
    }
  }

  // ---- slots

  BufferAssignment emit() {
    out_.slot_of.assign(builder_.values.size(), -1);
    std::vector<SlotId> slot_of_set(builder_.values.size(), -1);
    std::vector<std::pair<int64_t, int64_t>> hulls;
    for (LocalId id = 0; id < static_cast<LocalId>(builder_.values.size()); ++id) {
      if (!is_stored(id)) continue;
      const LocalId top = find(id);
      SlotId& slot = slot_of_set[static_cast<size_t>(top)];
      if (slot < 0) {
        slot = static_cast<SlotId>(out_.slots.size());
        out_.slots.push_back(slot_of_shared(sets_[static_cast<size_t>(top)]));
        hulls.push_back(hull(sets_[static_cast<size_t>(top)]));
      }
      out_.slot_of[static_cast<size_t>(id)] = slot;
    }
    pack(hulls);
    out_.device_arena_bytes = alive_at_once(hulls);
    for (const LocalId id : lives_.constants) add_constant(id);
    return std::move(out_);
  }

  Slot slot_of_shared(const Shared& shared) {
    Slot slot;
    slot.table = shared.table;
    slot.bytes = shared.bytes;
    slot.stride = core::round_up(shared.bytes, tensor::kBufferAlignment);
    slot.argument = shared.argument;
    if (shared.argument >= 0) {
      slot.storage = Storage::kArgument;
      // More live ranges than the argument's own: steps write there; exchanged: it gets the other slot's bytes.
      slot.is_writable = shared.is_writable && (shared.lives.size() > 1 || !shared.exchanged.empty());
    } else if (shared.leaves) {
      slot.storage = Storage::kOwn;
    }
    return slot;
  }

  // Greedy by size: large slots first, each in the tightest gap between slots that are live at the same time, else
  // behind the last of them.
  void pack(const std::vector<std::pair<int64_t, int64_t>>& hulls) {
    std::vector<size_t> order;
    std::vector<int64_t> sizes(out_.slots.size(), 0);
    for (size_t i = 0; i < out_.slots.size(); ++i) {
      const Slot& slot = out_.slots[i];
      if (slot.storage != Storage::kArena) continue;
      sizes[i] = core::checked_mul(slot.stride, builder_.tables[slot.table].count());
      order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
    std::vector<size_t> placed;  // by offset
    for (const size_t i : order) {
      int64_t best = -1;
      int64_t best_gap = kForever;
      int64_t at = 0;
      for (const size_t other : placed) {
        if (hulls[other].first > hulls[i].second || hulls[other].second < hulls[i].first) continue;
        const int64_t gap = out_.slots[other].offset - at;
        if (gap >= sizes[i] && gap < best_gap) {
          best = at;
          best_gap = gap;
        }
        at = std::max(at, out_.slots[other].offset + sizes[other]);
      }
      out_.slots[i].offset = best >= 0 ? best : at;
      out_.arena_bytes = std::max(out_.arena_bytes, core::checked_add(out_.slots[i].offset, sizes[i]));
      const auto behind =
          std::upper_bound(placed.begin(), placed.end(), out_.slots[i].offset,
                           [&](int64_t offset, size_t other) { return offset < out_.slots[other].offset; });
      placed.insert(behind, i);
    }
  }

  // What one device needs: one shard of each slot, at the busiest time.
  [[nodiscard]] int64_t alive_at_once(const std::vector<std::pair<int64_t, int64_t>>& hulls) const {
    std::map<int64_t, int64_t> changes;
    for (size_t i = 0; i < out_.slots.size(); ++i) {
      if (out_.slots[i].storage != Storage::kArena) continue;
      changes[hulls[i].first] += out_.slots[i].stride;
      changes[hulls[i].second + 1] -= out_.slots[i].stride;
    }
    int64_t alive = 0;
    int64_t most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, alive += change);
    return most;
  }

  void add_constant(LocalId id) {
    const BuilderValue& value = builder_.value(id);
    Slot slot;
    slot.storage = Storage::kConstant;
    slot.table = value.table;
    slot.bytes = value.bytes;
    slot.offset = core::round_up(static_cast<int64_t>(out_.constants.size()), tensor::kBufferAlignment);
    const int64_t count = builder_.tables[value.table].count();
    bool same = true;
    for (size_t d = 0; d < value.type.rank(); ++d)
      same = same && value.type.parts(builder_.tables.view(value.type.layout.view), d) == 1;
    const bool shared =
        value.constant->kind == partition::LocalKind::kConstant && (splat_of(builder_, id) != nullptr || same);
    slot.stride = shared ? 0 : core::round_up(value.bytes, tensor::kBufferAlignment);
    out_.constants.resize(static_cast<size_t>(
        slot.offset + (shared ? core::round_up(value.bytes, tensor::kBufferAlignment) : slot.stride * count)));
    for (int64_t shard = 0; shard < (shared ? 1 : count); ++shard) {
      write_constant(id, shard, out_.constants.data() + slot.offset + shard * slot.stride);
    }
    out_.slot_of[static_cast<size_t>(id)] = static_cast<SlotId>(out_.slots.size());
    out_.slots.push_back(slot);
  }

  void write_constant(LocalId id, int64_t shard, std::byte* to) {
    const BuilderValue& value = builder_.value(id);
    const LocalOp& op = *value.constant;
    if (op.kind == partition::LocalKind::kPosition) {
      const bool replica = op.name.find("replica") != std::string::npos;
      const auto number =
          static_cast<uint32_t>(replica ? 0 : builder_.tables[value.table].device_of_shard[static_cast<size_t>(shard)]);
      std::memcpy(to, &number, sizeof(number));
      return;
    }
    const tensor::TensorType& local = value.type.local;
    const int64_t size = tensor::size_bytes(local.dtype);
    if (const ir::DenseAttr* splat = splat_of(builder_, id)) {
      return kernels::fill_elements(to, splat->bytes->data(), tensor::element_count(local), size);
    }
    const auto& dense = *ir::find(op.attributes, "value")->as<ir::DenseAttr>();
    const tensor::Dims coords = builder_.tables.coordinates(value.table, shard);
    tensor::Dims start;
    tensor::Dims extent;
    for (size_t d = 0; d < local.dims.size(); ++d) {
      start.push_back(value.type.start(builder_.tables.view(value.type.layout.view), d, coords));
      extent.push_back(std::clamp(dense.type.dims[d] - start[d], int64_t{0}, local.dims[d]));
      if (extent[d] == 0) return;
    }
    const tensor::Dims zeros(extent.size(), 0);
    kernels::copy_block(to, local.dims, zeros, dense.bytes->data(), dense.type.dims, start, extent, size);
  }

  PlanBuilder& builder_;
  const std::vector<bool>& donated_;
  Liveness lives_;
  std::vector<LocalId> parent_;
  std::vector<Shared> sets_;
  std::map<LocalId, std::vector<Liveness::Pair>> into_;
  BufferAssignment out_;
};

}  // namespace

BufferAssignment assign_buffers(PlanBuilder& builder, const std::vector<bool>& donated) {
  return Planner(builder, donated).run();
}

}  // namespace meshd::compile
