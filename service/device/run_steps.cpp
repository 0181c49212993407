#include <algorithm>
#include <exception>

#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

// Waking a thread that sleeps costs about 25 us each way: a step is shared when each part is worth more.
constexpr double kWorthSharingNs = 60'000;
constexpr double kPartNs = 20'000;
constexpr int64_t kPartsPerThread = 4;
constexpr size_t kInlinePointers = 24;

// Pointers of one call, on the stack unless there are many.
class Pointers {
 public:
  explicit Pointers(size_t count) {
    if (count > kInlinePointers) many_.resize(count);
  }
  std::byte** data() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<std::byte*, kInlinePointers> few_;  // written before they are read
  std::vector<std::byte*> many_;
};

}  // namespace

int64_t RunImpl::units_of(const compile::Step& step, int64_t shard) const {
  return step.meeting == nullptr ? step.kernel.unit_count : step.meeting->get(plan()).units[static_cast<size_t>(shard)];
}

void RunImpl::run_units(const compile::Step& step, int64_t shard, int64_t begin, int64_t end, int64_t lane) {
  Pointers results(step.results.size());
  for (size_t i = 0; i < step.results.size(); ++i) results.data()[i] = pointer(step.results[i], shard);
  if (step.meeting != nullptr) {
    const compile::Meeting& meeting = step.meeting->get(plan());
    const auto& sources = meeting.sources[static_cast<size_t>(shard)];
    Pointers from(sources.size());
    std::vector<char> packed;
    for (size_t i = 0; i < sources.size(); ++i) {
      const compile::MeetingSource& source = sources[i];
      const compile::Place& operand = step.operands[static_cast<size_t>(source.operand)];
      from.data()[i] = pointers_[static_cast<size_t>(operand.first + source.place)];
      if (exchange_ == nullptr) continue;
      const auto came = exchange_->received.find({shard, static_cast<int64_t>(i)});
      if (came == exchange_->received.end()) continue;
      if (packed.empty()) packed.resize(sources.size(), 0);
      packed[i] = 1;
      from.data()[i] = came->second->data();
    }
    compile::MeetingCall call;
    call.shard = shard;
    call.sources = from.data();
    call.packed = packed.empty() ? nullptr : packed.data();
    call.results = results.data();
    call.begin = begin;
    call.end = end;
    return meeting.run(call);
  }
  Pointers operands(step.operands.size());
  for (size_t i = 0; i < step.operands.size(); ++i) operands.data()[i] = pointer(step.operands[i], shard);
  ops::KernelCall call;
  call.operands = operands.data();
  call.results = results.data();
  call.begin = begin;
  call.end = end;
  if (step.kernel.scratch_bytes > 0) call.scratch = scratch_ + lane * plan().scratch_bytes;
  if (!step.offsets.empty()) call.result_offsets = step.offsets.data() + shard * step.offset_rank;
  step.kernel.run(call);
}

RunImpl::Next RunImpl::execute_kernel(const compile::Step& step) {
  return execute_shards(step, active_shards(*frames_.back().active, step.table));
}

RunImpl::Next RunImpl::execute_meeting(const compile::Step& step) {
  ActiveSet& active = *frames_.back().active;
  const std::span<const int32_t> shards = active_shards(active, step.table);
  if (!active.is_everybody()) check_members(step, shards);
  if (!owners_.is_alone && !exchange_sources(step)) return Next::kSuspended;
  return execute_shards(step, shards);
}

void RunImpl::check_members(const compile::Step& step, std::span<const int32_t> shards) const {
  const ActiveSet& active = *frames_.back().active;
  for (const int32_t shard : shards) {
    for (const compile::MeetingSource& source : step.meeting->get(plan()).sources[static_cast<size_t>(shard)]) {
      if (active.holder(source.table, source.shard) >= 0) continue;
      fail_at(step, "program_failed",
              "only some members of its group reach it: device " + std::to_string(source.device) +
                  " left the loop or took another branch, so its part is missing");
    }
  }
}

RunImpl::Next RunImpl::execute_shards(const compile::Step& step, std::span<const int32_t> shards) {
  const int threads = std::min(engine_.workers.threads(), plan().threads);
  const double estimated =
      step.estimated_ns * static_cast<double>(shards.size()) / static_cast<double>(plan().table(step.table).count());
  if (threads > 1 && estimated >= kWorthSharingNs) {
    const auto shared = std::make_shared<SharedStep>(shared_from_this(), step, shards, threads, estimated);
    if (shared->part_count() > 1) {
      close_segment();
      stats_.kernel_calls += shared->part_count();
      ++stats_.handoffs;
      engine_.workers.post(shared, static_cast<int>(std::min<int64_t>(threads, shared->part_count())) - 1);
      if (!shared->take_parts()) return Next::kHandedOff;
      segment_start_ = std::chrono::steady_clock::now();
      if (shared->error()) throw *shared->error();
      exchange_.reset();
      return step_done(step);
    }
  }
  for (const int32_t shard : shards) {
    const int64_t units = units_of(step, shard);
    if (units > 0) run_units(step, shard, 0, units, 0);
  }
  stats_.kernel_calls += static_cast<int64_t>(shards.size());
  exchange_.reset();
  return step_done(step);
}

// ---- a step that several threads execute

SharedStep::SharedStep(std::shared_ptr<RunImpl> run, const compile::Step& step, std::span<const int32_t> shards,
                       int lanes, double estimated_ns)
    : run_(std::move(run)), step_(step), lanes_(lanes) {
  int64_t all_units = 0;
  for (const int32_t shard : shards) all_units += run_->units_of(step, shard);
  const auto worth = static_cast<int64_t>(estimated_ns / kPartNs);
  const int64_t wanted = std::clamp<int64_t>(worth, 1, lanes * kPartsPerThread);
  const int64_t part_units = std::max<int64_t>(1, core::ceil_div(all_units, wanted));
  for (const int32_t shard : shards) {
    const int64_t units = run_->units_of(step, shard);
    for (int64_t begin = 0; begin < units; begin += part_units)
      parts_.push_back({shard, begin, std::min(units, begin + part_units)});
  }
}

bool SharedStep::take_parts() {
  const int lane = next_lane_.fetch_add(1, std::memory_order_relaxed);
  if (lane >= lanes_) return false;  // no scratch for more
  while (true) {
    const size_t number = next_part_.fetch_add(1, std::memory_order_relaxed);
    if (number >= parts_.size()) return false;
    const auto begun = std::chrono::steady_clock::now();
    try {
      run_->run_units(step_, parts_[number].shard, parts_[number].begin, parts_[number].end, lane);
    } catch (...) {
      const std::lock_guard held(error_mutex_);
      if (!error_) error_ = error_of(std::current_exception());
    }
    run_->helper_ns_.fetch_add((std::chrono::steady_clock::now() - begun).count(), std::memory_order_relaxed);
    if (done_parts_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts_.size()) return true;
  }
}

void SharedStep::work() {
  if (take_parts()) run_->go_on_after(*this, step_);
}

void RunImpl::go_on_after(const SharedStep& shared, const compile::Step& step) {
  ++stats_.handoffs;
  segment_start_ = std::chrono::steady_clock::now();
  exchange_.reset();
  if (shared.error()) return finish(shared.error());
  is_lent_ = false;
  step_done(step);
  drive();
}

}  // namespace meshd::device
