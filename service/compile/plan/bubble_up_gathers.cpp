// A gather that takes few elements of a computed array needs no others of it: it changes places with the pointwise ops
// that compute them, as MLIR's slices do (BubbleUpExtractSlice). What they compute for other readers stays.
//
//   1. The gather of a pointwise op's result is that op of gathers of its operands, with the same indices.
//   2. The gather of a broadcast (a row's maximum, of which each element of the row has a copy) is a gather of what it
//      repeats, or another broadcast of it where rows are a batching dimension.
//   3. The gather of a constant of equal elements is a smaller constant.
//   4. What else is gathered, a product or an argument, is gathered as it is.
//
// Nothing is done where the array is stored for other readers, where more than kMostGathers gathers would come of one,
// or where more than one of what they gather from would be stored for them alone: something that loops read through an
// indexing map, or a pointwise op that reads an iota.
//
// Example, the loss of a classifier: p = log_softmax(x), 4096x1000; loss = mean(p[i, label[i]]). p is (x - m) - log(s)
// with the maximum m and the sum s of each row. Out: x[i, label[i]] is gathered, and the loss is the mean of
// (x[i, label[i]] - m[i]) - log(s[i]); p has no memory, and only m and s are computed of whole rows.
#include "service/compile/plan/bubble_up_gathers.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "service/compile/plan/local_rewriter.h"
#include "service/partition/local_walk.h"

namespace meshd::compile {
namespace {

using partition::LocalKind;
using partition::LocalProgram;
using partition::ShardedType;
using tensor::Dims;

constexpr int64_t kGatheredShare = 16;     // what is gathered from has so many times the elements of what is gathered
constexpr int64_t kFewestGathered = 4096;  // elements that are worth it
constexpr int kMostGathers = 4;            // in place of one
constexpr size_t kMostWritten = 32;        // likewise
constexpr int kMostVisits = 256;           // of values, for one gather
constexpr int kDeepestGathered = 24;       // ops in a row that are followed back

bool is_gather(const LocalOp& op) { return fuse_of(op) != nullptr && fuse_of(op)->of_broadcast != nullptr; }

class Gathers final : public LocalRewriter {
 public:
  explicit Gathers(LocalProgram& program) : LocalRewriter(program), is_stored_(program.values.size(), false) {
    note_stored(program.body);
    for (const partition::LocalParameter& result : program.results) note_stored(result.value);
  }

 private:
  bool replace(const LocalOp& op) override {
    if (!is_gather(op)) return false;
    const LocalId from = op.operands[0];
    const int64_t elements = tensor::element_count(type(from).local.dims);
    if (elements < kFewestGathered || tensor::element_count(type(op.results[0]).local.dims) * kGatheredShare > elements)
      return false;
    const LocalOp* const by = maker(from);
    if (by == nullptr || !is_pointwise(*by) || is_stored_[static_cast<size_t>(from)]) return false;
    gather_ = &op;
    gathers_ = stored_ = visits_ = 0;
    written_.clear();
    refused_.clear();
    const Mark before = mark();
    most_ops_ = before.ops + kMostWritten;
    const std::optional<LocalId> made = of_maker(from, 0);
    if (!made || is_too_much()) {
      undo(before);
      return false;
    }
    // The last op, a pointwise one, made the value: it makes the gather's result instead.
    LocalOp same = *maker(*made);
    undo({mark().ops - 1, mark().values - 1});
    same.results = op.results;
    append(std::move(same));
    return true;
  }

  // Values that have memory whatever is done to a gather of them: what is returned, and what ops read that are no
  // loops.
  void note_stored(LocalId id) { is_stored_[static_cast<size_t>(id)] = true; }
  void note_stored(const partition::LocalBlock& block) {
    for (const LocalId id : block.results) note_stored(id);
    for (const LocalOp& op : block.ops) {
      for (const partition::LocalBlock& inner : op.blocks) note_stored(inner);
      const ops::Fuse* const fuse = fuse_of(op);
      if (is_pointwise(op) || is_gather(op) ||
          (fuse != nullptr && (fuse->read != nullptr || fuse->reduce_dims != nullptr)))
        continue;
      for (const LocalId id : op.operands) note_stored(id);
    }
  }

  [[nodiscard]] bool is_too_much() const {
    return gathers_ > kMostGathers || stored_ > 1 || visits_ > kMostVisits || mark().ops > most_ops_;
  }

  // The elements that are gathered of a value that the block has.
  std::optional<LocalId> gathered(LocalId id, int depth) {
    if (const auto found = written_.find(id); found != written_.end()) return found->second;
    std::optional<LocalId> made = of_maker(id, depth);
    if (!made) made = of_memory(id);
    if (made) written_.emplace(id, *made);
    return made;
  }

  // Gathered of the value's memory, or of what it gets for that; nothing for what loops generate.
  std::optional<LocalId> of_memory(LocalId id) {
    if (is_generated(id)) return std::nullopt;
    const LocalOp* const by = maker(id);
    const bool is_read = by != nullptr && fuse_of(*by) != nullptr && fuse_of(*by)->read != nullptr;
    const bool has_memory = id < static_cast<LocalId>(is_stored_.size()) && is_stored_[static_cast<size_t>(id)];
    if (!has_memory && (is_read || (by != nullptr && is_pointwise(*by)))) ++stored_;
    ++gathers_;
    LocalOp gather = *gather_;
    gather.operands[0] = id;
    return add(std::move(gather), type_of(id), program_.value(gather_->results[0]).name);
  }

  std::optional<LocalId> of_maker(LocalId id, int depth) {
    ++visits_;
    if (maker(id) == nullptr || depth == kDeepestGathered || is_too_much() || refused_.contains(id))
      return std::nullopt;
    std::optional<LocalId> made = of_op(*maker(id), id, depth);  // a copy: what is written moves it
    if (!made) refused_.insert(id);
    return made;
  }

  std::optional<LocalId> of_op(LocalOp op, LocalId id, int depth) {
    if (op.kind == LocalKind::kConstant) {
      const std::optional<LocalOp> constant = splat_of(op, type_of(id).local.dims);
      return constant ? std::optional(add(*constant, type_of(id), "constant")) : std::nullopt;
    }
    if (is_broadcast(op)) return of_broadcast(op, id);
    if (!is_pointwise(op)) return std::nullopt;
    const ShardedType whole = type(id);
    const auto is_scalar = [&](LocalId operand) { return type(operand).rank() == 0 && whole.rank() > 0; };
    for (const LocalId operand : op.operands) {
      const ShardedType& given = type(operand);
      const bool is_alike = given.local.dims == whole.local.dims && given.logical_dims == whole.logical_dims &&
                            given.layout == whole.layout;
      if (!is_scalar(operand) && (!is_alike || is_generated(operand))) return std::nullopt;
    }
    const Mark before = mark();
    const int gathers = gathers_;
    const int stored = stored_;
    for (LocalId& operand : op.operands) {
      if (is_scalar(operand)) continue;
      const std::optional<LocalId> made = gathered(operand, depth + 1);
      if (!made) {
        forget(before);
        gathers_ = gathers;
        stored_ = stored;
        return std::nullopt;
      }
      operand = *made;
    }
    return add(std::move(op), type_of(id), program_.value(id).name);
  }

  // Dimensions of one element that no sub-axis partitions are left out: a gathered element need not have them.
  std::optional<LocalId> of_broadcast(const LocalOp& op, LocalId id) {
    const std::vector<int64_t> dims = ir::ints(op.attributes, "broadcast_dimensions");
    const ShardedType whole = type(id);
    ShardedType some = type(op.operands[0]);
    std::vector<int64_t> kept;
    for (size_t d = dims.size(); d-- > 0;) {
      if (some.logical_dims[d] == 1 && some.local.dims[d] == 1 && some.layout.dims[d].empty()) {
        erase_dim(some, static_cast<int64_t>(d));
        continue;
      }
      const auto place = static_cast<size_t>(dims[d]);
      if (some.local.dims[d] != whole.local.dims[place] || some.layout.dims[d] != whole.layout.dims[place])
        return std::nullopt;
      kept.insert(kept.begin(), dims[d]);
    }
    if (!std::is_sorted(kept.begin(), kept.end())) return std::nullopt;
    std::optional<ops::GatherOfBroadcast> smaller =
        fuse_of(*gather_)->of_broadcast(LocalView(program_, *gather_).view, kept);
    if (!smaller) return std::nullopt;
    const ShardedType made = type_of(id);
    if (!smaller->attributes) {
      for (size_t d = 0; d < kept.size(); ++d) {
        const auto place = static_cast<size_t>(smaller->dims[d]);
        if (some.local.dims[d] != made.local.dims[place] || some.layout.dims[d] != made.layout.dims[place])
          return std::nullopt;
      }
    }
    LocalId value = op.operands[0];
    if (some.rank() != dims.size()) value = one("stablehlo.reshape", {value}, some);
    if (smaller->attributes) value = smaller_gather(value, *smaller, made);
    if (smaller->attributes && smaller->dims.size() == made.rank()) return value;
    return one("stablehlo.broadcast_in_dim", {value}, made,
               {{"broadcast_dimensions", ir::int_array_attr(std::move(smaller->dims))}});
  }

  // `whole`: what its elements are broadcast to.
  LocalId smaller_gather(LocalId operand, const ops::GatherOfBroadcast& smaller, const ShardedType& whole) {
    ++gathers_;
    LocalId indices = gather_->operands[1];
    ShardedType tuples = type(indices);
    const auto tuple_dim = static_cast<size_t>(smaller.tuple_dim);
    if (tuple_dim < tuples.rank() && tuples.local.dims[tuple_dim] != smaller.numbers) {
      std::vector<int64_t> start(tuples.rank(), 0);
      start[tuple_dim] = smaller.first_number;
      tuples.local.dims[tuple_dim] = tuples.logical_dims[tuple_dim] = smaller.numbers;
      std::vector<int64_t> limit = tuples.local.dims;
      limit[tuple_dim] += smaller.first_number;
      indices = one("stablehlo.slice", {indices}, tuples,
                    {{"start_indices", ir::int_array_attr(std::move(start))},
                     {"limit_indices", ir::int_array_attr(std::move(limit))},
                     {"strides", ir::int_array_attr(std::vector<int64_t>(tuples.rank(), 1))}});
    }
    ShardedType made = whole;
    for (size_t d = whole.rank(); d-- > 0;) {
      if (!std::binary_search(smaller.dims.begin(), smaller.dims.end(), static_cast<int64_t>(d)))
        erase_dim(made, static_cast<int64_t>(d));
    }
    LocalOp gather = *gather_;
    gather.operands = {operand, indices};
    gather.attributes = *smaller.attributes;
    return add(std::move(gather), made, program_.value(gather_->results[0]).name);
  }

  // An iota, or a broadcast whose operand is not enough: loops generate its elements, a gather would need them in
  // memory.
  [[nodiscard]] bool is_generated(LocalId id) const {
    const LocalOp* const by = maker(id);
    if (by == nullptr || fuse_of(*by) == nullptr) return false;
    return fuse_of(*by)->iota_dim != nullptr || (is_broadcast(*by) && refused_.contains(id));
  }

  // Of the elements that are gathered of a value.
  [[nodiscard]] ShardedType type_of(LocalId id) const {
    ShardedType made = type(gather_->results[0]);
    made.local.dtype = type(id).local.dtype;
    return made;
  }

  void forget(const Mark& before) {
    std::erase_if(written_, [&](const auto& entry) { return static_cast<size_t>(entry.second) >= before.values; });
    undo(before);
  }

  std::vector<bool> is_stored_;  // values of the program before
  // Of the gather that is replaced:
  const LocalOp* gather_ = nullptr;
  std::map<LocalId, LocalId> written_;  // gathered elements of values
  std::set<LocalId> refused_;           // values that are not written from what makes them
  int gathers_ = 0;                     // that are written
  int stored_ = 0;                      // values that are stored for them alone
  int visits_ = 0;
  size_t most_ops_ = 0;  // of all that is written of the block
};

}  // namespace

std::optional<LocalProgram> bubble_up_gathers(const LocalProgram& program, const PlanSettings& settings) {
  if (!settings.simplify || !settings.fuse || !partition::any_op(program.body, is_gather)) return std::nullopt;
  return run_pass<Gathers>(program);
}

}  // namespace meshd::compile
