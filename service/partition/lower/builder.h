// The builder of the local program: appends values and ops to the current block, and reshards values. One thread.
//
// Invariant: a value is resharded once for each block and layout; a second request returns the first copy.
//
// Steps of reshard(value, layout):
//   1. The value itself, if it has the layout; the copy, if this block has made one.
//   2. A constant, iota or broadcast of a scalar (is_rematerialisable) is computed again in the new layout. Nothing
//   moves.
//   3. Otherwise the reshard reads the nearest source: of the value, what it was resharded from, and their copies in
//      this block, the one from which a device lacks the fewest elements.
//
// Example, mesh x=2, y=4, %v 8x16 [{x}, {}]: reshard to [{}, {}] for one op -> %w. Then reshard %v to [{}, {y}] for
// another: a device lacks 32 - 16 = 16 elements from %v and none from %w, so the second reshard reads %w.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "service/partition/local_program.h"
#include "service/partition/lower/views.h"

namespace meshd::partition {

class Builder {
 public:
  Builder(const Views& views, ir::Function function);

  [[nodiscard]] const Views& views() const { return views_; }
  [[nodiscard]] const sharding::MeshView& view(int number) const { return program_.views[static_cast<size_t>(number)]; }
  [[nodiscard]] const LocalValue& value(LocalId id) const { return program_.values[static_cast<size_t>(id)]; }
  [[nodiscard]] LocalValue& value(LocalId id) { return program_.values[static_cast<size_t>(id)]; }
  [[nodiscard]] const ShardedType& type(LocalId id) const { return value(id).type; }
  [[nodiscard]] const ShardLayout& layout(LocalId id) const { return type(id).layout; }
  [[nodiscard]] LocalProgram& program() { return program_; }
  [[nodiscard]] const LocalProgram& program() const { return program_; }
  [[nodiscard]] ir::Function& function() { return *function_; }

  /// A value of tensor type `logical` in layout `layout`, which also varies over `outer`.
  LocalId add_value(const tensor::TensorType& logical, const ShardLayout& layout, sharding::SubAxisSet outer,
                    std::string name = {});

  /// Appends ops to `block` during the lifetime of this object. Copies that reshards made in it are forgotten at its
  /// end.
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

  /// The value in layout `to`, in the current block: itself, a constant computed again, or a reshard.
  LocalId reshard(LocalId id, const ShardLayout& to, const ir::Location& location, const std::string& reason);
  /// Estimate of the elements that a device lacks of the value in layout `to`, read from the nearest source.
  [[nodiscard]] double lacking(LocalId id, const ShardLayout& to) const;
  /// The value varying exactly over `varies`, which contains the sub-axes of its dims: drops or adds the others.
  LocalId vary(LocalId id, sharding::SubAxisSet varies, const ir::Location& location, const std::string& reason);
  /// A view of the value.
  LocalId alias(LocalId id, const ir::Location& location);
  /// Marks `id` as rematerialisable: `op` computes it again in any layout (constant, iota, scalar broadcast).
  void rematerialise_by(LocalId id, LocalOp op) { rematerialisations_.insert_or_assign(id, std::move(op)); }
  /// The same for the op appended last, whose result is `id`.
  void rematerialise_as_last(LocalId id) { rematerialise_by(id, block_->ops.back()); }
  /// The constant that the value is, or the scalar constant that it broadcasts; or null.
  [[nodiscard]] const ir::DenseAttr* constant_of(LocalId id) const;
  LocalId add_scalar(tensor::DType dtype, const std::vector<std::byte>& element, int view,
                     const ir::Location& location);
  /// Replaces the padding of `id` by `element`; `id` itself where it has none.
  LocalId mask(LocalId id, const std::vector<std::byte>& element, const ir::Location& location,
               const std::string& reason);
  /// Region of a reducer with one binary op, in function().
  ir::Region reducer(kernels::ScalarOp op, tensor::DType dtype);
  /// Type in which bits of `dtype` are or-ed: itself for booleans and integers, else the unsigned integer as wide as an
  /// element or as a part of a complex one.
  static tensor::DType bits_dtype(tensor::DType dtype);

  /// A state to rewind to, when a region or an op has to be written again.
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
  /// Marks the ops behind `mark` as caused by an op without a factor rule, or between meshes (kUnruledEnd).
  void mark_unruled(const Mark& mark);
  /// The same for later reshards of `id`.
  void mark_unruled(LocalId id) { unruled_.insert(id); }

  LocalProgram finish();

  /// Later reshards of `id` no longer read what it was resharded from.
  void forget_source(LocalId id) { resharded_from_.erase(id); }
  /// Marks a value whose layout differs from the wanted one because its op had to read its neighbours' rows.
  void mark_shifted(LocalId id) { shifted_.insert(id); }
  /// True when the value can be computed again in any layout, so that resharding it moves nothing.
  [[nodiscard]] bool is_rematerialisable(LocalId id) const { return rematerialisations_.contains(id); }

 private:
  void append_reshard(LocalId from, LocalId to, const ir::Location& location, const std::string& reason);
  /// Step 3 of reshard(): the nearest source, `id` on ties, and the number of elements that a device lacks from there.
  [[nodiscard]] std::pair<LocalId, double> nearest_source(LocalId id, const ShardLayout& to) const;

  const Views& views_;
  LocalProgram program_;
  std::shared_ptr<ir::Function> function_;
  LocalBlock* block_ = nullptr;
  std::map<LocalId, LocalOp> rematerialisations_;
  std::set<LocalId> shifted_;
  std::set<LocalId> unruled_;
  std::map<LocalId, LocalId> resharded_from_;  // by result of a reshard: the value that reshard() was called with
  using Key = std::pair<LocalId, std::vector<std::vector<int>>>;
  std::map<const LocalBlock*, std::map<Key, LocalId>> resharded_;
};

}  // namespace meshd::partition
