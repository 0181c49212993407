// Reductions over shards: each distinct result is computed once, from all members in ascending position order.
#include <algorithm>
#include <array>
#include <cstring>

#include "service/compile/plan/collectives.h"
#include "service/core/error.h"
#include "service/kernels/cache_size.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/stream_store.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/kernel_interface.h"

namespace meshd::compile {
namespace {

using sharding::MeshView;

constexpr int64_t kReduceWorkItemElements = int64_t{1} << 14;
constexpr int64_t kReduceTileBytes = 8192;  // partial results of a tile stay in the first cache

// Reduction over shards in a fixed order, over ranges of elements.
struct ShardReducer {
  kernels::TileProgram program;
  kernels::ScalarKernel direct = nullptr;
  std::vector<int64_t> element_bytes;  // by operand
  int64_t count = 0;
  size_t operands = 1;

  void run(const CollectiveCall& call, size_t members) const {
    const int64_t start = call.begin * kReduceWorkItemElements;
    const int64_t stop = std::min(count, call.end * kReduceWorkItemElements);
    if (direct != nullptr) return run_direct(call, members, start, stop);
    const int64_t lanes = kernels::tile_lanes(program);
    kernels::TileScratch scratch(program, lanes);
    for (int64_t at = start; at < stop; at += lanes) {
      const int64_t width = std::min(lanes, stop - at);
      for (size_t k = 0; k < operands; ++k) copy_lanes(call.results[k], call.sources[k], k, at, width);
      for (size_t member = 1; member < members; ++member) {
        for (size_t k = 0; k < operands; ++k) {
          const auto bytes = static_cast<size_t>(width * element_bytes[k]);
          std::memcpy(scratch.reg(static_cast<uint16_t>(k)), call.results[k] + at * element_bytes[k], bytes);
          std::memcpy(scratch.reg(static_cast<uint16_t>(operands + k)),
                      call.sources[member * operands + k] + at * element_bytes[k], bytes);
        }
        kernels::run_tile(program, scratch, width);
        for (size_t k = 0; k < operands; ++k) {
          std::memcpy(call.results[k] + at * element_bytes[k], scratch.reg(program.outputs[k]),
                      static_cast<size_t>(width * element_bytes[k]));
        }
      }
    }
  }

 private:
  void copy_lanes(std::byte* to, const std::byte* from, size_t k, int64_t at, int64_t width) const {
    std::memcpy(to + at * element_bytes[k], from + at * element_bytes[k],
                static_cast<size_t>(width * element_bytes[k]));
  }

  // One known operation: member after member over tiles that stay in the first cache. A large result leaves past the
  // caches, which saves reading its lines before they are written.
  void run_direct(const CollectiveCall& call, size_t members, int64_t start, int64_t stop) const {
    const int64_t size = element_bytes[0];
    if (members == 1) return copy_lanes(call.results[0], call.sources[0], 0, start, stop - start);
    alignas(64) std::array<std::byte, kReduceTileBytes> buffer;
    const bool streams = count * size >= kernels::streaming_bytes();
    const int64_t tile = kReduceTileBytes / size;
    for (int64_t at = start; at < stop; at += tile) {
      const int64_t width = std::min(tile, stop - at);
      std::byte* const result = call.results[0] + at * size;
      std::byte* const out = streams ? buffer.data() : result;
      const std::byte* left = call.sources[0] + at * size;
      for (size_t member = 1; member < members; ++member) {
        const std::byte* const pair[] = {left, call.sources[member] + at * size};
        direct(pair, out, width);
        left = out;
      }
      if (streams) kernels::stream_copy(result, out, width * size);
    }
    if (streams) kernels::stream_fence();
  }
};

// For each result shard, the operands' shards of every position, in ascending order; returns how many positions those
// are.
int64_t set_sources(const Plan& plan, const std::vector<LocalId>& operands, LocalId result,
                    sharding::SubAxisSet reduced, Collective& collective) {
  const PlanValue& value = plan.values[static_cast<size_t>(result)];
  const MeshView& view = plan.views[static_cast<size_t>(value.type.layout.view)];
  const int64_t members = view.distinct_count(reduced);
  for (int64_t shard = 0; shard < plan.table(value.table).count(); ++shard) {
    std::vector<CollectiveSource> sources;
    const tensor::Dims base = view.coordinates(value.type.varies, shard);
    for (int64_t member = 0; member < members; ++member) {
      tensor::Dims coords = view.coordinates(reduced, member);
      for (size_t i = 0; i < coords.size(); ++i) {
        if ((reduced >> i & 1) == 0) coords[i] = base[i];
      }
      for (size_t k = 0; k < operands.size(); ++k) {
        const PlanValue& operand = plan.values[static_cast<size_t>(operands[k])];
        const int64_t source = view.distinct_index(operand.type.varies, coords);
        sources.push_back(source_of(plan, static_cast<int32_t>(k), operands[k], source));
      }
    }
    collective.sources.push_back(std::move(sources));
  }
  return members;
}

}  // namespace

CollectiveMaker reduce_shards_maker(const PlanBuilder& builder, const LocalOp& op) {
  ShardReducer reducer;
  reducer.program = ops::compile_scalar_region(*builder.program->function, op.regions.at(0));
  reducer.operands = op.operands.size();
  // The reducer may reinterpret the bits: elements of its own type, two for each complex number.
  const tensor::DType dtype = reducer.program.registers[0];
  const BuilderValue& first = builder.value(op.operands[0]);
  reducer.count = tensor::byte_count(first.type.local) / tensor::size_bytes(dtype);
  for (size_t k = 0; k < op.operands.size(); ++k)
    reducer.element_bytes.push_back(tensor::size_bytes(reducer.program.registers[k]));
  const kernels::ScalarOp single = kernels::as_single_binary(reducer.program);
  if (single != kernels::ScalarOp::kCopy) {
    reducer.direct = kernels::find_scalar_kernel(single, dtype, dtype);
  }
  return [reducer = std::move(reducer), operands = op.operands, result = op.results[0],
          reduced = op.reduced](const Plan& plan) {
    Collective collective;
    if (operands.size() == 1) collective.item_bytes = kReduceWorkItemElements * reducer.element_bytes[0];
    const int64_t members = set_sources(plan, operands, result, reduced, collective);
    collective.work_items.assign(collective.sources.size(), core::ceil_div(reducer.count, kReduceWorkItemElements));
    collective.run = [reducer, members](const CollectiveCall& call) {
      reducer.run(call, static_cast<size_t>(members));
    };
    return collective;
  };
}

CollectiveMaker sum_maker(const LocalOp& op, std::vector<LocalId> operands, ops::PreparedKernel kernel) {
  return [kernel = std::move(kernel), operands = std::move(operands), result = op.results[0],
          reduced = op.reduced](const Plan& plan) {
    Collective collective;
    set_sources(plan, operands, result, reduced, collective);
    collective.work_items.assign(collective.sources.size(), kernel.work_count);
    collective.run = [run = kernel.run](const CollectiveCall& call) {
      ops::KernelCall one;
      one.operands = call.sources;
      one.results = call.results;
      one.begin = call.begin;
      one.end = call.end;
      one.scratch = call.scratch;
      one.checkpoint = call.checkpoint;
      run(one);
    };
    return collective;
  };
}

}  // namespace meshd::compile
