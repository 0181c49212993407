#include "service/kernels/fused/reduce_run.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"

namespace meshd::kernels {
namespace {

/// Results a work item keeps at hand, in lanes.
int64_t work_item_lanes(const ReducePlan& plan) { return plan.items == 1 ? plan.chunk : plan.chunk * plan.lanes; }

/// A tile that is computed into a row may begin in the block in front of it, and end in the one behind it.
int64_t staged_row_bytes(const FusedLoop& loop, int64_t lanes) {
  const int64_t bytes = tensor::size_bytes(loop.program.registers[loop.program.outputs[0]]);
  return core::round_up((lanes + 2 * kBlockLanes) * bytes, kLineBytes);
}

}  // namespace

ReduceRun::ReduceRun(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call,
                     std::pmr::memory_resource* memory)
    : loop_(loop),
      plan_(plan),
      reduce_(*plan.reduce),
      call_(call),
      tile_(std::max<int64_t>(1, std::min(plan.tile, plan.region.size))),
      scratch_(loop.program, plan.layout, tile_, memory),
      reader_(plan.region, scratch_, memory),
      results_(make_accumulator(work_item_lanes(reduce_))),
      rows_(loop.program.outputs.size()) {
  for (const int operand : loop.reduce->init_operands) init_.push_back(call.operands[operand]);
  const bool has_rows = reduce_.items == 1 && !reduce_.reduced.empty() && results_->adds_rows();
  adds_rows_ = has_rows && only_reads();
  if (has_rows && !adds_rows_ && loop.program.outputs.size() == 1)
    staged_.resize(static_cast<size_t>(kFoldRows * staged_row_bytes(loop, reduce_.chunk)));
  is_computed_ = is_computed(loop.program, loop.program.outputs[0]);
  if (tile_holds_one_group()) return;
  group_ = make_accumulator(reduce_.lanes);
}

void ReduceRun::run_work_item(int64_t work_item) {
  if (reduce_.parts == 1) {
    Results results = results_of(work_item);
    return reduce(results);
  }
  const bool combines = work_item >= plan_.barrier;
  const int64_t result_item = combines ? work_item - plan_.barrier : work_item / reduce_.parts;
  Results results = results_of(result_item);
  std::byte* const parts = call_.workspace + result_item * reduce_.parts * reduce_.part_bytes;
  if (combines) return combine_parts(results, parts);
  const int64_t part = work_item % reduce_.parts;
  reduce_part(results, part, parts + part * reduce_.part_bytes);
}

ReduceRun::Results ReduceRun::results_of(int64_t result_item) const {
  const int64_t region_results = reduce_.groups * reduce_.lanes;
  const int64_t in_region = result_item % reduce_.chunks * reduce_.chunk;
  int64_t kept = result_item / reduce_.chunks;
  const bool by_lanes = reduce_.items == 1;
  const int64_t size = std::min(reduce_.chunk, (by_lanes ? reduce_.lanes : reduce_.groups) - in_region);
  const int64_t start = kept * region_results + (by_lanes ? in_region : in_region * reduce_.lanes);
  tensor::Dims places(loop_.inputs.size(), 0);
  for (size_t d = reduce_.kept.size(); d-- > 0;) {
    move(places, reduce_.kept[d], kept % reduce_.kept[d].size);
    kept /= reduce_.kept[d].size;
  }
  return {std::move(places), in_region, size, start};
}

void ReduceRun::run_groups(const tensor::Dims& places, int64_t groups, std::span<const SoonRead> soon) {
  soon_ = soon;
  Results results{.places = places};
  for (int64_t first = 0; first < groups; first += reduce_.chunk) {
    results.first = first;
    results.size = std::min(reduce_.chunk, groups - first);
    results.start = first * reduce_.lanes;
    reduce(results);
  }
}

void ReduceRun::reduce(Results& results) {
  reset(results);
  if (reduce_.reduced_size > 0) reduce_outer(results.places, 0, results.first, results.size);
  results_->finish(init_, call_.results, results.start);
}

void ReduceRun::reduce_part(Results& results, int64_t part, std::byte* to) {
  const int64_t all = reduce_.cuts_outer ? reduce_.reduced.front().size : reduce_.items;
  part_begin_ = part * reduce_.part_size;
  part_indices_ = std::min(reduce_.part_size, all - part_begin_);
  reset(results);
  if (reduce_.cuts_outer) move(results.places, reduce_.reduced.front(), part_begin_);
  reduce_outer(results.places, 0, results.first, results.size);
  results_->store(to);
  part_indices_ = -1;
}

void ReduceRun::combine_parts(const Results& results, const std::byte* from) {
  reset(results);
  for (int64_t part = 0; part < reduce_.parts; ++part) {
    results_->add_stored(from + part * reduce_.part_bytes);
    results_->end_step();
  }
  results_->finish(init_, call_.results, results.start);
}

int64_t ReduceRun::outer_size(size_t depth) const {
  return depth == 0 && part_indices_ >= 0 && reduce_.cuts_outer ? part_indices_ : reduce_.reduced[depth].size;
}

std::unique_ptr<Accumulator> ReduceRun::make_accumulator(int64_t lanes) const {
  const TileProgram& program = loop_.program;
  if (reduce_.fold) return make_fold_accumulator(*reduce_.fold, program.registers[program.outputs[0]], lanes);
  if (reduce_.argmax) return make_argmax_accumulator(*reduce_.argmax, program.registers[program.outputs[0]], lanes);
  return make_reducer_accumulator(loop_.reduce->reducer, *reduce_.reducer_layout, reduce_.reducer_code.get(), lanes);
}

bool ReduceRun::tile_holds_one_group() const { return reduce_.items == 1 || reduce_.items * reduce_.lanes <= tile_; }

/// Whether values are loaded from memory lane for lane, without instructions.
bool ReduceRun::only_reads() const {
  return loop_.program.instructions.empty() && loop_.inputs.size() == 1 && loop_.program.outputs.size() == 1 &&
         loop_.program.outputs[0] == 0 && loop_.inputs[0].kind == FusedInput::Kind::kTensor &&
         plan_.region.inputs[0].is_dense;
}

void ReduceRun::move(tensor::Dims& places, const OuterDim& dim, int64_t steps) {
  for (size_t i = 0; i < places.size(); ++i) places[i] += dim.strides[i] * steps;
}

/// Every index of the outer reduced dims from `depth` on is one step.
void ReduceRun::reduce_outer(tensor::Dims& places, size_t depth, int64_t first, int64_t size) {
  if (depth < reduce_.reduced.size()) {
    OuterDim dim = reduce_.reduced[depth];
    dim.size = outer_size(depth);
    if (depth + 1 == reduce_.reduced.size()) {
      if (adds_rows_) return add_rows(places[0], dim, first, size);
      if (!staged_.empty()) return add_computed_rows(places, dim, first, size);
    }
    for (int64_t i = 0; i < dim.size; ++i) {
      reduce_outer(places, depth + 1, first, size);
      move(places, dim, 1);
    }
    move(places, dim, -dim.size);
    return;
  }
  set_bases(reader_, loop_, call_, places);
  if (reduce_.items == 1)
    add_lanes(first, size);
  else if (tile_holds_one_group())
    add_groups(first, size);
  else
    add_long_groups(first, size);
  results_->end_step();
}

const ValueRows& ReduceRun::compute(int64_t start, int64_t count, int64_t end) {
  core::pass(call_.checkpoint);
  if (code_ == nullptr) code_ = code_of(loop_, plan_, count);
  const std::span<const uint16_t> elements = elements_of(code_, plan_);
  const bool by_row = goes_by_row(code_, plan_);
  // What the lanes behind the tile become is not folded.
  const int64_t lanes = by_row ? count : lanes_of_tile(start, count, end);
  reader_.read(start, count, lanes, elements, by_row);
  const std::span<const MemoryRange> soon = soon_of_tile(start, count);
  if (by_row) {
    reader_.for_rows(start, count, elements, [&](RowsOfTile rows, const auto& registers, int64_t /*at*/) {
      rows.registers = registers;
      run_tile_rows(*code_, scratch_, rows, soon);
    });
  } else if (!loop_.program.instructions.empty()) {
    run_tile(loop_.program, code_, scratch_, lanes, soon);
  }
  for (size_t k = 0; k < rows_.size(); ++k) rows_[k] = scratch_.reg(loop_.program.outputs[k]);
  return rows_;
}

std::span<const MemoryRange> ReduceRun::soon_of_tile(int64_t start, int64_t count) {
  soon_of_tile_.clear();
  for (const SoonRead& read : soon_)
    soon_of_tile_.push_back({read.begin + start * read.element_bytes, count * read.element_bytes});
  return soon_of_tile_;
}

/// Rows of `items` lanes, into totals_.
void ReduceRun::sum_rows(int64_t start, int64_t rows, int64_t items, int64_t end) {
  core::pass(call_.checkpoint);
  const int64_t count = rows * items;
  const std::span<const uint16_t> elements = elements_of(code_, plan_);
  const bool by_row = goes_by_row(code_, plan_);
  reader_.read(start, count, by_row ? count : lanes_of_tile(start, count, end), elements, by_row);
  totals_.resize(static_cast<size_t>(rows));
  if (!by_row) {
    return sum_tile_rows(*code_, scratch_, {.lanes = items, .count = rows, .of_tile = rows, .registers = {}},
                         totals_.data());
  }
  reader_.for_rows(start, count, elements, [&](RowsOfTile of, const auto& registers, int64_t /*at*/) {
    of.registers = registers;
    sum_tile_rows(*code_, scratch_, of, totals_.data() + of.first);
  });
}

/// One step of some groups of a tile. Code that adds what it computes stores nothing.
void ReduceRun::add_tile(Accumulator& to, int64_t start, int64_t groups, int64_t items, int64_t end, int64_t lane) {
  if (sums_by_code() && (items >= kBlockLanes || items == plan_.sum_lanes)) {
    sum_rows(start, groups, items, end);
    return to.add_totals(totals_.data(), groups, lane);
  }
  const ValueRows& values = compute(start, groups * items * reduce_.lanes, end);
  to.add_segments(values, groups, items, reduce_.lanes, lane);
}

void ReduceRun::add_rows(int64_t place, const OuterDim& dim, int64_t first, int64_t size) {
  const FusedInput& input = loop_.inputs[0];
  const int64_t bytes = tensor::size_bytes(loop_.program.registers[0]);
  for (int64_t row = 0; row < dim.size; row += kFoldRows) {
    core::pass(call_.checkpoint);
    const int64_t at = input.offset + place + row * dim.strides[0] + first;
    results_->add_rows(call_.operands[input.operand] + at * bytes, dim.strides[0] * bytes,
                       std::min(kFoldRows, dim.size - row), size);
    results_->end_step();
  }
}

/// The same with rows that are computed first: as many as are added at once, lane for lane.
void ReduceRun::add_computed_rows(tensor::Dims& places, const OuterDim& dim, int64_t first, int64_t size) {
  const int64_t bytes = tensor::size_bytes(loop_.program.registers[loop_.program.outputs[0]]);
  const int64_t row_bytes = staged_row_bytes(loop_, reduce_.chunk);
  std::byte* const staged = staged_.data() + kBlockLanes * bytes;
  const uint16_t value = loop_.program.outputs[0];
  for (int64_t row = 0; row < dim.size; row += kFoldRows) {
    const int64_t rows = std::min(kFoldRows, dim.size - row);
    for (int64_t i = 0; i < rows; ++i, move(places, dim, 1)) {
      set_bases(reader_, loop_, call_, places);
      for (int64_t lane = 0; lane < size; lane += tile_) {
        const int64_t count = std::min(tile_, size - lane);
        std::byte* const to = staged + i * row_bytes + lane * bytes;
        if (is_computed_) scratch_.bind(value, to - lanes_again(first, lane, count) * bytes);
        const std::byte* const made = compute_lanes(first, lane, count, size)[0];
        if (made != to) std::memcpy(to, made, static_cast<size_t>(count * bytes));
      }
    }
    results_->add_rows(staged, row_bytes, rows, size);
    results_->end_step();
  }
  if (is_computed_) scratch_.bind(value, scratch_.home(value));
  move(places, dim, -dim.size);
}

/// A tile that ends within a block begins so many lanes earlier, where it can: inputs stay where they are, and nothing
/// is padded.
int64_t ReduceRun::lanes_again(int64_t first, int64_t lane, int64_t count) {
  const int64_t missing = core::round_up(count, kBlockLanes) - count;
  return first + lane >= missing ? missing : 0;
}

/// Lanes [first + lane, + count) of the region, of which [first, first + size) are this work item's.
const ValueRows& ReduceRun::compute_lanes(int64_t first, int64_t lane, int64_t count, int64_t size) {
  const int64_t again = lanes_again(first, lane, count);
  compute(first + lane - again, count + again, first + size);
  for (size_t k = 0; k < rows_.size(); ++k) {
    const uint16_t reg = loop_.program.outputs[k];
    const bool is_index = reg < plan_.region.inputs.size() && plan_.region.inputs[reg].first_only;
    if (!is_index) rows_[k] += again * tensor::size_bytes(loop_.program.registers[reg]);
  }
  return rows_;
}

void ReduceRun::add_lanes(int64_t first, int64_t size) {
  for (int64_t lane = 0; lane < size; lane += tile_) {
    const int64_t count = std::min(tile_, size - lane);
    results_->add_values(compute_lanes(first, lane, count, size), lane, count);
  }
}

void ReduceRun::add_groups(int64_t first, int64_t size) {
  const int64_t group_size = reduce_.items * reduce_.lanes;
  const int64_t of_tile = groups_of_tile(tile_, group_size);
  for (int64_t group = 0; group < size;) {
    const bool in_place = sums_by_code() && reads_in_place(code_, plan_);
    const int64_t at_once = in_place ? std::max(of_tile, kLongTile / group_size) : of_tile;
    const int64_t count = std::min(at_once, size - group);
    add_tile(*results_, (first + group) * group_size, count, reduce_.items, (first + size) * group_size,
             group * reduce_.lanes);
    group += count;
  }
}

/// Groups that take several tiles each.
void ReduceRun::add_long_groups(int64_t first, int64_t size) {
  const int64_t most = std::max<int64_t>(1, tile_ / reduce_.lanes);
  const int64_t tiles = (reduce_.items + most - 1) / most;
  int64_t at_once = (reduce_.items + tiles - 1) / tiles;
  // Whole blocks of lanes.
  const int64_t block = kBlockLanes / std::gcd(reduce_.lanes, kBlockLanes);
  if (most >= block) at_once = std::min(core::round_up(at_once, block), most - most % block);
  const int64_t end = (first + size) * reduce_.items * reduce_.lanes;
  const bool is_part = part_indices_ >= 0 && !reduce_.cuts_outer;
  const int64_t begin_item = is_part ? part_begin_ : 0;
  const int64_t end_item = is_part ? part_begin_ + part_indices_ : reduce_.items;
  for (int64_t group = 0; group < size; ++group) {
    group_->reset(reduce_.lanes);
    for (int64_t item = begin_item; item < end_item; item += at_once) {
      const int64_t count = std::min(at_once, end_item - item);
      const int64_t start = ((first + group) * reduce_.items + item) * reduce_.lanes;
      add_tile(*group_, start, 1, count, end, 0);
      group_->end_step();
    }
    results_->add_all_of(*group_, group * reduce_.lanes);
  }
}

}  // namespace meshd::kernels
