#include "service/kernels/fused/repeated_loop.h"

#include <algorithm>
#include <memory_resource>
#include <optional>

#include "service/kernels/fused/fused_plan.h"
#include "service/kernels/fused/pointwise_run.h"
#include "service/kernels/fused/reduce_run.h"

namespace meshd::kernels {
struct RepeatedLoop::Registers {
  Registers(std::shared_ptr<const FusedKernel> of, const FusedCall& of_call)
      : kernel(std::move(of)), call(of_call), end(std::min(call.end * plan().work_item_elements, plan().region.size)) {
    if (kernel->loop().reduce)
      reduce.emplace(kernel->loop(), plan(), call, &memory);
    else
      pointwise.emplace(kernel->loop(), plan(), call, end - begin(), &memory).move_to({});
  }

  [[nodiscard]] const FusedPlan& plan() const { return kernel->plan(); }
  [[nodiscard]] int64_t begin() const { return call.begin * plan().work_item_elements; }

  std::shared_ptr<const FusedKernel> kernel;
  FusedCall call;
  int64_t end;  ///< of a pointwise loop's elements
  std::pmr::monotonic_buffer_resource memory;
  std::optional<PointwiseRun> pointwise;
  std::optional<ReduceRun> reduce;
};

RepeatedLoop::RepeatedLoop(std::unique_ptr<Registers> registers) : registers_(std::move(registers)) {}
RepeatedLoop::~RepeatedLoop() = default;

std::unique_ptr<RepeatedLoop> RepeatedLoop::make(std::shared_ptr<const FusedKernel> kernel, const FusedCall& call) {
  const FusedPlan& plan = kernel->plan();
  const bool is_short = tensor::element_count(kernel->loop().dims) <= kMostElements;
  if (!is_short || kernel->small() != nullptr || plan.streams || plan.places_stream) return nullptr;
  if (call.begin >= call.end || plan.region.size == 0) return nullptr;
  return std::unique_ptr<RepeatedLoop>(new RepeatedLoop(std::make_unique<Registers>(std::move(kernel), call)));
}

void RepeatedLoop::run() {
  Registers& of = *registers_;
  const std::vector<FusedInput>& inputs = of.kernel->loop().inputs;
  const auto forget_all = [&](auto& run) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].kind == FusedInput::Kind::kTensor) run.forget(i);
    }
  };
  if (of.reduce) {
    forget_all(*of.reduce);
    for (int64_t work_item = of.call.begin; work_item < of.call.end; ++work_item) of.reduce->run_work_item(work_item);
  } else if (!of.pointwise->run_again()) {
    forget_all(*of.pointwise);
    of.pointwise->run(of.begin(), of.end);
  }
}

}  // namespace meshd::kernels
