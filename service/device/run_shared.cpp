// Steps that several threads execute (SharedStep), and sequences of steps that are executed shard by shard.
#include <algorithm>
#include <exception>

#include "service/core/waits/spin.h"
#include "service/device/run_impl.h"
#include "service/device/shard_while.h"
#include "service/kernels/cache_size.h"
#include "service/ops/kernel_interface.h"

namespace meshd::device {
namespace {

// Waking a sleeping thread costs about 25 us in each direction: a step is shared when each part is worth more. One that
// is awake takes a part within a microsecond or two.
constexpr double kWorthSharingNs = 60'000;
constexpr double kPartNs = 20'000;
constexpr double kWorthSharingAwakeNs = 15'000;
constexpr double kPartAwakeNs = 5'000;
// Steps go shard by shard where one shard stays in a core's second level cache and all do not, or where more than one
// part of this many of their time is in steps that are not worth sharing.
constexpr double kWorthSavingPart = 8;
constexpr int64_t kPartsPerThread = 4;
// The last part before a barrier is waited for: more parts, which are shorter.
constexpr int64_t kPartsPerThreadBetweenBarriers = 16;

}  // namespace

RunImpl::Sharing RunImpl::sharing() const {
  const int most = std::min(engine_.workers.threads(), plan().threads);
  const int awake = std::min(most, 1 + engine_.workers.awake());
  return {most, awake, awake > 1 ? kWorthSharingAwakeNs : kWorthSharingNs};
}

bool RunImpl::is_even(int64_t shards) const {
  const int threads = sharing().threads;
  return shards % threads == 0 || shards >= kPartsPerThread * threads;
}

std::optional<RunImpl::Next> RunImpl::share(std::span<const compile::Step> steps, std::span<const int32_t> shards,
                                            double estimated_ns, std::shared_ptr<ShardWhile> loop) {
  const Sharing among = sharing();
  if (among.threads < 2 || estimated_ns < among.worth_ns) return std::nullopt;
  const bool wakes = estimated_ns >= kWorthSharingNs;
  const auto shared =
      std::make_shared<SharedStep>(shared_from_this(), steps, shards, wakes ? among.threads : among.awake, estimated_ns,
                                   wakes ? kPartNs : kPartAwakeNs, loop);
  if (shared->part_count() < 2) return std::nullopt;
  close_segment();
  if (loop == nullptr) {
    const auto of_sequence = static_cast<int64_t>(steps.size() * shards.size());
    stats_.kernel_calls += steps.size() == 1 ? shared->part_count() : of_sequence;
  }
  ++stats_.handoffs;
  // From here on the run may be another thread's.
  const bool is_lent = is_lent_;
  if (!shared->start(is_lent)) return Next::kHandedOff;
  segment_start_ = std::chrono::steady_clock::now();
  if (shared->error()) throw *shared->error();
  return loop != nullptr ? iterations_done(*loop) : shards_done(steps);
}

void RunImpl::go_on_after(const SharedStep& shared, std::span<const compile::Step> steps) {
  ++stats_.handoffs;
  segment_start_ = std::chrono::steady_clock::now();
  is_lent_ = false;
  std::optional<core::Error> error = core::keep_trying([&] { return shared.error(); });
  try {
    if (!error) shared.loop() != nullptr ? iterations_done(*shared.loop()) : shards_done(steps);
  } catch (...) {
    error = core::keep_trying([] { return error_of(std::current_exception()); });
  }
  if (error) return finish(is_cancelled() ? cancel_reason() : std::move(error));
  drive();
}

// ---- a sequence of steps, shard by shard

bool RunImpl::goes_by_shard(const compile::Step& step) {
  if (step.sequence < 2 || !owners_.is_alone || !frames_.back().active->is_all()) return false;
  const int64_t shards = plan().table(step.table).count();
  if (!can_skip_steps() || !is_even(shards)) return false;
  const Sharing among = sharing();
  const int threads = among.threads;
  double estimated = 0;
  double too_small = 0;  // of steps that no thread would be woken for
  double most_bytes = 0;
  double operations = operations_;
  double bytes = bytes_;
  for (const compile::Step& one : std::span(&step, static_cast<size_t>(step.sequence))) {
    const double step_bytes = one.bytes * static_cast<double>(shards);
    estimated += one.estimated_ns;
    if (one.estimated_ns < kWorthSharingNs) too_small += one.estimated_ns;
    most_bytes = std::max(most_bytes, step_bytes);
    operations += one.flops * static_cast<double>(shards);
    bytes += step_bytes;
  }
  // A run that cannot afford all of it ends at the step that is too much.
  const bool is_affordable = (request_.operation_budget <= 0 || operations <= request_.operation_budget) &&
                             (request_.byte_budget <= 0 || bytes <= request_.byte_budget) &&
                             (request_.step_budget <= 0 ||
                              steps_done_.load(std::memory_order_relaxed) + step.sequence <= request_.step_budget);
  const auto cache = static_cast<double>(kernels::second_level_bytes());
  const bool stays_in_cache = most_bytes > cache * threads && most_bytes / static_cast<double>(shards) <= cache;
  const bool uses_threads = threads > 1 && too_small * kWorthSavingPart > estimated;
  return is_affordable && estimated >= among.worth_ns && (stays_in_cache || uses_threads);
}

RunImpl::Next RunImpl::execute_sequence(std::span<const compile::Step> steps) {
  const std::span<const int32_t> shards = active_shards(*frames_.back().active, steps.front().table);
  double estimated = 0;
  for (const compile::Step& step : steps) estimated += step.estimated_ns;
  if (is_lent_ && estimated > kLentStepNs) return Next::kYield;
  for (const compile::Step& step : steps) charge(step, shards.size());
  if (const std::optional<Next> next = share(steps, shards, estimated)) return *next;
  RunCheckpoint checkpoint(*this, is_lent_);
  run_shards(steps, shards, {}, checkpoint);
  stats_.kernel_calls += static_cast<int64_t>(steps.size() * shards.size());
  return shards_done(steps);
}

void RunImpl::run_shards(std::span<const compile::Step> steps, std::span<const int32_t> shards, Lane lane,
                         core::Checkpoint& checkpoint) {
  for (const int32_t shard : shards) {
    for (const compile::Step& step : steps) {
      current_.store(&step, std::memory_order_release);
      WorkItems work_items = work_items_of(step, shard);
      work_items.estimated_ns = step.estimated_ns / static_cast<double>(plan().table(step.table).count());
      run_work_groups(step, work_items, lane, checkpoint);
      checkpoint.pass();
    }
  }
}

// ---- a step that several threads execute

SharedStep::SharedStep(std::shared_ptr<RunImpl> run, std::span<const compile::Step> steps,
                       std::span<const int32_t> shards, int lanes, double estimated_ns, double part_ns,
                       std::shared_ptr<ShardWhile> loop)
    : run_(std::move(run)),
      steps_(steps),
      shards_(shards),
      lanes_(lanes),
      estimated_ns_(estimated_ns),
      part_ns_(part_ns),
      loop_(std::move(loop)) {
  for (const compile::Step& step : steps_)
    lane_scratch_bytes_ = std::max(lane_scratch_bytes_, step.kernel->scratch_bytes);
  if (loop_ != nullptr) {
    lane_scratch_bytes_ = loop_->form.scratch_bytes;
    add_sequence();
    loop_->pointers.resize(free_lanes_.size());
  } else if (steps_.size() > 1) {
    add_sequence();
  } else {
    add_step();
  }
  open_end_.store(ends_.front(), std::memory_order_relaxed);
}

void SharedStep::add_sequence() {
  const auto count = static_cast<int64_t>(shards_.size());
  // Each lane has scratch of its own; the plan has no more than this of it.
  for (auto lane = static_cast<int>(std::min<int64_t>(lanes_, count)); lane-- > 0;) free_lanes_.push_back(lane);
  const auto worth = core::round_up(static_cast<int64_t>(estimated_ns_ / part_ns_), lanes_);
  const int64_t wanted = std::clamp<int64_t>(worth, lanes_, lanes_ * kPartsPerThread);
  add_parts({.end = count, .estimated_ns = estimated_ns_ / static_cast<double>(count)}, core::ceil_div(count, wanted));
  ends_.push_back(parts_.size());
}

void SharedStep::add_step() {
  const compile::Step& step = steps_.front();
  int64_t all_work_items = 0;
  for (const int32_t shard : shards_) {
    const RunImpl::WorkItems own = run_->work_items_of(step, shard);
    all_work_items += own.end - own.begin;
  }
  // Each lane has scratch of its own; the plan has no more than this of it.
  for (auto lane = static_cast<int>(std::min<int64_t>(lanes_, all_work_items)); lane-- > 0;)
    free_lanes_.push_back(lane);
  const double of_work_item = estimated_ns_ / static_cast<double>(std::max<int64_t>(1, all_work_items));
  if (run_->shares_packed_operand(step, shards_)) kept_.resize(free_lanes_.size());
  const std::vector<int64_t>& barriers = step.kernel->barriers;
  for (size_t i = 0; i <= barriers.size(); ++i) {
    std::vector<RunImpl::WorkItems> ranges;
    int64_t count = 0;
    for (const int32_t shard : shards_) {
      const RunImpl::WorkItems own = run_->work_items_of(step, shard);
      const int64_t begin = i == 0 ? own.begin : barriers[i - 1];
      const int64_t end = i == barriers.size() ? own.end : barriers[i];
      ranges.push_back({shard, begin, end, of_work_item});
      count += end - begin;
    }
    const auto worth = static_cast<int64_t>(of_work_item * static_cast<double>(count) / part_ns_);
    const int64_t most = lanes_ * (barriers.empty() ? kPartsPerThread : kPartsPerThreadBetweenBarriers);
    const int64_t wanted = std::clamp<int64_t>(worth, 1, most);
    const bool is_by_item = !kept_.empty() && of_work_item >= kPartNs;
    const int64_t part_work_items = is_by_item ? 1 : std::max<int64_t>(1, core::ceil_div(count, wanted));
    const size_t first_part = parts_.size();
    for (const RunImpl::WorkItems& range : ranges) add_parts(range, part_work_items);
    if (is_by_item) order_by_work_item(first_part);
    if (ends_.empty() || ends_.back() < parts_.size()) ends_.push_back(parts_.size());
  }
}

void SharedStep::add_parts(const RunImpl::WorkItems& work_items, int64_t part_work_items) {
  for (int64_t begin = work_items.begin; begin < work_items.end; begin += part_work_items) {
    const int64_t end = std::min(work_items.end, begin + part_work_items);
    parts_.push_back({work_items.shard, begin, end, work_items.estimated_ns * static_cast<double>(end - begin)});
  }
}

void SharedStep::order_by_work_item(size_t first_part) {
  std::stable_sort(parts_.begin() + static_cast<std::ptrdiff_t>(first_part), parts_.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

std::optional<int> SharedStep::take_lane() {
  const std::lock_guard held(mutex_);
  if (free_lanes_.empty()) return std::nullopt;
  const int lane = free_lanes_.back();
  free_lanes_.pop_back();
  return lane;
}

void SharedStep::give_lane(int lane) {
  const std::lock_guard held(mutex_);
  free_lanes_.push_back(lane);
}

void SharedStep::call_threads(size_t open_parts) {
  const size_t free_lanes = [&] {
    const std::lock_guard held(mutex_);
    return free_lanes_.size();
  }();
  const size_t count = std::min(free_lanes, open_parts - 1);
  if (count > 0) run_->engine_.workers.post(shared_from_this(), static_cast<int>(count));
}

std::optional<size_t> SharedStep::take_part() {
  size_t part = next_part_.load(std::memory_order_relaxed);
  while (part < parts_.size()) {
    const auto is_open = [&] { return part < open_end_.load(std::memory_order_acquire); };
    if (is_open()) {
      if (next_part_.compare_exchange_weak(part, part + 1, std::memory_order_relaxed)) return part;
      continue;
    }
    // Others, or another run, may want the thread.
    const auto is_wanted = [&] { return run_->has_to_attend(); };
    if (!core::spin_until([&] { return is_open() || is_wanted(); }) || is_wanted()) return std::nullopt;
    part = next_part_.load(std::memory_order_relaxed);
  }
  return std::nullopt;
}

void SharedStep::run_part(const RunImpl::WorkItems& part, int lane, core::Checkpoint& checkpoint) {
  // What is behind a barrier must not use what a failed part has left.
  if (has_failed_.load(std::memory_order_relaxed)) return;
  const auto begun = std::chrono::steady_clock::now();
  try {
    run_->throw_if_cancelled();
    const RunImpl::Lane own{lane * lane_scratch_bytes_, kept_.empty() ? nullptr : &kept_[static_cast<size_t>(lane)]};
    if (loop_ != nullptr || steps_.size() > 1) {
      const auto first = static_cast<size_t>(part.begin);
      const std::span<const int32_t> shards = shards_.subspan(first, static_cast<size_t>(part.end) - first);
      if (loop_ != nullptr)
        run_->run_iterations(*loop_, shards, lane, own, checkpoint);
      else
        run_->run_shards(steps_, shards, own, checkpoint);
    } else {
      run_->run_work_groups(steps_.front(), part, own, checkpoint);
    }
  } catch (...) {
    const std::lock_guard held(mutex_);
    if (!error_) error_ = core::keep_trying([] { return error_of(std::current_exception()); });
    has_failed_.store(true, std::memory_order_relaxed);
  }
  run_->helper_ns_.fetch_add((std::chrono::steady_clock::now() - begun).count(), std::memory_order_relaxed);
}

bool SharedStep::start(bool is_lent) {
  const std::optional<int> lane = take_lane();
  call_threads(ends_.front());
  return take_parts(*lane, is_lent);
}

void SharedStep::work() {
  const std::optional<int> lane = take_lane();
  if (!lane) return;  // no scratch for more
  if (take_parts(*lane, false)) run_->go_on_after(*this, steps_);
}

bool SharedStep::take_parts(int lane, bool is_lent) {
  RunCheckpoint checkpoint(*run_, is_lent);
  while (const std::optional<size_t> part = take_part()) {
    run_part(parts_[*part], lane, checkpoint);
    const size_t done = done_parts_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (done == parts_.size()) return true;
    if (done != open_end_.load(std::memory_order_relaxed)) continue;
    const size_t end = *std::upper_bound(ends_.begin(), ends_.end(), done);
    open_end_.store(end, std::memory_order_release);
    call_threads(end - done);
  }
  give_lane(lane);
  return false;
}

}  // namespace meshd::device
