#include "service/kernels/tile_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/kernels/lane_loop.h"

namespace meshd::kernels {
namespace {

struct Element16 {
  uint64_t low;
  uint64_t high;
};

template <class T>
void copy_strided(const std::byte* from, int64_t stride, std::byte* to, int64_t count) {
  const T* const source = reinterpret_cast<const T*>(from);
  T* const target = reinterpret_cast<T*>(to);
  if (stride == 1) {
    std::memcpy(target, source, static_cast<size_t>(count) * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
  }
}

void copy_strided(int64_t element_bytes, const std::byte* from, int64_t stride, std::byte* to, int64_t count) {
  switch (element_bytes) {
    case 1:
      return copy_strided<uint8_t>(from, stride, to, count);
    case 2:
      return copy_strided<uint16_t>(from, stride, to, count);
    case 4:
      return copy_strided<uint32_t>(from, stride, to, count);
    case 8:
      return copy_strided<uint64_t>(from, stride, to, count);
    default:
      return copy_strided<Element16>(from, stride, to, count);
  }
}

/// Calls run(place, stride, lane, count) for each piece of [start, start + count) that lies within one row of the
/// innermost dim.
template <class Run>
void for_each_row(const tensor::Dims& dims, const tensor::Dims& strides, int64_t start, int64_t count, const Run& run) {
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

/// Whether the input walks through the region in steps of one element.
bool is_dense(const Region& region, const RegionInput& input) {
  int64_t expected = 1;
  for (size_t d = region.dims.size(); d-- > 0;) {
    if (input.strides[d] != expected) return false;
    expected *= region.dims[d];
  }
  return true;
}

/// Lanes after which the input repeats itself: what lies outside of its outermost moving dim does not change it.
int64_t period_of(const Region& region, const RegionInput& input) {
  int64_t period = region.size;
  for (size_t d = 0; d < region.dims.size() && input.strides[d] == 0; ++d)
    period /= std::max<int64_t>(1, region.dims[d]);
  return std::max<int64_t>(1, period);
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
}

TileReader::TileReader(const Region& region, TileScratch& scratch)
    : region_(region), scratch_(scratch), states_(region.inputs.size()) {
  for (size_t i = 0; i < states_.size(); ++i) {
    const RegionInput& input = region.inputs[i];
    State& state = states_[i];
    state.home = scratch.reg(input.reg);
    state.is_dense = !input.is_iota && is_dense(region, input);
    state.period = period_of(region, input);
    if (!input.is_iota) continue;
    state.from_int64 = find_scalar_kernel(ScalarOp::kConvert, tensor::DType::kInt64, input.dtype);
    counted_.resize(static_cast<size_t>(scratch.lanes()));
  }
}

void TileReader::read(int64_t start, int64_t count) {
  for (size_t i = 0; i < states_.size(); ++i) read_input(region_.inputs[i], states_[i], start, count);
}

std::span<const MemoryRange> TileReader::ranges(int64_t start, int64_t count) {
  ranges_.clear();
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].is_dense) continue;
    const int64_t element_bytes = tensor::size_bytes(region_.inputs[i].dtype);
    ranges_.push_back({states_[i].memory + start * element_bytes, count * element_bytes});
  }
  return ranges_;
}

void TileReader::read_input(const RegionInput& input, State& state, int64_t start, int64_t count) {
  const int64_t element_bytes = tensor::size_bytes(input.dtype);
  // A tile that ends within a block overwrites what lies behind its lanes in the registers' own memory (run_tile).
  const bool is_ragged = count % kBlockLanes != 0;
  if (state.is_dense) {
    // Registers are only read, so lending them memory that must not change is safe.
    scratch_.bind(input.reg, const_cast<std::byte*>(state.memory) + start * element_bytes);
    return;
  }
  if (!input.is_iota && !region_.dims.empty() && input.strides.back() == 1) {
    const int64_t inner = region_.dims.back();
    if (start % inner + count <= inner) {
      for_each_row(region_.dims, input.strides, start, count, [&](int64_t place, int64_t, int64_t, int64_t) {
        scratch_.bind(input.reg, const_cast<std::byte*>(state.memory) + place * element_bytes);
      });
      if (is_ragged) state.filled_count = 0;
      return;
    }
  }
  scratch_.bind(input.reg, state.home);
  constexpr int64_t kOneElement = -1;
  int64_t phase = start % state.period;
  const std::byte* memory = state.memory;
  int64_t first_value = state.first_value;
  if (!region_.dims.empty() && input.strides.back() == 0 &&
      start % region_.dims.back() + count <= region_.dims.back()) {
    // All lanes are one element: what matters is which.
    for_each_row(region_.dims, input.strides, start, 1, [&](int64_t place, int64_t, int64_t, int64_t) {
      if (input.is_iota)
        first_value += place;
      else
        memory += place * element_bytes;
    });
    phase = kOneElement;
  }
  const bool is_filled = state.filled_memory == memory && state.filled_value == first_value &&
                         state.filled_phase == phase && state.filled_count >= count;
  if (!is_filled) {
    gather(input, state, start, count);
    state.filled_memory = memory;
    state.filled_value = first_value;
    state.filled_phase = phase;
    state.filled_count = count;
  }
  if (is_ragged && phase != kOneElement) state.filled_count = count;
}

void TileReader::gather(const RegionInput& input, const State& state, int64_t start, int64_t count) {
  if (!input.is_iota) {
    const int64_t element_bytes = tensor::size_bytes(input.dtype);
    for_each_row(region_.dims, input.strides, start, count,
                 [&](int64_t place, int64_t stride, int64_t lane, int64_t piece) {
                   if (stride == 0) {
                     return repeat_element(state.memory + place * element_bytes, element_bytes,
                                           state.home + lane * element_bytes, piece);
                   }
                   copy_strided(element_bytes, state.memory + place * element_bytes, stride,
                                state.home + lane * element_bytes, piece);
                 });
    return;
  }
  for_each_row(region_.dims, input.strides, start, count,
               [&](int64_t place, int64_t stride, int64_t lane, int64_t piece) {
                 for (int64_t i = 0; i < piece; ++i) {
                   counted_[static_cast<size_t>(lane + i)] = state.first_value + place + i * stride;
                 }
               });
  const auto* const counted = reinterpret_cast<const std::byte*>(counted_.data());
  state.from_int64(&counted, state.home, count);
}

}  // namespace meshd::kernels
