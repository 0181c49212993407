#include "service/kernels/fused/small_loop.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"

namespace meshd::kernels {
namespace {

constexpr size_t kMostBytes = 32 * 1024;

/// Which element an input has on each lane of the region.
std::vector<int64_t> elements_of_walk(const Region& region, const RegionInput& input) {
  std::vector<int64_t> elements(static_cast<size_t>(region.size));
  for (int64_t lane = 0; lane < region.size; ++lane) {
    int64_t rest = lane;
    int64_t element = 0;
    for (size_t d = region.dims.size(); d-- > 0; rest /= region.dims[d])
      element += input.strides[d] * (rest % region.dims[d]);
    elements[static_cast<size_t>(lane)] = element;
  }
  return elements;
}

/// Nothing where the reducer is none of the well-known ops on values as they are, or there are several.
std::optional<SmallReduce> small_reduce_of(const FusedLoop& loop, const FusedPlan& plan) {
  const bool is_one_item = plan.reduce && plan.reduce->kept.empty() && plan.reduce->reduced.empty() &&
                           plan.work_count == 1 && plan.region.size > 0 && plan.region.size <= kBlockLanes;
  if (!is_one_item || !plan.reduce->fold || plan.reduce->fold->widen != nullptr || plan.reduce->items < 2)
    return std::nullopt;
  return SmallReduce{.op = as_single_binary(loop.reduce->reducer),
                     .dtype = loop.program.registers[loop.program.outputs[0]],
                     .fold = *plan.reduce->fold,
                     .groups = plan.reduce->groups,
                     .items = plan.reduce->items,
                     .lanes = plan.reduce->lanes};
}

}  // namespace

std::optional<SmallLoop> SmallLoop::make(const FusedLoop& loop, const FusedPlan& plan) {
  if (plan.region.size > kBlockLanes || !loop.places.empty()) return std::nullopt;
  const std::optional<SmallReduce> reduce = small_reduce_of(loop, plan);
  if (loop.reduce && !reduce) return std::nullopt;
  return make_over(loop, plan.region, plan.region.size, reduce);
}

std::optional<SmallLoop> SmallLoop::make_piece(const FusedLoop& loop) {
  if (loop.reduce) return std::nullopt;
  const FusedPlan plan = make_fused_plan(loop);
  return make_over(loop, plan.region, std::min(plan.region.size, kBlockLanes), std::nullopt);
}

std::optional<SmallLoop> SmallLoop::make_over(const FusedLoop& loop, const Region& region, int64_t lanes,
                                              const std::optional<SmallReduce>& reduce) {
  const TileProgram& program = loop.program;
  if (lanes == 0) return std::nullopt;
  SmallLoop small;
  small.lanes_ = lanes;
  std::vector<size_t> homes(program.registers.size(), 0);
  const auto place = [&](uint16_t reg) {
    homes[reg] = small.bytes_;
    small.bytes_ += static_cast<size_t>(tensor::size_bytes(program.registers[reg]) * kBlockLanes);
  };
  for (const TileConstant& constant : program.constants) place(constant.reg);
  small.constants_.resize(small.bytes_);
  for (const TileConstant& constant : program.constants) {
    repeat_element(constant.element.data(), tensor::size_bytes(program.registers[constant.reg]),
                   small.constants_.data() + homes[constant.reg], kBlockLanes);
  }
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    const RegionInput& walk = region.inputs[i];
    const bool is_one = walk.walk_strides.empty() || (walk.walk_strides.size() == 1 && walk.walk_strides[0] == 0);
    const bool is_in_order = walk.is_dense || is_one;
    if (walk.is_iota || (!is_in_order && lanes != region.size)) return std::nullopt;
    place(static_cast<uint16_t>(i));
    const int64_t element_bytes = tensor::size_bytes(program.registers[i]);
    small.inputs_.push_back({loop.inputs[i].operand, loop.inputs[i].offset * element_bytes, element_bytes,
                             is_one ? 1 : small.lanes_, homes[i]});
    if (!is_in_order) small.inputs_.back().elements = elements_of_walk(region, walk);
  }
  for (const TileInstruction& instruction : program.instructions) {
    if (instruction.kernel == nullptr) return std::nullopt;
    place(instruction.result);
    Instruction made;
    made.kernel = instruction.kernel;
    const auto operand_total = static_cast<size_t>(operand_count(instruction.op));
    for (size_t k = 0; k < 3; ++k) made.operands[k] = homes[instruction.operands[k < operand_total ? k : 0]];
    made.result = homes[instruction.result];
    made.lanes = instruction.is_lane_by_lane ? small.lanes_ : kBlockLanes;
    made.element_bytes = tensor::size_bytes(program.registers[instruction.result]);
    small.instructions_.push_back(made);
  }
  if (reduce) small.add_reduction(loop, *reduce, homes[program.outputs[0]]);
  for (const uint16_t reg : program.outputs) {
    if (reduce) break;
    const int64_t element_bytes = tensor::size_bytes(program.registers[reg]);
    small.outputs_.push_back({homes[reg], static_cast<size_t>(small.lanes_ * element_bytes), element_bytes});
  }
  if (small.bytes_ > kMostBytes) return std::nullopt;
  return small;
}

void SmallLoop::add_reduction(const FusedLoop& loop, const SmallReduce& reduce, size_t values) {
  const int64_t element_bytes = tensor::size_bytes(reduce.dtype);
  const auto place = [&] {
    const size_t at = bytes_;
    bytes_ += static_cast<size_t>(element_bytes * kBlockLanes);
    return at;
  };
  Reduction made{
      .reduce = std::make_shared<const SmallReduce>(reduce), .values = values, .init = place(), .result = place()};
  inputs_.push_back({loop.reduce->init_operands[0], 0, element_bytes, 1, made.init});
  outputs_.push_back({made.result, static_cast<size_t>(reduce.results() * element_bytes), element_bytes});
  reduction_ = std::move(made);
}

void SmallLoop::run(const FusedCall& call) const {
  if (call.begin >= call.end) return;
  alignas(64) std::array<std::byte, kMostBytes> block;
  std::byte* const base = block.data();
  if (!constants_.empty()) std::memcpy(base, constants_.data(), constants_.size());
  for (const Input& input : inputs_) {
    std::byte* const home = base + input.home;
    const std::byte* const from = call.operands[input.operand] + input.byte_offset;
    if (input.elements.empty()) std::memcpy(home, from, static_cast<size_t>(input.lanes * input.element_bytes));
    for (size_t lane = 0; lane < input.elements.size(); ++lane) {
      std::memcpy(home + static_cast<int64_t>(lane) * input.element_bytes,
                  from + input.elements[lane] * input.element_bytes, static_cast<size_t>(input.element_bytes));
    }
    pad_block(home, input.element_bytes, input.lanes);
  }
  for (const Instruction& instruction : instructions_) {
    const std::array<const std::byte*, 3> operands = {base + instruction.operands[0], base + instruction.operands[1],
                                                      base + instruction.operands[2]};
    std::byte* const result = base + instruction.result;
    instruction.kernel(operands.data(), result, instruction.lanes);
    pad_block(result, instruction.element_bytes, instruction.lanes);
  }
  if (reduction_)
    reduction_->reduce->run(base + reduction_->values, base + reduction_->init, base + reduction_->result);
  for (size_t k = 0; k < outputs_.size(); ++k) std::memcpy(call.results[k], base + outputs_[k].home, outputs_[k].bytes);
}

}  // namespace meshd::kernels
