// Products of floats of up to 32 bits with sums in f32, and of integers of up to 32 bits with sums of 32 bits, by loops
// of our own. Operands may lie in either order: they are copied on the way into the caches in any case, narrow ones
// converted then (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication"). Integers are unsigned
// here: signed sums wrap around the same way, without undefined overflow. Of int8, uint8 and int16 two terms are one
// element of 32 bits (term_pairs.h), and "terms" below are such elements.
//
// For each block of columns of c, for each part of the sum (at most kTileDepth terms):
//   1. the rows of b that belong to both are copied, a strip as wide as a tile after the other: they stay in the second
//      level cache;
//   2. for each strip of rows of a: its part is copied to where it stays in the first level cache, unless its rows lie
//      close enough for that already, and multiplied by each strip of b: a tile of c gets the sums.
// A packed b of one block may stay in the scratch, so that the next product with it begins with 2.
//
// Parts of a sum are added in the order of their terms, and how long they are follows from k. So an element of c has
// the same bits whatever block of c it is computed with.
//
// Example: 30 x 100 times 100 x 70 with AVX2, tiles of 6 x 16: one block, one part of 100 terms; b becomes 5 strips,
// the last with 6 columns and 10 of zeros; 5 strips of a meet each of them: 25 tiles, of which 5 are computed aside.
#include <algorithm>
#include <array>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/kernels/cache_size.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/product/gemm_plans.h"
#include "service/kernels/product/term_pairs.h"
#include "service/kernels/product/tile_kernel.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

constexpr int64_t kRowsAhead = 4;       // of b, on their way into the caches
constexpr int64_t kElem = 4;            // bytes of an element, as it is multiplied
constexpr int64_t kLineElements = 16;   // of a cache line
constexpr int64_t kMostColumns = 1024;  // of a block
constexpr int64_t kLeastColumns = 128;  // also where the cache is smaller
// A packed b stays where it is one block of columns, and not larger than a core's part of the caches that it shares.
constexpr int64_t kMostPackedElements = int64_t{1} << 20;
// A matrix b is read in place when it is read once or twice and not so large that pages far apart cost more than a
// copy, or when it stays in the second level cache and so few rows of a are multiplied with it that a copy does not
// pay: rows of b that are not whole cache lines, or so far apart that they share cache sets, are read more slowly than
// a copy.
constexpr int64_t kDirectOnceElements = int64_t{1} << 20;
constexpr int64_t kDirectRows = 256;         // of a, at most, where rows of b are whole lines and near each other
constexpr int64_t kDirectRowsFarApart = 64;  // where they are whole lines
constexpr int64_t kDirectRowsSplit = 32;     // where they are not
constexpr int64_t kNearPitch = 256;          // elements
constexpr int64_t kTilesAhead = 8;           // before the next strip of rows of a is copied, its lines are on their way
constexpr int64_t kStripsConverted = 8;      // of rows of a, where a narrow type is stored by columns
constexpr int64_t kMostTileColumns = 32;

// How elements are multiplied.
struct FloatTerms {
  using Element = float;
  static constexpr int64_t kOfElement = 1;  // terms
  static const TileKernels<float>& tiles() { return tile_kernels<float>(); }
};
struct IntegerTerms {
  using Element = uint32_t;
  static constexpr int64_t kOfElement = 1;
  static const TileKernels<uint32_t>& tiles() { return tile_kernels<uint32_t>(); }
};
struct PairsOfTerms {
  using Element = uint32_t;
  static constexpr int64_t kOfElement = 2;
  static const TileKernels<uint32_t>& tiles() { return pair_tile_kernels(); }
};

// One operand. Lines are what is contiguous: rows, or columns.
template <class Terms>
struct Operand {
  using T = typename Terms::Element;
  static constexpr bool kPairs = Terms::kOfElement > 1;

  int64_t elem = 4;
  bool by_rows = true;
  bool along = true;        // a line has all terms of a row of a, or a column of b
  int64_t line_stride = 0;  // elements
  int64_t terms = 0;        // of a sum, as they are given
  bool converts = false;
  ScalarKernel convert = nullptr;
  const TermPairs* pairs = nullptr;

  Operand(const GemmSpec& product, MatrixLayout layout, int64_t columns, bool is_a)
      : elem(tensor::size_bytes(product.in)),
        by_rows(layout.column_stride == 1 || columns == 1),
        along(by_rows == is_a),
        line_stride(by_rows ? layout.row_stride : layout.column_stride),
        terms(product.k),
        converts(kPairs || elem != kElem) {
    if (kPairs)
      pairs = find_term_pairs(product.in);
    else if (converts)
      convert = find_scalar_kernel(ScalarOp::kConvert, product.in, product.out);
  }

  // Lines and places count elements as they are multiplied.
  [[nodiscard]] const std::byte* at(const std::byte* data, int64_t line, int64_t place) const {
    (along ? place : line) *= Terms::kOfElement;
    return data + (line * line_stride + place) * elem;
  }
  void copy(const std::byte* data, int64_t line, int64_t place, T* to, int64_t count) const {
    const std::byte* const from = at(data, line, place);
    if constexpr (kPairs) {
      if (along) {
        const int64_t left = terms - place * Terms::kOfElement;
        return pairs->neighbours(from, std::min(count * Terms::kOfElement, left), to);
      }
      const bool has_second = line * Terms::kOfElement + 1 < terms;
      return pairs->lines(from, has_second ? from + line_stride * elem : nullptr, count, to);
    } else if (converts) {
      convert(&from, reinterpret_cast<std::byte*>(to), count);
    } else {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    }
  }
};

int64_t even_part(int64_t whole, int64_t most, int64_t multiple = 1) {
  return core::round_up(core::ceil_div(whole, core::ceil_div(whole, most)), multiple);
}

int64_t cached_columns(int64_t tile_columns) {
  const int64_t fit = second_level_bytes() * 3 / 2 / (kTileDepth * kElem);
  return std::clamp(fit, kLeastColumns, kMostColumns) / tile_columns * tile_columns;
}

template <class Terms>
class PackedGemm final : public Gemm::Plan {
  using T = typename Terms::Element;

 public:
  explicit PackedGemm(const GemmSpec& product)
      : spec_(product),
        tiles_(Terms::tiles()),
        a_(product, product.a, product.k, true),
        b_(product, product.b, product.n, false),
        terms_(core::ceil_div(product.k, Terms::kOfElement)),
        depth_(even_part(terms_, kTileDepth)),
        columns_(even_part(product.n, cached_columns(tiles_.columns()), tiles_.columns())) {
    const int64_t b_elements = terms_ * spec_.n;
    const int64_t cached_elements = second_level_bytes() / 2 / kElem;
    const bool is_near =
        spec_.m <= most_direct_rows() && b_elements <= cached_elements && b_.line_stride <= 2 * spec_.n;
    const bool is_read_once = spec_.m <= 2 * tiles_.rows && b_elements <= kDirectOnceElements;
    is_direct_ = !b_.converts && b_.by_rows && (is_near || is_read_once);
    const auto lines = [](int64_t elements) { return core::round_up(elements, kLineElements); };
    const int64_t packed = is_direct_ ? tiles_.columns() : columns_;
    keeps_packed_ = !is_direct_ && spec_.n <= columns_ && terms_ * columns_ <= kMostPackedElements;
    // In front, so that products of other rows find it.
    strip_at_ = lines((keeps_packed_ ? terms_ : depth_) * packed);
    const int64_t strip_rows = std::min(tiles_.rows, spec_.m);
    converted_at_ = strip_at_ + lines(a_.by_rows ? (strip_rows - 1) * kTilePitch + depth_ : tiles_.rows * depth_);
    int64_t converted = 0;
    if (b_.converts) converted = b_.by_rows ? columns_ : tiles_.columns() * kTilePitch;
    wide_at_ = converted_at_ + lines(converted);
    scratch_elements_ = wide_at_ + lines(a_.converts && !a_.by_rows ? depth_ * wide_rows() : 0);
  }

  [[nodiscard]] bool keeps_packed() const { return keeps_packed_; }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_elements_ * kElem; }

  void run(const std::byte* a_data, const std::byte* b_data, std::byte* c_data, std::byte* scratch,
           core::Checkpoint* checkpoint, PackedOperand* kept) const override {
    Call call{a_data, b_data, reinterpret_cast<T*>(c_data), reinterpret_cast<T*>(scratch), checkpoint};
    call.keeps = keeps_packed_ && kept != nullptr;
    call.is_packed = call.keeps && kept->of == b_data;
    if (kept != nullptr && !call.is_packed) kept->of = nullptr;  // it is overwritten
    for (int64_t column = 0; column < spec_.n; column += columns_) {
      for (int64_t term = 0; term < terms_; term += depth_) {
        multiply_block(call, column, std::min(columns_, spec_.n - column), term, std::min(depth_, terms_ - term));
      }
    }
    if (call.keeps) kept->of = b_data;
  }

 private:
  struct Call {
    const std::byte* a;
    const std::byte* b;
    T* c;
    T* scratch;
    core::Checkpoint* checkpoint;
    bool keeps = false;      // all of b's copy
    bool is_packed = false;  // it is there
  };

  // Where the copy of the part of b is that begins with this term.
  [[nodiscard]] T* block_of(const Call& call, int64_t term) const {
    return call.scratch + (call.keeps ? term * columns_ : 0);
  }

  [[nodiscard]] int64_t most_direct_rows() const {
    if (b_.line_stride % kLineElements != 0) return kDirectRowsSplit;
    return b_.line_stride <= kNearPitch ? kDirectRows : kDirectRowsFarApart;
  }

  [[nodiscard]] int64_t wide_rows() const { return kStripsConverted * tiles_.rows; }

  void multiply_block(const Call& call, int64_t column, int64_t columns, int64_t term, int64_t depth) const {
    T* const block = block_of(call, term);
    const int64_t width = tiles_.columns();
    if (!is_direct_) {
      if (!call.is_packed) pack_b(call, column, columns, term, depth);
    } else if (const int64_t rest = columns % width; rest != 0 && rest != tiles_.lanes) {
      pack_strip(call.b, column + columns - rest, rest, term, depth, block, call.scratch);
    }
    const int64_t strips = core::ceil_div(spec_.m, tiles_.rows);
    for (int64_t strip = 0; strip < strips; ++strip) {
      const int64_t row = strip_row(strip, strips);
      const int64_t rows = strip_row(strip + 1, strips) - row;
      TileCall<T> tile;
      const TileRows order = load_strip(call, strip, strips, term, depth, columns > width, tile);
      for (int64_t at = 0; at < columns; at += width) {
        prefetch_strip(call.a, strip + 1, strips, term, depth, at, columns);
        const int64_t some = std::min(width, columns - at);
        const bool is_whole = some == width || some == tiles_.lanes;
        tile.c = call.c + row * spec_.c_row_stride() + column + at;
        tile.depth = depth;
        tile.c_pitch = spec_.c_row_stride();
        tile.adds = spec_.adds || term != 0;
        if (is_direct_ && is_whole) {
          tile.b = reinterpret_cast<const T*>(b_.at(call.b, term, column + at));
          tile.b_pitch = b_.line_stride;
        } else {
          tile.b = is_direct_ ? block : block + at * depth;
          tile.b_pitch = width;
        }
        const TileKernel<T> kernel =
            tiles_.kernels[static_cast<size_t>(order)][some > tiles_.lanes ? 1 : 0][static_cast<size_t>(rows)];
        if (is_whole) {
          kernel(tile);
        } else {
          run_aside(kernel, tile, rows, some);
        }
      }
      core::pass(call.checkpoint);
    }
  }

  // Strips are as even as can be.
  [[nodiscard]] int64_t strip_row(int64_t strip, int64_t strips) const { return spec_.m * strip / strips; }

  // A tile with fewer columns than its vectors have lanes.
  static void run_aside(TileKernel<T> kernel, const TileCall<T>& tile, int64_t rows, int64_t columns) {
    alignas(64) std::array<T, kMostTileRows * kMostTileColumns> made;
    TileCall<T> aside = tile;
    aside.c = made.data();
    aside.c_pitch = kMostTileColumns;
    aside.adds = false;
    kernel(aside);
    for (int64_t i = 0; i < rows; ++i) {
      T* const to = tile.c + i * tile.c_pitch;
      const T* const from = made.data() + i * kMostTileColumns;
      for (int64_t j = 0; j < columns; ++j) to[j] = tile.adds ? to[j] + from[j] : from[j];
    }
  }

  // ---- b

  void pack_b(const Call& call, int64_t column, int64_t columns, int64_t term, int64_t depth) const {
    T* const block = block_of(call, term);
    const int64_t width = tiles_.columns();
    if (!b_.by_rows) {
      for (int64_t at = 0; at < columns; at += width) {
        pack_strip(call.b, column + at, std::min(width, columns - at), term, depth, block + at * depth, call.scratch);
      }
      return;
    }
    // Row by row, as they lie in memory.
    T* const converted = call.scratch + converted_at_;
    for (int64_t p = 0; p < depth; ++p) {
      const std::byte* const row = b_.at(call.b, term + p, column);
      prefetch(b_.at(call.b, term + p + kRowsAhead, column), p + kRowsAhead < depth ? columns * b_.elem : 0);
      if (b_.converts) b_.copy(call.b, term + p, column, converted, columns);
      const T* const line = b_.converts ? converted : reinterpret_cast<const T*>(row);
      for (int64_t at = 0; at < columns; at += width) {
        copy_part(line + at, std::min(width, columns - at), block + at * depth + p * width);
      }
    }
  }

  static void prefetch(const std::byte* from, int64_t bytes) {
    for (int64_t byte = 0; byte < bytes; byte += kLineBytes) __builtin_prefetch(from + byte);
  }

  // A row of a strip, filled up with zeros.
  void copy_part(const T* from, int64_t columns, T* to) const {
    if (columns == kMostTileColumns) {
      std::memcpy(to, from, kMostTileColumns * sizeof(T));
    } else if (columns == kMostTileColumns / 2 && columns == tiles_.columns()) {
      std::memcpy(to, from, kMostTileColumns / 2 * sizeof(T));
    } else {
      std::memcpy(to, from, static_cast<size_t>(columns) * sizeof(T));
      std::memset(to + columns, 0, static_cast<size_t>(tiles_.columns() - columns) * sizeof(T));
    }
  }

  void pack_strip(const std::byte* b, int64_t column, int64_t columns, int64_t term, int64_t depth, T* to,
                  T* scratch) const {
    const int64_t width = tiles_.columns();
    if (b_.by_rows) {
      for (int64_t p = 0; p < depth; ++p) {
        copy_part(reinterpret_cast<const T*>(b_.at(b, term + p, column)), columns, to + p * width);
      }
      return;
    }
    const auto* from = reinterpret_cast<const T*>(b_.at(b, column, term));
    int64_t pitch = b_.line_stride;
    if (b_.converts) {
      T* const converted = scratch + converted_at_;
      for (int64_t j = 0; j < columns; ++j) b_.copy(b, column + j, term, converted + j * kTilePitch, depth);
      from = converted;
      pitch = kTilePitch;
    }
    tiles_.transpose(from, pitch, columns, depth, to, width);
    for (int64_t p = 0; columns < width && p < depth; ++p) {
      std::memset(to + p * width + columns, 0, static_cast<size_t>(width - columns) * sizeof(T));
    }
  }

  // ---- a

  // Where tiles find the strip. One that is multiplied with one strip of b alone stays where it is, and so do rows that
  // are no further apart than those of a copy.
  TileRows load_strip(const Call& call, int64_t strip, int64_t strips, int64_t term, int64_t depth, bool is_read_again,
                      TileCall<T>& tile) const {
    T* const to = call.scratch + strip_at_;
    tile.a = to;
    tile.a_pitch = tiles_.rows;
    const int64_t row = strip_row(strip, strips);
    const int64_t rows = strip_row(strip + 1, strips) - row;
    if (a_.by_rows && !a_.converts && (!is_read_again || a_.line_stride <= kTilePitch)) {
      tile.a = reinterpret_cast<const T*>(a_.at(call.a, row, term));
      tile.a_pitch = a_.line_stride;
      return TileRows::kApart;
    }
    if (a_.by_rows) {
      for (int64_t i = 0; i < rows; ++i) a_.copy(call.a, row + i, term, to + i * kTilePitch, depth);
      return TileRows::kStrip;
    }
    const auto* from = reinterpret_cast<const T*>(a_.at(call.a, term, row));
    int64_t pitch = a_.line_stride;
    int64_t readable = spec_.m - row;
    if (a_.converts) {
      // Some strips at once: a conversion has a price of its own.
      const int64_t first = strip - strip % kStripsConverted;
      const int64_t begin = strip_row(first, strips);
      const int64_t end = strip_row(std::min(strips, first + kStripsConverted), strips);
      T* const wide = call.scratch + wide_at_;
      pitch = wide_rows();
      for (int64_t p = 0; strip == first && p < depth; ++p) {
        a_.copy(call.a, term + p, begin, wide + p * pitch, end - begin);
      }
      from = wide + row - begin;
      readable = end - row;
    }
    if (!is_read_again) {
      tile.a = from;
      tile.a_pitch = pitch;
      return TileRows::kColumns;
    }
    // Whole tiles where there are as many rows: copies of a known size are a few instructions.
    if (readable >= tiles_.rows && tiles_.rows == kMostTileRows) {
      for (int64_t p = 0; p < depth; ++p) std::memcpy(to + p * kMostTileRows, from + p * pitch, kMostTileRows * kElem);
    } else if (readable >= tiles_.rows && tiles_.rows == 6) {
      for (int64_t p = 0; p < depth; ++p) std::memcpy(to + p * 6, from + p * pitch, 6 * kElem);
    } else {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < rows; ++i) to[p * tiles_.rows + i] = from[p * pitch + i];
      }
    }
    return TileRows::kColumns;
  }

  // While a strip is multiplied with the last ones of b, lines of the next one come nearer. Inlined by force: GCC takes
  // a function that only prefetches for one without effects, and leaves calls of it out.
  [[gnu::always_inline]] void prefetch_strip(const std::byte* a, int64_t strip, int64_t strips, int64_t term,
                                             int64_t depth, int64_t at, int64_t columns) const {
    if (strip == strips || !a_.by_rows) return;
    const int64_t row = strip_row(strip, strips);
    const int64_t rows = strip_row(strip + 1, strips) - row;
    const int64_t width = tiles_.columns();
    const int64_t tiles = core::ceil_div(columns, width);
    const int64_t steps = std::min(tiles, kTilesAhead);
    const int64_t step = at / width - (tiles - steps);
    if (step < 0) return;
    for (int64_t i = rows * step / steps; i < rows * (step + 1) / steps; ++i) {
      prefetch(a_.at(a, row + i, term), depth * Terms::kOfElement * a_.elem);
    }
  }

  GemmSpec spec_;
  const TileKernels<T>& tiles_;
  Operand<Terms> a_;
  Operand<Terms> b_;
  int64_t terms_;    // of the sum
  int64_t depth_;    // of a part of it
  int64_t columns_;  // of a block
  bool is_direct_ = false;
  bool keeps_packed_ = false;
  // In elements, in the scratch: behind the block of b a strip of a, converted lines of b, converted strips of a.
  int64_t strip_at_ = 0;
  int64_t converted_at_ = 0;
  int64_t wide_at_ = 0;
  int64_t scratch_elements_ = 0;
};

}  // namespace

GemmPlan plan_packed(const GemmSpec& spec) {
  if (!tensor::is_integer(spec.out)) return plan_of_loops(std::make_shared<const PackedGemm<FloatTerms>>(spec));
  if (find_term_pairs(spec.in) == nullptr) return plan_of_loops(std::make_shared<const PackedGemm<IntegerTerms>>(spec));
  return plan_of_loops(std::make_shared<const PackedGemm<PairsOfTerms>>(spec));
}

}  // namespace meshd::kernels
