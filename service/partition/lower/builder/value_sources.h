// From where values of the local program can be had in another layout: the op that computes a value again, the value
// that it was resharded from, and the copies that a block has made of it. Builder::reshard() reads them. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "service/partition/local_program.h"

namespace meshd::partition {

class ValueSources {
 public:
  /// `op` computes `id` again in any layout (constant, iota, scalar broadcast): resharding it moves nothing.
  void rematerialise_by(LocalId id, LocalOp op) { rematerialisations_.insert_or_assign(id, std::move(op)); }
  /// That op; null where there is none.
  [[nodiscard]] const LocalOp* rematerialisation(LocalId id) const;

  /// `made` is `id` resharded.
  void add_source(LocalId made, LocalId id) { resharded_from_.insert_or_assign(made, id); }
  /// Later reshards of `id` no longer read what it was resharded from.
  void forget_source(LocalId id) { resharded_from_.erase(id); }

  /// Enters a block inside of the current one, which sees the copies of those around it; leave() forgets its own.
  void enter() { copies_.emplace_back(); }
  void leave() { copies_.pop_back(); }
  /// True in the block that is around all others: they see its copies.
  [[nodiscard]] bool is_outermost() const { return copies_.size() == 1; }
  /// `made` is the copy of `id` in layout `to` in the current block.
  void add_copy(LocalId id, const ShardLayout& to, LocalId made) { copies_.back().emplace(key(id, to), made); }
  [[nodiscard]] std::optional<LocalId> copy(LocalId id, const ShardLayout& to) const;
  /// The values that have the elements of `id`: itself, what it was resharded from, then the copies that the current
  /// block sees.
  [[nodiscard]] std::vector<LocalId> same_values(LocalId id) const;

  /// Marks the result of a reshard that the text asks for and that nobody has read yet: as long as it is not read it
  /// is no source, since it is dropped where it stays so.
  void defer(LocalId id) { deferred_.insert(id); }
  void settle(LocalId id) { deferred_.erase(id); }
  [[nodiscard]] bool is_deferred(LocalId id) const { return deferred_.contains(id); }

  /// Marks a value whose layout differs from the wanted one because its op had to read its neighbours' rows.
  void mark_shifted(LocalId id) { shifted_.insert(id); }
  [[nodiscard]] bool is_shifted(LocalId id) const { return shifted_.contains(id); }
  /// Marks a value whose later reshards an op without a factor rule causes, or a change of mesh.
  void mark_unruled(LocalId id) { unruled_.insert(id); }
  [[nodiscard]] bool is_unruled(LocalId id) const { return unruled_.contains(id); }

  /// Forgets the values from number `value_count` on.
  void rewind(size_t value_count);

 private:
  using Key = std::pair<LocalId, std::vector<std::vector<int>>>;  // value; sub-axes by dimension, then the view
  static Key key(LocalId id, const ShardLayout& to);

  std::map<LocalId, LocalOp> rematerialisations_;
  std::map<LocalId, LocalId> resharded_from_;   // by result of a reshard: the value that reshard() was called with
  std::vector<std::map<Key, LocalId>> copies_;  // by block, outermost first
  std::set<LocalId> deferred_;
  std::set<LocalId> shifted_;
  std::set<LocalId> unruled_;
};

}  // namespace meshd::partition
