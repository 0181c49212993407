#include "service/kernels/fused/fused_loop.h"

#include <algorithm>

#include "service/kernels/fused/fused_plan.h"
#include "service/kernels/fused/loop_memory.h"
#include "service/kernels/fused/pointwise_run.h"
#include "service/kernels/fused/reduce_run.h"
#include "service/kernels/fused/small_loop.h"
#include "service/kernels/stream_store.h"

namespace meshd::kernels {
namespace {

void run_pointwise(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call) {
  const int64_t end = std::min(call.end * plan.work_item_elements, plan.region.size);
  const int64_t at = call.begin * plan.work_item_elements;
  if (at >= end) return;
  LoopMemory memory;
  PointwiseRun run(loop, plan, call, end - at, memory.resource());
  run.move_to({});
  run.run(at, end);
  if (plan.streams || plan.places_stream) stream_fence();
}

void run_reduce(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call) {
  if (call.begin >= call.end) return;
  LoopMemory memory;
  ReduceRun run(loop, plan, call, memory.resource());
  for (int64_t work_item = call.begin; work_item < call.end; ++work_item) run.run_work_item(work_item);
}

}  // namespace

struct FusedKernel::Prepared {
  FusedPlan plan;
  std::optional<SmallLoop> small;
};

FusedKernel::FusedKernel(FusedLoop loop) : loop_(std::move(loop)) {
  FusedPlan plan = make_fused_plan(loop_);
  std::optional<SmallLoop> small = SmallLoop::make(loop_, plan);
  prepared_ = std::make_shared<const Prepared>(Prepared{std::move(plan), std::move(small)});
  work_count_ = prepared_->plan.work_count;
}

int64_t FusedKernel::barrier() const { return prepared_->plan.barrier; }

int64_t FusedKernel::workspace_bytes() const { return prepared_->plan.workspace_bytes; }

int64_t FusedKernel::code_bytes() const { return prepared_->small ? 0 : fused_code_bytes(loop_, prepared_->plan); }

const SmallLoop* FusedKernel::small() const { return prepared_->small ? &*prepared_->small : nullptr; }

const FusedPlan& FusedKernel::plan() const { return prepared_->plan; }

void FusedKernel::run(const FusedCall& call) const {
  if (prepared_->small) return prepared_->small->run(call);
  if (loop_.reduce) return run_reduce(loop_, prepared_->plan, call);
  run_pointwise(loop_, prepared_->plan, call);
}

}  // namespace meshd::kernels
