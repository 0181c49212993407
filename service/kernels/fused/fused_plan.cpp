#include "service/kernels/fused/fused_plan.h"

#include <algorithm>
#include <numeric>

#include "service/core/checked_math.h"
#include "service/kernels/cache_size.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/tile/tile_steps.h"

namespace meshd::kernels {
namespace {

/// Elements that are worth a work item of their own: some microseconds of work, a multiple of a cache line for any
/// type.
constexpr int64_t kFusedItemElements = 16 * 1024;
/// Results of a column reduction that one work item keeps at hand.
constexpr int64_t kMinChunkLanes = 512;
constexpr int64_t kMaxChunkLanes = 2048;
/// So many work items leave work for all threads.
constexpr int64_t kWorkItems = 8;
/// Reductions with fewer work items of results are cut into parts of at least so many elements, and so many parts at
/// most.
constexpr int64_t kPartElements = 64 * 1024;
constexpr int64_t kMostParts = 32;
constexpr int64_t kMostStoredBytes = 256 * 1024;  // of all parts
/// A loop without instructions only reads: tiles need no room for registers.
constexpr int64_t kReadingTile = 8192;
constexpr int64_t kRoundingTile = 1024;
/// Of inputs that code reads as one element for a row; tiles of shorter rows have several rows.
constexpr int64_t kLeastTileOfRow = 512;
constexpr int64_t kMostTileOfRow = 4096;
/// Lanes of rows of one stride, where there are others: code is called anew for these.
constexpr int64_t kLeastAlike = 128;
/// Rows of so many lanes, or a few times as many, are summed by code although they are shorter than a block.
constexpr int64_t kShortSum = 16;
/// Fewer lanes than these are folded within tiles: a tile of one row of them costs more than what it computes.
constexpr int64_t kTileLanes = 512;

/// Strides of an input over the iteration dims; an iota moves by one along its dim.
tensor::Dims walk_of(const FusedInput& input, size_t rank) {
  if (input.kind == FusedInput::Kind::kTensor) return input.strides;
  tensor::Dims strides(rank, 0);
  strides[static_cast<size_t>(input.iota_dim)] = 1;
  return strides;
}

Region whole_region(const FusedLoop& loop) {
  Region region;
  region.dims = loop.dims;
  const std::vector<uint16_t>& outputs = loop.program.outputs;
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    RegionInput input;
    input.reg = static_cast<uint16_t>(i);
    input.dtype = loop.program.registers[i];
    input.is_iota = loop.inputs[i].kind == FusedInput::Kind::kIota;
    input.is_output = std::find(outputs.begin(), outputs.end(), input.reg) != outputs.end();
    input.strides = walk_of(loop.inputs[i], loop.dims.size());
    region.inputs.push_back(std::move(input));
  }
  return region;
}

/// Lanes so that rows are a multiple of a tile or a tile a multiple of rows, and broadcasts along rows stay in their
/// registers.
int64_t fit_tile(int64_t tile, const Region& region) {
  if (region.dims.size() < 2 || region.dims.back() == 0) return tile;
  const int64_t inner = region.dims.back();
  if (inner > tile) {
    const int64_t pieces = (inner + tile - 1) / tile;
    const int64_t even = (inner + pieces - 1) / pieces;
    return (even + kBlockLanes - 1) / kBlockLanes * kBlockLanes;
  }
  return std::max<int64_t>(1, groups_of_tile(tile, inner)) * inner;
}

/// Splits the innermost dims off as a region; the rest become outer dims.
ReducePlan split_reduction(Region& region, std::vector<bool>& reduced, int64_t tile_lanes) {
  ReducePlan plan;
  region.collapse(reduced);
  size_t begin = region.dims.size();
  // The next run of dims outwards that are all reduced, or all kept; 1 and nothing taken when it is of the other kind.
  const auto take_run = [&](bool label) {
    const size_t end = begin;
    while (begin > 0 && reduced[begin - 1] == label) --begin;
    return tensor::element_count(region.dims, begin, end);
  };
  plan.lanes = take_run(false);
  if (plan.lanes < tile_lanes) {
    plan.items = take_run(true);
    plan.groups = take_run(false);
  }
  plan.reduced_size = plan.items;
  for (size_t d = 0; d < begin; ++d) {
    OuterDim outer;
    outer.size = region.dims[d];
    for (const RegionInput& input : region.inputs) outer.strides.push_back(input.strides[d]);
    if (reduced[d]) plan.reduced_size *= outer.size;
    (reduced[d] ? plan.reduced : plan.kept).push_back(std::move(outer));
  }
  const auto cut = static_cast<std::ptrdiff_t>(begin);
  region.dims.erase(region.dims.begin(), region.dims.begin() + cut);
  for (RegionInput& input : region.inputs) input.strides.erase(input.strides.begin(), input.strides.begin() + cut);
  std::vector<bool> all_alike(region.dims.size(), false);
  region.collapse(all_alike);
  return plan;
}

/// Of the inputs whose lanes are contiguous in memory.
int64_t input_bytes(const Region& region) {
  int64_t bytes = 0;
  for (const RegionInput& input : region.inputs) {
    if (input.is_dense) bytes += region.size * tensor::size_bytes(input.dtype);
  }
  return bytes;
}

void cut_into_work_items(ReducePlan& plan, int64_t tile) {
  if (plan.items == 1) {
    const int64_t results = plan.groups * plan.lanes;
    // Several work items where there is work for them; rows of some kilobytes are still read in one go.
    const int64_t cut = core::round_up((results + kWorkItems - 1) / kWorkItems, kMinChunkLanes);
    plan.chunk = std::min({results, cut, kMaxChunkLanes});
    plan.lanes *= plan.groups;
    plan.groups = 1;
    plan.chunks = plan.chunk == 0 ? 0 : (plan.lanes + plan.chunk - 1) / plan.chunk;
    return;
  }
  const int64_t behind_group = std::max<int64_t>(1, plan.reduced_size * plan.lanes);
  plan.chunk = std::clamp(kFusedItemElements / behind_group, int64_t{1}, std::max<int64_t>(1, plan.groups));
  const int64_t groups_in_tile =
      plan.items == 0 ? 1 : groups_of_tile(tile, std::max<int64_t>(1, plan.items * plan.lanes));
  if (!plan.reduced.empty()) {
    // Each step of what is reduced outside begins elsewhere in memory: with a whole tile, where that leaves several
    // work items.
    int64_t kept = 1;
    for (const OuterDim& dim : plan.kept) kept *= dim.size;
    plan.chunk = std::max(plan.chunk, std::min({groups_in_tile, plan.groups, plan.groups * kept / kWorkItems}));
  }
  if (groups_in_tile > 1 && plan.chunk > groups_in_tile) plan.chunk -= plan.chunk % groups_in_tile;
  plan.chunks = (plan.groups + plan.chunk - 1) / plan.chunk;
}

/// Of an accumulator's lane, when it is stored.
int64_t stored_lane_bytes(const FusedLoop& loop, const ReducePlan& plan) {
  if (plan.fold) return tensor::size_bytes(plan.fold->accumulator);
  if (plan.argmax) return 2 * static_cast<int64_t>(sizeof(int32_t));  // values are widened
  const TileProgram& reducer = loop.reduce->reducer;
  int64_t bytes = 0;
  for (const uint16_t reg : reducer.outputs) bytes += tensor::size_bytes(reducer.registers[reg]);
  return bytes;
}

/// Cuts what is reduced into parts where there are few work items, `count`: of one result alone there is one. Where
/// there are several pieces of this size, threads have one each.
void cut_into_parts(const FusedLoop& loop, int64_t count, int64_t tile, ReducePlan& plan) {
  if (loop.copies > 1 || count == 0 || count >= kWorkItems) return;
  const int64_t lanes = plan.items == 1 ? plan.chunk : plan.chunk * plan.lanes;
  const int64_t stored = core::round_up(lanes * stored_lane_bytes(loop, plan), kLineBytes);
  const int64_t elements = core::checked_product(loop.dims);
  const int64_t wanted = std::min({elements / kPartElements, kMostParts / count, kMostStoredBytes / (stored * count)});
  if (wanted < 2) return;
  const auto cut = [&](int64_t size, int64_t whole) {
    plan.part_size = core::round_up(core::ceil_div(size, wanted), whole);
    plan.parts = core::ceil_div(size, plan.part_size);
    plan.part_bytes = stored;
  };
  plan.cuts_outer = !plan.reduced.empty() && plan.reduced.front().size >= wanted;
  if (plan.cuts_outer)
    cut(plan.reduced.front().size, plan.reduced.front().size >= wanted * kFoldRows ? kFoldRows : 1);
  else if (plan.items * plan.lanes > tile && plan.items > 1 && (plan.reduced.empty() || plan.fold))
    cut(plan.items,
        kBlockLanes);  // others see items in their order, which goes through all of them for each outer index
}

/// Whether the second of two values that are reduced is an iota that nothing else reads: of one value in a step of
/// lanes, counting up from item to item.
bool counts_indices(const FusedLoop& loop, const ReducePlan& plan, const Region& region) {
  const TileProgram& program = loop.program;
  if (program.outputs.size() != 2) return false;
  const uint16_t index = program.outputs[1];
  if (index >= region.inputs.size() || !region.inputs[index].is_iota || program.outputs[0] == index) return false;
  for (const TileInstruction& instruction : program.instructions) {
    const int operands = used_operands(instruction);
    for (size_t k = 0; k < static_cast<size_t>(operands); ++k) {
      if (instruction.operands[k] == index) return false;
    }
  }
  const tensor::Dims& strides = region.inputs[index].strides;
  bool counts = plan.items == 1;
  int64_t inside = 1;  // elements that are further in than the dim
  for (size_t d = region.dims.size(); d-- > 0;) {
    const bool is_items = inside == plan.lanes && plan.items > 1 && region.dims[d] == plan.items;
    if (strides[d] != (is_items ? 1 : 0)) return false;
    counts = counts || is_items;
    inside *= region.dims[d];
  }
  return counts;
}

}  // namespace

int64_t groups_of_tile(int64_t tile, int64_t group_size) {
  const int64_t groups = tile / group_size;
  const int64_t block = kBlockLanes / std::gcd(group_size, kBlockLanes);
  return groups > block ? groups - groups % block : groups;
}

namespace {

bool is_element(tensor::DType dtype) {
  return lane_form(dtype) == LaneForm::kWord || lane_form(dtype) == LaneForm::kHalf;
}

/// Inputs that have other lanes in each row, which would be gathered; one row for all is gathered once.
size_t gathered_rows(const Region& region) {
  return static_cast<size_t>(std::count_if(region.inputs.begin(), region.inputs.end(), [](const RegionInput& input) {
    const auto outer = input.strides.end() - 1;
    return input.has_rows() && std::any_of(input.strides.begin(), outer, [](int64_t stride) { return stride != 0; });
  }));
}

/// Outputs whose rows go to places of their own.
size_t placed_rows(const FusedLoop& loop, int64_t row) {
  const std::vector<uint16_t>& outputs = loop.program.outputs;
  for (size_t k = 0; k < loop.places.size(); ++k) {
    const bool is_again = std::count(outputs.begin(), outputs.end(), outputs[k]) > 1;
    if (loop.places[k].row != row || is_again || !is_computed(loop.program, outputs[k])) return 0;
  }
  return loop.places.size();
}

/// Whether code takes a row as it is. What it computes twice of a row that ends within a vector should cost no more
/// than putting the elements on all lanes of the row, about one and a half simple operations for each element and lane.
/// Rows of less than a block are taken by code that goes from row to row alone.
bool can_be_row(const FusedLoop& loop, const FusedPlan& plan) {
  if (plan.region.dims.size() < 2) return false;
  const int64_t row = plan.region.dims.back();
  const size_t placed = placed_rows(loop, row);
  const size_t spared = plan.elements.size() + gathered_rows(plan.region) + placed;
  if (spared == 0 || row < lanes_of_vector()) return false;
  const int64_t alike = plan.region.dims[plan.region.dims.size() - 2];
  if (row < kBlockLanes || plan.region.dims.size() > 2) {
    const auto has_rows = [](const RegionInput& input) { return input.has_rows(); };
    const auto rows = std::count_if(plan.region.inputs.begin(), plan.region.inputs.end(), has_rows);
    const size_t moved = plan.elements.size() + static_cast<size_t>(rows) + placed;
    const bool is_code = plan.code != nullptr && can_walk_by_code(loop.program, moved);
    if (!is_code || alike * row < kLeastAlike) return false;
  }
  double cost = 0;
  for (const TileInstruction& instruction : loop.program.instructions) cost += cost_of(instruction.op);
  const auto twice = static_cast<double>(core::round_up(row, lanes_of_vector()) - row);
  return twice * cost <= 1.5 * static_cast<double>(row) * static_cast<double>(spared);
}

void set_row_lanes(FusedPlan& plan) {
  plan.row_lanes = plan.region.dims.back();
  for (const RegionInput& input : plan.region.inputs) {
    if (input.has_rows()) plan.row_inputs.push_back(input.reg);
  }
}

/// Inputs that have one value for a row, which code reads as one element: of a tile that is in one row, or of tiles of
/// several rows, row by row.
void set_elements(const FusedLoop& loop, FusedPlan& plan) {
  for (const RegionInput& input : plan.region.inputs) {
    if (input.is_output) continue;  // it is copied
    const bool is_constant = input.strides.empty() || input.strides.back() == 0;
    if (is_constant && !input.is_iota && is_element(input.dtype)) plan.elements.push_back(input.reg);
  }
  if (plan.region.dims.size() < 2) return;
  if (2 * plan.region.dims.back() <= plan.tile && can_be_row(loop, plan)) set_row_lanes(plan);
}

/// Tiles of one row, too, are run as rows: of one that ends within a block the last block of lanes begins earlier, and
/// code that reads all where it is takes several.
void set_long_row(const FusedLoop& loop, FusedPlan& plan) {
  if (plan.region.dims.size() < 2) return;
  if (plan.region.dims.back() == plan.tile && can_be_row(loop, plan)) set_row_lanes(plan);
}

void set_rows(const FusedLoop& loop, FusedPlan& plan) {
  const int64_t row = plan.region.dims.empty() ? 1 : plan.region.dims.back();
  const bool is_one_row = plan.region.dims.size() < 2;
  set_elements(loop, plan);
  if (plan.row_lanes > 0) return;
  if (!is_one_row && !plan.elements.empty() && row >= kLeastTileOfRow) {
    // Code has its values in vector registers: its tiles may be longer than those of the interpreter.
    const bool is_code = plan.code != nullptr && cpu_level() != CpuLevel::kBase && row <= kMostTileOfRow;
    plan.tile = is_code ? row : std::min(plan.tile, row);
  }
  plan.by_rows = !is_one_row && row >= plan.tile;
  if (!is_one_row && !plan.by_rows) plan.elements.clear();
  set_long_row(loop, plan);
}

/// Rows of a block or more, or of 16, 32 or 48 lanes, of a value that is computed: the only one, for it is not stored.
void set_sums(const FusedLoop& loop, const ReducePlan& reduce, FusedPlan& plan) {
  if (plan.code == nullptr || cpu_level() == CpuLevel::kBase) return;
  const bool is_sum = reduce.fold && reduce.fold->sums_floats && reduce.fold->widen == nullptr;
  if (!is_sum || reduce.lanes != 1 || loop.program.outputs.size() != 1) return;
  // Of a row that ends within a block, so many lanes are computed for a second time.
  const int64_t again = core::round_up(reduce.items, kBlockLanes) - reduce.items;
  const bool is_short = reduce.items < kBlockLanes && reduce.items > 0 && reduce.items % kShortSum == 0;
  if (!is_short && (reduce.items < kBlockLanes || 2 * again > reduce.items)) return;
  if (is_computed(loop.program, loop.program.outputs[0])) plan.sum_lanes = reduce.items;
}

/// The same for a reduction of rows.
void set_rows_of_reduction(const FusedLoop& loop, const ReducePlan& reduce, FusedPlan& plan) {
  if (reduce.items <= 1 || reduce.lanes != 1) return;
  if (plan.region.dims.back() != reduce.items) return;
  set_elements(loop, plan);
  if (plan.row_lanes > 0) return;
  const bool is_in_row = plan.region.dims.size() < 2 || groups_of_tile(plan.tile, reduce.items) <= 1;
  if (!is_in_row) plan.elements.clear();
}

}  // namespace

FusedPlan make_fused_plan(const FusedLoop& loop) {
  FusedPlan plan{.region = whole_region(loop),
                 .layout = TileLayout(loop.program),
                 .stays = {},
                 .elements = {},
                 .row_inputs = {},
                 .row_outputs = {},
                 .code = loop.code_after ? std::make_shared<const LazyTileCode>(*loop.code_after) : nullptr,
                 .reduce = std::nullopt};
  plan.tile = tile_lanes(loop.program);
  const bool only_reads = loop.program.instructions.empty() && loop.program.constants.empty();
  if (!loop.reduce) {
    std::vector<bool> alike(loop.dims.size(), false);
    plan.region.collapse(alike);
    plan.tile = fit_tile(plan.tile, plan.region);
    set_rows(loop, plan);
    plan.work_item_elements = loop.work_item_elements.value_or(kFusedItemElements);
    if (plan.row_lanes > 0 && plan.work_item_elements % plan.row_lanes != 0) {
      if (loop.work_item_elements) {
        // Rows cannot begin with each work item.
        plan.row_lanes = 0;
        plan.elements.clear();
        plan.row_inputs.clear();
      } else {
        plan.work_item_elements -= plan.work_item_elements % plan.row_lanes;
      }
    }
    plan.work_count = core::ceil_div(plan.region.size, plan.work_item_elements);
    int64_t output_bytes = 0;
    for (const uint16_t reg : loop.program.outputs) {
      output_bytes += plan.region.size * tensor::size_bytes(loop.program.registers[reg]);
    }
    const bool is_large = output_bytes * loop.copies >= streaming_bytes();
    plan.streams = is_large && loop.places.empty();
    plan.places_stream = is_large && !loop.places.empty();
    if (plan.row_lanes > 0 && placed_rows(loop, plan.row_lanes) > 0 && !plan.places_stream)
      plan.row_outputs = loop.program.outputs;
    plan.prefetches = is_large || (output_bytes + input_bytes(plan.region)) * loop.copies >= streaming_bytes();
    return plan;
  }
  std::vector<bool> reduced(loop.dims.size(), false);
  for (const int dim : loop.reduce->dims) reduced[static_cast<size_t>(dim)] = true;
  int64_t results = 1;
  for (size_t d = 0; d < loop.dims.size(); ++d) results *= reduced[d] ? 1 : loop.dims[d];
  // Rows of memory are folded as they are, without tiles, from a block of lanes on.
  const bool reads_rows = only_reads && loop.inputs.size() == 1;
  const int64_t rows_of_two = std::max(kBlockLanes, std::min(kTileLanes, plan.tile / 2));
  ReducePlan reduce = split_reduction(plan.region, reduced, reads_rows ? kBlockLanes : rows_of_two);
  if (loop.program.outputs.size() == 1) {
    reduce.fold = find_fold(as_single_binary(loop.reduce->reducer), loop.program.registers[loop.program.outputs[0]]);
  }
  // What rounds at each step keeps its runs short.
  if (only_reads) plan.tile = reduce.fold && reduce.fold->rounds ? kRoundingTile : kReadingTile;
  cut_into_work_items(reduce, plan.tile);
  set_rows_of_reduction(loop, reduce, plan);
  set_sums(loop, reduce, plan);
  if (counts_indices(loop, reduce, plan.region)) {
    if (const std::optional<ArgmaxOrder> order = as_argmax_reducer(loop.reduce->reducer))
      reduce.argmax = find_argmax_fold(*order, loop.program.registers[loop.program.outputs[0]]);
    if (reduce.argmax) plan.region.inputs[loop.program.outputs[1]].first_only = true;
  }
  if (!reduce.fold && !reduce.argmax) {
    reduce.reducer_layout.emplace(loop.reduce->reducer);
    if (loop.code_after) reduce.reducer_code = std::make_shared<const LazyTileCode>(*loop.code_after);
  }
  plan.work_count = results == 0 ? 0 : reduce.chunks;
  for (const OuterDim& dim : reduce.kept) plan.work_count *= dim.size;
  cut_into_parts(loop, plan.work_count, std::min(plan.tile, plan.region.size), reduce);
  if (reduce.parts > 1) {
    plan.barrier = plan.work_count * reduce.parts;
    plan.workspace_bytes = plan.barrier * reduce.part_bytes;
    plan.work_count += plan.barrier;
  }
  plan.reduce = std::move(reduce);
  return plan;
}

namespace {

/// Results leave past the caches from the code itself where all of them do.
bool code_streams(const FusedPlan& plan) {
  return plan.streams && std::none_of(plan.stays.begin(), plan.stays.end(), [](char stays) { return stays != 0; });
}

TileCode::Options options_of(const FusedPlan& plan) {
  return {.prefetches = plan.prefetches,
          .streams = code_streams(plan),
          .row_lanes = plan.row_lanes,
          .sums = plan.sum_lanes,
          .elements = plan.elements,
          .row_inputs = plan.row_inputs,
          .row_outputs = plan.row_outputs};
}

}  // namespace

const TileCode* code_of(const FusedLoop& loop, const FusedPlan& plan, int64_t lanes) {
  return plan.code == nullptr ? nullptr : plan.code->get(loop.program, options_of(plan), lanes);
}

std::span<const uint16_t> elements_of(const TileCode* code, const FusedPlan& plan) {
  return code != nullptr && code->reads_elements() ? plan.elements : std::span<const uint16_t>();
}

bool goes_by_row(const TileCode* code, const FusedPlan& plan) {
  return plan.row_lanes > 0 && code != nullptr && (plan.elements.empty() || code->reads_elements());
}

bool reads_in_place(const TileCode* code, const FusedPlan& plan) {
  if (code == nullptr || !code->needs_no_registers()) return false;
  const bool by_row = goes_by_row(code, plan);
  if (plan.region.dims.size() > 1 && !by_row) return false;
  const std::span<const uint16_t> elements = elements_of(code, plan);
  return std::all_of(plan.region.inputs.begin(), plan.region.inputs.end(), [&](const RegionInput& input) {
    return input.is_dense || (by_row && input.has_rows()) ||
           std::find(elements.begin(), elements.end(), input.reg) != elements.end();
  });
}

int64_t fused_code_bytes(const FusedLoop& loop, const FusedPlan& plan) {
  const auto bytes_of = [](const TileProgram& program, const TileCode::Options& options) {
    return gains_by_code(program, options) ? code_bytes(program, options) : 0;
  };
  int64_t bytes = plan.code != nullptr ? bytes_of(loop.program, options_of(plan)) : 0;
  if (plan.reduce && plan.reduce->reducer_code != nullptr) bytes += bytes_of(loop.reduce->reducer, {});
  return bytes;
}

void set_bases(TileReader& reader, const FusedLoop& loop, const FusedCall& call, const tensor::Dims& places) {
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    const FusedInput& input = loop.inputs[i];
    const int64_t place = places.empty() ? 0 : places[i];
    if (input.kind == FusedInput::Kind::kIota) {
      const int64_t first = call.dim_offsets == nullptr ? 0 : call.dim_offsets[input.iota_dim];
      reader.set_base(i, first + place);
      continue;
    }
    const int64_t bytes = tensor::size_bytes(loop.program.registers[i]);
    reader.set_base(i, call.operands[input.operand] + (input.offset + place) * bytes);
  }
}

}  // namespace meshd::kernels
