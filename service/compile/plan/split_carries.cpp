#include "service/compile/plan/split_carries.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "service/compile/plan/local_rewriter.h"
#include "service/compile/plan/plan_builder.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"

namespace meshd::compile {
namespace {

using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;
using partition::ShardedType;

constexpr int64_t kMostRows = 8;
// Shorter ones are moved within vectors.
constexpr int64_t kFewestElements = kernels::kBlockLanes + 1;
constexpr size_t kMostLookedAt = 64;  // values between a concatenation and what is carried

/// One loop. It is looked at, and then written anew.
class LoopSplitter {
 public:
  LoopSplitter(LocalProgram& program, const std::map<LocalId, const LocalOp*>& makers, const LocalOp& loop)
      : program_(program), makers_(makers), loop_(loop), body_(loop.blocks[1]) {}

  /// Whether there is something to split.
  bool look() {
    for (size_t k = 0; k < body_.results.size(); ++k) {
      if (tensor::element_count(type(body_.arguments[k]).local.dims) < kFewestElements) continue;
      const std::optional<size_t> dim = row_dim(body_.results[k]);
      if (dim && has_rows(body_.arguments[k], *dim) && has_rows(body_.results[k], *dim)) carries_[k] = *dim;
    }
    bool is_found = false;
    while (!carries_.empty() && !is_found) {
      find_split();
      is_found = std::erase_if(carries_, [&](const auto& carry) {
                   const auto split = split_.find(body_.results[carry.first]);
                   return split == split_.end() || split->second != carry.second;
                 }) == 0;
    }
    return !carries_.empty();
  }

  /// The loop with what is in front of it and behind it.
  void write(std::vector<LocalOp>& to) {
    LocalOp made = loop_;
    made.operands.clear();
    made.results.clear();
    std::vector<LocalOp> behind;
    for (size_t k = 0; k < loop_.operands.size(); ++k) {
      const auto carry = carries_.find(k);
      if (carry == carries_.end()) {
        made.operands.push_back(loop_.operands[k]);
        made.results.push_back(loop_.results[k]);
        continue;
      }
      const size_t dim = carry->second;
      std::vector<LocalId> results;
      for (int64_t row = 0; row < rows_of(loop_.operands[k], dim); ++row) {
        to.push_back(slice_of(loop_.operands[k], dim, row));
        made.operands.push_back(to.back().results[0]);
        results.push_back(new_row(loop_.results[k], dim));
      }
      made.results.insert(made.results.end(), results.begin(), results.end());
      behind.push_back(concatenation(results, dim, loop_.results[k]));
    }
    made.blocks[0] = write_condition();
    made.blocks[1] = write_body();
    to.push_back(std::move(made));
    std::move(behind.begin(), behind.end(), std::back_inserter(to));
  }

 private:
  // ---- types

  [[nodiscard]] const ShardedType& type(LocalId id) const { return program_.type(id); }
  [[nodiscard]] int64_t rows_of(LocalId id, size_t dim) const { return type(id).local.dims[dim]; }
  [[nodiscard]] bool has_rows(LocalId id, size_t dim) const {
    const ShardedType& of = type(id);
    if (dim >= of.rank() || !of.layout.dims[dim].empty()) return false;
    const int64_t rows = of.local.dims[dim];
    return rows >= 2 && rows <= kMostRows && rows == of.logical_dims[dim] &&
           tensor::element_count(of.local.dims) >= kFewestElements;
  }
  LocalId new_row(LocalId of, size_t dim) {
    partition::LocalValue value = program_.values[static_cast<size_t>(of)];
    value.type.local.dims[dim] = value.type.logical_dims[dim] = 1;
    return add(std::move(value));
  }
  LocalId add(partition::LocalValue value) {
    program_.values.push_back(std::move(value));
    return static_cast<LocalId>(program_.values.size() - 1);
  }

  // ---- what is split

  [[nodiscard]] const LocalOp* maker(LocalId id) const {
    const auto found = makers_.find(id);
    return found == makers_.end() ? nullptr : found->second;
  }

  [[nodiscard]] static bool is_a(const LocalOp& op, ops::BoundedForm form) {
    return op.kind == LocalKind::kOp && op.def != nullptr && op.def->bounded == form && op.results.size() == 1;
  }

  // The dim of a concatenation of single rows; nothing for other ops.
  [[nodiscard]] std::optional<size_t> concatenated_dim(const LocalOp& op) const {
    if (!is_a(op, ops::BoundedForm::kConcatenate)) return std::nullopt;
    const auto dim = static_cast<size_t>(ir::int_or(op.attributes, "dimension", 0));
    const bool are_rows =
        std::all_of(op.operands.begin(), op.operands.end(), [&](LocalId id) { return type(id).local.dims[dim] == 1; });
    return are_rows && has_rows(op.results[0], dim) ? std::optional(dim) : std::nullopt;
  }

  // Along which dim a value is put together: that of the nearest concatenation behind pointwise ops.
  [[nodiscard]] std::optional<size_t> row_dim(LocalId id) const {
    std::vector<LocalId> open = {id};
    for (size_t at = 0; at < open.size() && at < kMostLookedAt; ++at) {
      const LocalOp* const op = maker(open[at]);
      if (op == nullptr) continue;
      if (const auto dim = concatenated_dim(*op)) return dim;
      if (!is_pointwise(program_, *op)) continue;
      for (const LocalId operand : op->operands) {
        if (std::find(open.begin(), open.end(), operand) == open.end()) open.push_back(operand);
      }
    }
    return std::nullopt;
  }

  void find_split() {
    split_.clear();
    for (const auto& [k, dim] : carries_) split_[body_.arguments[k]] = dim;
    for (const LocalOp& op : body_.ops) {
      if (const auto dim = split_dim(op)) split_[op.results[0]] = *dim;
    }
  }

  [[nodiscard]] std::optional<size_t> split_dim(const LocalOp& op) const {
    if (const auto dim = concatenated_dim(op)) return dim;
    std::optional<size_t> dim;
    for (const LocalId id : op.operands) {
      const auto found = split_.find(id);
      if (found != split_.end()) dim = found->second;
    }
    if (!dim) return std::nullopt;
    if (is_broadcast(op)) return dim_of_broadcast(op, *dim);
    if (!is_pointwise(program_, op) || !has_rows(op.results[0], *dim)) return std::nullopt;
    const bool is_row_by_row = std::all_of(op.operands.begin(), op.operands.end(), [&](LocalId id) {
      const auto found = split_.find(id);
      return found != split_.end() ? found->second == *dim : is_same_in_rows(id, *dim);
    });
    return is_row_by_row ? dim : std::nullopt;
  }

  // Where a broadcast only adds dims of size one.
  [[nodiscard]] std::optional<size_t> dim_of_broadcast(const LocalOp& op, size_t dim) const {
    const int64_t before = tensor::element_count(type(op.operands[0]).local.dims);
    if (tensor::element_count(type(op.results[0]).local.dims) != before) return std::nullopt;
    const auto to = static_cast<size_t>(ir::ints(op.attributes, "broadcast_dimensions")[dim]);
    return has_rows(op.results[0], to) ? std::optional(to) : std::nullopt;
  }

  // A scalar, or a value whose rows are made anew as one.
  [[nodiscard]] bool is_same_in_rows(LocalId id, size_t dim) const {
    if (type(id).rank() == 0) return true;
    const LocalOp* const op = maker(id);
    if (op == nullptr) return false;
    if (op->kind == LocalKind::kConstant) return splat_of(*op, {}).has_value();
    if (!is_broadcast(*op)) return false;
    const std::vector<int64_t> dims = ir::ints(op->attributes, "broadcast_dimensions");
    return std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) == dims.end();
  }

  // ---- the new loop

  LocalOp slice_of(LocalId id, size_t dim, int64_t row) {
    const tensor::Dims& dims = type(id).local.dims;
    std::vector<int64_t> starts(dims.size(), 0);
    std::vector<int64_t> limits(dims.begin(), dims.end());
    starts[dim] = row;
    limits[dim] = row + 1;
    LocalOp op = make_op("stablehlo.slice", {id},
                         {{"start_indices", ir::int_array_attr(starts)},
                          {"limit_indices", ir::int_array_attr(limits)},
                          {"strides", ir::int_array_attr(std::vector<int64_t>(dims.size(), 1))}},
                         loop_.location);
    op.results = {new_row(id, dim)};
    return op;
  }

  [[nodiscard]] LocalOp concatenation(std::vector<LocalId> rows, size_t dim, LocalId result) const {
    LocalOp op = make_op("stablehlo.concatenate", std::move(rows), {}, loop_.location);
    ir::set(op.attributes, "dimension", ir::integer_attr(static_cast<int64_t>(dim)));
    op.results = {result};
    return op;
  }

  // The block's arguments, rows in the place of what is split.
  void write_arguments(const LocalBlock& from, LocalBlock& to) {
    for (size_t k = 0; k < from.arguments.size(); ++k) {
      const auto carry = carries_.find(k);
      if (carry == carries_.end()) {
        to.arguments.push_back(from.arguments[k]);
        continue;
      }
      std::vector<LocalId>& rows = rows_[from.arguments[k]];
      for (int64_t row = 0; row < rows_of(from.arguments[k], carry->second); ++row)
        rows.push_back(new_row(from.arguments[k], carry->second));
      to.arguments.insert(to.arguments.end(), rows.begin(), rows.end());
    }
  }

  LocalBlock write_condition() {
    const LocalBlock& condition = loop_.blocks[0];
    LocalBlock to;
    write_arguments(condition, to);
    std::set<LocalId> used;
    partition::for_each_use(condition, [&](LocalId id) { used.insert(id); });
    for (const auto& [k, dim] : carries_) {
      const LocalId id = condition.arguments[k];
      if (used.contains(id)) to.ops.push_back(concatenation(rows_.at(id), dim, id));
    }
    to.ops.insert(to.ops.end(), condition.ops.begin(), condition.ops.end());
    to.results = condition.results;
    return to;
  }

  LocalBlock write_body() {
    LocalBlock to;
    write_arguments(body_, to);
    made_ = &to.ops;
    for (const LocalOp& op : body_.ops) {
      if (!write_rows(op)) write_as_it_is(op);
    }
    for (size_t k = 0; k < body_.results.size(); ++k) {
      const LocalId id = body_.results[k];
      if (carries_.contains(k)) {
        to.results.insert(to.results.end(), rows_.at(id).begin(), rows_.at(id).end());
      } else {
        materialize(id);
        to.results.push_back(id);
      }
    }
    return to;
  }

  void write_as_it_is(const LocalOp& op) {
    for (const LocalId id : op.operands) materialize(id);
    for (const LocalBlock& inner : op.blocks) partition::for_each_use(inner, [&](LocalId id) { materialize(id); });
    made_->push_back(op);
  }

  // A split value as one array, for ops that read all of it.
  void materialize(LocalId id) {
    const auto split = split_.find(id);
    if (split == split_.end() || !materialized_.insert(id).second) return;
    made_->push_back(concatenation(rows_.at(id), split->second, id));
  }

  // Row by row, where the op's result or what it reads is split; false: nothing was written.
  bool write_rows(const LocalOp& op) {
    const bool is_split = op.results.size() == 1 && split_.contains(op.results[0]);
    if (is_split && is_a(op, ops::BoundedForm::kConcatenate)) {
      for (const LocalId id : op.operands) materialize(id);  // a row of it may itself be split along another dim
      rows_[op.results[0]] = op.operands;
      return true;
    }
    if (is_split) {
      write_split(op);
      return true;
    }
    return write_slice(op) || write_update(op);
  }

  void write_split(const LocalOp& op) {
    const LocalId result = op.results[0];
    const size_t dim = split_.at(result);
    std::vector<LocalId> rows;
    for (int64_t row = 0; row < rows_of(result, dim); ++row) {
      LocalOp copy = op;
      for (LocalId& id : copy.operands) id = row_of(id, row, dim, op.location);
      copy.results = {new_row(result, dim)};
      rows.push_back(copy.results[0]);
      made_->push_back(std::move(copy));
    }
    rows_[result] = std::move(rows);
  }

  LocalId row_of(LocalId id, int64_t row, size_t dim, const ir::Location& location) {
    if (split_.contains(id)) return rows_.at(id)[static_cast<size_t>(row)];
    if (type(id).rank() == 0) return id;
    LocalOp made = *maker(id);
    const LocalId result = new_row(id, dim);
    if (made.kind == LocalKind::kConstant) made = *splat_of(made, type(result).local.dims);
    made.location = location;
    made.results = {result};
    made_->push_back(std::move(made));
    return result;
  }

  // A slice of one row is one of that row.
  bool write_slice(const LocalOp& op) {
    if (!is_a(op, ops::BoundedForm::kSlice) || !split_.contains(op.operands[0])) return false;
    const size_t dim = split_.at(op.operands[0]);
    std::vector<int64_t> starts = ir::ints(op.attributes, "start_indices");
    std::vector<int64_t> limits = ir::ints(op.attributes, "limit_indices");
    if (type(op.results[0]).local.dims[dim] != 1) return false;
    LocalOp copy = op;
    copy.operands = {rows_.at(op.operands[0])[static_cast<size_t>(starts[dim])]};
    starts[dim] = 0;
    limits[dim] = 1;
    ir::set(copy.attributes, "start_indices", ir::int_array_attr(starts));
    ir::set(copy.attributes, "limit_indices", ir::int_array_attr(limits));
    made_->push_back(std::move(copy));
    return true;
  }

  // An update that has all rows of the array's dim: its index is clamped to 0, and that of a row is the row's number.
  bool write_update(const LocalOp& op) {
    // Of a sharded array it says what the whole update is, too.
    if (!is_a(op, ops::BoundedForm::kDynamicUpdateSlice) || ir::find(op.attributes, ops::kGlobalDims) != nullptr)
      return false;
    const auto split = split_.find(op.operands[1]);
    if (split == split_.end() || split_.contains(op.operands[0])) return false;
    const size_t dim = split->second;
    const ShardedType& array = type(op.operands[0]);
    const std::vector<LocalId>& rows = rows_.at(op.operands[1]);
    if (array.local.dims[dim] != static_cast<int64_t>(rows.size()) || !array.layout.dims[dim].empty()) return false;
    LocalId written = op.operands[0];
    for (size_t row = 0; row < rows.size(); ++row) {
      LocalOp copy = op;
      copy.operands[0] = written;
      copy.operands[1] = rows[row];
      copy.operands[2 + dim] = number(static_cast<int64_t>(row), op.operands[2 + dim], op.location);
      if (row + 1 < rows.size()) copy.results = {add(program_.values[static_cast<size_t>(op.results[0])])};
      written = copy.results[0];
      made_->push_back(std::move(copy));
    }
    return true;
  }

  // A scalar like another one.
  LocalId number(int64_t value, LocalId like, const ir::Location& location) {
    const ShardedType& of = type(like);
    std::vector<std::byte> bytes(static_cast<size_t>(tensor::size_bytes(of.local.dtype)));
    std::memcpy(bytes.data(), &value, bytes.size());  // as small as any integer type holds
    LocalOp op;
    op.kind = LocalKind::kConstant;
    op.name = "constant";
    op.location = location;
    ir::set(op.attributes, "value", ir::Attribute{ir::splat_attr(of.logical(), std::move(bytes))});
    partition::LocalValue made{.type = of, .name = "constant"};
    made.type.varies = 0;
    op.results = {add(std::move(made))};
    made_->push_back(std::move(op));
    return made_->back().results[0];
  }

  LocalProgram& program_;
  const std::map<LocalId, const LocalOp*>& makers_;
  const LocalOp& loop_;
  const LocalBlock& body_;
  std::map<size_t, size_t> carries_;              // those that are split, by number: along which dim
  std::map<LocalId, size_t> split_;               // values of the body that are, likewise
  std::map<LocalId, std::vector<LocalId>> rows_;  // of what is split, written so far
  std::set<LocalId> materialized_;                // of these, concatenated
  std::vector<LocalOp>* made_ = nullptr;          // of the body
};

class CarrySplitter {
 public:
  explicit CarrySplitter(LocalProgram& program) : program_(program) {
    partition::walk(program.body, [&](const LocalOp& op) {
      for (const LocalId id : op.results) makers_[id] = &op;
    });
  }

  bool run() {
    split_in(program_.body);
    return has_changed_;
  }

 private:
  // Ops stay where they are until the block is done: others are looked at by their makers.
  void split_in(LocalBlock& block) {
    for (LocalOp& op : block.ops) {
      for (LocalBlock& inner : op.blocks) split_in(inner);
    }
    std::vector<LocalOp> made;
    for (const LocalOp& op : block.ops) {
      if (op.kind == LocalKind::kWhile) {
        LoopSplitter splitter(program_, makers_, op);
        if (splitter.look()) {
          splitter.write(made);
          has_changed_ = true;
          continue;
        }
      }
      made.push_back(op);
    }
    if (has_changed_) done_.push_back(std::exchange(block.ops, std::move(made)));
  }

  LocalProgram& program_;
  std::map<LocalId, const LocalOp*> makers_;
  std::vector<std::vector<LocalOp>> done_;  // what the makers point to
  bool has_changed_ = false;
};

}  // namespace

std::optional<LocalProgram> split_carries(const LocalProgram& program, const PlanSettings& settings) {
  if (!settings.split_carries) return std::nullopt;
  if (!partition::any_op(program.body, [](const LocalOp& op) { return op.kind == LocalKind::kWhile; }))
    return std::nullopt;
  return run_pass<CarrySplitter>(program);
}

}  // namespace meshd::compile
