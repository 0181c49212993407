// A run that looks for the first step that makes a NaN or an infinity of finite values. Around each kernel and
// collective its operands and its results are read, padding apart; what the program was given, constants and replies
// of clients may be infinite. The thread that drives the run reads them, alone. Who asks for it has a plan whose steps
// are single ops (LowerRequest::is_unfused), so that no value between two ops is missed and the step's op is the one
// that made it.
#include <algorithm>

#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

bool is_sought(const kernels::Nonfinite& found, const NonfiniteSearch& search) {
  return (search.nans && found.nan) || (search.infinities && found.infinity);
}

// In the block of `real` dims at the beginning of an array of `local` dims.
kernels::Nonfinite find_in_block(const tensor::TensorType& local, const tensor::Dims& real, const std::byte* data) {
  kernels::Nonfinite out;
  const bool may_be = tensor::is_float(local.dtype) || tensor::is_complex(local.dtype);
  if (!may_be || std::find(real.begin(), real.end(), 0) != real.end()) return out;
  // The innermost dimensions lie in one run of elements, out to one that is padded.
  size_t outer = real.size();
  int64_t run = 1;
  for (bool is_padded = false; outer > 0 && !is_padded; is_padded = real[outer] != local.dims[outer])
    run *= real[--outer];
  const tensor::Dims strides = tensor::row_major_strides(local.dims);
  tensor::Dims at(outer, 0);
  for (size_t d = 1; d > 0;) {
    int64_t offset = 0;
    for (size_t i = 0; i < outer; ++i) offset += at[i] * strides[i];
    out |= kernels::find_nonfinite(local.dtype, data + offset * tensor::size_bytes(local.dtype), run);
    for (d = outer; d > 0 && ++at[d - 1] == real[d - 1]; --d) at[d - 1] = 0;
  }
  return out;
}

}  // namespace

kernels::Nonfinite RunImpl::find_nonfinite(const compile::PlanValue& value, int64_t shard) {
  const std::byte* const data = pointer(value.slot_ref, shard);
  if (data == nullptr) return {};  // another rank's
  const sharding::MeshView& view = plan().views[static_cast<size_t>(value.type.layout.view)];
  return find_in_block(value.type.local, value.type.shard_dims(view, shard), data);
}

void RunImpl::look_at_operands(const compile::Step& step, std::span<const int32_t> shards) {
  operands_are_finite_ = !is_sought(step.constants, request_.nonfinite);
  if (exchange_ != nullptr) look_at_messages(step);
  const auto look = [&](const compile::PlanValue& value, int64_t shard) {
    if (is_sought(find_nonfinite(value, shard), request_.nonfinite)) operands_are_finite_ = false;
  };
  for (const compile::SlotRef& operand : step.operands) {
    if (operand.slot < 0) continue;
    const compile::PlanValue& value = plan().values[static_cast<size_t>(operand.value)];
    if (step.collective != nullptr) {
      ActiveSet& active = *frames_.back().active;
      const int64_t count = plan().table(value.table).count();
      for (int64_t shard = 0; shard < count; ++shard) {
        if (owners_.is_alone || active.is_held_by(owners_.rank, value.table, shard)) look(value, shard);
      }
    } else {
      for (const int32_t shard : shards) look(value, own_shard(step, value, shard));
    }
  }
}

void RunImpl::look_at_messages(const compile::Step& step) {
  const compile::Collective& collective = step.collective->get(plan());
  for (const auto& [key, buffer] : exchange_->received) {
    const compile::CollectiveSource& source =
        collective.sources[static_cast<size_t>(key.first)][static_cast<size_t>(key.second)];
    const compile::PlanValue& value =
        plan().values[static_cast<size_t>(step.operands[static_cast<size_t>(source.operand)].value)];
    const tensor::DType dtype = value.type.local.dtype;
    if (!tensor::is_float(dtype) && !tensor::is_complex(dtype)) continue;
    kernels::Nonfinite found;
    if (source.block < 0) {
      const sharding::MeshView& view = plan().views[static_cast<size_t>(value.type.layout.view)];
      found = find_in_block(value.type.local, value.type.shard_dims(view, source.shard), buffer->data());
    } else {
      found = kernels::find_nonfinite(dtype, buffer->data(), buffer->size() / tensor::size_bytes(dtype));
    }
    if (is_sought(found, request_.nonfinite)) operands_are_finite_ = false;
  }
}

int64_t RunImpl::own_shard(const compile::Step& step, const compile::PlanValue& value, int64_t shard) const {
  const int32_t device = plan().table(step.table).device_of_shard[static_cast<size_t>(shard)];
  return plan().table(value.table).shard_of_device[static_cast<size_t>(device)];
}

void RunImpl::look_at_results(const compile::Step& step) {
  // Loops, branches and effects make nothing themselves.
  if (step.kind != compile::StepKind::kKernel && step.kind != compile::StepKind::kCollective) return;
  for (const int32_t shard : active_shards(*frames_.back().active, step.table)) {
    for (const compile::SlotRef& result : step.results) {
      if (result.slot < 0) continue;
      const compile::PlanValue& value = plan().values[static_cast<size_t>(result.value)];
      const kernels::Nonfinite found = find_nonfinite(value, own_shard(step, value, shard));
      if (!is_sought(found, request_.nonfinite)) continue;
      stats_.first_nonfinite = FirstNonfinite{
          .is_nan = request_.nonfinite.nans && found.nan,
          .op = step.name,
          .location = step.location,
          .device = plan().table(step.table).device_of_shard[static_cast<size_t>(shard)],
          .executed = steps_done_.load(std::memory_order_relaxed),
          .step = step.number,
      };
      return;
    }
  }
}

}  // namespace meshd::device
