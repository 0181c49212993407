// A kernel's call as that of the fused loop that it runs (PreparedKernel::fused).
#pragma once

#include "service/kernels/fused/fused_loop.h"
#include "service/ops/kernel_interface.h"

namespace meshd::ops {

inline kernels::FusedCall fused_call(const KernelCall& call) {
  return {.operands = call.operands,
          .results = call.results,
          .begin = call.begin,
          .end = call.end,
          .dim_offsets = call.result_offsets,
          .checkpoint = call.checkpoint,
          .workspace = call.workspace};
}

}  // namespace meshd::ops
