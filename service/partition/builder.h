// The local program under construction: adds values and ops to the block that is being written, and reshards values
// from one layout to another, once for each block and layout. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "service/partition/local_program.h"
#include "service/partition/shard_layout.h"
#include "service/partition/views.h"

namespace meshd::partition {

class Builder {
 public:
  Builder(const Views& views, ir::Function function);

  [[nodiscard]] const Views& views() const { return views_; }
  [[nodiscard]] const sharding::MeshView& view(int number) const { return program_.views[static_cast<size_t>(number)]; }
  [[nodiscard]] const LocalValue& value(LocalId id) const { return program_.values[static_cast<size_t>(id)]; }
  [[nodiscard]] LocalValue& value(LocalId id) { return program_.values[static_cast<size_t>(id)]; }
  [[nodiscard]] ShardLayout layout(LocalId id) const { return {value(id).view, value(id).dim_sub_axes}; }
  /// Sub-axes the value varies over without being cut by them: manual axes around it, or partial sums.
  [[nodiscard]] sharding::SubAxisSet outer(LocalId id) const { return value(id).varies & ~layout(id).mask(); }
  [[nodiscard]] LocalProgram& program() { return program_; }
  [[nodiscard]] const LocalProgram& program() const { return program_; }
  [[nodiscard]] ir::Function& function() { return *function_; }

  /// A value of the whole type `logical`, cut as `layout` says, which also varies over `outer`.
  LocalId add_value(const ir::Type& logical, const ShardLayout& layout, sharding::SubAxisSet outer,
                    std::string name = {});

  /// Ops go to `block` as long as this lives. Reshards are remembered per block.
  class Inside {
   public:
    Inside(Builder& builder, LocalBlock& block);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Builder& builder_;
    LocalBlock* before_;
  };
  LocalOp& append(LocalOp op);
  /// The op appended last to the current block; there is one.
  [[nodiscard]] LocalOp& last() { return block_->ops.back(); }

  /// The value lying as `to` says, in the current block: itself, a fresh copy of a constant, or a reshard.
  LocalId reshard(LocalId id, const ShardLayout& to, const ir::Location& location, const std::string& reason);
  /// About how many elements a device lacks of the value lying as `to` says, copies of it in the current block
  /// considered.
  [[nodiscard]] double lacking(LocalId id, const ShardLayout& to) const;
  /// Same dims, but varying exactly over `varies` (which contains its cuts): drops or adds sub-axes outside of dims.
  LocalId vary(LocalId id, sharding::SubAxisSet varies, const ir::Location& location, const std::string& reason);
  /// Another name for the value.
  LocalId alias(LocalId id, const ir::Location& location);
  /// Marks the op that made `id` as one that can be made again anywhere for any layout (constant, iota, scalar
  /// broadcast).
  void set_recipe(LocalId id, LocalOp op) { recipes_.insert_or_assign(id, std::move(op)); }
  /// The same for the op appended last, which made `id`.
  void remember_last(LocalId id) { set_recipe(id, block_->ops.back()); }
  /// The constant that the value is, or the scalar one that it repeats; or null.
  [[nodiscard]] const ir::DenseAttr* constant_of(LocalId id) const;
  /// A scalar constant.
  LocalId add_scalar(tensor::DType dtype, const std::vector<std::byte>& element, int view,
                     const ir::Location& location);
  /// Replaces the rows of `id` that padding filled by `element`.
  LocalId mask(LocalId id, const std::vector<std::byte>& element, const ir::Location& location,
               const std::string& reason);
  /// Region of a reducer with one binary op, in function().
  ir::Region reducer(kernels::ScalarOp op, tensor::DType dtype);
  /// Type in which bits of `dtype` are or-ed: itself for booleans and integers, else the unsigned integer as wide as an
  /// element or as a part of a complex one.
  static tensor::DType bits_dtype(tensor::DType dtype);

  /// What is there now, to go back to when a region has to be written again.
  struct Mark {
    size_t value_count = 0;
    size_t op_count = 0;
    int64_t effect_count = 0;
  };
  [[nodiscard]] Mark mark() const { return {program_.values.size(), block_->ops.size(), program_.effect_count}; }
  /// Ops of the current block behind `mark`.
  [[nodiscard]] std::span<const LocalOp> since(const Mark& mark) const {
    return std::span<const LocalOp>(block_->ops).subspan(mark.op_count);
  }

  void rewind(const Mark& mark);
  /// What was moved behind `mark` was moved for an op without a rule, or between meshes.
  void mark_unruled(const Mark& mark);
  /// The same for what will be moved because `id` lies where it does.
  void mark_unruled(LocalId id) { unruled_.insert(id); }

  LocalProgram finish();

  /// `id` is where its like start from now on, not what it was resharded from.
  void forget_source(LocalId id) { resharded_from_.erase(id); }
  /// Marks a value that lies elsewhere than it is wanted because its op had to read its neighbours' rows.
  void mark_shifted(LocalId id) { shifted_.insert(id); }
  /// True when the value can be made again anywhere, so that resharding it moves nothing.
  [[nodiscard]] bool has_recipe(LocalId id) const { return recipes_.contains(id); }

 private:
  void append_reshard(LocalId from, LocalId to, const ir::Location& location, const std::string& reason);
  /// Of the values that are the same in other layouts, the one from which `to` moves least; `id` on ties. And how
  /// many elements are lacking then.
  [[nodiscard]] std::pair<LocalId, double> nearest_source(LocalId id, const ShardLayout& to) const;

  const Views& views_;
  LocalProgram program_;
  std::shared_ptr<ir::Function> function_;
  LocalBlock* block_ = nullptr;
  std::map<LocalId, LocalOp> recipes_;
  std::set<LocalId> shifted_;
  std::set<LocalId> unruled_;
  std::map<LocalId, LocalId> resharded_from_;  // what a reshard was made from
  using Key = std::pair<LocalId, std::vector<std::vector<int>>>;
  std::map<const LocalBlock*, std::map<Key, LocalId>> brought_;
};

}  // namespace meshd::partition
