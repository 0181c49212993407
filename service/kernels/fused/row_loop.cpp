#include "service/kernels/fused/row_loop.h"

#include <algorithm>
#include <map>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/cache_size.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fused/loop_memory.h"
#include "service/kernels/fused/pointwise_run.h"
#include "service/kernels/fused/reduce_run.h"
#include "service/kernels/stream_store.h"

namespace meshd::kernels {
namespace {

// Of a block: a quarter of the second level cache. Each block begins all loops anew, so a small one costs.
constexpr int64_t kLeastBlockBytes = 128 * 1024;
constexpr int64_t kMostBlockBytes = 256 * 1024;
constexpr int64_t kLeastBlocks = 16;  // in all copies together, so that threads can share them
constexpr int64_t kValueAlignment = 64;

int64_t row_elements(const FusedLoop& loop, int row_dims) {
  int64_t size = 1;
  for (size_t d = static_cast<size_t>(row_dims); d < loop.dims.size(); ++d) size *= loop.dims[d];
  return size;
}

int64_t stage_row_elements(const RowStage& stage) { return row_elements(stage.loop, stage.row_dims); }

/// The input's step along iteration dim `d`.
int64_t stride_of(const FusedInput& input, size_t d) {
  if (input.kind == FusedInput::Kind::kTensor) return input.strides[d];
  return static_cast<size_t>(input.iota_dim) == d ? 1 : 0;
}

/// The rows of a stage in as few dims as its inputs need.
std::vector<OuterDim> row_walk(const RowStage& stage) {
  std::vector<OuterDim> walk;
  for (size_t d = 0; d < static_cast<size_t>(stage.row_dims); ++d) {
    if (stage.loop.dims[d] == 1) continue;
    OuterDim dim;
    dim.size = stage.loop.dims[d];
    for (const FusedInput& input : stage.loop.inputs) dim.strides.push_back(stride_of(input, d));
    const bool joins = !walk.empty() && [&] {
      for (size_t i = 0; i < dim.strides.size(); ++i) {
        if (walk.back().strides[i] != dim.strides[i] * dim.size) return false;
      }
      return true;
    }();
    if (joins) {
      dim.size *= walk.back().size;
      walk.back() = std::move(dim);
    } else {
      walk.push_back(std::move(dim));
    }
  }
  return walk;
}

/// Where each input of a stage reads when the block begins with `row`, in elements.
void set_places(const std::vector<OuterDim>& rows, int64_t row, tensor::Dims& places) {
  std::fill(places.begin(), places.end(), 0);
  for (size_t d = rows.size(); d-- > 0;) {
    const int64_t index = row % rows[d].size;
    row /= rows[d].size;
    for (size_t i = 0; i < places.size(); ++i) places[i] += index * rows[d].strides[i];
  }
}

}  // namespace

int64_t input_row_bytes(const FusedLoop& loop, int row_dims, size_t input) {
  const FusedInput& read = loop.inputs[input];
  if (read.kind != FusedInput::Kind::kTensor) return 0;
  int64_t elements = 1;
  bool moves = false;
  for (size_t d = 0; d < loop.dims.size(); ++d) {
    if (read.strides[d] == 0) continue;
    if (d < static_cast<size_t>(row_dims))
      moves = true;
    else
      elements *= loop.dims[d];
  }
  return moves ? elements * tensor::size_bytes(loop.program.registers[input]) : 0;
}

int64_t output_row_bytes(const FusedLoop& loop, int row_dims, size_t output) {
  const int64_t elements = loop.reduce ? 1 : row_elements(loop, row_dims);
  return elements * tensor::size_bytes(loop.program.registers[loop.program.outputs[output]]);
}

/// A stage over one block.
struct RowBlockStage {
  FusedLoop loop;  ///< as the stage's, with one dim of rows as long as a block
  FusedPlan plan;
  std::vector<OuterDim> rows;             ///< strides of inputs from the block are 0: it is where it is
  int64_t row_elements = 1;               ///< pointwise: of the iteration space
  std::vector<int64_t> result_row_bytes;  ///< by output
  std::vector<size_t> from_block;         ///< inputs that read values of the block
  std::vector<size_t> ahead;              ///< inputs whose next block is prefetched
};

struct RowKernel::Prepared {
  RowLoop loop;
  std::vector<RowBlockStage> stages;
  std::vector<int64_t> block_offsets;  ///< in scratch, by value of the block
  int64_t scratch_bytes = 0;
  int64_t unit = 1;        ///< rows over which every input of every stage has one stride
  int64_t block_rows = 1;  ///< the last block of a unit may have fewer
  int64_t unit_blocks = 1;
  bool streams = false;

  explicit Prepared(RowLoop made) : loop(std::move(made)) {
    std::vector<std::vector<OuterDim>> walks;
    int64_t granule = 1;
    unit = loop.rows;
    for (const RowStage& stage : loop.stages) {
      walks.push_back(row_walk(stage));
      if (!walks.back().empty()) unit = std::gcd(unit, walks.back().back().size);
      granule = std::max(granule, kBlockLanes / std::gcd(stage_row_elements(stage), kBlockLanes));
    }
    const RowBytes bytes = row_bytes();
    set_block_rows(granule, bytes.memory + bytes.block);
    // All passes through the caches once: where it would not stay there, results that no later stage reads bypass them.
    streams = core::checked_mul(core::checked_mul(loop.rows, loop.copies), bytes.memory) >= streaming_bytes();
    set_block_offsets();
    for (size_t s = 0; s < loop.stages.size(); ++s) stages.push_back(block_stage(s, std::move(walks[s])));
    prefetch_ahead();
  }

  /// Step 2. `granule`: so many rows are whole blocks of lanes in every stage.
  void set_block_rows(int64_t granule, int64_t row_bytes) {
    const int64_t shared = std::max<int64_t>(1, loop.rows * loop.copies / kLeastBlocks);
    const int64_t block_bytes = std::clamp(second_level_bytes() / 4, kLeastBlockBytes, kMostBlockBytes);
    block_rows = std::clamp(block_bytes / std::max<int64_t>(1, row_bytes), int64_t{1}, std::min(unit, shared));
    if (block_rows > granule) block_rows -= block_rows % granule;
    unit_blocks = core::ceil_div(unit, block_rows);
  }

  /// What the stages read and write of one row, each value once: in memory, and in the block.
  struct RowBytes {
    int64_t memory = 0;
    int64_t block = 0;
  };
  [[nodiscard]] RowBytes row_bytes() const {
    std::map<std::pair<RowValue::Kind, int>, int64_t> bytes;
    const auto count = [&](const RowValue& value, int64_t of_row) {
      int64_t& most = bytes[{value.kind, value.number}];
      most = std::max(most, of_row);
    };
    for (const RowStage& stage : loop.stages) {
      for (size_t i = 0; i < stage.loop.inputs.size(); ++i) {
        if (stage.loop.inputs[i].kind != FusedInput::Kind::kTensor) continue;
        count(stage.operands[static_cast<size_t>(stage.loop.inputs[i].operand)],
              input_row_bytes(stage.loop, stage.row_dims, i));
      }
      for (size_t k = 0; k < stage.results.size(); ++k)
        count(stage.results[k], output_row_bytes(stage.loop, stage.row_dims, k));
    }
    RowBytes sum;
    for (const auto& [value, of_row] : bytes)
      (value.first == RowValue::Kind::kBlock ? sum.block : sum.memory) += of_row;
    return sum;
  }

  void set_block_offsets() {
    block_offsets.assign(static_cast<size_t>(loop.block_values), 0);
    for (const RowStage& stage : loop.stages) {
      for (size_t k = 0; k < stage.results.size(); ++k) {
        if (stage.results[k].kind != RowValue::Kind::kBlock) continue;
        block_offsets[static_cast<size_t>(stage.results[k].number)] = scratch_bytes;
        scratch_bytes += core::round_up(block_rows * output_row_bytes(stage.loop, stage.row_dims, k), kValueAlignment);
      }
    }
  }

  RowBlockStage block_stage(size_t number, std::vector<OuterDim> walk) const {
    const RowStage& stage = loop.stages[number];
    FusedLoop over_block = stage.loop;
    size_t last = 0;
    for (size_t d = 0; d < static_cast<size_t>(stage.row_dims); ++d) {
      if (stage.loop.dims[d] != 1) last = d;
      over_block.dims[d] = 1;
    }
    over_block.dims[last] = block_rows;
    over_block.copies = 1;
    FusedPlan plan = make_fused_plan(over_block);
    plan.prefetches = false;
    plan.streams = false;
    RowBlockStage made{.loop = std::move(over_block),
                       .plan = std::move(plan),
                       .rows = std::move(walk),
                       .row_elements = stage_row_elements(stage),
                       .result_row_bytes = {},
                       .from_block = {},
                       .ahead = {}};
    for (size_t i = 0; i < stage.loop.inputs.size(); ++i) {
      const FusedInput& input = stage.loop.inputs[i];
      if (input.kind != FusedInput::Kind::kTensor) continue;
      if (stage.operands[static_cast<size_t>(input.operand)].kind != RowValue::Kind::kBlock) continue;
      made.from_block.push_back(i);
      for (OuterDim& dim : made.rows) dim.strides[i] = 0;
    }
    for (size_t k = 0; k < stage.results.size(); ++k)
      made.result_row_bytes.push_back(output_row_bytes(stage.loop, stage.row_dims, k));
    if (stage.loop.reduce || !streams) return made;
    for (const RowValue& result : stage.results) {
      const bool leaves = result.kind == RowValue::Kind::kResult && !is_read_after(number, result);
      made.plan.stays.push_back(leaves ? 0 : 1);
      made.plan.streams = made.plan.streams || leaves;
    }
    return made;
  }

  [[nodiscard]] bool is_read_after(size_t number, const RowValue& value) const {
    return std::any_of(loop.stages.begin() + static_cast<std::ptrdiff_t>(number) + 1, loop.stages.end(),
                       [&](const RowStage& stage) {
                         return std::find(stage.operands.begin(), stage.operands.end(), value) != stage.operands.end();
                       });
  }

  /// Of the stages that read operands row behind row, the one that computes most fetches those of the next block.
  void prefetch_ahead() {
    size_t chosen = stages.size();
    double most_cost = 0;
    for (size_t s = 0; s < stages.size(); ++s) {
      double cost = 0;
      for (const TileInstruction& instruction : stages[s].loop.program.instructions) cost += cost_of(instruction.op);
      cost *= static_cast<double>(stages[s].row_elements);
      if (cost <= most_cost || read_densely(s).empty()) continue;
      chosen = s;
      most_cost = cost;
    }
    if (chosen < stages.size()) stages[chosen].ahead = read_densely(chosen);
  }

  /// Inputs of a stage whose rows follow each other in an operand's memory.
  [[nodiscard]] std::vector<size_t> read_densely(size_t number) const {
    const RowBlockStage& stage = stages[number];
    std::vector<size_t> inputs;
    for (size_t i = 0; i < stage.loop.inputs.size() && stage.row_elements > 1; ++i) {
      if (!stage.plan.region.inputs[i].is_dense) continue;
      const RowValue& value = loop.stages[number].operands[static_cast<size_t>(stage.loop.inputs[i].operand)];
      if (value.kind == RowValue::Kind::kOperand) inputs.push_back(i);
    }
    return inputs;
  }

  [[nodiscard]] int64_t work_count() const { return loop.rows / unit * unit_blocks; }
};

namespace {

/// One stage in one call. One thread.
class StageRun {
 public:
  StageRun(const RowStage& stage, const RowBlockStage& block, const std::vector<int64_t>& block_offsets,
           int64_t block_rows, const RowCall& call, std::pmr::memory_resource* memory)
      : stage_(stage), block_(block), places_(block.loop.inputs.size(), 0) {
    const auto at = [&](const RowValue& value) {
      return call.scratch + block_offsets[static_cast<size_t>(value.number)];
    };
    for (const RowValue& value : stage.operands) {
      if (value.kind == RowValue::Kind::kOperand)
        operands_.push_back(call.operands[value.number]);
      else
        operands_.push_back(value.kind == RowValue::Kind::kResult ? call.results[value.number] : at(value));
    }
    for (const RowValue& value : stage.results)
      bases_.push_back(value.kind == RowValue::Kind::kResult ? call.results[value.number] : at(value));
    results_ = bases_;
    call_.operands = operands_.data();
    call_.results = results_.data();
    call_.dim_offsets = call.dim_offsets;
    call_.checkpoint = call.checkpoint;
    if (block.loop.reduce)
      reduce_.emplace(block.loop, block.plan, call_, memory);
    else
      pointwise_.emplace(block.loop, block.plan, call_, block_rows * block.row_elements, memory);
  }
  StageRun(const StageRun&) = delete;
  StageRun& operator=(const StageRun&) = delete;

  /// Rows [row, row + count). `next`: where the next block of as many rows begins; -1: there is none.
  void run(int64_t row, int64_t count, int64_t next) {
    for (size_t k = 0; k < results_.size(); ++k) {
      const bool is_result = stage_.results[k].kind == RowValue::Kind::kResult;
      results_[k] = bases_[k] + (is_result ? row * block_.result_row_bytes[k] : 0);
    }
    soon_.clear();
    if (next >= 0 && !block_.ahead.empty()) {
      set_places(block_.rows, next, places_);
      for (const size_t i : block_.ahead) {
        const FusedInput& input = block_.loop.inputs[i];
        const int64_t bytes = tensor::size_bytes(block_.loop.program.registers[i]);
        soon_.push_back({operands_[static_cast<size_t>(input.operand)] + (input.offset + places_[i]) * bytes, bytes});
      }
    }
    set_places(block_.rows, row, places_);
    if (reduce_) {
      for (const size_t input : block_.from_block) reduce_->forget(input);
      return reduce_->run_groups(places_, count, soon_);
    }
    for (const size_t input : block_.from_block) pointwise_->forget(input);
    pointwise_->move_to(places_);
    pointwise_->run(0, count * block_.row_elements, soon_);
  }

 private:
  const RowStage& stage_;
  const RowBlockStage& block_;
  std::vector<const std::byte*> operands_;
  std::vector<std::byte*> bases_;
  std::vector<std::byte*> results_;  ///< of the block that runs
  tensor::Dims places_;
  std::vector<SoonRead> soon_;
  FusedCall call_;
  std::optional<PointwiseRun> pointwise_;
  std::optional<ReduceRun> reduce_;
};

}  // namespace

RowKernel::RowKernel(RowLoop loop) : prepared_(std::make_shared<const Prepared>(std::move(loop))) {}

int64_t RowKernel::work_count() const { return prepared_->work_count(); }
int64_t RowKernel::scratch_bytes() const { return prepared_->scratch_bytes; }
int64_t RowKernel::block_rows() const { return prepared_->block_rows; }
int64_t RowKernel::code_bytes() const {
  int64_t bytes = 0;
  for (const RowBlockStage& stage : prepared_->stages) bytes += fused_code_bytes(stage.loop, stage.plan);
  return bytes;
}

void RowKernel::run(const RowCall& call) const {
  if (call.begin >= call.end) return;
  const Prepared& prepared = *prepared_;
  LoopMemory memory;
  std::vector<std::unique_ptr<StageRun>> stages;
  for (size_t s = 0; s < prepared.stages.size(); ++s) {
    stages.push_back(std::make_unique<StageRun>(prepared.loop.stages[s], prepared.stages[s], prepared.block_offsets,
                                                prepared.block_rows, call, memory.resource()));
  }
  for (int64_t item = call.begin; item < call.end; ++item) {
    const int64_t in_unit = item % prepared.unit_blocks * prepared.block_rows;
    const int64_t row = item / prepared.unit_blocks * prepared.unit + in_unit;
    const int64_t count = std::min(prepared.block_rows, prepared.unit - in_unit);
    const bool has_next = item + 1 < call.end && in_unit + 2 * prepared.block_rows <= prepared.unit;
    for (const auto& stage : stages) stage->run(row, count, has_next ? row + count : -1);
  }
  if (prepared.streams) stream_fence();
}

}  // namespace meshd::kernels
