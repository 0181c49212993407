// Reductions over arrays with a dim of few elements, such as the differences of all pairs of points in space, or
// conditions that are put together to find the first that holds, keep no vector busy where rows are shorter than it is,
// and pass a large array through memory. They are split by element of that dim, as an array of structures becomes a
// structure of arrays.
//
//   1. A reduction over such a dim is its region on what there is at 0, at 1, ..., one pointwise op after the other.
//      Sums of f32 have four terms at most: more, and products, are accumulated in double. Regions with several results
//      are computed in their own types either way.
//   2. A sum over other dims that keeps a last dim of few elements becomes a sum for each index of that dim; the sums
//      are concatenated.
//
// What is reduced is written anew for one index of the dim, back through pointwise ops, broadcasts and concatenations
// of the block. Where this ends, at a leaf, the elements of that index are copied out of the array: so leaves have to
// be small beside what is reduced, and what is small and computed is a leaf. What has one element in the dim is written
// once.
//
// A reduction over dims of one element, as JAX's checks of indices are, is one pointwise op with the initial value.
// What it alone reads is written anew without these dims, back to values that others read, or that are not pointwise:
// those get another shape. So one loop computes all of it.
//
// Example, forces of 2048 bodies on each other: d = p[j] - p[i], 2048x2048x3; r = sum over the last dim of d * d; f =
// sum over j of d / (r + e) ** 1.5, 2048x3. Out: x, y, z = columns of p; r = (x[j] - x[i])^2 + (y[j] - y[i])^2 + ...;
// fx = sum over j of (x[j] - x[i]) / (r + e) ** 1.5; fy, fz alike; f = concatenate fx, fy, fz.
// Example, jnp.select of three conditions: the argmax over dim 0 of 4x500x500 bools, concatenated of false and the
// conditions, with an iota. Out: four times the argmax's region on 500x500, first of false and 0, then of the first
// condition and 1, and so on.
#include "service/compile/plan/short_dims.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "service/compile/plan/local_rewriter.h"
#include "service/compile/plan/simplify.h"
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

constexpr int64_t kLongest = 4;        // of sums of floats
constexpr int64_t kLongestExact = 32;  // where a term is one op that rounds nothing
constexpr int64_t kLongestOther = 8;
// Fewer elements are not worth the steps that copy the leaves.
constexpr int64_t kFewest = 4096;
constexpr int64_t kLeastShare = 16;  // what is reduced has so many times the elements of a leaf
constexpr size_t kMostOps = 24;      // that are written for an index, without the region's
// That are computed of one reduction, by what it gives: a fused loop has some 50, and words are folded about as fast.
constexpr size_t kMostOfBools = 47;
constexpr size_t kMostOfWords = 20;
constexpr size_t kMostOfPairs = 64;  // an index beside the value: less is left when it has been simplified
constexpr size_t kFewOps = 4096;     // that are written of any program: twice as many as it has, and these
constexpr int kDeepest = 24;         // ops in a row that are followed back

bool is_reduce(const LocalOp& op) { return fuse_of(op) != nullptr && fuse_of(op)->reduce_dims != nullptr; }

class Splitter final : public LocalRewriter {
 public:
  explicit Splitter(LocalProgram& program) : LocalRewriter(program), reads_(program.values.size()) {
    partition::for_each_use(program.body, [&](LocalId id) { ++reads_[static_cast<size_t>(id)]; });
    for (const partition::LocalParameter& result : program.results) ++reads_[static_cast<size_t>(result.value)];
    most_written_ = kFewOps + 2 * program.values.size();  // most ops have one result
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
    if (!is_reduce(op) || op.operands.size() != 2 * op.results.size()) return false;
    const ShardedType reduced = type(op.operands[0]);
    if (reduced.rank() < 2 || element_count(reduced) < kFewest || written_ops_ > most_written_) return false;
    const std::vector<int64_t> dims = op.def->fuse.reduce_dims(LocalView(program_, op).view);
    const auto last = static_cast<int64_t>(reduced.rank()) - 1;
    const bool over_last = std::find(dims.begin(), dims.end(), last) != dims.end();
    const bool adds = adds_floats(op);
    if (dims.size() == 1 && has_few(reduced, dims[0], longest(op)) &&
        split_along(op, dims[0], true, !adds || !over_last))
      return true;
    return !over_last && adds && has_few(reduced, last, kLongest) && split_along(op, last, false, false);
  }

  // `over`: the reduction is over the dim. `once`: what is reduced must not be computed again for another reader, nor
  // be more than one loop takes.
  bool split_along(const LocalOp& op, int64_t dim, bool over, bool once) {
    const Mark before = mark();
    reads_once_ = once;
    std::vector<std::vector<LocalId>> parts;
    if (!write_parts(op, dim, parts)) {
      undo(before);
      return false;
    }
    over ? combine(op, parts) : put_beside_each_other(op, parts);
    written_ops_ += mark().ops - before.ops;
    return true;
  }

  // By index of the dim what each operand has there. False: something may have been written.
  bool write_parts(const LocalOp& op, int64_t dim, std::vector<std::vector<LocalId>>& parts) {
    const LocalOp* const from = maker(op.operands[0]);
    if (from == nullptr || (from->kind != LocalKind::kOp && from->kind != LocalKind::kMask)) return false;
    const ShardedType reduced = type(op.operands[0]);
    const int64_t length = reduced.local.dims[static_cast<size_t>(dim)];
    most_leaf_ = element_count(reduced) / kLeastShare;
    written_.clear();
    computed_ = 0;
    most_ops_ = mark().ops + kMostOps * static_cast<size_t>(length);
    for (int64_t index = 0; index < length; ++index) {
      parts.emplace_back();
      for (size_t k = 0; k < op.results.size(); ++k) {
        const std::optional<LocalId> part = at_index(op.operands[k], dim, index);
        if (!part) return false;
        parts.back().push_back(*part);
      }
      // All indices are alike, and have the region's ops each.
      const size_t ops = computed_ + (parts.size() * (op.regions.at(0).ops.size() - 1));
      if (reads_once_ && ops * static_cast<size_t>(length) > most_of_loop(op) * parts.size()) return false;
    }
    return true;
  }

  size_t most_of_loop(const LocalOp& op) const {
    if (op.results.size() > 1) return kMostOfPairs;
    return type(op.results[0]).local.dtype == DType::kBool ? kMostOfBools : kMostOfWords;
  }

  // Whether the reduction alone reads a value, through others of its tree. Values that this pass wrote count as such.
  [[nodiscard]] bool is_read_once(LocalId id) const {
    return static_cast<size_t>(id) >= reads_.size() || reads_[static_cast<size_t>(id)] == 1;
  }

  static bool has_few(const ShardedType& type, int64_t dim, int64_t longest) {
    const auto d = static_cast<size_t>(dim);
    return type.local.dims[d] >= 2 && type.local.dims[d] <= longest && type.layout.dims[d].empty();
  }

  // The most terms that are written one after the other; 0: none.
  int64_t longest(const LocalOp& op) const {
    if (adds_floats(op)) return kLongest;
    const ir::Region& region = op.regions.at(0);
    const auto has_code = [&](LocalId id) {
      const DType dtype = type(id).local.dtype;
      return dtype == DType::kBool || dtype == DType::kInt32 || dtype == DType::kUint32 || dtype == DType::kFloat32;
    };
    if (!std::all_of(op.results.begin(), op.results.end(), has_code)) return 0;
    if (!is_pointwise_region(program_, region)) return 0;
    const bool keeps_types = std::equal(
        op.results.begin(), op.results.end(), op.operands.begin(),
        [&](LocalId result, LocalId operand) { return type(result).local.dtype == type(operand).local.dtype; });
    if (!keeps_types) return 0;
    if (op.results.size() > 1) return kLongestOther;
    switch (single_op(op)) {
      case kernels::ScalarOp::kAdd:
      case kernels::ScalarOp::kMultiply:
        return tensor::is_integer(type(op.results[0]).local.dtype) ? kLongestExact : 0;
      case kernels::ScalarOp::kMaximum:
      case kernels::ScalarOp::kMinimum:
      case kernels::ScalarOp::kAnd:
      case kernels::ScalarOp::kOr:
        return kLongestExact;
      default:
        return 0;
    }
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

  static ShardedType without(ShardedType type, int64_t dim) {
    erase_dim(type, dim);
    return type;
  }
  static ShardedType with_last(ShardedType type, int64_t size) {
    type.local.dims.push_back(size);
    type.logical_dims.push_back(size);
    type.layout.dims.emplace_back();
    return type;
  }
  static ShardedType with_one(ShardedType type, int64_t dim) {
    type.local.dims[static_cast<size_t>(dim)] = 1;
    type.logical_dims[static_cast<size_t>(dim)] = 1;
    return type;
  }

  // ---- a value at one index of a dim

  std::optional<LocalId> at_index(LocalId id, int64_t dim, int64_t index) {
    if (type(id).local.dims[static_cast<size_t>(dim)] == 1) index = 0;  // all indices are alike
    const std::tuple key(id, dim, index);
    if (const auto found = written_.find(key); found != written_.end()) return found->second;
    if (mark().ops >= most_ops_ || depth_ == kDeepest) return std::nullopt;
    ++depth_;
    std::optional<LocalId> made = of_maker(id, dim, index);
    --depth_;
    if (!made) made = of_leaf(id, dim, index);
    if (made) written_.emplace(key, *made);
    return made;
  }

  std::optional<LocalId> of_maker(LocalId id, int64_t dim, int64_t index) {
    if (maker(id) == nullptr || !type(id).layout.dims[static_cast<size_t>(dim)].empty()) return std::nullopt;
    const LocalOp op = *maker(id);  // what is written moves it
    const ShardedType made = without(type(id), dim);
    if (op.kind == LocalKind::kConstant) {
      const std::optional<LocalOp> constant = splat_of(op, made.local.dims);
      return constant ? std::optional(add(*constant, made, "constant")) : std::nullopt;
    }
    if (is_broadcast(op)) return of_broadcast(op, made, dim, index);
    if (fuse_of(op) != nullptr && fuse_of(op)->iota_dim != nullptr) return of_iota(op, made, dim, index);
    if (fuse_of(op) != nullptr && op.def->bounded == ops::BoundedForm::kConcatenate)
      return of_concatenation(op, dim, index);
    if (op.kind != LocalKind::kMask && !is_pointwise(op)) return std::nullopt;
    if (is_small(id) || (reads_once_ && !is_read_once(id))) return std::nullopt;
    ++computed_;
    LocalOp smaller = op;
    for (LocalId& operand : smaller.operands) {
      if (type(operand).rank() == 0) continue;
      if (type(operand).local.dims != type(id).local.dims) return std::nullopt;
      const std::optional<LocalId> at = at_index(operand, dim, index);
      if (!at) return std::nullopt;
      operand = *at;
    }
    return add(std::move(smaller), made, program_.value(id).name);
  }

  std::optional<LocalId> of_broadcast(const LocalOp& op, const ShardedType& made, int64_t dim, int64_t index) {
    std::vector<int64_t> dims = ir::ints(op.attributes, "broadcast_dimensions");
    LocalId operand = op.operands[0];
    if (const auto found = std::find(dims.begin(), dims.end(), dim); found != dims.end()) {
      const auto from = found - dims.begin();
      if (!type(operand).layout.dims[static_cast<size_t>(from)].empty()) return std::nullopt;
      const std::optional<LocalId> at = at_index(operand, from, index);
      if (!at) return std::nullopt;
      operand = *at;
      dims.erase(found);
    }
    for (int64_t& to : dims) to -= to > dim ? 1 : 0;
    bool is_same = dims.size() == made.rank() && type(operand).local.dims == made.local.dims &&
                   type(operand).layout == made.layout && type(operand).varies == made.varies;
    for (size_t d = 0; d < dims.size(); ++d) is_same = is_same && dims[d] == static_cast<int64_t>(d);
    if (is_same) return operand;
    LocalOp smaller = op;
    smaller.operands = {operand};
    ir::set(smaller.attributes, "broadcast_dimensions", ir::int_array_attr(std::move(dims)));
    return add(std::move(smaller), made, "broadcast");
  }

  // Along the dim it is one number.
  std::optional<LocalId> of_iota(const LocalOp& op, const ShardedType& made, int64_t dim, int64_t index) {
    const DType dtype = made.local.dtype;
    const bool is_wide_integer = tensor::is_integer(dtype) && tensor::size_bytes(dtype) >= 4;
    if (!is_wide_integer || op.def->fuse.iota_dim(LocalView(program_, op).view) != dim) return std::nullopt;
    std::vector<std::byte> element(static_cast<size_t>(tensor::size_bytes(dtype)));
    std::memcpy(element.data(), &index, element.size());
    LocalOp constant;
    constant.kind = LocalKind::kConstant;
    constant.name = "constant";
    constant.location = op.location;
    ir::set(constant.attributes, "value", ir::Attribute{ir::splat_attr(made.local, std::move(element))});
    return add(std::move(constant), made, "iota");
  }

  std::optional<LocalId> of_concatenation(const LocalOp& op, int64_t dim, int64_t index) {
    if (ir::int_or(op.attributes, "dimension", -1) != dim) return std::nullopt;
    if (reads_once_ && !is_read_once(op.results[0])) return std::nullopt;
    for (const LocalId operand : op.operands) {
      const int64_t size = type(operand).local.dims[static_cast<size_t>(dim)];
      if (index < size) return at_index(operand, dim, index);
      index -= size;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_small(LocalId id) const { return element_count(type(id)) <= most_leaf_; }

  std::optional<LocalId> of_leaf(LocalId id, int64_t dim, int64_t index) {
    const ShardedType whole = type(id);
    if (!whole.layout.dims[static_cast<size_t>(dim)].empty()) return std::nullopt;
    LocalId column = id;
    if (whole.local.dims[static_cast<size_t>(dim)] > 1) {
      if (!is_small(id)) return std::nullopt;
      std::vector<int64_t> start(whole.rank(), 0);
      std::vector<int64_t> limit = whole.local.dims;
      start[static_cast<size_t>(dim)] = index;
      limit[static_cast<size_t>(dim)] = index + 1;
      column = one("stablehlo.slice", {id}, with_one(whole, dim),
                   {{"start_indices", ir::int_array_attr(std::move(start))},
                    {"limit_indices", ir::int_array_attr(std::move(limit))},
                    {"strides", ir::int_array_attr(std::vector<int64_t>(whole.rank(), 1))}});
    }
    return one("stablehlo.reshape", {column}, without(whole, dim));
  }

  // ---- the reductions

  LocalId initial(const LocalOp& op, size_t k) {
    return one("stablehlo.broadcast_in_dim", {op.operands[op.results.size() + k]}, type(op.results[k]),
               {{"broadcast_dimensions", ir::int_array_attr({})}});
  }

  void combine(const LocalOp& op, const std::vector<std::vector<LocalId>>& parts) {
    const Mark before = mark();
    std::vector<LocalId> values;
    for (size_t k = 0; k < op.results.size(); ++k) values.push_back(initial(op, k));
    for (const std::vector<LocalId>& part : parts) {
      std::vector<LocalId> arguments = values;
      arguments.insert(arguments.end(), part.begin(), part.end());
      values = write_region(program_, op.regions.at(0), arguments, [&](LocalOp made, DType dtype) {
        ShardedType as_result = type(op.results[0]);
        as_result.local.dtype = dtype;
        return add(std::move(made), std::move(as_result), "term");
      });
    }
    for (size_t k = 0; k < values.size(); ++k) {
      const auto named = op.results.begin() + static_cast<std::ptrdiff_t>(k);
      const bool is_twice = std::find(op.results.begin(), named, values[k]) != named;
      if (!is_twice && rename(values[k], *named, before)) {
        const LocalId unnamed = values[k];
        std::replace(values.begin() + static_cast<std::ptrdiff_t>(k), values.end(), unnamed, *named);
        continue;
      }
      LocalOp result =
          new_op("stablehlo.reshape", {values[k]});  // a value from elsewhere, or one that is returned twice
      result.results = {*named};
      append(std::move(result));
    }
  }

  void put_beside_each_other(const LocalOp& op, const std::vector<std::vector<LocalId>>& parts) {
    const ShardedType result = type(op.results[0]);
    const int64_t last = static_cast<int64_t>(result.rank()) - 1;
    std::vector<LocalId> columns;
    for (const std::vector<LocalId>& part : parts) {
      LocalOp sum = op;
      sum.operands[0] = part[0];
      const LocalId made = add(std::move(sum), without(result, last), "sum");
      columns.push_back(one("stablehlo.reshape", {made}, with_last(without(result, last), 1)));
    }
    LocalOp whole = new_op("stablehlo.concatenate", std::move(columns), {{"dimension", ir::integer_attr(last)}});
    whole.results = op.results;
    append(std::move(whole));
  }

  std::vector<int> reads_;  // of each value that was there before
  // Of one reduction: values at an index of a dim.
  std::map<std::tuple<LocalId, int64_t, int64_t>, LocalId> written_;
  size_t most_ops_ = 0;      // of all that is written of the block
  size_t most_written_ = 0;  // of the program, and how many were
  size_t written_ops_ = 0;
  bool reads_once_ = false;  // of the reduction that is split
  size_t computed_ = 0;      // pointwise ops that are written for it
  int depth_ = 0;            // of at_index
  int64_t most_leaf_ = 0;    // elements
};

}  // namespace

std::optional<LocalProgram> split_short_dims(const LocalProgram& program, const PlanSettings& settings) {
  if (!settings.fuse || !settings.split_short_dims || !partition::any_op(program.body, [&](const LocalOp& op) {
        if (!is_reduce(op)) return false;
        const ShardedType& reduced = program.type(op.operands[0]);
        const Dims& dims = reduced.local.dims;
        const bool is_split = dims.size() >= 2 && element_count(reduced) >= kFewest &&
                              std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d <= kLongestExact; });
        return is_split || std::find(dims.begin(), dims.end(), 1) != dims.end();
      })) {
    return std::nullopt;
  }
  std::optional<LocalProgram> split = run_pass<Splitter>(program);
  // A region that was written on constants, such as the first condition's and its index, leaves less.
  if (split) {
    if (std::optional<LocalProgram> simple = simplify(*split, settings)) return simple;
  }
  return split;
}

}  // namespace meshd::compile
