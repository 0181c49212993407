#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

constexpr int64_t kStepsBetweenLooks = 16;  // at the clock, for small steps
constexpr double kLargeStepNs = 20'000;     // after one of these the clock is read, too

}  // namespace

void RunImpl::fail_at(const compile::Step& step, core::ErrorCode code, const std::string& message) const {
  const std::string where = step.location.line > 0 ? fmt::format("line {}: ", step.location.line) : "";
  throw core::Error(code, where + "'" + step.name + "': " + message,
                    {{.pointer = {}, .detail = message, .line = step.location.line, .column = step.location.column}});
}

std::span<const int32_t> RunImpl::active_shards(ActiveSet& active, compile::TableId table) {
  if (owners_.is_alone && active.is_all()) {
    return std::span<const int32_t>(counting_).first(static_cast<size_t>(plan().table(table).count()));
  }
  return active.shards(table);
}

size_t RunImpl::shard_count_everywhere(ActiveSet& active, compile::TableId table) {
  return owners_.is_alone ? active_shards(active, table).size() : active.shards_everywhere(table).size();
}

RunImpl::Next RunImpl::advance() {
  while (true) {
    if (frames_.empty()) return Next::kFinished;
    if (is_elsewhere()) return request_.is_over_elsewhere() ? Next::kFinished : Next::kSuspended;
    if (is_cancelled()) throw cancel_reason();
    Frame& frame = frames_.back();
    const std::vector<compile::Step>& steps = plan().block(frame.block).steps;
    const int64_t executed = steps_done_.load(std::memory_order_relaxed);
    Next next = Next::kGoOn;
    if (is_at_small_while(frame)) {
      next = run_small_while();
    } else if (is_at_shard_while(frame)) {
      next = run_shard_while();
    } else if (is_at_bound_while(frame)) {
      next = run_bound_while();
    } else if (frame.index == steps.size()) {
      next = end_of_block();
    } else {
      if (request_.step_budget > 0 && executed >= request_.step_budget) {
        fail_at(steps[frame.index], "budget_exceeded",
                fmt::format("the run has executed {} steps, which is all it may", executed));
      }
      if (request_.pause_before && paused_at_ != executed && request_.pause_before(executed)) {
        paused_at_ = executed;
        return Next::kSuspended;
      }
      next = execute(steps[frame.index]);
    }
    if (next != Next::kGoOn) return next;
  }
}

RunImpl::Next RunImpl::execute(const compile::Step& step) {
  current_.store(&step, std::memory_order_release);
  if (profiler_) profiler_->begin(step.number);
  switch (step.kind) {
    case compile::StepKind::kKernel:
      return goes_by_shard(step) ? execute_sequence(std::span(&step, static_cast<size_t>(step.sequence)))
                                 : execute_kernel(step);
    case compile::StepKind::kCollective:
      return execute_collective(step);
    case compile::StepKind::kEffect:
      return execute_effect(step);
    case compile::StepKind::kCase:
      return enter_case(step);
    case compile::StepKind::kWhile:
      break;
  }
  enter_loop(step);
  return Next::kGoOn;
}

void RunImpl::enter_loop(const compile::Step& step) {
  Frame loop;
  loop.block = step.blocks_first;
  loop.control = &step;
  loop.is_condition = true;
  loop.active = frames_.back().active;
  loop.is_outer_loop = outer_loop_.load(std::memory_order_relaxed) == nullptr;
  if (loop.is_outer_loop) {
    outer_iteration_.store(0, std::memory_order_relaxed);
    outer_loop_.store(&step, std::memory_order_release);
  }
  frames_.push_back(std::move(loop));
}

RunImpl::Next RunImpl::leave_loop(const compile::Step& step) {
  if (frames_.back().is_outer_loop) outer_loop_.store(nullptr, std::memory_order_release);
  frames_.pop_back();
  return step_done(step);
}

// A step is over: the next one of its block is current. Now and then others get the thread.
RunImpl::Next RunImpl::step_done(const compile::Step& step) {
  if (seeks_nonfinite() && operands_are_finite_) look_at_results(step);
  ++frames_.back().index;
  const int64_t executed = steps_done_.load(std::memory_order_relaxed) + 1;
  steps_done_.store(executed, std::memory_order_relaxed);
  if (profiler_) profiler_->end();
  if (executed % kStepsBetweenLooks != 0 && step.estimated_ns < kLargeStepNs) return Next::kGoOn;
  return frames_.empty() ? Next::kGoOn : look_at_slice();
}

RunImpl::Next RunImpl::look_at_slice() const {
  if (!is_lent_ && !has_to_attend()) return Next::kGoOn;
  return is_slice_over(std::chrono::steady_clock::now()) ? Next::kYield : Next::kGoOn;
}

RunImpl::Next RunImpl::end_of_block() {
  Frame& frame = frames_.back();
  if (frame.control == nullptr) {
    frames_.pop_back();
    return Next::kFinished;
  }
  if (frame.control->kind == compile::StepKind::kWhile) return frame.is_condition ? end_of_condition() : end_of_body();
  const compile::Step& step = *frame.control;
  if (!frame.branch_of_device.empty() && next_branch(frame, frame.branch + 1)) return Next::kGoOn;
  frames_.pop_back();
  return step_done(step);
}

RunImpl::Next RunImpl::end_of_condition() {
  const compile::Step& step = *frames_.back().control;
  // Fast path: one condition for all devices, on one rank.
  if (owners_.is_alone && plan().table(step.table).count() == 1 && frames_.back().active->is_all()) {
    if (*pointer(step.operands[0], 0) == std::byte{0}) return leave_loop(step);
    start_body(frames_.back(), step);
    return Next::kGoOn;
  }
  const auto values = read_control(step, true);
  if (!values) return Next::kSuspended;
  const bool any = std::any_of(values->begin(), values->end(), [](int64_t value) { return value > 0; });
  const bool all = std::none_of(values->begin(), values->end(), [](int64_t value) { return value == 0; });
  if (!any) return leave_loop(step);
  Frame& frame = frames_.back();
  if (!all) {
    const compile::ShardTable& table = plan().table(step.table);
    std::vector<char> is_in(static_cast<size_t>(plan().device_count), 0);
    for (size_t device = 0; device < is_in.size(); ++device) {
      const int32_t shard = table.shard_of_device[device];
      is_in[device] = shard >= 0 && (*values)[static_cast<size_t>(shard)] > 0;
    }
    frame.active = std::make_shared<ActiveSet>(*frame.active, is_in);
  }
  start_body(frame, step);
  return Next::kGoOn;
}

void RunImpl::start_body(Frame& frame, const compile::Step& step) {
  frame.block = step.blocks_first + 1;
  frame.is_condition = false;
  frame.index = 0;
}

RunImpl::Next RunImpl::end_of_body() {
  Frame& frame = frames_.back();
  const compile::Step& step = *frame.control;
  exchange_slots(step, *frame.active);
  ++frame.iteration;
  if (frame.is_outer_loop) outer_iteration_.store(frame.iteration, std::memory_order_relaxed);
  frame.block = step.blocks_first;
  frame.is_condition = true;
  frame.index = 0;
  // An iteration counts as a step, so that the step budget ends a loop without steps.
  const int64_t executed = steps_done_.load(std::memory_order_relaxed) + 1;
  steps_done_.store(executed, std::memory_order_relaxed);
  if (request_.step_budget > 0 && executed > request_.step_budget) {
    fail_at(step, "budget_exceeded", fmt::format("the run has executed {} steps, which is more than it may", executed));
  }
  return executed % kStepsBetweenLooks != 0 ? Next::kGoOn : look_at_slice();
}

void RunImpl::exchange_slots(const compile::Step& step, ActiveSet& active) {
  for (const auto& [a, b] : step.exchanges) {
    const compile::Slot& left = plan().slot(a);
    const compile::Slot& right = plan().slot(b);
    for (const int32_t shard : active_shards(active, left.table)) {
      const auto x = static_cast<size_t>(left.first_pointer + shard);
      const auto y = static_cast<size_t>(right.first_pointer + shard);
      std::swap(pointers_[x], pointers_[y]);
      std::swap(owner_of_pointer_[x], owner_of_pointer_[y]);
    }
  }
}

int64_t RunImpl::at_most(double left, double each) {
  if (each <= 0) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(std::floor(left / each), 0.0, 1e18));
}

int64_t RunImpl::affordable_iterations(const compile::LoopCost& end, const compile::LoopCost& each) const {
  int64_t out = std::numeric_limits<int64_t>::max();
  if (request_.step_budget > 0) {
    const int64_t left = request_.step_budget - steps_done_.load(std::memory_order_relaxed) - end.steps;
    out = std::max<int64_t>(0, left / each.steps);
  }
  if (request_.operation_budget > 0)
    out = std::min(out, at_most(request_.operation_budget - operations_ - end.flops, each.flops));
  if (request_.byte_budget > 0) out = std::min(out, at_most(request_.byte_budget - bytes_ - end.bytes, each.bytes));
  return out;
}

void RunImpl::note_cost(const compile::LoopCost& cost, int64_t times) {
  const auto count = static_cast<double>(times);
  operations_ += cost.flops * count;
  bytes_ += cost.bytes * count;
  stats_.kernel_calls += cost.kernel_calls * times;
  steps_done_.store(steps_done_.load(std::memory_order_relaxed) + cost.steps * times, std::memory_order_relaxed);
}

void RunImpl::note_iterations(const compile::LoopCost& condition, const compile::LoopCost& iteration,
                              int64_t iterations, bool is_over) {
  note_cost(iteration, iterations);
  if (is_over) note_cost(condition, 1);
  Frame& frame = frames_.back();
  frame.iteration += iterations;
  if (frame.is_outer_loop) outer_iteration_.store(frame.iteration, std::memory_order_relaxed);
}

RunImpl::Next RunImpl::enter_case(const compile::Step& step) {
  const auto values = read_control(step, step.is_bool);
  if (!values) return Next::kSuspended;
  Frame made;
  made.control = &step;
  made.outer = frames_.back().active;
  made.active = made.outer;
  int64_t only = -1;
  bool differ = false;
  for (const int64_t value : *values) {
    if (value < 0) continue;
    differ = differ || (only >= 0 && value != only);
    only = value;
  }
  if (!differ) {
    made.branch = std::max<int64_t>(only, 0);
    made.block = step.blocks_first + static_cast<compile::BlockId>(made.branch);
    frames_.push_back(std::move(made));
    return Next::kGoOn;
  }
  const compile::ShardTable& table = plan().table(step.table);
  for (const int32_t shard : table.shard_of_device) {
    made.branch_of_device.push_back(shard < 0 ? -1 : (*values)[static_cast<size_t>(shard)]);
  }
  next_branch(made, 0);
  frames_.push_back(std::move(made));
  return Next::kGoOn;
}

// Makes the frame the first branch from `from` on that some device takes.
bool RunImpl::next_branch(Frame& frame, int64_t from) {
  for (int64_t branch = from; branch < frame.control->block_count; ++branch) {
    std::vector<char> is_in(frame.branch_of_device.size(), 0);
    bool any = false;
    for (size_t device = 0; device < is_in.size(); ++device) {
      is_in[device] = frame.branch_of_device[device] == branch;
      any = any || is_in[device] != 0;
    }
    if (!any) continue;
    frame.branch = branch;
    frame.block = frame.control->blocks_first + static_cast<compile::BlockId>(branch);
    frame.index = 0;
    frame.active = std::make_shared<ActiveSet>(*frame.outer, is_in);
    return true;
  }
  return false;
}

std::optional<std::vector<int64_t>> RunImpl::read_control(const compile::Step& step, bool is_bool) {
  ActiveSet& active = *frames_.back().active;
  const compile::ShardTable& table = plan().table(step.table);
  std::vector<int64_t> out(static_cast<size_t>(table.count()), -1);
  const int64_t bytes = is_bool ? 1 : 4;
  std::vector<std::vector<std::byte>> received;
  const bool must_ask = !owners_.is_alone && (table.count() > 1 || !active.is_all());
  if (must_ask && !exchange_bytes(step.table, step.operands[0], bytes, received)) return std::nullopt;
  const auto value_of = [&](const std::byte* from) {
    if (is_bool) {
      // A branch on a boolean: true is block 0. A loop's condition: true continues.
      const bool yes = *from != std::byte{0};
      return step.kind == compile::StepKind::kCase ? (yes ? int64_t{0} : int64_t{1}) : int64_t{yes};
    }
    int32_t index = 0;
    std::memcpy(&index, from, sizeof(index));
    return index < 0 || index >= step.block_count ? step.block_count - 1 : int64_t{index};
  };
  if (must_ask) {
    for (size_t shard = 0; shard < out.size(); ++shard) {
      if (!received[shard].empty()) out[shard] = value_of(received[shard].data());
    }
    return out;
  }
  for (const int32_t shard : active_shards(active, step.table))
    out[static_cast<size_t>(shard)] = value_of(pointer(step.operands[0], shard));
  return out;
}

}  // namespace meshd::device
