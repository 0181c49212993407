// The builder of the local program: appends values and ops to the current block, and reshards values. One thread.
//
// Invariant: a value is resharded once for each block and layout; a second request returns the first copy.
//
// Steps of reshard(value, layout):
//   1. The value itself, if it has the layout; the copy, if this block has made one.
//   2. A value with a rematerialisation (constant, iota, broadcast of a scalar) is computed again in the new layout.
//      Nothing moves.
//   3. Otherwise the reshard reads the nearest source: of the value, what it was resharded from, and their copies in
//      this block and those around it, the one from which a device lacks the fewest elements.
// A constraint's reshard is deferred (defer()): as long as nobody reads its result it is no source for others, and
// drop_dead_ops() removes it at the end.
//
// Example, mesh x=2, y=4, %v 8x16 [{x}, {}]: reshard to [{}, {}] for one op -> %w. Then reshard %v to [{}, {y}] for
// another: a device lacks 32 - 16 = 16 elements from %v and none from %w, so the second reshard reads %w.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/partition/local_program.h"
#include "service/partition/lower/builder/value_sources.h"
#include "service/partition/lower/builder/views.h"

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

  /// The op appended last to the current block is the reshard that made the value.
  [[nodiscard]] bool is_last_reshard(LocalId id) const {
    return !block_->ops.empty() && block_->ops.back().kind == LocalKind::kReshard &&
           block_->ops.back().results[0] == id;
  }

  /// The value in layout `to`, in the current block: itself, a constant computed again, or a reshard.
  LocalId reshard(LocalId id, const ShardLayout& to, const ir::Location& location, const std::string& reason);
  /// Estimate of the elements that a device lacks of the value in layout `to`, read from the nearest source.
  [[nodiscard]] double lacking(LocalId id, const ShardLayout& to) const;
  /// As reshard(), for a layout that the text asks for but that users may pass by: they read what it was made from.
  LocalId defer(LocalId id, const ShardLayout& to, const ir::Location& location, const std::string& reason);
  /// The value varying exactly over `varies`, which contains the sub-axes of its dims: drops or adds the others.
  LocalId vary(LocalId id, sharding::SubAxisSet varies, const ir::Location& location, const std::string& reason);

  /// A state to rewind to, when a region or an op has to be written again.
  struct Mark {
    size_t value_count = 0;
    size_t op_count = 0;
    int64_t effect_count = 0;
  };
  [[nodiscard]] Mark mark() const { return {program_.values.size(), block_->ops.size(), program_.effect_count}; }
  void rewind(const Mark& mark);
  /// Marks the ops behind `mark` as caused by an op without a factor rule, or between meshes (kUnruledEnd).
  void mark_unruled(const Mark& mark);

  [[nodiscard]] ValueSources& sources() { return sources_; }
  [[nodiscard]] const ValueSources& sources() const { return sources_; }

  LocalProgram finish();

 private:
  void append_reshard(LocalId from, LocalId to, const ir::Location& location, const std::string& reason);
  /// Step 3 of reshard(): the nearest source, `id` on ties, and the number of elements that a device lacks from there.
  [[nodiscard]] std::pair<LocalId, double> nearest_source(LocalId id, const ShardLayout& to) const;

  const Views& views_;
  LocalProgram program_;
  std::shared_ptr<ir::Function> function_;
  LocalBlock* block_ = nullptr;
  ValueSources sources_;
};

}  // namespace meshd::partition
