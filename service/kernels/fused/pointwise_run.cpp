#include "service/kernels/fused/pointwise_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/movement/groups.h"
#include "service/kernels/movement/movement_loops.h"
#include "service/kernels/stream_store.h"

namespace meshd::kernels {
namespace {

constexpr uintptr_t kStreamAlignment = 64;

}  // namespace

PointwiseRun::PointwiseRun(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call, int64_t most_elements,
                           std::pmr::memory_resource* memory)
    : loop_(loop),
      plan_(plan),
      call_(call),
      scratch_(loop.program, plan.layout, std::min(plan.tile, most_elements), memory),
      reader_(plan.region, scratch_, memory),
      ways_(loop.program.outputs.size(), OutputWay::kDirect, memory),
      soon_(memory),
      columns_(memory),
      row_(plan.region.dims.empty() ? 1 : plan.region.dims.back()) {
  set_ways();
}

void PointwiseRun::set_ways() {
  const std::vector<uint16_t>& outputs = loop_.program.outputs;
  if (!loop_.places.empty()) {
    columns_.resize(outputs.size());
    return std::fill(ways_.begin(), ways_.end(), set_columns() ? OutputWay::kColumn : OutputWay::kPlace);
  }
  // A result that takes over an operand's memory may only be written when nothing reads the tile any more.
  for (const FusedInput& input : loop_.inputs) {
    if (input.kind == FusedInput::Kind::kIota) continue;
    const std::byte* const from = call_.operands[input.operand];
    takes_over_ =
        takes_over_ || std::find(call_.results, call_.results + outputs.size(), from) != call_.results + outputs.size();
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const bool is_first = std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(k), outputs[k]) ==
                          outputs.begin() + static_cast<std::ptrdiff_t>(k);
    if (takes_over_ || !is_first || !is_computed(loop_.program, outputs[k])) ways_[k] = OutputWay::kCopy;
    if (plan_.streams && (plan_.stays.empty() || !plan_.stays[k])) ways_[k] = OutputWay::kStream;
  }
}

/// Whether the outputs are all columns of the result, each of one element a row.
bool PointwiseRun::set_columns() {
  const size_t count = columns_.size();
  if (count < 2 || count > kMostInterleaved) return false;
  for (size_t k = 0; k < count; ++k) {
    const FusedPlace& place = loop_.places[k];
    const bool is_column = place.row == 1 && place.row_stride == static_cast<int64_t>(count) &&
                           place.offset < place.row_stride && element_bytes(k) == element_bytes(0);
    if (!is_column) return false;
    columns_[static_cast<size_t>(place.offset)] = loop_.program.outputs[k];
  }
  return true;
}

// Results that were copied past the caches are stored there by the code itself: a full tile, cache line by cache line.
bool PointwiseRun::can_stream_by_code(int64_t at, int64_t count) const {
  const bool is_whole = count % kBlockLanes == 0 && plan_.row_lanes % kBlockLanes == 0;
  if (code_ == nullptr || !code_->streams() || takes_over_ || !is_whole) return false;
  for (size_t k = 0; k < ways_.size(); ++k) {
    if (reinterpret_cast<uintptr_t>(call_.results[k] + at * element_bytes(k)) % kStreamAlignment != 0) return false;
  }
  return true;
}

// What a tile writes behind itself is computed again by the next tile, which no other thread has.
int64_t PointwiseRun::lanes_of(int64_t at, int64_t count, int64_t end) const {
  return is_direct() ? lanes_of_tile(at, count, end) : count;
}

bool PointwiseRun::is_direct() const {
  return std::all_of(ways_.begin(), ways_.end(), [](OutputWay way) { return way == OutputWay::kDirect; });
}

// Tiles have the size of registers. Where no lane passes through one, whole blocks of lanes, or rows, go on for longer.
int64_t PointwiseRun::tile_at(int64_t at, int64_t end, bool in_place, bool by_row) const {
  int64_t tile = std::min(plan_.tile, end - at);
  if (plan_.by_rows) tile = std::min(tile, row_ - at % row_);
  if (!in_place) return tile;
  const int64_t unit = by_row ? plan_.row_lanes : kBlockLanes;
  const int64_t longer = std::min(kLongTile, end - at) / unit * unit;
  const bool is_placed = by_row && !plan_.row_outputs.empty();
  return longer > tile && (is_direct() || is_placed || can_stream_by_code(at, longer)) ? longer : tile;
}

void PointwiseRun::bind_outputs(int64_t at) {
  for (size_t k = 0; k < ways_.size(); ++k) {
    const uint16_t reg = loop_.program.outputs[k];
    if (ways_[k] == OutputWay::kDirect) scratch_.bind(reg, call_.results[k] + at * element_bytes(k));
  }
}

void PointwiseRun::copy_outputs(int64_t at, int64_t count) {
  if (ways_[0] == OutputWay::kColumn) {
    std::array<const std::byte*, kMostInterleaved> rows{};
    for (size_t k = 0; k < columns_.size(); ++k) rows[k] = scratch_.reg(columns_[k]);
    const auto group_bytes = static_cast<int64_t>(columns_.size()) * element_bytes(0);
    return interleave(call_.results[0] + at * group_bytes, {rows.data(), columns_.size()}, count, element_bytes(0));
  }
  for (size_t k = 0; k < ways_.size(); ++k) {
    if (ways_[k] == OutputWay::kDirect) continue;
    if (ways_[k] == OutputWay::kPlace) {
      place_output(k, at, count);
      continue;
    }
    const std::byte* const from = scratch_.reg(loop_.program.outputs[k]);
    std::byte* const to = call_.results[k] + at * element_bytes(k);
    if (ways_[k] == OutputWay::kStream)
      stream_copy(to, from, count * element_bytes(k));
    else
      std::memmove(to, from, static_cast<size_t>(count * element_bytes(k)));
  }
}

void PointwiseRun::place_output(size_t output, int64_t at, int64_t count) {
  const FusedPlace& place = loop_.places[output];
  const int64_t bytes = element_bytes(output);
  const std::byte* from = scratch_.reg(loop_.program.outputs[output]);
  const auto copy = [&](int64_t rows, int64_t lanes) {
    std::byte* to = call_.results[0] + (place.offset + at / place.row * place.row_stride + at % place.row) * bytes;
    if (lanes == 1) {
      copy_strided(to, place.row_stride * bytes, from, bytes, rows, bytes);
    } else if (lanes <= kMaxGroup && rows > 1) {
      copy_groups(to, from,
                  {.count = rows,
                   .size = lanes,
                   .element_bytes = bytes,
                   .dst = {place.row_stride * bytes, bytes},
                   .src = {lanes * bytes, bytes}});
    } else if (lanes * bytes >= kLeastCopiedRow && lanes * bytes <= kMostCopiedRow) {
      copy_rows(to, place.row_stride * bytes, from, lanes * bytes, lanes * bytes, rows);
    } else {
      for (int64_t row = 0; row < rows; ++row)
        copy_run(to + row * place.row_stride * bytes, from + row * lanes * bytes, lanes * bytes, plan_.places_stream);
    }
    from += rows * lanes * bytes;
    at += rows * lanes;
    count -= rows * lanes;
  };
  if (at % place.row != 0) copy(1, std::min(count, place.row - at % place.row));
  if (count >= place.row) copy(count / place.row, place.row);
  if (count > 0) copy(1, count);
}

bool PointwiseRun::run_again() {
  if (!again_) return false;
  core::pass(call_.checkpoint);
  run_tile(loop_.program, code_, scratch_, again_->lanes);
  copy_outputs(again_->at, again_->count);
  return true;
}

void PointwiseRun::run(int64_t at, int64_t end, std::span<const SoonRead> soon) {
  const TileProgram& program = loop_.program;
  const int64_t begin = at;
  if (code_ == nullptr) code_ = code_of(loop_, plan_, end - at);
  const std::span<const uint16_t> elements = elements_of(code_, plan_);
  const bool by_row = goes_by_row(code_, plan_);
  // While others are prefetched no results are stored past the caches by code.
  const bool is_placed = by_row && !plan_.row_outputs.empty();
  const bool in_place = (soon.empty() || (by_row && is_direct())) && reads_in_place(code_, plan_);
  again_.reset();
  while (at < end) {
    const int64_t count = tile_at(at, end, in_place, by_row);
    core::pass(call_.checkpoint);
    const int64_t lanes = by_row ? count : lanes_of(at, count, end);
    reader_.read(at, count, lanes, elements, by_row);
    soon_.clear();
    for (const SoonRead& read : soon)
      soon_.push_back({read.begin + (at - begin) * read.element_bytes, count * read.element_bytes});
    if (soon.empty() && can_stream_by_code(at, count)) {
      for (size_t k = 0; k < ways_.size(); ++k)
        scratch_.bind(program.outputs[k], call_.results[k] + at * element_bytes(k));
      if (by_row)
        run_rows(at, count, elements, true);
      else
        code_->run_streaming(scratch_.pointers(), 0, count);
      for (const uint16_t reg : program.outputs) scratch_.bind(reg, scratch_.home(reg));
      at += count;
      continue;
    }
    bind_outputs(at);
    if (by_row) {
      run_rows(at, count, elements, false);
    } else if (!soon.empty()) {
      run_tile(program, code_, scratch_, lanes, soon_);
    } else if (code_ == nullptr && plan_.prefetches && !plan_.by_rows) {
      run_tile(program, nullptr, scratch_, lanes, reader_.ranges(at + count, std::min(plan_.tile, end - at - count)));
    } else {
      run_tile(program, code_, scratch_, lanes);
      const bool is_all = at == begin && at + count == end;
      if (is_all && code_ != nullptr && !reader_.has_copied()) again_ = Tile{at, count, lanes};
    }
    if (!is_placed) copy_outputs(at, count);
    at += count;
  }
}

/// A tile of rows, results included where their rows have places of their own.
void PointwiseRun::run_rows(int64_t at, int64_t count, std::span<const uint16_t> elements, bool streams) {
  reader_.for_rows(at, count, elements, [&](RowsOfTile rows, auto& registers, int64_t from) {
    for (size_t k = 0; k < plan_.row_outputs.size(); ++k) {
      const FusedPlace& place = loop_.places[k];
      const int64_t first = place.offset + from / place.row * place.row_stride - (from - at);
      registers.push_back({plan_.row_outputs[k], call_.results[0] + first * element_bytes(k),
                           (place.row_stride - place.row) * element_bytes(k)});
    }
    rows.registers = registers;
    rows.streams = streams;
    run_tile_rows(*code_, scratch_, rows, soon_);
  });
}

}  // namespace meshd::kernels
