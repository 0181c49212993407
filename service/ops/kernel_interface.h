// The kernel interface of ops: kernels on one shard, collectives over a group, tile programs of scalar operations. Rows
// with a kernel make these, the plan keeps them and devices call them. Apart from op_def.h, so that the stages that
// only read rows do not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/fused/small_step.h"
#include "service/ops/op_def.h"

namespace meshd::kernels {
class FusedKernel;
struct PackedOperand;
}  // namespace meshd::kernels

namespace meshd::ops {

/// One call of a local kernel on one shard.
struct KernelCall {
  const std::byte* const* operands = nullptr;
  std::byte* const* results = nullptr;
  int64_t begin = 0;  ///< range of work items
  int64_t end = 0;
  std::byte* scratch = nullptr;    ///< PreparedKernel::scratch_bytes, of this call alone, aligned to 64
  std::byte* workspace = nullptr;  ///< PreparedKernel::workspace_bytes, the same for all calls of one execution
  const int64_t* result_offsets =
      nullptr;  ///< where result 0's shard starts in the global result, by dimension; null: all zero
  core::Checkpoint* checkpoint = nullptr;  ///< passed in what takes more than a millisecond; null: never checked
  kernels::PackedOperand* kept = nullptr;  ///< PreparedKernel::packed_operand; null: nothing stays in the scratch
};

/// A kernel made ready for fixed local types and attributes. run() may be called by several threads on disjoint work
/// item ranges. Ranges may contain barriers: a thread that has all items before a barrier goes on with those after it.
///
/// Example: a Fourier transform of 1024 rows and 1024 columns, 8 rows or 16 columns a work item: 192 items and a
/// barrier at 128. Two threads take items 0 to 127 in any order; items 128 to 191 begin when those are done.
struct PreparedKernel {
  std::function<void(const KernelCall&)> run;
  int64_t work_count = 1;    ///< the output can be split into this many work items
  double flops = 0;          ///< work of all work items
  double bytes = 0;          ///< traffic of all work items
  int64_t parts = 1;         ///< a sum over shards (Fuse::summed): of how many devices this is the work
  double flops_per_ns = 30;  ///< of one core, for estimates: what simple operations have
  /// Work items from each of these on begin when all before it are done. Ascending, within (0, work_count).
  std::vector<int64_t> barriers;
  int64_t scratch_bytes = 0;  ///< for each concurrent call
  /// For each execution on one shard: what work items before a barrier leave for those after it. Aligned to 64.
  int64_t workspace_bytes = 0;
  int64_t code_bytes = 0;     ///< of machine code that run() may make and keep, at most
  bool uses_offsets = false;  ///< reads result_offsets
  /// run() passes its call's checkpoint every 10^5 to 10^6 operations. Else the caller splits ranges of work items into
  /// work groups, and each work item is some milliseconds of work at most.
  bool passes_checkpoints = false;
  /// An operand that a call may pack into its scratch and leave there (KernelCall::kept), so that the next call of the
  /// execution on this scratch does not pack it again: it pays to make the same work item of all shards that have this
  /// operand at the same place before the next one. -1: none.
  int packed_operand = -1;
  std::vector<std::pair<int, int>> in_place;          ///< (operand, result) pairs that may share memory
  std::shared_ptr<const kernels::FusedKernel> fused;  ///< what run() calls, where it is a fused loop; else null
  std::shared_ptr<const kernels::SmallStep> small;    ///< what run() does, in small whiles; null: it is no such step
};

/// A collective: a pure function from the inputs of a group, in group order, to each member's output. No threads, no
/// devices.
struct GroupCall {
  std::span<const std::byte* const* const> member_operands;  ///< [member][operand]
  int64_t member = 0;                                        ///< member that computes its output, index in the group
  std::byte* const* results = nullptr;                       ///< that member's results
  core::Checkpoint* checkpoint = nullptr;                    ///< as KernelCall's
};
struct PreparedGroup {
  std::function<void(const GroupCall&)> run;
  bool same_for_all = false;  ///< every member gets the same bytes (all_reduce, all_gather): computed once
  double bytes = 0;           ///< traffic of one member
};

/// Appends a pointwise op to a tile program, in the form that its row has, and returns the result's register. `view`
/// has the declared result. Throws unsupported_dtype naming the operation and the type when there is no kernel.
uint16_t emit_scalar(const ScalarMath& math, const OpView& view, kernels::TileProgram& program,
                     std::span<const uint16_t> operands);

/// Compiles a region of scalar ops (reducer, comparator, scatter body, map) into a tile program: inputs are the
/// region's arguments in order, outputs its returned values. Throws unsupported_op naming the op and its line when the
/// region holds something else.
kernels::TileProgram compile_scalar_region(const ir::Function& function, const ir::Region& region);

}  // namespace meshd::ops
