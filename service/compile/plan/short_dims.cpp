// Sums over arrays whose last dim has two to four elements, such as the differences of all pairs of points in space,
// keep no vector busy: rows are shorter than it is. They are split by element of that dim, as an array of structures
// becomes a structure of arrays; then the rows are those of the dim before it.
//
//   1. A sum over the last dim is the sum of what it adds at 0, at 1, ..., one pointwise op after the other.
//   2. A sum over other dims that keeps the last one is a sum of what it adds at 0, one of what it adds at 1, ... that
//      are concatenated.
//
// What is added is written anew for one index of the last dim, back through pointwise ops and broadcasts of the block.
// Where this ends, at a leaf, the elements of that index are copied out of the array: so leaves have to be small beside
// what is added, and what is small and computed is a leaf. What has one element in the last dim is written once.
//
// A reduction over dims of one element, as JAX's checks of indices are, is one pointwise op with the initial value.
// What it alone reads is written anew without these dims, back to values that others read, or that are not pointwise:
// those get another shape. So one loop computes all of it.
//
// Example, forces of 2048 bodies on each other: d = p[j] - p[i], 2048x2048x3; r = sum over the last dim of d * d; f =
// sum over j of d / (r + e) ** 1.5, 2048x3. Out: x, y, z = columns of p; r = (x[j] - x[i])^2 + (y[j] - y[i])^2 + ...;
// fx = sum over j of (x[j] - x[i]) / (r + e) ** 1.5; fy, fz alike; f = concatenate fx, fy, fz.
#include "service/compile/plan/short_dims.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "service/compile/plan/local_rewriter.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/op_def.h"
#include "service/partition/local_walk.h"

namespace meshd::compile {
namespace {

using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;
using partition::ShardedType;
using tensor::Dims;
using tensor::DType;

constexpr int64_t kLongest = 4;
// Fewer elements are not worth the steps that copy the leaves.
constexpr int64_t kFewest = 4096;
constexpr int64_t kLeastShare = 16;  // what is added has so many times the elements of a leaf
constexpr size_t kMostOps = 24;      // that are written for an index
constexpr int kDeepest = 24;         // ops in a row that are followed back

bool is_reduce(const LocalOp& op) { return fuse_of(op) != nullptr && fuse_of(op)->reduce_dims != nullptr; }

class Splitter final : public LocalRewriter {
 public:
  explicit Splitter(LocalProgram& program) : LocalRewriter(program), reads_(program.values.size()) {
    partition::for_each_use(program.body, [&](LocalId id) { ++reads_[static_cast<size_t>(id)]; });
    for (const partition::LocalParameter& result : program.results) ++reads_[static_cast<size_t>(result.value)];
  }

 private:
  bool replace(const LocalOp& op) override { return combine_with_init(op) || split(op); }

  // A reduction over dims of one element. False: nothing was written.
  bool combine_with_init(const LocalOp& op) {
    if (!is_reduce(op) || op.operands.size() != 2) return false;
    const ShardedType reduced = type(op.operands[0]);
    const ShardedType result = type(op.results[0]);
    if (reduced.local.dtype != result.local.dtype) return false;
    std::vector<int64_t> dims = op.def->fuse.reduce_dims(LocalView(program_, op).view);
    std::sort(dims.begin(), dims.end());  // they may be in any order
    const bool is_of_one = std::all_of(dims.begin(), dims.end(), [&](int64_t dim) {
      const auto d = static_cast<size_t>(dim);
      return reduced.logical_dims[d] == 1 && reduced.local.dims[d] == 1 && reduced.layout.dims[d].empty();
    });
    // Where the region's operands may be in either order.
    if (!is_of_one || kernels::identity_of(single_op(op)) == kernels::Identity::kNone) return false;
    LocalId init = op.operands[1];
    if (result.rank() > 0) {
      init = one("stablehlo.broadcast_in_dim", {init}, result, {{"broadcast_dimensions", ir::int_array_attr({})}});
    }
    const LocalId element = without_dims(op.operands[0], dims, 0);
    LocalOp combined = new_op(op.regions.at(0).ops.front().name, {init, element});
    combined.results = op.results;
    append(std::move(combined));
    return true;
  }

  // A value without dims, in ascending order, that have one element.
  LocalId without_dims(LocalId id, const std::vector<int64_t>& dims, int depth) {
    const ShardedType whole = type(id);
    ShardedType made = whole;
    for (size_t i = dims.size(); i-- > 0;) erase_dim(made, dims[i]);
    const auto reshaped = [&] { return one("stablehlo.reshape", {id}, made); };
    const LocalOp* const by = maker(id);
    if (by == nullptr || depth == kDeepest || (by->kind != LocalKind::kConstant && by->kind != LocalKind::kOp))
      return reshaped();
    LocalOp op = *by;  // what is written moves it
    if (op.kind == LocalKind::kConstant) {
      const std::optional<LocalOp> constant = splat_of(op, made.local.dims);
      return constant ? add(*constant, made, "constant") : reshaped();
    }
    if (is_broadcast(op) && type(op.operands[0]).rank() == 0)
      return one("stablehlo.broadcast_in_dim", op.operands, made, {{"broadcast_dimensions", ir::int_array_attr({})}});
    const bool is_read_here_alone = static_cast<size_t>(id) < reads_.size() && reads_[static_cast<size_t>(id)] == 1;
    const auto is_alike = [&](LocalId operand) {
      const ShardedType& given = type(operand);
      const auto is_whole = [&](int64_t dim) { return given.layout.dims[static_cast<size_t>(dim)].empty(); };
      return given.rank() == 0 ||
             (given.local.dims == whole.local.dims && std::all_of(dims.begin(), dims.end(), is_whole));
    };
    if (!is_read_here_alone || !is_pointwise(op) || !std::all_of(op.operands.begin(), op.operands.end(), is_alike))
      return reshaped();
    for (LocalId& operand : op.operands) {
      if (type(operand).rank() > 0) operand = without_dims(operand, dims, depth + 1);
    }
    return add(std::move(op), made, program_.value(id).name);
  }

  // False: nothing was written.
  bool split(const LocalOp& op) {
    if (!is_reduce(op) || op.operands.size() != 2) return false;
    const ShardedType added = type(op.operands[0]);
    if (added.rank() < 2 || element_count(added) < kFewest) return false;
    const int64_t length = added.local.dims.back();
    if (length < 2 || length > kLongest || !added.layout.dims.back().empty()) return false;
    const LocalOp* const from = maker(op.operands[0]);
    if (from == nullptr || (from->kind != LocalKind::kOp && from->kind != LocalKind::kMask)) return false;
    const std::vector<int64_t> dims = op.def->fuse.reduce_dims(LocalView(program_, op).view);
    const auto last = static_cast<int64_t>(added.rank()) - 1;
    const bool over_last = std::find(dims.begin(), dims.end(), last) != dims.end();
    if ((over_last && dims.size() != 1) || !adds_floats(op)) return false;
    const Mark before = mark();
    most_leaf_ = element_count(added) / kLeastShare;
    written_.clear();
    most_ops_ = before.ops + kMostOps * static_cast<size_t>(length);
    std::vector<LocalId> parts;
    for (int64_t index = 0; index < length; ++index) {
      const std::optional<LocalId> part = at_index(op.operands[0], index);
      if (!part) {
        undo(before);
        return false;
      }
      parts.push_back(*part);
    }
    if (over_last) {
      add_up(op, parts);
    } else {
      put_beside_each_other(op, parts);
    }
    return true;
  }

  bool adds_floats(const LocalOp& op) const {
    if (type(op.operands[0]).local.dtype != DType::kFloat32 || type(op.results[0]).local.dtype != DType::kFloat32)
      return false;
    return single_op(op) == kernels::ScalarOp::kAdd;
  }

  // What a reduction's region computes, where that is one op; else kCopy.
  kernels::ScalarOp single_op(const LocalOp& op) const {
    const ir::Region& region = op.regions.at(0);
    if (region.ops.size() != 2) return kernels::ScalarOp::kCopy;  // more than one op and what it returns
    return kernels::as_single_binary(ops::compile_scalar_region(*program_.function, region));
  }

  // ---- types

  static ShardedType without_last(ShardedType type) {
    erase_dim(type, static_cast<int64_t>(type.rank()) - 1);
    return type;
  }
  static ShardedType with_last(ShardedType type, int64_t size) {
    type.local.dims.push_back(size);
    type.logical_dims.push_back(size);
    type.layout.dims.emplace_back();
    return type;
  }

  // ---- a value at one index of its last dim

  std::optional<LocalId> at_index(LocalId id, int64_t index) {
    const bool is_alike = type(id).local.dims.back() == 1;
    const std::pair key(id, is_alike ? 0 : index);
    if (const auto found = written_.find(key); found != written_.end()) return found->second;
    if (mark().ops >= most_ops_ || depth_ == kDeepest) return std::nullopt;
    ++depth_;
    std::optional<LocalId> made = of_maker(id, key.second);
    --depth_;
    if (!made) made = of_leaf(id, key.second);
    if (made) written_.emplace(key, *made);
    return made;
  }

  std::optional<LocalId> of_maker(LocalId id, int64_t index) {
    if (maker(id) == nullptr) return std::nullopt;
    const LocalOp op = *maker(id);  // what is written moves it
    const ShardedType made = without_last(type(id));
    if (op.kind == LocalKind::kConstant) {
      const std::optional<LocalOp> constant = splat_of(op, made.local.dims);
      return constant ? std::optional(add(*constant, made, "constant")) : std::nullopt;
    }
    if (is_broadcast(op)) return of_broadcast(op, made, index);
    if (op.kind != LocalKind::kMask && !is_pointwise(op)) return std::nullopt;
    if (is_small(id)) return std::nullopt;
    LocalOp smaller = op;
    for (LocalId& operand : smaller.operands) {
      if (type(operand).rank() == 0) continue;
      if (type(operand).local.dims != type(id).local.dims) return std::nullopt;
      const std::optional<LocalId> at = at_index(operand, index);
      if (!at) return std::nullopt;
      operand = *at;
    }
    return add(std::move(smaller), made, program_.value(id).name);
  }

  std::optional<LocalId> of_broadcast(const LocalOp& op, const ShardedType& made, int64_t index) {
    std::vector<int64_t> dims = ir::ints(op.attributes, "broadcast_dimensions");
    LocalId operand = op.operands[0];
    const auto last = static_cast<int64_t>(made.rank());
    const auto found = std::find(dims.begin(), dims.end(), last);
    if (found != dims.end()) {
      if (found + 1 != dims.end() || !type(operand).layout.dims.back().empty()) return std::nullopt;
      const std::optional<LocalId> at = at_index(operand, index);
      if (!at) return std::nullopt;
      operand = *at;
      dims.pop_back();
    }
    bool is_whole = dims.size() == made.rank() && type(operand).local.dims == made.local.dims &&
                    type(operand).layout == made.layout && type(operand).varies == made.varies;
    for (size_t d = 0; d < dims.size(); ++d) is_whole = is_whole && dims[d] == static_cast<int64_t>(d);
    if (is_whole) return operand;
    LocalOp smaller = op;
    smaller.operands = {operand};
    ir::set(smaller.attributes, "broadcast_dimensions", ir::int_array_attr(std::move(dims)));
    return add(std::move(smaller), made, "broadcast");
  }

  [[nodiscard]] bool is_small(LocalId id) const { return element_count(type(id)) <= most_leaf_; }

  std::optional<LocalId> of_leaf(LocalId id, int64_t index) {
    const ShardedType whole = type(id);
    if (!whole.layout.dims.back().empty()) return std::nullopt;
    LocalId column = id;
    if (whole.local.dims.back() > 1) {
      if (!is_small(id)) return std::nullopt;
      std::vector<int64_t> start(whole.rank(), 0);
      std::vector<int64_t> limit = whole.local.dims;
      start.back() = index;
      limit.back() = index + 1;
      column = one("stablehlo.slice", {id}, with_last(without_last(whole), 1),
                   {{"start_indices", ir::int_array_attr(std::move(start))},
                    {"limit_indices", ir::int_array_attr(std::move(limit))},
                    {"strides", ir::int_array_attr(std::vector<int64_t>(whole.rank(), 1))}});
    }
    return one("stablehlo.reshape", {column}, without_last(whole));
  }

  // ---- the sums

  void add_up(const LocalOp& op, const std::vector<LocalId>& parts) {
    const ShardedType result = type(op.results[0]);
    LocalId sum =
        one("stablehlo.broadcast_in_dim", {op.operands[1]}, result, {{"broadcast_dimensions", ir::int_array_attr({})}});
    for (size_t i = 0; i + 1 < parts.size(); ++i) sum = one("stablehlo.add", {sum, parts[i]}, result);
    LocalOp last = new_op("stablehlo.add", {sum, parts.back()});
    last.results = op.results;
    append(std::move(last));
  }

  void put_beside_each_other(const LocalOp& op, const std::vector<LocalId>& parts) {
    const ShardedType result = type(op.results[0]);
    std::vector<LocalId> columns;
    for (const LocalId part : parts) {
      LocalOp sum = op;
      sum.operands[0] = part;
      const LocalId made = add(std::move(sum), without_last(result), "sum");
      columns.push_back(one("stablehlo.reshape", {made}, with_last(without_last(result), 1)));
    }
    LocalOp whole = new_op("stablehlo.concatenate", std::move(columns),
                           {{"dimension", ir::integer_attr(static_cast<int64_t>(result.rank()) - 1)}});
    whole.results = op.results;
    append(std::move(whole));
  }

  std::vector<int> reads_;                                  // of each value that was there before
  std::map<std::pair<LocalId, int64_t>, LocalId> written_;  // of one sum: values at an index
  size_t most_ops_ = 0;                                     // of all that is written of the block
  int depth_ = 0;                                           // of at_index
  int64_t most_leaf_ = 0;                                   // elements
};

}  // namespace

std::optional<LocalProgram> split_short_dims(const LocalProgram& program, const PlanSettings& settings) {
  if (!settings.fuse || !settings.split_short_dims || !partition::any_op(program.body, [&](const LocalOp& op) {
        if (!is_reduce(op)) return false;
        const ShardedType& reduced = program.type(op.operands[0]);
        const Dims& dims = reduced.local.dims;
        const bool is_split = dims.size() >= 2 && dims.back() <= kLongest && element_count(reduced) >= kFewest;
        return is_split || std::find(dims.begin(), dims.end(), 1) != dims.end();
      })) {
    return std::nullopt;
  }
  return run_pass<Splitter>(program);
}

}  // namespace meshd::compile
