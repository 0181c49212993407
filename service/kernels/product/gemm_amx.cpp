// Products of bfloat16 with sums in f32, and of int8 with sums in int32, by tiles of AMX (amx.h). Operands may lie in
// either order.
//
// For each block of columns of c:
//   1. all terms of its columns of b are copied to panels of 16 columns, where that is not too large;
//   2. for each block of rows, for each part of the sum (at most kPartBytes of a row), each 32 rows of a are multiplied
//   by each
//      32 columns of b. Rows of a are read where they lie, or copied to where they stay in the first level cache. Sums
//      of some parts stay in the scratch, 32 x 32 at a time, where they share no cache sets; of the last part they go
//      to c, or to a strip of whole rows, where c has fewer rows or columns or a narrower type.
// A packed b of one block may stay in the scratch, so that the next product with it begins with 2.
//
// Parts of a sum are added in the order of their terms, and how long they are follows from k. So an element of c has
// the same bits whatever block of c it is computed with.
//
// Example: bfloat16, 70 x 700 times 700 x 100: 7 panels of columns; parts of 256, 256 and 188 terms, the last filled up
// with zeros to 192; 3 times two panels of rows (32, 32 and 6 rows), each with 4 calls for a part; of the last part
// those of the first 64 rows and 96 columns write to c.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/product/amx.h"
#include "service/kernels/product/amx_panels.h"
#include "service/kernels/product/gemm_plans.h"
#include "service/kernels/product/tile_kernel.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kPartBytes = 512;       // two panels of rows, two of columns and their tiles of sums stay in 48 KiB
constexpr int64_t kStrip = 2 * kAmxSide;  // rows or columns of a call
constexpr int64_t kAmxColumns = 1024;     // of a block
// Panels that few rows are multiplied by are read once or twice: they stay in the second level cache.
constexpr int64_t kFewRows = 64;
constexpr int64_t kFewRowsColumns = 256;
constexpr int64_t kLeastAmxColumns = 256;  // where b is packed whole
constexpr int64_t kAmxRows = 512;          // of a block, where the sum has several parts
constexpr int64_t kMostPanelBytes = int64_t{4} << 20;
constexpr int64_t kGroupPitch = kPartBytes / kAmxGroupBytes + 16;  // between columns of groups: they share no sets
constexpr int64_t kSums = kStrip * kStrip;
constexpr int64_t kSumBytes = 4;
constexpr int64_t kReadTwice = 2;  // times that rows of a are read where they lie, whatever sets they share

int64_t whole_lines(int64_t bytes) { return core::round_up(bytes, kLineBytes); }

// One operand. Lines are what is contiguous: rows, or columns.
struct Lined {
  int64_t elem = 1;  // bytes
  bool by_rows = true;
  int64_t line_bytes = 0;

  Lined(tensor::DType dtype, MatrixLayout layout, int64_t columns)
      : elem(tensor::size_bytes(dtype)),
        by_rows(layout.column_stride == 1 || columns == 1),
        line_bytes((by_rows ? layout.row_stride : layout.column_stride) * elem) {}

  [[nodiscard]] const std::byte* at(const std::byte* data, int64_t line, int64_t place) const {
    return data + line * line_bytes + place * elem;
  }
};

class AmxGemm final : public Gemm::Plan {
 public:
  AmxGemm(const GemmSpec& product, const AmxUnit& unit)
      : spec_(product),
        unit_(unit),
        a_(product.in, product.a, product.k),
        b_(product.in, product.b, product.n),
        group_(kAmxGroupBytes / a_.elem),
        step_terms_(kAmxSide * group_),
        parts_(core::ceil_div(product.k * a_.elem, kPartBytes)),
        terms_(core::round_up(core::ceil_div(product.k, parts_), step_terms_)) {
    const int64_t column_bytes = parts_ * terms_ * a_.elem;
    const int64_t fit = kMostPanelBytes / column_bytes / kStrip * kStrip;
    const int64_t columns_of_block = spec_.m <= kFewRows ? kFewRowsColumns : kAmxColumns;
    packs_all_ = fit >= std::min(kLeastAmxColumns, core::round_up(spec_.n, kStrip));
    columns_ =
        std::min(core::round_up(spec_.n, kStrip), packs_all_ ? std::min(fit, columns_of_block) : columns_of_block);
    rows_ = parts_ > 1 ? std::min(core::round_up(spec_.m, kStrip), kAmxRows) : 0;
    line_bytes_ = (columns_ + kAmxSide) * kSumBytes;
    reads_a_ = a_.by_rows && (spec_.n <= kReadTwice * kStrip || !shares_sets(a_.line_bytes));
    panel_ = (terms_ / group_ + 1) * kAmxSide;
    // In front, so that products of other rows find it.
    const int64_t packed_bytes = (packs_all_ ? parts_ : 1) * panel_ * (columns_ / kAmxSide) * kAmxGroupBytes;
    strip_at_ = whole_lines(packed_bytes);
    sums_at_ = strip_at_ + whole_lines(2 * panel_ * kAmxGroupBytes);
    rows_at_ = sums_at_ + whole_lines(rows_ * columns_ * kSumBytes);
    aside_at_ = rows_at_ + whole_lines(kStrip * line_bytes_);
    scratch_bytes_ = aside_at_ + whole_lines(std::max(kGroupPitch * kAmxSide, panel_) * kAmxGroupBytes);
  }

  [[nodiscard]] bool keeps_packed() const { return packs_all_ && spec_.n <= columns_; }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }

  void run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* scratch, core::Checkpoint* checkpoint,
           PackedOperand* kept) const override {
    const Call call{a, b, c, scratch, checkpoint};
    const bool keeps = keeps_packed() && kept != nullptr;
    const bool is_packed = keeps && kept->of == b;
    if (kept != nullptr && !is_packed) kept->of = nullptr;  // it is overwritten
    for (int64_t column = 0; column < spec_.n; column += columns_) {
      const int64_t columns = std::min(columns_, spec_.n - column);
      if (packs_all_ && !is_packed) {
        for (int64_t part = 0; part < parts_; ++part) pack_b(call, column, columns, part);
      }
      multiply_columns(call, column, columns);
    }
    if (keeps) kept->of = b;
  }

 private:
  struct Call {
    const std::byte* a;
    const std::byte* b;
    std::byte* c;
    std::byte* scratch;
    core::Checkpoint* checkpoint;

    [[nodiscard]] uint32_t* groups(int64_t at) const { return reinterpret_cast<uint32_t*>(scratch + at); }
  };

  [[nodiscard]] int64_t terms_of(int64_t part) const { return std::min(terms_, spec_.k - part * terms_); }
  [[nodiscard]] int64_t steps_of(int64_t part) const { return core::ceil_div(terms_of(part), step_terms_); }
  // Where a part's panels of b are.
  [[nodiscard]] uint32_t* block_of(const Call& call, int64_t part) const {
    return call.groups(0) + (packs_all_ ? part * panel_ * (columns_ / kAmxSide) : 0);
  }

  void multiply_columns(const Call& call, int64_t column, int64_t columns) const {
    const int64_t block_rows = parts_ > 1 ? rows_ : spec_.m;
    for (int64_t first = 0; first < spec_.m; first += block_rows) {
      const int64_t end = std::min(first + block_rows, spec_.m);
      for (int64_t part = 0; part < parts_; ++part) {
        if (!packs_all_) pack_b(call, column, columns, part);
        for (int64_t row = first; row < end; row += kStrip) {
          multiply_rows(call, row, std::min(kStrip, end - row), column, columns, part,
                        parts_ > 1 ? call.scratch + sums_at_ + (row - first) * columns_ * kSumBytes : nullptr);
          core::pass(call.checkpoint);
        }
      }
    }
  }

  // At most 32 rows, by all columns of the block. `sums`: of the parts before the last, null where there is one part.
  void multiply_rows(const Call& call, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t part,
                     std::byte* sums) const {
    const bool is_last = part + 1 == parts_;
    const int64_t out_bytes = tensor::size_bytes(spec_.out);
    std::byte* const c = call.c + (row * spec_.c_row_stride() + column) * out_bytes;
    const int64_t c_row_bytes = spec_.c_row_stride() * out_bytes;
    std::byte* const aside = call.scratch + rows_at_;
    const uint32_t* const b = block_of(call, part);
    AmxCall tiles = rows_of_a(call, row, rows, part);
    tiles.steps = steps_of(part);
    tiles.from_row_bytes = kStrip * kSumBytes;
    int64_t direct = 0;  // columns of c that are written by tiles
    if (is_last && spec_.out != tensor::DType::kBfloat16 && rows == kStrip) direct = columns / kStrip * kStrip;
    unit_.begin();
    for (int64_t at = 0; at < columns; at += kStrip) {
      const uint32_t* const panel = b + at / kAmxSide * panel_;
      tiles.b = {panel, columns - at > kAmxSide ? panel + panel_ : nullptr};
      std::byte* const block = sums != nullptr ? sums + at / kStrip * kSums * kSumBytes : nullptr;
      tiles.from = part > 0 ? block : nullptr;
      if (!is_last) {
        tiles.to = block;
        tiles.to_row_bytes = kStrip * kSumBytes;
      } else if (at < direct) {
        tiles.to = c + at * kSumBytes;
        tiles.to_row_bytes = c_row_bytes;
      } else {
        tiles.to = aside + at * kSumBytes;
        tiles.to_row_bytes = line_bytes_;
      }
      unit_.multiply(tiles);
    }
    unit_.end();
    if (!is_last || direct == columns) return;
    for (int64_t i = 0; i < rows; ++i) {
      const std::byte* const made = aside + i * line_bytes_ + direct * kSumBytes;
      std::byte* const to = c + i * c_row_bytes + direct * out_bytes;
      if (spec_.out == tensor::DType::kBfloat16)
        unit_.narrow(reinterpret_cast<const float*>(made), columns, to);
      else
        std::memcpy(to, made, static_cast<size_t>((columns - direct) * kSumBytes));
    }
  }

  // ---- b

  void pack_b(const Call& call, int64_t column, int64_t columns, int64_t part) const {
    const int64_t term = part * terms_;
    uint32_t* const block = block_of(call, part);
    if (!b_.by_rows) {
      for (int64_t at = 0; at < columns; at += kAmxSide) {
        pack_columns(call, call.b, column + at, std::min(kAmxSide, columns - at), term, terms_of(part),
                     block + at / kAmxSide * panel_);
      }
      return;
    }
    const int64_t end = term + terms_of(part);
    uint32_t* to = block;
    for (int64_t p = term; p < term + steps_of(part) * step_terms_; p += group_, to += kAmxSide)
      group_lines(lines_at(b_, call.b, p, column, end), b_.elem, columns, to, panel_);
  }

  // Those of a group; null behind the last one.
  [[nodiscard]] std::array<const std::byte*, kAmxGroupBytes> lines_at(const Lined& matrix, const std::byte* data,
                                                                      int64_t first, int64_t place, int64_t end) const {
    std::array<const std::byte*, kAmxGroupBytes> out{};
    for (int64_t i = 0; i < std::min(group_, end - first); ++i)
      out[static_cast<size_t>(i)] = matrix.at(data, first + i, place);
    return out;
  }

  // A panel of an operand that is stored by columns: groups are there already, and are transposed.
  void pack_columns(const Call& call, const std::byte* b, int64_t column, int64_t columns, int64_t term, int64_t terms,
                    uint32_t* panel) const {
    uint32_t* const aside = call.groups(aside_at_);
    const int64_t groups = core::round_up(terms, step_terms_) / group_;
    for (int64_t j = 0; j < kAmxSide; ++j) {
      auto* const to = reinterpret_cast<std::byte*>(aside + j * kGroupPitch);
      const int64_t bytes = j < columns ? terms * b_.elem : 0;
      if (bytes > 0) std::memcpy(to, b_.at(b, column + j, term), static_cast<size_t>(bytes));
      std::memset(to + bytes, 0, static_cast<size_t>(groups * kAmxGroupBytes - bytes));
    }
    tile_kernels<uint32_t>().transpose(aside, kGroupPitch, kAmxSide, groups, panel, kAmxSide);
  }

  // ---- a

  // Lines at this distance are in so few sets of the first level cache that 32 rows' parts do not stay there.
  static bool shares_sets(int64_t row_bytes) {
    constexpr int64_t kSetBytes = 4096;
    return std::gcd(row_bytes, kSetBytes) > kPartBytes;
  }

  // Where tiles find rows of a.
  [[nodiscard]] AmxCall rows_of_a(const Call& call, int64_t row, int64_t rows, int64_t part) const {
    const int64_t term = part * terms_;
    const int64_t terms = terms_of(part);
    AmxCall out;
    if (reads_a_ && rows == kStrip && terms % step_terms_ == 0) {
      out.a = {a_.at(call.a, row, term), a_.at(call.a, row + kAmxSide, term)};
      out.a_row_bytes = a_.line_bytes;
      out.a_step_bytes = kAmxRowBytes;
      return out;
    }
    out.a_row_bytes = kAmxRowBytes;
    out.a_step_bytes = kAmxTileBytes;
    for (int64_t at = 0; at < rows; at += kAmxSide) {
      uint32_t* const panel = call.groups(strip_at_) + at / kAmxSide * panel_;
      const int64_t some = std::min(kAmxSide, rows - at);
      if (a_.by_rows)
        copy_rows(a_.at(call.a, row + at, term), a_.line_bytes, some, terms * a_.elem, panel);
      else
        transpose_rows(call, row + at, some, term, terms, panel);
      out.a[static_cast<size_t>(at / kAmxSide)] = reinterpret_cast<const std::byte*>(panel);
    }
    return out;
  }

  // Rows that are stored by columns: groups are made as for b, and transposed.
  void transpose_rows(const Call& call, int64_t row, int64_t rows, int64_t term, int64_t terms, uint32_t* panel) const {
    uint32_t* const aside = call.groups(aside_at_);
    const int64_t steps = core::ceil_div(terms, step_terms_);
    uint32_t* to = aside;
    for (int64_t p = term; p < term + steps * step_terms_; p += group_, to += kAmxSide)
      group_lines(lines_at(a_, call.a, p, row, term + terms), a_.elem, rows, to, kAmxSide);
    for (int64_t step = 0; step < steps; ++step) {
      tile_kernels<uint32_t>().transpose(aside + step * kAmxElements, kAmxSide, kAmxSide, kAmxSide,
                                         panel + step * kAmxElements, kAmxSide);
    }
  }

  GemmSpec spec_;
  const AmxUnit& unit_;
  Lined a_;
  Lined b_;
  int64_t group_;           // terms
  int64_t step_terms_;      // of a step
  int64_t parts_;           // of a sum
  int64_t terms_;           // of each but the last, a multiple of a step's
  bool packs_all_ = false;  // parts of b
  int64_t columns_ = 0;     // of a block, filled up to whole strips
  int64_t rows_ = 0;        // whose sums are in the scratch
  int64_t line_bytes_ = 0;  // of a row of c that is made apart
  bool reads_a_ = false;    // where it lies
  int64_t panel_ = 0;       // groups, and a line between two panels, which share no cache sets so
  // In bytes, in the scratch: behind the panels of b two panels of a, sums, rows of c, what is transposed.
  int64_t strip_at_ = 0;
  int64_t sums_at_ = 0;
  int64_t rows_at_ = 0;
  int64_t aside_at_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace

GemmPlan plan_amx(const GemmSpec& spec, const AmxUnit& unit) {
  return plan_of_loops(std::make_shared<const AmxGemm>(spec, unit));
}

}  // namespace meshd::kernels
