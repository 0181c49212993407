#include "service/kernels/movement/tuple_offsets.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/movement/index_value.h"

namespace meshd::kernels {
namespace {

// One number of each tuple, in the indices' own type: so many fit a vector, and nothing is wider than it must be.
template <typename T>
struct Numbers {
  const T* first = nullptr;
  int64_t stride = 1;
  int64_t count = 0;
  T least = 0;  ///< numbers from here to `most` are in bounds
  T most = 0;
  uint32_t step = 1;  ///< of the number in the operand
};

template <typename T>
struct Clamp {
  static void add(const Numbers<T>& numbers, T number, uint32_t& offset) {
    offset += static_cast<uint32_t>(std::min(std::max(number, numbers.least), numbers.most)) * numbers.step;
  }
};

template <typename T>
struct Check {
  static void add(const Numbers<T>& numbers, T number, uint32_t& offset) {
    const bool is_inside = (number >= numbers.least) & (number <= numbers.most) & (offset != kOutside);
    const uint32_t at = offset + (static_cast<uint32_t>(number) - static_cast<uint32_t>(numbers.least)) * numbers.step;
    offset = is_inside ? at : kOutside;
  }
};

// A stride that is known lets the loop load vectors.
template <typename Add, int64_t kStride, typename T>
[[gnu::always_inline]] inline void add_row(Numbers<T> numbers, uint32_t* offsets) {
  const T* const first = numbers.first;
  const int64_t stride = kStride != 0 ? kStride : numbers.stride;
  // Signed bytes may be any memory, the offsets too, but they are not.
#pragma GCC ivdep
  for (int64_t i = 0; i < numbers.count; ++i) Add::add(numbers, first[i * stride], offsets[i]);
}

template <typename Add, typename T>
[[gnu::always_inline]] inline void add_numbers(const Numbers<T>& numbers, uint32_t* offsets) {
  if (numbers.stride == 1) return add_row<Add, 1>(numbers, offsets);
  if (numbers.stride == 2) return add_row<Add, 2>(numbers, offsets);
  add_row<Add, 0>(numbers, offsets);
}

template <typename Add, typename T>
void add_base(const Numbers<T>& numbers, uint32_t* offsets) {
  add_numbers<Add>(numbers, offsets);
}

#if defined(__x86_64__)
template <typename Add, typename T>
[[gnu::target("arch=x86-64-v3")]] void add_v3(const Numbers<T>& numbers, uint32_t* offsets) {
  add_numbers<Add>(numbers, offsets);
}

template <typename Add, typename T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void add_v4(const Numbers<T>& numbers, uint32_t* offsets) {
  add_numbers<Add>(numbers, offsets);
}
#endif

template <typename Add, typename T>
void add_at_level(const Numbers<T>& numbers, uint32_t* offsets) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return add_v4<Add>(numbers, offsets);
  if (cpu_level() == CpuLevel::kV3) return add_v3<Add>(numbers, offsets);
#endif
  add_base<Add>(numbers, offsets);
}

void begin_offsets(const TupleRow& row, uint32_t* offsets) {
  if (row.operand_stride == 0) {
    std::memset(offsets, 0, static_cast<size_t>(row.count) * sizeof(uint32_t));
    return;
  }
  for (int64_t i = 0; i < row.count; ++i) offsets[i] = static_cast<uint32_t>(i * row.operand_stride);
}

template <typename T>
T at_most(int64_t value) {
  return std::cmp_less(value, std::numeric_limits<T>::max()) ? static_cast<T>(value) : std::numeric_limits<T>::max();
}

template <typename T>
Numbers<T> numbers_of(const IndexTable& table, const TupleRow& row, size_t component, int64_t shift) {
  const IndexComponent& of = table.components[component];
  return {.first = reinterpret_cast<const T*>(row.first) + static_cast<int64_t>(component) * table.component_stride,
          .stride = row.index_stride,
          .count = row.count,
          .least = at_most<T>(shift),
          .most = at_most<T>(of.last_start + shift),
          .step = static_cast<uint32_t>(of.stride)};
}

}  // namespace

bool has_narrow_offsets(const IndexTable& table) {
  int64_t largest = 0;
  const auto reach = [&](int64_t steps, int64_t stride) {
    if (steps > 0) largest = core::checked_add(largest, core::checked_mul(steps, stride));
  };
  for (const IndexComponent& component : table.components) {
    if (component.last_start < 0) return false;
    reach(component.last_start, component.stride);
  }
  for (size_t d = 0; d < table.batch.size(); ++d) reach(table.batch[d] - 1, table.operand_strides[d]);
  return largest < kOutside;
}

void clamped_offsets(const IndexTable& table, const TupleRow& row, uint32_t* offsets) {
  begin_offsets(row, offsets);
  with_index_type(table.dtype, [&]<typename T>(T) {
    for (size_t c = 0; c < table.components.size(); ++c)
      add_at_level<Clamp<T>>(numbers_of<T>(table, row, c, 0), offsets);
  });
}

void checked_offsets(const IndexTable& table, const TupleRow& row, const int64_t* shifts, uint32_t* offsets) {
  begin_offsets(row, offsets);
  with_index_type(table.dtype, [&]<typename T>(T) {
    for (size_t c = 0; c < table.components.size(); ++c) {
      const int64_t shift = shifts != nullptr ? shifts[c] : 0;
      // No number of this type reaches so far.
      if (std::cmp_greater(shift, std::numeric_limits<T>::max())) {
        std::fill_n(offsets, row.count, kOutside);
        return;
      }
      add_at_level<Check<T>>(numbers_of<T>(table, row, c, shift), offsets);
    }
  });
}

}  // namespace meshd::kernels
