// A walk over a local program that writes its blocks anew, op by op: an op stays as it is, or others are written in its
// place. What passes before fusion have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/compile/plan/plan_builder.h"
#include "service/ops/op_def.h"
#include "service/partition/dead_ops.h"

namespace meshd::compile {

/// What fusion knows of an op; null where it is not one of the table.
inline const ops::Fuse* fuse_of(const LocalOp& op) {
  return op.kind == partition::LocalKind::kOp && op.def != nullptr ? &op.def->fuse : nullptr;
}

/// One whose dims are known: it is read through an indexing map, which its attribute gives.
inline bool is_broadcast(const LocalOp& op) {
  return fuse_of(op) != nullptr && fuse_of(op)->read != nullptr &&
         ir::find(op.attributes, "broadcast_dimensions") != nullptr;
}

/// Of a shard.
inline int64_t element_count(const partition::ShardedType& type) { return tensor::element_count(type.local.dims); }

/// Each device that has a part of it has all of it.
inline bool is_whole(const partition::ShardedType& type) {
  return type.local.dims == type.logical_dims && type.layout.mask() == 0;
}

inline void erase_dim(partition::ShardedType& type, int64_t dim) {
  type.local.dims.erase(type.local.dims.begin() + dim);
  type.logical_dims.erase(type.logical_dims.begin() + dim);
  type.layout.dims.erase(type.layout.dims.begin() + dim);
}

/// The constant with a shape of its own; nothing where its elements are not one number.
std::optional<LocalOp> splat_of(const LocalOp& constant, const tensor::Dims& dims);

/// Whether each element of the one result is computed of the operands' elements at the same place.
bool is_pointwise(const partition::LocalProgram& program, const LocalOp& op);

/// Whether a region of scalars computes what its last op returns by pointwise ops, of its arguments alone.
bool is_pointwise_region(const partition::LocalProgram& program, const ir::Region& region);

/// Writes such a region on arrays, `arguments`, by `add`, which appends an op with one result of this element type.
/// Gives what the region returns.
std::vector<LocalId> write_region(const partition::LocalProgram& program, const ir::Region& region,
                                  const std::vector<LocalId>& arguments,
                                  const std::function<LocalId(LocalOp op, tensor::DType dtype)>& add);

/// An op of the table, without results.
LocalOp make_op(std::string_view name, std::vector<LocalId> operands, ir::AttributeList attributes,
                const ir::Location& location);

/// What a loop carries: what changes there, and by the name that it has in a block of the loop the operand that stands
/// in front of the loop for what never does.
struct CarriedValues {
  std::set<LocalId> changing;
  std::map<LocalId, LocalId> outside;
};
CarriedValues carried_values(const partition::LocalProgram& program, const LocalOp& loop);

/// What most passes do: `Pass(copy of the program, more...).run()` writes the copy and says whether it has changed.
/// The copy, without the ops that are dead then; nothing where it has not changed.
template <class Pass, class... More>
std::optional<partition::LocalProgram> run_pass(const partition::LocalProgram& program, const More&... more) {
  partition::LocalProgram copy = program;
  if (!Pass(copy, more...).run()) return std::nullopt;
  partition::drop_dead_ops(copy);
  return copy;
}

/// One thread; the program must outlive it.
class LocalRewriter {
 public:
  explicit LocalRewriter(partition::LocalProgram& program) : program_(program) {}
  virtual ~LocalRewriter() = default;
  LocalRewriter(const LocalRewriter&) = delete;
  LocalRewriter& operator=(const LocalRewriter&) = delete;

  /// Whether anything was written.
  bool run() {
    rewrite(program_.body);
    return has_changed_;
  }

 protected:
  /// Writes other ops in the place of `op`, with its results. False: nothing was written, and the op stays.
  virtual bool replace(const LocalOp& op) = 0;

  /// The op of the block that is walked, or of what was written for it, that makes a value; null: there is none.
  [[nodiscard]] const LocalOp* maker(LocalId id) const;
  [[nodiscard]] const partition::ShardedType& type(LocalId id) const { return program_.type(id); }
  [[nodiscard]] bool is_pointwise(const LocalOp& op) const { return compile::is_pointwise(program_, op); }

  /// Ops that are written are at the place of this one in the text.
  void write_for(const LocalOp& op) { location_ = op.location; }
  [[nodiscard]] LocalOp new_op(std::string_view name, std::vector<LocalId> operands,
                               ir::AttributeList attributes = {}) const {
    return make_op(name, std::move(operands), std::move(attributes), location_);
  }
  void append(LocalOp op);
  /// Appends an op with one new value as its result, which it returns.
  LocalId add(LocalOp op, partition::ShardedType type, std::string name);
  LocalId one(std::string_view name, std::vector<LocalId> operands, partition::ShardedType type,
              ir::AttributeList attributes = {}) {
    return add(new_op(name, std::move(operands), std::move(attributes)), std::move(type), std::string(name));
  }

  /// How much has been written.
  struct Mark {
    size_t ops = 0;
    size_t values = 0;
  };
  [[nodiscard]] Mark mark() const { return {made_.ops.size(), program_.values.size()}; }
  /// Takes back what has been written since.
  void undo(const Mark& mark);

  /// A value that an op written since `mark` makes gets the name of a value of the same type, which nothing makes yet.
  /// False: no such op makes it.
  bool rename(LocalId id, LocalId name, const Mark& mark);

  partition::LocalProgram& program_;  // NOLINT(misc-non-private-member-variables-in-classes): of the passes

 private:
  void rewrite(partition::LocalBlock& block);

  partition::LocalBlock made_;        // of the block that is walked, so far
  std::map<LocalId, size_t> makers_;  // ops of made_, by result
  ir::Location location_;
  bool has_changed_ = false;
};

}  // namespace meshd::compile
