#include "service/kernels/movement/movement_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/element_width.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/elementwise/lanes/strided_lanes.h"
#include "service/kernels/movement/movement.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kPages = 4;
constexpr int kToLevelTwo = 2;             // of __builtin_prefetch: the cache that a line is fetched to
constexpr int64_t kStreamMinBytes = 1024;  // shorter runs gain nothing from going around the cache

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

using Row [[gnu::vector_size(16)]] = uint8_t;  // of a tile

// The bytes of a's and b's elements in turn, those of their first or of their second halves.
template <int kBytes, bool kSecond>
Row interleave(Row a, Row b) {
  constexpr int kRowBytes = sizeof(Row);
  Row order{};
  for (int i = 0; i < kRowBytes; ++i) {
    const int element = i / kBytes / 2 + (kSecond ? kRowBytes / kBytes / 2 : 0);
    order[i] = static_cast<uint8_t>((i / kBytes % 2) * kRowBytes + element * kBytes + i % kBytes);
  }
  return __builtin_shuffle(a, b, order);
}

// Around the cache, where the processor can. `to` is a multiple of 16.
void stream_row(std::byte* to, Row row) {
#if defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(row));
#else
  store(to, row);
#endif
}

// Interleaving rows i and i + N/2, log2(N) times, transposes an N x N tile of 16-byte rows.
template <int kBytes>
void transpose_tile(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride) {
  constexpr int kN = 16 / kBytes;
  Row tile[kN];
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) tile[i] = load<Row>(src + i * src_stride);
#pragma GCC unroll 4
  for (int width = 1; width < kN; width *= 2) {
    Row next[kN];
#pragma GCC unroll 8
    for (int i = 0; i < kN / 2; ++i) {
      next[2 * i] = interleave<kBytes, false>(tile[i], tile[i + kN / 2]);
      next[2 * i + 1] = interleave<kBytes, true>(tile[i], tile[i + kN / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kN; ++i) tile[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) store(dst + i * dst_stride, tile[i]);
}

// A square as wide as a cache line in both directions, through a buffer in L1: each line of src is read once and each
// line of dst written once, even where the rows of a large power-of-two matrix all fall into one cache set.
template <int kBytes, bool kStream>
void transpose_square(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride) {
  constexpr int kSide = kLineBytes / kBytes;
  constexpr int kN = 16 / kBytes;
  if constexpr (!kStream) {
    for (int j = 0; j < kSide; j += kN) {
      for (int i = 0; i < kSide; i += kN) {
        transpose_tile<kBytes>(dst + j * dst_stride + i * kBytes, dst_stride, src + i * src_stride + j * kBytes,
                               src_stride);
      }
    }
  } else {
    alignas(64) std::byte buffer[kSide * kLineBytes];
    for (int i = 0; i < kSide; i += kN) {
      for (int j = 0; j < kSide; j += kN) {
        transpose_tile<kBytes>(buffer + j * kLineBytes + i * kBytes, kLineBytes, src + i * src_stride + j * kBytes,
                               src_stride);
      }
    }
    for (int i = 0; i < kSide; ++i) {
      for (int part = 0; part < kLineBytes; part += 16) {
        stream_row(dst + i * dst_stride + part, load<Row>(buffer + i * kLineBytes + part));
      }
    }
  }
}

template <int kBytes, bool kStream>
void transpose_squares(MatrixRows dst, ConstMatrixRows src, int64_t row_squares, int64_t column_squares) {
  constexpr int64_t kSide = kLineBytes / kBytes;
  for (int64_t column = 0; column < column_squares; ++column) {
    const std::byte* from = src.data + column * kSide * src.row_stride;
    const std::byte* ahead = column + 1 < column_squares ? from + kSide * src.row_stride : from;
    for (int64_t row = 0; row < row_squares; ++row) {
      // Lines of the next squares: no processor expects a walk down columns.
      for (int64_t i = 0; i < kSide; ++i) {
        __builtin_prefetch(ahead + i * src.row_stride + row * kLineBytes, 0, kToLevelTwo);
        if constexpr (!kStream)
          __builtin_prefetch(dst.data + (row * kSide + i) * dst.row_stride + (column + 1) * kLineBytes, 1, kToLevelTwo);
      }
      transpose_square<kBytes, kStream>(dst.data + row * kSide * dst.row_stride + column * kLineBytes, dst.row_stride,
                                        from + row * kLineBytes, src.row_stride);
    }
  }
}

template <typename T>
void transpose_plain(MatrixRows dst, ConstMatrixRows src, int64_t rows, int64_t columns) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kBlock = kLineBytes / kSize < 4 ? 4 : kLineBytes / kSize;
  for (int64_t column = 0; column < columns; column += kBlock) {
    const int64_t stop = std::min(columns, column + kBlock);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = column; c < stop; ++c) {
        store(dst.data + row * dst.row_stride + c * kSize, load<T>(src.data + c * src.row_stride + row * kSize));
      }
    }
  }
}

// In tiles, and what no tile has element by element.
template <typename T>
void transpose_tiles(MatrixRows dst, ConstMatrixRows src, int64_t rows, int64_t columns) {
  constexpr int64_t kBytes = sizeof(T);
  if constexpr (kBytes < 16) {
    constexpr int64_t kN = 16 / kBytes;
    const int64_t tiled_rows = rows / kN * kN;
    const int64_t tiled_columns = columns / kN * kN;
    for (int64_t column = 0; column < tiled_columns; column += kN) {
      for (int64_t row = 0; row < tiled_rows; row += kN) {
        transpose_tile<kBytes>(dst.data + row * dst.row_stride + column * kBytes, dst.row_stride,
                               src.data + column * src.row_stride + row * kBytes, src.row_stride);
      }
    }
    if (tiled_rows > 0) {
      transpose_plain<T>({dst.data + tiled_columns * kBytes, dst.row_stride},
                         {src.data + tiled_columns * src.row_stride, src.row_stride}, tiled_rows,
                         columns - tiled_columns);
    }
    dst.data += tiled_rows * dst.row_stride;
    src.data += tiled_rows * kBytes;
    rows -= tiled_rows;
  }
  transpose_plain<T>(dst, src, rows, columns);
}

template <typename T>
void transpose(MatrixRows dst, ConstMatrixRows src, int64_t rows, int64_t columns, bool streaming) {
  constexpr int kBytes = sizeof(T);
  constexpr int64_t kSide = kLineBytes / kBytes;
  const int64_t tiled_rows = rows / kSide * kSide;
  const int64_t tiled_columns = columns / kSide * kSide;
  const bool aligned = reinterpret_cast<uintptr_t>(dst.data) % 16 == 0 && dst.row_stride % 16 == 0;
  if (streaming && aligned) {
    transpose_squares<kBytes, true>(dst, src, tiled_rows / kSide, tiled_columns / kSide);
  } else {
    transpose_squares<kBytes, false>(dst, src, tiled_rows / kSide, tiled_columns / kSide);
  }
  if (tiled_columns < columns) {
    transpose_tiles<T>({dst.data + tiled_columns * kBytes, dst.row_stride},
                       {src.data + tiled_columns * src.row_stride, src.row_stride}, tiled_rows,
                       columns - tiled_columns);
  }
  if (tiled_rows < rows) {
    transpose_tiles<T>({dst.data + tiled_rows * dst.row_stride, dst.row_stride},
                       {src.data + tiled_rows * kBytes, src.row_stride}, rows - tiled_rows, columns);
  }
}

void stream_line(std::byte* dst, const std::byte* src) {
  constexpr int64_t kRowBytes = sizeof(Row);
  constexpr int64_t kRows = kLineBytes / kRowBytes;
  Row line[kRows];
  for (int64_t i = 0; i < kRows; ++i) line[i] = load<Row>(src + i * kRowBytes);
  for (int64_t i = 0; i < kRows; ++i) stream_row(dst + i * kRowBytes, line[i]);
}

// Rows of so many pieces; the last one ends where the row ends.
using RowPiece [[gnu::vector_size(kLeastCopiedRow)]] = uint8_t;

template <int kPieces>
[[gnu::always_inline]] inline void copy_pieces(std::byte* __restrict dst, int64_t dst_step,
                                               const std::byte* __restrict src, int64_t src_step, int64_t bytes,
                                               int64_t rows) {
  const int64_t last = bytes - kLeastCopiedRow;
  for (int64_t row = 0; row < rows; ++row, dst += dst_step, src += src_step) {
#pragma GCC unroll 16
    for (int64_t piece = 0; piece + 1 < kPieces; ++piece) {
      RowPiece value;
      std::memcpy(&value, src + piece * kLeastCopiedRow, sizeof(value));
      std::memcpy(dst + piece * kLeastCopiedRow, &value, sizeof(value));
    }
    RowPiece value;
    std::memcpy(&value, src + last, sizeof(value));
    std::memcpy(dst + last, &value, sizeof(value));
  }
}

using PieceLoop = void (*)(std::byte* dst, int64_t dst_step, const std::byte* src, int64_t src_step, int64_t bytes,
                           int64_t rows);
constexpr size_t kMostPieces = kMostCopiedRow / kLeastCopiedRow;

template <int kPieces>
void copy_pieces_base(std::byte* dst, int64_t dst_step, const std::byte* src, int64_t src_step, int64_t bytes,
                      int64_t rows) {
  copy_pieces<kPieces>(dst, dst_step, src, src_step, bytes, rows);
}
#if defined(__x86_64__)
template <int kPieces>
[[gnu::target("arch=x86-64-v3")]] void copy_pieces_v3(std::byte* dst, int64_t dst_step, const std::byte* src,
                                                      int64_t src_step, int64_t bytes, int64_t rows) {
  copy_pieces<kPieces>(dst, dst_step, src, src_step, bytes, rows);
}
#endif

template <size_t... kPieces>
PieceLoop piece_loop(size_t pieces, std::index_sequence<kPieces...> /*all*/) {
#if defined(__x86_64__)
  static constexpr std::array<PieceLoop, kMostPieces> kV3 = {copy_pieces_v3<static_cast<int>(kPieces) + 1>...};
  if (cpu_level() != CpuLevel::kBase) return kV3[pieces - 1];
#endif
  static constexpr std::array<PieceLoop, kMostPieces> kBase = {copy_pieces_base<static_cast<int>(kPieces) + 1>...};
  return kBase[pieces - 1];
}

}  // namespace

void copy_rows(std::byte* dst, int64_t dst_step, const std::byte* src, int64_t src_step, int64_t bytes, int64_t rows) {
  const auto pieces = static_cast<size_t>(core::ceil_div(bytes, kLeastCopiedRow));
  piece_loop(pieces, std::make_index_sequence<kMostPieces>())(dst, dst_step, src, src_step, bytes, rows);
}

void copy_run(std::byte* dst, const std::byte* src, int64_t bytes, bool streaming) {
  if (!streaming || bytes < kStreamMinBytes) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
    return;
  }
  const int64_t head = (kLineBytes - static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % kLineBytes)) % kLineBytes;
  std::memcpy(dst, src, static_cast<size_t>(head));
  int64_t at = head;
  // Four pages side by side: reads of one page wait for memory while those of the others arrive.
  for (; at + kPages * kPage <= bytes; at += kPages * kPage) {
    for (int64_t line = at; line < at + kPage; line += kLineBytes) {
      for (int64_t page = 0; page < kPages; ++page) stream_line(dst + line + page * kPage, src + line + page * kPage);
    }
  }
  for (; at + kLineBytes <= bytes; at += kLineBytes) stream_line(dst + at, src + at);
  std::memcpy(dst + at, src + at, static_cast<size_t>(bytes - at));
}

void copy_strided(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride, int64_t count,
                  int64_t elem_size) {
  if (dst_stride == elem_size && src_stride == elem_size) {
    std::memcpy(dst, src, static_cast<size_t>(count * elem_size));
    return;
  }
  const auto copy = [&]<class T>(T) {
    if (dst_stride == elem_size && src_stride % elem_size == 0)
      return strided_lanes(src, src_stride / elem_size, elem_size, dst, count);
    for (int64_t i = 0; i < count; ++i) store(dst + i * dst_stride, load<T>(src + i * src_stride));
  };
  if (visit_element(elem_size, copy)) return;
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(dst + i * dst_stride, src + i * src_stride, static_cast<size_t>(elem_size));
}

void fill_elements(std::byte* dst, const std::byte* element, int64_t count, int64_t elem_size) {
  if (elem_size == 1) {
    std::memset(dst, static_cast<int>(*element), static_cast<size_t>(count));
    return;
  }
  if (visit_element(elem_size, [](auto) {})) return repeat_element(element, elem_size, dst, count);
  for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * elem_size, element, static_cast<size_t>(elem_size));
}

void transpose_block(MatrixRows dst, ConstMatrixRows src, int64_t rows, int64_t columns, int64_t elem_size,
                     bool streaming) {
  const auto block = [&](auto word) { transpose<decltype(word)>(dst, src, rows, columns, streaming); };
  if (visit_element(elem_size, block)) return;
  for (int64_t row = 0; row < rows; ++row) {
    copy_strided(dst.data + row * dst.row_stride, elem_size, src.data + row * elem_size, src.row_stride, columns,
                 elem_size);
  }
}

}  // namespace meshd::kernels
