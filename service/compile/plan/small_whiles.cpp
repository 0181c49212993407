#include "service/compile/plan/small_whiles.h"

#include <algorithm>
#include <map>
#include <optional>

#include "service/kernels/fused/small_while.h"
#include "service/ops/kernel_interface.h"

namespace meshd::compile {
namespace {

constexpr int64_t kMostBlockBytes = int64_t{4} << 20;  // of all shards together
constexpr size_t kMostValues = 1024;                   // more do not fit in one block, whatever their types are

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

Range arena_range(const Plan& plan, SlotId id) {
  const Slot& slot = plan.slot(id);
  if (slot.storage != Storage::kArena) return {};
  const int64_t count = plan.table(slot.table).count();
  return {slot.offset, slot.offset + (count - 1) * slot.stride + slot.bytes};
}

class Finder {
 public:
  Finder(const Plan& plan, const Step& loop) : plan_(plan), loop_(loop) {}

  std::shared_ptr<const SmallWhileStep> find() {
    const std::vector<Step>& condition = plan_.block(loop_.blocks_first).steps;
    const std::vector<Step>& body = plan_.block(loop_.blocks_first + 1).steps;
    for (const auto* steps : {&condition, &body}) {
      for (const Step& step : *steps) {
        if (step.kind != StepKind::kKernel) return nullptr;
        const bool is_small = step.kernel->fused != nullptr || step.kernel->small != nullptr || step.is_copy;
        if (!is_small || (step.kernel->fused != nullptr && !step.offsets.empty())) return nullptr;
      }
    }
    if (!choose_table(condition, body)) return nullptr;
    auto made = std::make_shared<SmallWhileStep>();
    add_steps(condition, given_.condition, made->condition);
    made->iteration = made->condition;
    ++made->iteration.steps;
    add_steps(body, given_.body, made->iteration);
    given_.predicate = value(loop_.operands[0], loop_.table, false);
    for (const auto& [a, b] : loop_.exchanges) add_exchange(a, b);
    if (is_refused_ || !finish_values(*made)) return nullptr;
    std::optional<kernels::SmallWhile> loop = kernels::SmallWhile::make(given_);
    if (!loop) return nullptr;
    made->loop = std::make_shared<const kernels::SmallWhile>(std::move(*loop));
    return made->block_bytes() <= kMostBlockBytes ? made : nullptr;
  }

 private:
  struct Value {
    SlotId slot = -1;
    std::vector<int64_t> shards;  // of the slot, by shard of the widest table
    tensor::DType dtype = tensor::DType::kUint8;
    bool is_written = false;
    bool is_array = false;
  };

  bool choose_table(const std::vector<Step>& condition, const std::vector<Step>& body) {
    std::vector<TableId> tables = {loop_.table};
    for (const Step& step : condition) tables.push_back(step.table);
    for (const Step& step : body) tables.push_back(step.table);
    widest_ = *std::max_element(tables.begin(), tables.end(),
                                [&](TableId a, TableId b) { return plan_.table(a).count() < plan_.table(b).count(); });
    std::sort(tables.begin(), tables.end());
    tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
    for (const auto& [a, b] : loop_.exchanges) {
      tables.push_back(plan_.slot(a).table);
      tables.push_back(plan_.slot(b).table);
    }
    return std::all_of(tables.begin(), tables.end(), [&](TableId id) { return project(id); });
  }

  // Which shard of table `id` each shard of the widest table holds; false where that is not one.
  bool project(TableId id) {
    const ShardTable& wide = plan_.table(widest_);
    const ShardTable& other = plan_.table(id);
    std::vector<int64_t> shards(static_cast<size_t>(wide.count()), -1);
    for (size_t device = 0; device < wide.shard_of_device.size(); ++device) {
      const int32_t mine = wide.shard_of_device[device];
      const int32_t theirs = other.shard_of_device[device];
      if ((mine < 0) != (theirs < 0)) return false;
      if (mine < 0) continue;
      int64_t& known = shards[static_cast<size_t>(mine)];
      if (known >= 0 && known != theirs) return false;
      known = theirs;
    }
    projections_[id] = std::move(shards);
    return true;
  }

  void add_steps(const std::vector<Step>& from, std::vector<kernels::SmallWhileLoop::Step>& to, LoopCost& cost) {
    for (const Step& step : from) {
      kernels::SmallWhileLoop::Step made;
      made.kernel = step.kernel->fused;
      if (made.kernel == nullptr && !step.is_copy) made.small_step = step.kernel->small;
      for (const SlotRef& ref : step.operands) made.operands.push_back(value(ref, step.table, false));
      for (const SlotRef& ref : step.results) made.results.push_back(value(ref, step.table, true));
      if (made.row() != nullptr && !is_refused_) values_[static_cast<size_t>(made.operands[0])].is_array = true;
      to.push_back(std::move(made));
      cost.add(step, plan_.table(step.table).count());
    }
  }

  // The value's number. One that has no memory, or one too many: the loop is refused.
  int value(const SlotRef& ref, TableId table, bool is_written) {
    std::vector<int64_t> shards;
    for (const int64_t shard : projections_.at(table)) shards.push_back(plan_.slot_shard(ref, shard));
    const tensor::DType dtype =
        ref.value < 0 ? tensor::DType::kUint8 : plan_.values[static_cast<size_t>(ref.value)].type.local.dtype;
    return value(ref.slot, std::move(shards), dtype, is_written);
  }

  int value(SlotId slot, std::vector<int64_t> shards, tensor::DType dtype, bool is_written) {
    auto found = std::find_if(values_.begin(), values_.end(),
                              [&](const Value& known) { return known.slot == slot && known.shards == shards; });
    if (slot < 0 || (found == values_.end() && values_.size() == kMostValues)) {
      is_refused_ = true;
      return 0;
    }
    if (found == values_.end()) found = values_.insert(values_.end(), {slot, std::move(shards), dtype, false});
    found->is_written = found->is_written || is_written;
    return static_cast<int>(found - values_.begin());
  }

  // The body's steps write one of the two at least: its elements are those of the other.
  void add_exchange(SlotId a, SlotId b) {
    const auto known = std::find_if(values_.begin(), values_.end(),
                                    [&](const Value& value) { return value.slot == a || value.slot == b; });
    const tensor::DType dtype = known == values_.end() ? tensor::DType::kUint8 : known->dtype;
    const int left = value(a, projections_.at(plan_.slot(a).table), dtype, true);
    const int right = value(b, projections_.at(plan_.slot(b).table), dtype, true);
    given_.exchanges.emplace_back(left, right);
  }

  // Whether no two shards of the widest table write one shard of an array: each would execute some iterations on what
  // another has written.
  static bool is_own(const Value& array) {
    std::vector<int64_t> shards = array.shards;
    std::sort(shards.begin(), shards.end());
    return !array.is_written || std::adjacent_find(shards.begin(), shards.end()) == shards.end();
  }

  // Bytes, what is written back, pointers.
  bool finish_values(SmallWhileStep& made) {
    std::vector<Range> ranges;
    for (const Value& at : values_) ranges.push_back(arena_range(plan_, at.slot));
    for (size_t i = 0; i < values_.size(); ++i) {
      bool is_shared = false;
      for (size_t j = 0; j < values_.size(); ++j) {
        if (i == j) continue;
        // Another view of the slot, which would not see what is written.
        if (values_[i].slot == values_[j].slot && (values_[i].is_written || values_[j].is_written)) return false;
        is_shared = is_shared || (values_[i].slot != values_[j].slot && ranges[i].begin < ranges[j].end &&
                                  ranges[j].begin < ranges[i].end);
      }
      if (values_[i].is_array && (is_shared || !is_own(values_[i]))) return false;
      given_.is_array.push_back(values_[i].is_array);
      given_.value_bytes.push_back(plan_.slot(values_[i].slot).bytes);
      given_.dtypes.push_back(values_[i].dtype);
      given_.is_stored.push_back(values_[i].is_written && !is_shared);
    }
    made.shard_count = plan_.table(widest_).count();
    made.value_count = static_cast<int64_t>(values_.size());
    for (size_t shard = 0; shard < static_cast<size_t>(made.shard_count); ++shard) {
      for (const Value& at : values_) made.pointers.push_back(plan_.slot(at.slot).first_pointer + at.shards[shard]);
    }
    return true;
  }

  const Plan& plan_;
  const Step& loop_;
  TableId widest_ = 0;
  std::map<TableId, std::vector<int64_t>> projections_;
  std::vector<Value> values_;
  kernels::SmallWhileLoop given_;
  bool is_refused_ = false;
};

}  // namespace

int64_t SmallWhileStep::block_bytes() const { return loop->block_bytes() * loop->pieces() * shard_count; }

int64_t find_small_whiles(Plan& plan) {
  int64_t most = 0;
  for (Block& block : plan.blocks) {
    for (Step& step : block.steps) {
      if (step.kind != StepKind::kWhile) continue;
      step.small = Finder(plan, step).find();
      if (step.small != nullptr) most = std::max(most, step.small->block_bytes());
    }
  }
  return most;
}

}  // namespace meshd::compile
