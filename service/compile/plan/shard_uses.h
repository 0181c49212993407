// Which bytes the steps of a sequence touch, and whether each shard of them touches its own (shard_sequences.h).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Slots whose pointers loops exchange: each may have the bytes of any of its group.
class ExchangedSlots {
 public:
  explicit ExchangedSlots(const Plan& plan);
  /// All slots of the group, the slot itself included.
  [[nodiscard]] std::vector<SlotId> with(SlotId slot) const;

 private:
  void unite(SlotId a, SlotId b);
  size_t group(SlotId slot);

  std::map<SlotId, size_t> group_of_;
  std::vector<std::vector<SlotId>> groups_;
};

/// What the steps of a sequence use, step after step.
class ShardUses {
 public:
  /// `replicated`, `apart`: slots of which each thread has its own: of one shard for all devices, and of the shard that
  /// the thread is at.
  ShardUses(const Plan& plan, const ExchangedSlots& exchanged, TableId table, std::set<SlotId> replicated = {},
            std::set<SlotId> apart = {});

  /// False: the step has to wait for all shards of those before it, and is not part of the sequence, which is over.
  bool take(const Step& step);
  /// As take(), of a step over one shard whose results are replicated.
  bool take_replicated(const Step& step);

 private:
  // What the sequence does to one range of the arena, or to a slot with memory of its own.
  struct Use {
    int64_t end = 0;  // in the arena
    int64_t stride = 0;
    bool is_written = false;
    bool is_by_shard = true;  // shard i of a step touches shard i alone
  };

  [[nodiscard]] const std::vector<int32_t>& devices() const { return plan_.table(table_).shard_of_device; }
  [[nodiscard]] int64_t count() const { return plan_.table(table_).count(); }
  [[nodiscard]] bool packs_for_all(const Step& step) const;
  [[nodiscard]] bool is_by_shard(const SlotRef& ref) const;
  bool add(const SlotRef& ref, bool is_written);
  bool add(SlotId id, bool is_written, bool is_by_shard);
  static bool merge(Use& known, const Use& use);

  const Plan& plan_;
  const ExchangedSlots& exchanged_;
  const TableId table_;
  const std::set<SlotId> replicated_;
  const std::set<SlotId> apart_;
  std::map<int64_t, Use> arena_;   // by first byte; no two overlap
  std::map<SlotId, Use> outside_;  // of the arena
};

}  // namespace meshd::compile
