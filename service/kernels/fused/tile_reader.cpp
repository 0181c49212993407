#include "service/kernels/fused/tile_reader.h"

#include <algorithm>
#include <cstring>

#include "service/kernels/element_width.h"
#include "service/kernels/elementwise/lanes/count_lanes.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/elementwise/lanes/strided_lanes.h"
#include "service/kernels/movement/groups.h"
#include "service/kernels/movement/movement_loops.h"

namespace meshd::kernels {
namespace {

/// The phase of a register that holds one element on all lanes.
constexpr int64_t kOneElement = -1;

/// Shorter rows are not worth a call.
constexpr int64_t kShortRow = 16;

/// Fewer rows are not worth a loop of their own.
constexpr int64_t kFewGroups = 4;

/// What is moved at once where rows are short.
constexpr int64_t kRowPieceBytes = 16;
/// Longer rows are worth a call of memcpy.
constexpr int64_t kLongRowBytes = 512;

void copy_piece(const std::byte* from, std::byte* to) {
  using Piece [[gnu::vector_size(kRowPieceBytes)]] = char;
  Piece piece;
  std::memcpy(&piece, from, sizeof(piece));
  std::memcpy(to, &piece, sizeof(piece));
}

/// One piece at least, in pieces: the last one ends where the row ends.
void copy_short_row(const std::byte* from, std::byte* to, int64_t bytes) {
  const int64_t last = bytes - kRowPieceBytes;
#pragma GCC unroll 4
  for (int64_t at = 0; at < last; at += kRowPieceBytes) copy_piece(from + at, to + at);
  copy_piece(from + last, to + last);
}

void copy_row(const std::byte* from, std::byte* to, int64_t bytes) {
  if (bytes >= kLongRowBytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  } else {
    copy_short_row(from, to, bytes);
  }
}

/// Lanes of one row of an input, whose elements are `stride` apart.
template <class T>
void read_row(const std::byte* from, int64_t stride, std::byte* to, int64_t count) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  if (stride == 0) return repeat_element(from, kBytes, to, count);
  if (stride == 1 && count * kBytes >= kRowPieceBytes) return copy_row(from, to, count * kBytes);
  if (stride != 1 && count >= kShortRow) return strided_lanes(from, stride, kBytes, to, count);
  const T* const source = reinterpret_cast<const T*>(from);
  T* const target = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
}

/// Runs of elements; the first lane is the `skip`th of its run, and `count` lanes are written.
void repeat_each(ElementRuns each, int64_t element_bytes, int64_t skip, std::byte* to, int64_t count) {
  if (skip > 0) {
    const int64_t some = std::min(count, each.count - skip);
    repeat_element(each.elements, element_bytes, to, some);
    each.elements += each.stride_bytes;
    to += some * element_bytes;
    count -= some;
  }
  each.runs = count / each.count;
  if (each.runs > 0) repeat_elements(each, element_bytes, to);
  const int64_t done = each.runs * each.count;
  if (done < count)
    repeat_element(each.elements + each.runs * each.stride_bytes, element_bytes, to + done * element_bytes,
                   count - done);
}

/// Fills lanes [done, count) by repeating the first `done` lanes.
void repeat_lanes(std::byte* lanes, int64_t element_bytes, int64_t done, int64_t count) {
  while (done < count) {
    const int64_t some = std::min(done, count - done);
    std::memcpy(lanes + done * element_bytes, lanes, static_cast<size_t>(some * element_bytes));
    done += some;
  }
}

/// Calls run(place, stride, lane, count) for each piece of [start, start + count) within one row of the innermost dim.
template <class Run>
void for_each_row(std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t start, int64_t count,
                  const Run& run) {
  if (dims.empty()) return run(int64_t{0}, int64_t{0}, int64_t{0}, count);
  const size_t inner = dims.size() - 1;
  tensor::Dims index(dims.size(), 0);
  int64_t rest = start;
  int64_t place = 0;
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = rest % dims[d];
    rest /= dims[d];
    place += index[d] * strides[d];
  }
  int64_t lane = 0;
  while (lane < count) {
    const int64_t piece = std::min(count - lane, dims[inner] - index[inner]);
    run(place, strides[inner], lane, piece);
    lane += piece;
    // On to the start of the next row.
    place -= index[inner] * strides[inner];
    index[inner] = 0;
    for (size_t d = inner; d-- > 0;) {
      place += strides[d];
      if (++index[d] < dims[d]) break;
      place -= dims[d] * strides[d];
      index[d] = 0;
    }
  }
}

/// Rows that are copied as such.
bool is_copied_row(int64_t stride, int64_t bytes) {
  return stride == 1 && bytes >= kLeastCopiedRow && bytes <= kMostCopiedRow;
}

/// The same for whole rows that are short, all those of one stride at once.
void gather_groups(const std::byte* memory, std::span<const int64_t> dims, std::span<const int64_t> strides,
                   int64_t element_bytes, int64_t start, int64_t count, std::byte* to) {
  const int64_t size = dims.back();
  const size_t outer = dims.size() - 1;
  for_each_row(dims.first(outer), strides.first(outer), start / size, count / size,
               [&](int64_t place, int64_t stride, int64_t row, int64_t rows) {
                 const int64_t bytes = size * element_bytes;
                 if (is_copied_row(strides.back(), bytes)) {
                   return copy_rows(to + row * bytes, bytes, memory + place * element_bytes, stride * element_bytes,
                                    bytes, rows);
                 }
                 copy_groups(to + row * size * element_bytes, memory + place * element_bytes,
                             {.count = rows,
                              .size = size,
                              .element_bytes = element_bytes,
                              .dst = {size * element_bytes, element_bytes},
                              .src = {stride * element_bytes, strides.back() * element_bytes}});
               });
}

/// Where lane `start` is, in elements. Of one dim, which most inputs walk through, without a division.
int64_t place_of(const tensor::Dims& dims, const tensor::Dims& strides, int64_t start) {
  int64_t place = 0;
  for (size_t d = dims.size(); d-- > 1;) {
    place += start % dims[d] * strides[d];
    start /= dims[d];
  }
  return dims.empty() ? 0 : place + start * strides[0];
}

/// What follows from the region's dims for one input.
void set_walk(const tensor::Dims& dims, int64_t size, RegionInput& input) {
  input.walk_dims.clear();
  input.walk_strides.clear();
  int64_t expected = 1;
  input.is_dense = !input.is_iota;
  for (size_t d = dims.size(); d-- > 0;) {
    input.is_dense = input.is_dense && input.strides[d] == expected;
    expected *= dims[d];
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!input.walk_dims.empty() && input.walk_strides.back() == input.strides[d] * dims[d]) {
      input.walk_dims.back() *= dims[d];
      input.walk_strides.back() = input.strides[d];
      continue;
    }
    input.walk_dims.push_back(dims[d]);
    input.walk_strides.push_back(input.strides[d]);
  }
  // Dims outside of the outermost moving dim do not change it.
  input.period = size;
  if (!input.walk_dims.empty() && input.walk_strides[0] == 0) input.period /= std::max<int64_t>(1, input.walk_dims[0]);
  input.period = std::max<int64_t>(1, input.period);
  input.extent = 1;
  for (size_t d = 0; d < dims.size(); ++d) input.extent += input.strides[d] * (dims[d] - 1);
  const bool goes_back = std::any_of(input.strides.begin(), input.strides.end(), [](int64_t s) { return s < 0; });
  if (size == 0 || goes_back) input.extent = 0;
}

}  // namespace

void Region::collapse(std::vector<bool>& labels) {
  size = 1;
  for (const int64_t dim : dims) size *= dim;
  const auto drop = [&](size_t d) {
    const auto at = static_cast<std::ptrdiff_t>(d);
    dims.erase(dims.begin() + at);
    labels.erase(labels.begin() + at);
    for (RegionInput& input : inputs) input.strides.erase(input.strides.begin() + at);
  };
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) drop(d);
  }
  for (size_t d = dims.size(); d-- > 1;) {
    const bool joins =
        labels[d - 1] == labels[d] && std::all_of(inputs.begin(), inputs.end(), [&](const RegionInput& input) {
          return input.strides[d - 1] == input.strides[d] * dims[d];
        });
    if (!joins) continue;
    dims[d] *= dims[d - 1];
    drop(d - 1);
  }
  for (RegionInput& input : inputs) set_walk(dims, size, input);
}

TileReader::TileReader(const Region& region, TileScratch& scratch, std::pmr::memory_resource* memory)
    : region_(region),
      scratch_(scratch),
      states_(region.inputs.size(), memory),
      ranges_(memory),
      row_registers_(memory) {
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].home = scratch.reg(region.inputs[i].reg);
  }
}

void TileReader::read(int64_t start, int64_t count, int64_t lanes, std::span<const uint16_t> elements, bool by_row) {
  for (size_t i = 0; i < states_.size(); ++i) {
    const RegionInput& input = region_.inputs[i];
    const bool is_element = std::find(elements.begin(), elements.end(), input.reg) != elements.end();
    if (by_row && (is_element || input.has_rows())) continue;
    read_input(input, states_[i], {.start = start, .count = count, .filled = lanes}, is_element);
  }
}

bool TileReader::has_copied() const {
  for (size_t i = 0; i < states_.size(); ++i) {
    const RegionInput& input = region_.inputs[i];
    const bool is_number = input.is_iota && !input.first_only;
    if (!is_number && scratch_.reg(input.reg) == states_[i].home) return true;
  }
  return false;
}

std::span<const MemoryRange> TileReader::ranges(int64_t start, int64_t count) {
  ranges_.clear();
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!region_.inputs[i].is_dense) continue;
    const int64_t element_bytes = tensor::size_bytes(region_.inputs[i].dtype);
    ranges_.push_back({states_[i].memory + start * element_bytes, count * element_bytes});
  }
  return ranges_;
}

int64_t TileReader::rows_alike(int64_t start) const {
  const int64_t rows = region_.dims[region_.dims.size() - 2];
  return rows - start / region_.dims.back() % rows;
}

void TileReader::add_row_inputs(int64_t start, int64_t lane, std::span<const uint16_t> elements) {
  const size_t outer = region_.dims.size() - 1;
  const int64_t lanes = region_.dims[outer];
  const auto add = [&](uint16_t reg, int64_t lanes_before, int64_t lanes_of_row) {
    const RegionInput& input = region_.inputs[reg];
    const int64_t bytes = tensor::size_bytes(input.dtype);
    int64_t place = -lanes_before;
    int64_t row = start / lanes;
    for (size_t d = outer; d-- > 0;) {
      place += row % region_.dims[d] * input.strides[d];
      row /= region_.dims[d];
    }
    row_registers_.push_back(
        {reg, states_[reg].memory + place * bytes, (input.strides[outer - 1] - lanes_of_row) * bytes});
  };
  for (const uint16_t reg : elements) add(reg, 0, 0);
  for (const RegionInput& input : region_.inputs) {
    if (input.has_rows()) add(input.reg, lane, lanes);
  }
}

void TileReader::read_input(const RegionInput& input, State& state, const Lanes& lanes, bool is_element) {
  const auto [start, count, filled] = lanes;
  const int64_t element_bytes = tensor::size_bytes(input.dtype);
  // A tile of less than a block overwrites the bytes behind its lanes in the registers' own memory (run_tile).
  const bool is_short = filled < kBlockLanes;
  if (input.is_dense) {
    // Registers are only read, so lending them memory that must not change is safe.
    return scratch_.bind(input.reg, const_cast<std::byte*>(state.memory) + start * element_bytes);
  }
  const tensor::Dims& dims = input.walk_dims;
  const tensor::Dims& strides = input.walk_strides;
  const int64_t inner = dims.empty() ? 1 : dims.back();
  const int64_t stride = dims.empty() ? 0 : strides.back();
  const int64_t in_inner = dims.size() > 1 ? start % inner : dims.empty() ? 0 : start;
  const bool in_row = in_inner + count <= inner;
  if (!input.is_iota && stride == 1 && in_row) {
    // Lanes behind the tile may be the memory behind the row.
    const int64_t place = place_of(dims, strides, start);
    if (filled == count || place + filled <= input.extent) {
      scratch_.bind(input.reg, const_cast<std::byte*>(state.memory) + place * element_bytes);
      if (is_short) state.filled_count = 0;
      return;
    }
  }
  scratch_.bind(input.reg, state.home);
  if (input.first_only) {
    const auto first = static_cast<int32_t>(state.first_value + place_of(input.walk_dims, input.walk_strides, start));
    std::memcpy(state.home, &first, sizeof(first));
    return;
  }
  if (stride == 0 && in_row && !input.is_iota) {
    if (is_short || !is_element) return read_element(input, state, start, filled);
    return scratch_.bind(input.reg,
                         const_cast<std::byte*>(state.memory) + place_of(dims, strides, start) * element_bytes);
  }
  // What the lanes hold depends on where they begin: on the element or row (a row again and again is one), and on the
  // lane within it.
  int64_t phase = start % input.period;
  int64_t place = 0;
  if (stride == 0 && in_row) {
    place = place_of(dims, strides, start);
    phase = kOneElement;
  } else if (dims.size() > 1 && strides[dims.size() - 2] == 0) {
    const int64_t block = inner * dims[dims.size() - 2];
    if (start % block + count <= block) {
      place = place_of(dims, strides, start - start % block);
      phase = start % inner;
    }
  }
  const std::byte* const memory = input.is_iota ? nullptr : state.memory + place * element_bytes;
  const int64_t first_value = input.is_iota ? state.first_value + place : 0;
  const bool is_filled = state.filled_memory == memory && state.filled_value == first_value &&
                         state.filled_phase == phase && state.filled_count >= filled &&
                         (phase == kOneElement || state.gathered_count >= count);
  if (!is_filled) {
    const int64_t distinct = phase == kOneElement ? 1 : count;
    gather(input, state, start, distinct);
    std::byte* const behind = state.home + distinct * element_bytes;
    if (distinct < filled) repeat_element(behind - element_bytes, element_bytes, behind, filled - distinct);
    state.filled_memory = memory;
    state.filled_value = first_value;
    state.filled_phase = phase;
    state.filled_count = filled;
    state.gathered_count = count;
  }
  if (is_short && phase != kOneElement) state.filled_count = count;
}

/// One element for all lanes of a tile.
void TileReader::read_element(const RegionInput& input, State& state, int64_t start, int64_t count) {
  const int64_t element_bytes = tensor::size_bytes(input.dtype);
  const std::byte* const memory = state.memory + place_of(input.walk_dims, input.walk_strides, start) * element_bytes;
  if (state.filled_memory == memory && state.filled_phase == kOneElement && state.filled_count >= count) return;
  repeat_element(memory, element_bytes, state.home, count);
  state.filled_memory = memory;
  state.filled_value = 0;
  state.filled_phase = kOneElement;
  state.filled_count = count;
}

void TileReader::gather(const RegionInput& input, const State& state, int64_t start, int64_t count) {
  if (!input.is_iota) return gather_tensor(input, state, start, count);
  // One dim counts; dims outside of it repeat the numbers, those inside each of them.
  CountedLanes lanes{.first = state.first_value};
  for (size_t d = input.walk_dims.size(); d-- > 0;) {
    if (input.walk_strides[d] != 0) {
      lanes.size = input.walk_dims[d];
      break;
    }
    lanes.repeat *= input.walk_dims[d];
  }
  count_lanes(lanes, input.dtype, start, count, state.home);
}

void TileReader::gather_tensor(const RegionInput& input, const State& state, int64_t start, int64_t count) {
  const tensor::Dims& dims = input.walk_dims;
  const tensor::Dims& strides = input.walk_strides;
  const int64_t element_bytes = tensor::size_bytes(input.dtype);
  const size_t rank = dims.size();
  if (rank > 1 && strides[rank - 1] == 0 && strides[rank - 2] != 0) {
    // Each element some times: rows of elements, not one call for each.
    const int64_t repeat = dims[rank - 1];
    const int64_t row = repeat * dims[rank - 2];
    for (int64_t lane = 0; lane < count;) {
      const int64_t at = start + lane;
      const int64_t piece = std::min(count - lane, row - at % row);
      const std::byte* const from = state.memory + place_of(dims, strides, at) * element_bytes;
      std::byte* const to = state.home + lane * element_bytes;
      repeat_each({.elements = from, .stride_bytes = strides[rank - 2] * element_bytes, .runs = 0, .count = repeat},
                  element_bytes, at % repeat, to, piece);
      lane += piece;
    }
    return;
  }
  if (rank > 1 && strides[rank - 2] == 0 && start % dims[rank - 1] == 0) {
    // Each row some times: it is read once for each run of them.
    const int64_t block = dims[rank - 1] * dims[rank - 2];
    for (int64_t lane = 0; lane < count;) {
      const int64_t at = start + lane;
      const int64_t piece = std::min(count - lane, block - at % block);
      const int64_t row = std::min(piece, dims[rank - 1]);
      const std::byte* const from = state.memory + place_of(dims, strides, at) * element_bytes;
      std::byte* const to = state.home + lane * element_bytes;
      with_element(element_bytes, [&](auto sample) { read_row<decltype(sample)>(from, strides.back(), to, row); });
      repeat_lanes(to, element_bytes, row, piece);
      lane += piece;
    }
    return;
  }
  // A row again and again is read once.
  int64_t distinct = count;
  if (rank > 1 && strides[rank - 2] == 0 &&
      start % (dims[rank - 1] * dims[rank - 2]) + count <= dims[rank - 1] * dims[rank - 2]) {
    distinct = std::min(distinct, dims[rank - 1]);
  }
  distinct = std::min(distinct, input.period);
  const auto by_rows = [&](int64_t from, int64_t lanes) {
    std::byte* const to = state.home + (from - start) * element_bytes;
    with_element(element_bytes, [&](auto sample) {
      for_each_row(dims, strides, from, lanes, [&](int64_t place, int64_t stride, int64_t lane, int64_t piece) {
        read_row<decltype(sample)>(state.memory + place * element_bytes, stride, to + lane * element_bytes, piece);
      });
    });
  };
  const int64_t size = rank > 1 ? dims[rank - 1] : 0;
  const bool is_group = size >= 2 && size <= kMaxGroup;
  const bool is_row = rank > 1 && is_copied_row(strides[rank - 1], size * element_bytes);
  if ((!is_group && !is_row) || distinct < kFewGroups * size) {
    by_rows(start, distinct);
  } else {
    // Parts of rows at both ends, whole rows between them.
    const int64_t first = core::round_up(start, size);
    const int64_t last = (start + distinct) / size * size;
    if (start < first) by_rows(start, first - start);
    gather_groups(state.memory, dims, strides, element_bytes, first, last - first,
                  state.home + (first - start) * element_bytes);
    if (last < start + distinct) by_rows(last, start + distinct - last);
  }
  repeat_lanes(state.home, element_bytes, distinct, count);
}

}  // namespace meshd::kernels
