// The algorithm, on the steps that loop fusion made:
//
// 1. Each fused loop that ends in a fold along its last dims begins a group; its dims before those are the rows.
// 2. The group grows, until nothing changes, by fused loops near it that
//    a. have the same shard table, and leading dims whose product is the number of rows (a loop of exactly so many
//       elements has one for each row: what is computed of the sums);
//    b. pass rows on: they read a value that the group computes, or compute one that it reads, or, where they have
//       more than one element of a row, read an operand that the group reads by rows, too;
//    c. read what the group computes row for row, at places within the row;
//    d. make no cycle: no step outside of the group depends on it and is read by it;
//    e. leave all that is read and written of one row within kMostRowBytes.
// 3. A group is kept if memory is spared: an array of rows is computed and read inside, or an operand of rows is read
//    by two of its loops. Values that nothing else reads become values of the block, and have no memory.
// 4. The step takes the place of the group's last loop. Steps in between that depend on the group follow it.
//
// Example: softmax of x, 8192x1024xf32, one shard. In, after loop fusion:
//   reduce maximum x -> m        rows 8192, begins the group
//   maximum -inf, m -> n         reads m, an element for each row (2b)
//   subtract exponential x, n -> e   reads n, and x by rows
//   reduce add e -> s            reads e
//   divide e, s -> result        reads e and s
// Out: one step that reads x and writes the result; m, n, e and s are values of the block: e, 32 MiB, has no memory.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "service/compile/plan/plan_builder.h"
#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/fused/row_loop.h"
#include "service/ops/kernel_interface.h"
#include "service/tensor/shape.h"

namespace meshd::compile {
namespace {

using kernels::FusedInput;
using kernels::FusedLoop;
using kernels::RowValue;
using tensor::Dims;

constexpr size_t kBehind = 16;  // steps before the first fold that are looked at
constexpr size_t kAhead = 64;   // and after it
constexpr size_t kMostLoops = 24;
constexpr int64_t kLeastElements = 4096;      // of a fold: smaller ones are worth no block
constexpr int64_t kSharedElements = 1 << 16;  // of a fold that threads share: they need rows each
constexpr int64_t kLeastSharedRows = 16;

/// How many leading dims of a fold are kept, if all dims behind them are reduced (those of size one may be either).
std::optional<size_t> kept_dims(const FusedLoop& loop) {
  std::vector<bool> reduced(loop.dims.size(), false);
  for (const int dim : loop.reduce->dims) reduced[static_cast<size_t>(dim)] = true;
  size_t kept = 0;
  for (size_t d = 0; d < loop.dims.size(); ++d) {
    if (!reduced[d] && loop.dims[d] != 1) kept = d + 1;
  }
  for (size_t d = 0; d < kept; ++d) {
    if (reduced[d] && loop.dims[d] != 1) return std::nullopt;
  }
  return kept;
}

/// How many leading dims of a loop have `rows` elements together.
std::optional<size_t> dims_of_rows(const FusedLoop& loop, int64_t rows) {
  if (loop.reduce) {
    const auto kept = kept_dims(loop);
    const bool folds_rows = kept && tensor::element_count(loop.dims, 0, *kept) == rows &&
                            tensor::element_count(loop.dims, *kept, loop.dims.size()) > 1;
    return folds_rows ? kept : std::nullopt;
  }
  int64_t size = 1;
  for (size_t d = 0; d <= loop.dims.size(); ++d) {
    if (size == rows) return d;
    if (d < loop.dims.size()) size *= loop.dims[d];
  }
  return std::nullopt;
}

std::string op_name(const BuilderStep& step) { return without_dialect(step.op == nullptr ? step.name : step.op->name); }

class RowFuser {
 public:
  RowFuser(PlanBuilder& builder, const std::vector<LocalId>& live_out, std::vector<BuilderStep>& steps)
      : builder_(builder), steps_(steps), group_of_(steps_.size(), kNone), reads_(steps_.size()) {
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (const LocalId id : steps_[s].results) maker_[id] = s;
      // build_steps() writes the results of control flow and effects.
      if (steps_[s].op == nullptr || steps_[s].kind == StepKind::kKernel) continue;
      for (const LocalId id : steps_[s].op->results) maker_[id] = s;
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      for_each_operand(steps_[s], [&](LocalId id) {
        const LocalId root = builder_.memory_of(id);
        std::vector<size_t>& readers = readers_[root];
        if (!readers.empty() && readers.back() == s) return;
        readers.push_back(s);
        reads_[s].push_back(root);
      });
    }
    for (const LocalId id : live_out) live_out_.insert(builder_.memory_of(id));
  }

  void run() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (group_of_[s] == kNone && loop_of(s) != nullptr && loop_of(s)->reduce) grow(s);
    }
    if (!groups_.empty()) steps_ = emit();
  }

 private:
  struct Group {
    int64_t rows = 1;
    TableId table = 0;
    size_t fold = 0;                   // the step that began it; ascending in groups_
    std::set<size_t> loops;            // steps
    std::set<LocalId> row_operands{};  // of all loops, see row_operands()
  };

  [[nodiscard]] const FusedLoop* loop_of(size_t s) const {
    const auto& fused = steps_[s].kernel.fused;
    return steps_[s].kind == StepKind::kKernel && fused != nullptr ? &fused->loop() : nullptr;
  }

  // Step 2. Window: steps of kernels around the fold, up to what is none.
  void grow(size_t fold) {
    const FusedLoop& loop = *loop_of(fold);
    const auto kept = kept_dims(loop);
    if (!kept) return;
    const int64_t elements = core::checked_product(loop.dims);
    Group group{
        .rows = tensor::element_count(loop.dims, 0, *kept), .table = steps_[fold].table, .fold = fold, .loops = {fold}};
    if (group.rows <= 1 || elements == group.rows || elements < kLeastElements) return;
    const int64_t copies = builder_.tables[group.table].count();
    if (elements * copies >= kSharedElements && group.rows * copies < kLeastSharedRows) return;
    if (row_bytes(group) > kernels::kMostRowBytes) return;
    group.row_operands = row_operands(loop, fold, *kept);
    size_t first = fold;
    while (first > 0 && fold - first < kBehind && steps_[first - 1].kind == StepKind::kKernel) --first;
    size_t last = fold;
    while (last + 1 < steps_.size() && last - fold < kAhead && steps_[last + 1].kind == StepKind::kKernel) ++last;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t s = first; s <= last && group.loops.size() < kMostLoops; ++s) {
        if (group.loops.contains(s) || !may_join(group, s)) continue;
        Group larger = group;
        larger.loops.insert(s);
        larger.row_operands.merge(row_operands(*loop_of(s), s, *dims_of_rows(*loop_of(s), group.rows)));
        if (!reads_by_rows(larger) || has_cycle(larger)) continue;
        if (row_bytes(larger) > kernels::kMostRowBytes) continue;
        group = std::move(larger);
        changed = true;
      }
    }
    if (!spares_memory(group)) return;
    for (const size_t s : group.loops) group_of_[s] = groups_.size();
    groups_.push_back(std::move(group));
  }

  // Steps 2a and 2b.
  bool may_join(const Group& group, size_t s) {
    const FusedLoop* const loop = loop_of(s);
    if (loop == nullptr || group_of_[s] != kNone || steps_[s].table != group.table) return false;
    const auto rows = dims_of_rows(*loop, group.rows);
    if (!rows || core::checked_product(loop->dims) == 0 || !same_offsets(group, s)) return false;
    const auto is_member = [&](size_t step) { return group.loops.contains(step); };
    for (const LocalId root : reads_[s]) {
      if (is_member(maker(root))) return true;
    }
    for (const LocalId id : steps_[s].results) {
      if (std::any_of(readers(id).begin(), readers(id).end(), is_member)) return true;
    }
    const std::set<LocalId> mine = row_operands(*loop, s, *rows);
    return std::any_of(mine.begin(), mine.end(), [&](LocalId root) { return group.row_operands.contains(root); });
  }

  // One step has one table of offsets.
  [[nodiscard]] bool same_offsets(const Group& group, size_t s) const {
    if (!steps_[s].kernel.uses_offsets) return true;
    return std::all_of(group.loops.begin(), group.loops.end(), [&](size_t member) {
      if (!steps_[member].kernel.uses_offsets) return true;
      return steps_[member].offset_layout == steps_[s].offset_layout &&
             steps_[member].offset_sizes == steps_[s].offset_sizes;
    });
  }

  // Values whose elements a loop reads by rows, more than one of each.
  std::set<LocalId> row_operands(const FusedLoop& loop, size_t s, size_t rows) {
    std::set<LocalId> out;
    for (const FusedInput& input : loop.inputs) {
      if (input.kind != FusedInput::Kind::kTensor) continue;
      const auto moves = [&](size_t begin, size_t end) {
        return std::any_of(input.strides.begin() + static_cast<std::ptrdiff_t>(begin),
                           input.strides.begin() + static_cast<std::ptrdiff_t>(end),
                           [](int64_t stride) { return stride != 0; });
      };
      if (!moves(0, rows) || !moves(rows, input.strides.size())) continue;
      out.insert(builder_.memory_of(steps_[s].operands[static_cast<size_t>(input.operand)]));
    }
    return out;
  }

  // The step that computes a value, or kNone, which is no member of any group.
  [[nodiscard]] size_t maker(LocalId root) const { return maker_(root); }
  [[nodiscard]] const std::vector<size_t>& readers(LocalId root) const { return readers_(root); }

  // Whether a member computes an operand of a member.
  bool is_inside(const Group& group, LocalId id) { return group.loops.contains(maker(builder_.memory_of(id))); }

  // Step 2e: each value once.
  int64_t row_bytes(const Group& group) {
    std::map<LocalId, int64_t> bytes;
    for (const size_t s : group.loops) {
      const FusedLoop& loop = *loop_of(s);
      const auto rows = static_cast<int>(*dims_of_rows(loop, group.rows));
      for (const FusedInput& input : loop.inputs) {
        if (input.kind != FusedInput::Kind::kTensor) continue;
        const LocalId root = builder_.memory_of(steps_[s].operands[static_cast<size_t>(input.operand)]);
        int64_t& most = bytes[root];
        most = std::max(most, kernels::input_row_bytes(loop, rows, static_cast<size_t>(&input - loop.inputs.data())));
      }
      for (size_t k = 0; k < steps_[s].results.size(); ++k)
        bytes[steps_[s].results[k]] = kernels::output_row_bytes(loop, rows, k);
    }
    int64_t sum = 0;
    for (const auto& [id, of_row] : bytes) sum += of_row;
    return sum;
  }

  // Step 2c.
  bool reads_by_rows(const Group& group) {
    for (const size_t s : group.loops) {
      const FusedLoop& loop = *loop_of(s);
      const size_t rows = *dims_of_rows(loop, group.rows);
      std::vector<char> by_inputs(steps_[s].operands.size(), 1);
      if (loop.reduce) {
        for (const int init : loop.reduce->init_operands) by_inputs[static_cast<size_t>(init)] = 0;
      }
      for (size_t o = 0; o < steps_[s].operands.size(); ++o) {
        const LocalId id = steps_[s].operands[o];
        if (!is_inside(group, id)) continue;
        const auto [root, map] = builder_.root(id);
        const bool same_shards =
            map == kIdentity && builder_.value(id).table == group.table && builder_.value(root).table == group.table;
        if (by_inputs[o] == 0 || !same_shards || builder_.value(id).bytes != builder_.value(root).bytes) return false;
        const int64_t row_elements = tensor::element_count(builder_.value(root).type.local) / group.rows;
        for (const FusedInput& input : loop.inputs) {
          if (input.kind != FusedInput::Kind::kTensor || input.operand != static_cast<int>(o)) continue;
          if (!reads_row_for_row(loop.dims, input, rows, row_elements)) return false;
        }
      }
    }
    return true;
  }

  static bool reads_row_for_row(const Dims& dims, const FusedInput& input, size_t rows, int64_t row_elements) {
    int64_t stride = row_elements;
    for (size_t d = rows; d-- > 0;) {
      if (dims[d] == 1) continue;
      if (input.strides[d] != stride) return false;
      stride *= dims[d];
    }
    int64_t least = input.offset;
    int64_t most = input.offset;
    for (size_t d = rows; d < dims.size(); ++d) {
      const int64_t reach = input.strides[d] * (dims[d] - 1);
      (reach < 0 ? least : most) += reach;
    }
    return least >= 0 && most < row_elements;
  }

  // Step 2d: whether the group is reached again from its results, through steps outside; groups that are made are one
  // step each. Steps behind all that could lead back are not looked at.
  bool has_cycle(const Group& group) {
    size_t last = *group.loops.rbegin();
    for (bool changed = true; changed;) {
      changed = false;
      // Groups that began longer ago end before this one.
      for (auto other = groups_.rbegin(); other != groups_.rend(); ++other) {
        if (other->fold + kAhead < *group.loops.begin()) break;
        if (*other->loops.begin() > last || *other->loops.rbegin() <= last) continue;
        last = *other->loops.rbegin();
        changed = true;
      }
    }
    std::set<size_t> seen;
    std::vector<size_t> open(group.loops.begin(), group.loops.end());
    while (!open.empty()) {
      const size_t from = open.back();
      open.pop_back();
      const bool is_member = group.loops.contains(from);
      for (const LocalId id : results_of(from)) {
        for (const size_t reader : readers(id)) {
          if (group.loops.contains(reader)) {
            if (!is_member) return true;
            continue;
          }
          if (reader > last || !seen.insert(reader).second) continue;
          open.push_back(reader);
          if (group_of_[reader] == kNone) continue;
          for (const size_t other : groups_[group_of_[reader]].loops) {
            if (seen.insert(other).second) open.push_back(other);
          }
        }
      }
    }
    return false;
  }

  [[nodiscard]] const std::vector<LocalId>& results_of(size_t s) const {
    const BuilderStep& step = steps_[s];
    return step.kind == StepKind::kKernel || step.op == nullptr ? step.results : step.op->results;
  }

  // Step 3.
  bool spares_memory(const Group& group) {
    std::map<LocalId, int> times;
    for (const size_t s : group.loops) {
      for (const LocalId root : row_operands(*loop_of(s), s, *dims_of_rows(*loop_of(s), group.rows))) {
        if (is_inside(group, root) || ++times[root] == 2) return true;
      }
    }
    return false;
  }

  bool is_read_outside(const Group& group, LocalId id) {
    if (live_out_.contains(id)) return true;
    return std::any_of(readers(id).begin(), readers(id).end(), [&](size_t s) { return !group.loops.contains(s); });
  }

  struct Made {
    kernels::RowLoop loop;
    std::vector<LocalId> operands;
    std::vector<LocalId> results;
  };

  Made make(const Group& group) {
    Made made;
    std::map<LocalId, RowValue> inside;
    made.loop.rows = group.rows;
    made.loop.copies = builder_.tables[group.table].count();
    for (const size_t s : group.loops) {
      kernels::RowStage stage;
      stage.loop = *loop_of(s);
      stage.row_dims = static_cast<int>(*dims_of_rows(stage.loop, group.rows));
      for (const LocalId id : steps_[s].operands) {
        if (is_inside(group, id)) {
          stage.operands.push_back(inside.at(builder_.memory_of(id)));
          continue;
        }
        const auto found = std::find(made.operands.begin(), made.operands.end(), id);
        stage.operands.push_back({RowValue::Kind::kOperand, static_cast<int>(found - made.operands.begin())});
        if (found == made.operands.end()) made.operands.push_back(id);
      }
      for (const LocalId id : steps_[s].results) {
        RowValue value{RowValue::Kind::kBlock, made.loop.block_values};
        if (is_read_outside(group, id)) {
          value = {RowValue::Kind::kResult, static_cast<int>(made.results.size())};
          made.results.push_back(id);
        } else {
          ++made.loop.block_values;
        }
        inside[id] = value;
        stage.results.push_back(value);
      }
      made.loop.stages.push_back(std::move(stage));
    }
    return made;
  }

  BuilderStep make_row_step(const Group& group) {
    Made made = make(group);
    const BuilderStep& last = steps_[*group.loops.rbegin()];
    const BuilderStep& first = steps_[*group.loops.begin()];
    BuilderStep step;
    step.op = last.op;
    step.table = group.table;
    step.location = last.location;
    step.reason = last.reason;
    for (const size_t s : group.loops) {
      const BuilderStep& member = steps_[s];
      add_lines(step, member.lines);
      step.kernel.flops += member.kernel.flops;
      if (!member.kernel.uses_offsets) continue;
      step.kernel.uses_offsets = true;
      step.offset_layout = member.offset_layout;
      step.offset_sizes = member.offset_sizes;
    }
    step.name = fmt::format("fused rows {} .. {} ({} loops)", op_name(first), op_name(last), group.loops.size());
    for (const LocalId id : made.operands) step.kernel.bytes += static_cast<double>(builder_.value(id).bytes);
    for (const LocalId id : made.results) step.kernel.bytes += static_cast<double>(builder_.value(id).bytes);
    set_in_place(group, made, step);
    step.operands = std::move(made.operands);
    step.results = std::move(made.results);
    auto kernel = std::make_shared<const kernels::RowKernel>(std::move(made.loop));
    step.kernel.work_count = kernel->work_count();
    step.kernel.scratch_bytes = kernel->scratch_bytes();
    step.kernel.code_bytes = kernel->code_bytes();
    step.kernel.passes_checkpoints = true;
    step.kernel.run = [kernel](const ops::KernelCall& call) {
      kernels::RowCall rows;
      rows.operands = call.operands;
      rows.results = call.results;
      rows.begin = call.begin;
      rows.end = call.end;
      rows.scratch = call.scratch;
      rows.dim_offsets = call.result_offsets;
      rows.checkpoint = call.checkpoint;
      kernel->run(rows);
    };
    return step;
  }

  // A result may take the place of an operand that no loop behind the result's reads, that all read row for row, and
  // that the result's own loop, if it reads it, may overwrite.
  void set_in_place(const Group& group, const Made& made, BuilderStep& step) {
    const std::vector<size_t> members(group.loops.begin(), group.loops.end());
    for (size_t o = 0; o < made.operands.size(); ++o) {
      const BuilderValue& operand = builder_.value(made.operands[o]);
      size_t last_reader = 0;
      bool by_rows = true;
      for (size_t m = 0; m < members.size(); ++m) {
        const kernels::RowStage& stage = made.loop.stages[m];
        const auto is_it = [&](int number) {
          return stage.operands[static_cast<size_t>(number)] == RowValue{RowValue::Kind::kOperand, static_cast<int>(o)};
        };
        for (const FusedInput& input : stage.loop.inputs) {
          if (input.kind != FusedInput::Kind::kTensor || !is_it(input.operand)) continue;
          last_reader = m;
          by_rows = by_rows && reads_row_for_row(stage.loop.dims, input, static_cast<size_t>(stage.row_dims),
                                                 tensor::element_count(operand.type.local) / group.rows);
        }
        if (stage.loop.reduce) {
          const auto& inits = stage.loop.reduce->init_operands;
          by_rows = by_rows && std::none_of(inits.begin(), inits.end(), is_it);
        }
      }
      if (!by_rows || operand.bytes == 0) continue;
      for (size_t r = 0; r < made.results.size(); ++r) {
        if (builder_.value(made.results[r]).bytes != operand.bytes) continue;
        const size_t from = maker(made.results[r]);
        const auto at = static_cast<size_t>(std::find(members.begin(), members.end(), from) - members.begin());
        if (at < last_reader) continue;
        if (at == last_reader && !may_overwrite(steps_[from], made.operands[o], made.results[r])) continue;
        step.kernel.in_place.emplace_back(static_cast<int>(o), static_cast<int>(r));
      }
    }
  }

  static bool may_overwrite(const BuilderStep& step, LocalId operand, LocalId result) {
    return std::any_of(step.kernel.in_place.begin(), step.kernel.in_place.end(), [&](const auto& pair) {
      return step.operands[static_cast<size_t>(pair.first)] == operand &&
             step.results[static_cast<size_t>(pair.second)] == result;
    });
  }

  // Step 4. What a step waits for comes before it; a group waits for all that its loops read.
  std::vector<BuilderStep> emit() {
    std::vector<BuilderStep> out;
    std::vector<char> is_placed(steps_.size(), 0);
    const auto place_of = [&](size_t s) { return group_of_[s] == kNone ? s : *groups_[group_of_[s]].loops.rbegin(); };
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (place_of(s) != s) continue;
      std::vector<size_t> stack = {s};
      while (!stack.empty()) {
        const size_t top = stack.back();
        if (is_placed[top] != 0) {
          stack.pop_back();
          continue;
        }
        const std::set<size_t> unit = group_of_[top] == kNone ? std::set<size_t>{top} : groups_[group_of_[top]].loops;
        const size_t before = stack.size();
        for (const size_t member : unit) {
          for (const LocalId root : reads_[member]) {
            const size_t from = maker(root);
            if (from == kNone || unit.contains(from) || is_placed[place_of(from)] != 0) continue;
            stack.push_back(place_of(from));
          }
        }
        if (stack.size() != before) {
          if (stack.size() > 64 * (steps_.size() + 1)) throw core::Error("internal", "row steps wait for each other");
          continue;
        }
        is_placed[top] = 1;
        out.push_back(group_of_[top] == kNone ? std::move(steps_[top]) : make_row_step(groups_[group_of_[top]]));
        stack.pop_back();
      }
    }
    return out;
  }

  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  PlanBuilder& builder_;
  std::vector<BuilderStep>& steps_;
  std::vector<size_t> group_of_;
  std::vector<std::vector<LocalId>> reads_;  // by step: roots
  OfValues<size_t> maker_{kNone};
  OfValues<std::vector<size_t>> readers_;  // steps, ascending
  std::unordered_set<LocalId> live_out_;
  std::vector<Group> groups_;
};

}  // namespace

void fuse_rows(PlanBuilder& builder, const std::vector<LocalId>& live_out, std::vector<BuilderStep>& steps) {
  RowFuser(builder, live_out, steps).run();
}

}  // namespace meshd::compile
