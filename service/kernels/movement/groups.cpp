#include "service/kernels/movement/groups.h"

#include <array>
#include <cstring>

#include "service/core/error.h"
#include "service/kernels/cpu.h"
#include "service/kernels/element_width.h"

namespace meshd::kernels {
namespace {

/// What is known of the strides when the loop is compiled.
enum class Form : uint8_t {
  kInterleave,  ///< rows become dense groups
  kSeparate,    ///< dense groups become rows
  kReverse,     ///< dense groups, the last element of each first
  kAny,
};

template <class T>
using Loose [[gnu::aligned(1)]] = T;

template <Form kForm, int kSize, class T>
[[gnu::always_inline]] inline void copy(std::byte* __restrict dst, const std::byte* __restrict src,
                                        const Groups& groups) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  constexpr bool kDenseDst = kForm == Form::kInterleave || kForm == Form::kReverse;
  constexpr bool kDenseSrc = kForm == Form::kSeparate || kForm == Form::kReverse;
  const int64_t dst_step = kDenseDst ? kSize * kBytes : kForm == Form::kSeparate ? kBytes : groups.dst.step;
  const int64_t dst_stride = kDenseDst ? kBytes : groups.dst.stride;
  const int64_t src_step = kDenseSrc ? kSize * kBytes : kForm == Form::kInterleave ? kBytes : groups.src.step;
  const int64_t src_stride = kDenseSrc ? kBytes : groups.src.stride;
  if constexpr (kForm == Form::kReverse) src -= (kSize - 1) * kBytes;
  const int64_t count = groups.count;
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 8
    for (int k = 0; k < kSize; ++k) {
      const int64_t from = kForm == Form::kReverse ? kSize - 1 - k : k;
      *reinterpret_cast<Loose<T>*>(dst + i * dst_step + k * dst_stride) =
          *reinterpret_cast<const Loose<T>*>(src + i * src_step + from * src_stride);
    }
  }
}

/// Groups are runs of bytes.
template <int64_t kBytes>
void copy_runs(std::byte* __restrict dst, const std::byte* __restrict src, int64_t dst_step, int64_t src_step,
               int64_t count) {
  constexpr int64_t kVector = 16;
  int64_t i = 0;
  if constexpr (kBytes > kVector / 2 && kBytes < kVector) {
    // Where they follow each other, as vectors: what one writes behind itself the next one overwrites.
    for (; dst_step == kBytes && src_step >= kBytes && i + 1 < count; ++i)
      std::memcpy(dst + i * dst_step, src + i * src_step, kVector);
  }
  for (; i < count; ++i) std::memcpy(dst + i * dst_step, src + i * src_step, kBytes);
}

template <Form kForm, int kSize, class T>
void copy_base(std::byte* dst, const std::byte* src, const Groups& groups) {
  copy<kForm, kSize, T>(dst, src, groups);
}
#if defined(__x86_64__)
template <Form kForm, int kSize, class T>
[[gnu::target("arch=x86-64-v3")]] void copy_v3(std::byte* dst, const std::byte* src, const Groups& groups) {
  copy<kForm, kSize, T>(dst, src, groups);
}
template <Form kForm, int kSize, class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void copy_v4(std::byte* dst, const std::byte* src,
                                                                       const Groups& groups) {
  copy<kForm, kSize, T>(dst, src, groups);
}
#endif

template <Form kForm, int kSize, class T>
void copy_by_level(std::byte* dst, const std::byte* src, const Groups& groups) {
#if defined(__x86_64__)
  if (kForm != Form::kAny) {
    if (cpu_level() == CpuLevel::kV4) return copy_v4<kForm, kSize, T>(dst, src, groups);
    if (cpu_level() == CpuLevel::kV3) return copy_v3<kForm, kSize, T>(dst, src, groups);
  }
#endif
  copy_base<kForm, kSize, T>(dst, src, groups);
}

template <int kSize, class T>
void copy_of_size(std::byte* dst, const std::byte* src, const Groups& groups) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  const auto is_dense = [](const GroupSide& side) { return side.step == kSize * kBytes && side.stride == kBytes; };
  // Only for groups of these sizes does the compiler know shuffles.
  if constexpr (kSize <= 4) {
    if (is_dense(groups.dst) && groups.src.step == kBytes)
      return copy_by_level<Form::kInterleave, kSize, T>(dst, src, groups);
    if (is_dense(groups.src) && groups.dst.step == kBytes)
      return copy_by_level<Form::kSeparate, kSize, T>(dst, src, groups);
    if (is_dense(groups.dst) && groups.src.step == kSize * kBytes && groups.src.stride == -kBytes)
      return copy_by_level<Form::kReverse, kSize, T>(dst, src, groups);
  }
  if (groups.dst.stride == kBytes && groups.src.stride == kBytes)
    return copy_runs<kSize * kBytes>(dst, src, groups.dst.step, groups.src.step, groups.count);
  copy_by_level<Form::kAny, kSize, T>(dst, src, groups);
}

template <class T>
void copy_of_type(std::byte* dst, const std::byte* src, const Groups& groups) {
  switch (groups.size) {
    case 2:
      return copy_of_size<2, T>(dst, src, groups);
    case 3:
      return copy_of_size<3, T>(dst, src, groups);
    case 4:
      return copy_of_size<4, T>(dst, src, groups);
    case 5:
      return copy_of_size<5, T>(dst, src, groups);
    case 6:
      return copy_of_size<6, T>(dst, src, groups);
    case 7:
      return copy_of_size<7, T>(dst, src, groups);
    case 8:
      return copy_of_size<8, T>(dst, src, groups);
    default:
      throw core::Error("internal", "groups have two to eight elements");
  }
}

template <int kSize, class T>
[[gnu::always_inline]] inline void interleave_rows(std::byte* __restrict dst, const std::byte* const* rows,
                                                   int64_t count) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  std::array<const std::byte*, kSize> from;
  for (size_t k = 0; k < kSize; ++k) from[k] = rows[k];
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (size_t k = 0; k < kSize; ++k) {
      *reinterpret_cast<Loose<T>*>(dst + (i * kSize + static_cast<int64_t>(k)) * kBytes) =
          *reinterpret_cast<const Loose<T>*>(from[k] + i * kBytes);
    }
  }
}

template <int kSize, class T>
void interleave_base(std::byte* dst, const std::byte* const* rows, int64_t count) {
  interleave_rows<kSize, T>(dst, rows, count);
}
#if defined(__x86_64__)
template <int kSize, class T>
[[gnu::target("arch=x86-64-v3")]] void interleave_v3(std::byte* dst, const std::byte* const* rows, int64_t count) {
  interleave_rows<kSize, T>(dst, rows, count);
}
#endif

template <int kSize, class T>
void interleave_of_size(std::byte* dst, const std::byte* const* rows, int64_t count) {
#if defined(__x86_64__)
  if (cpu_level() != CpuLevel::kBase) return interleave_v3<kSize, T>(dst, rows, count);
#endif
  interleave_base<kSize, T>(dst, rows, count);
}

}  // namespace

void interleave(std::byte* dst, std::span<const std::byte* const> rows, int64_t count, int64_t element_bytes) {
  with_element(element_bytes, [&]<class T>(T) {
    if (rows.size() == 2) return interleave_of_size<2, T>(dst, rows.data(), count);
    if (rows.size() == 3) return interleave_of_size<3, T>(dst, rows.data(), count);
    if (rows.size() == kMostInterleaved) return interleave_of_size<4, T>(dst, rows.data(), count);
    throw core::Error("internal", "two to four rows are interleaved");
  });
}

void copy_groups(std::byte* dst, const std::byte* src, const Groups& groups) {
  with_element(groups.element_bytes, [&]<class T>(T) { copy_of_type<T>(dst, src, groups); });
}

}  // namespace meshd::kernels
