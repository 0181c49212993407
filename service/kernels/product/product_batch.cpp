#include "service/kernels/product/product_batch.h"

#include <algorithm>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/product/side_by_side.h"
#include "service/kernels/product/tile_kernel.h"
#include "service/kernels/product/vector_product.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// Of larger matrices a call for each costs little, and copies of them in strips pay.
constexpr int64_t kMostVectorElements = 16 * 1024;
constexpr int64_t kMostTiledElements = 4096;

// Elements next to each other, by rows or by columns.
bool is_contiguous(int64_t rows, int64_t columns, MatrixLayout layout) {
  const bool by_rows = (layout.column_stride == 1 || columns == 1) && (layout.row_stride == columns || rows == 1);
  const bool by_columns = (layout.row_stride == 1 || rows == 1) && (layout.column_stride == rows || columns == 1);
  return by_rows || by_columns;
}

struct LaneBatch final : ProductBatch::Loop {
  SideBySideShape shape{};
  SideBySide multiply = nullptr;
  void run(const std::byte* a, const std::byte* b, std::byte* c, int64_t count) const override {
    multiply(shape, a, b, c, count);
  }
};

struct VectorBatch final : ProductBatch::Loop {
  VectorShape shape;
  VectorLoop multiply = nullptr;
  bool matrix_is_b = false;
  int64_t a_bytes = 0;  // from a matrix a to the next
  int64_t b_bytes = 0;
  int64_t c_bytes = 0;
  void run(const std::byte* a, const std::byte* b, std::byte* c, int64_t count) const override {
    for (int64_t i = 0; i < count; ++i, a += a_bytes, b += b_bytes, c += c_bytes)
      multiply(shape, matrix_is_b ? b : a, matrix_is_b ? a : b, c, nullptr);
  }
};

// Tiles of c from both operands where they lie. Where the last columns are no whole vector, the last tile begins among
// those before, which it makes again.
struct TileBatch final : ProductBatch::Loop {
  BatchSpec spec;
  TileRows order = TileRows::kApart;
  void run(const std::byte* a, const std::byte* b, std::byte* c, int64_t count) const override {
    const GemmSpec& one = spec.one;
    const TileKernels<float>& tiles = tile_kernels<float>();
    const auto& kernels = tiles.kernels[static_cast<size_t>(order)];
    const int64_t strips = core::ceil_div(one.m, tiles.rows);
    TileCall<float> call;
    call.depth = one.k;
    call.a_pitch = order == TileRows::kApart ? one.a.row_stride : one.a.column_stride;
    call.b_pitch = one.b.row_stride;
    call.c_pitch = one.n;
    for (int64_t product = 0; product < count; ++product) {
      const float* const left = reinterpret_cast<const float*>(a) + product * spec.a_step;
      const float* const right = reinterpret_cast<const float*>(b) + product * spec.b_step;
      float* const made = reinterpret_cast<float*>(c) + product * one.m * one.n;
      for (int64_t strip = 0; strip < strips; ++strip) {
        const int64_t row = one.m * strip / strips;
        const int64_t rows = one.m * (strip + 1) / strips - row;
        call.a = left + row * one.a.row_stride;
        int64_t next = 0;
        for (int64_t column = 0; column < one.n; column = next) {
          const int64_t vectors = one.n - column >= tiles.columns() ? 2 : 1;
          const int64_t begin = std::min(column, one.n - vectors * tiles.lanes);
          next = begin + vectors * tiles.lanes;
          call.b = right + begin;
          call.c = made + row * one.n + begin;
          kernels[static_cast<size_t>(vectors - 1)][static_cast<size_t>(rows)](call);
        }
      }
    }
  }
};

std::shared_ptr<const ProductBatch::Loop> lanes_of(const BatchSpec& spec) {
  const GemmSpec& one = spec.one;
  auto loop = std::make_shared<LaneBatch>();
  loop->shape = {one.m, one.n, one.k, one.a, one.b, spec.a_step, spec.b_step};
  loop->multiply = side_by_side(one.in);
  return loop;
}

std::shared_ptr<const ProductBatch::Loop> vectors_of(const BatchSpec& spec, const VectorForm& form) {
  const int64_t elem = tensor::size_bytes(spec.one.in);
  auto loop = std::make_shared<VectorBatch>();
  loop->shape = form.shape;
  loop->multiply = vector_loop(spec.one.in, form.order);
  loop->matrix_is_b = form.matrix_is_b;
  loop->a_bytes = spec.a_step * elem;
  loop->b_bytes = spec.b_step * elem;
  loop->c_bytes = spec.one.m * spec.one.n * elem;
  return loop;
}

std::shared_ptr<const ProductBatch::Loop> loop_of(const BatchSpec& spec) {
  const GemmSpec& one = spec.one;
  if (one.in != one.out || (one.in != DType::kFloat32 && one.in != DType::kFloat64)) return nullptr;
  const int64_t of_a = one.m * one.k;
  const int64_t of_b = one.k * one.n;
  const int64_t of_c = one.m * one.n;
  if (std::min({of_a, of_b, of_c}) == 0) return nullptr;
  const int64_t lanes = vector_lanes(one.in);
  const bool is_tiny = std::max({of_a, of_b, of_c}) <= kMostSideBySide && is_contiguous(one.m, one.k, one.a) &&
                       is_contiguous(one.k, one.n, one.b);
  if (const std::optional<VectorForm> form = vector_form(one)) {
    const int64_t line = form->order == VectorOrder::kDots ? one.k : form->shape.results;
    if (is_tiny && line < lanes) return lanes_of(spec);
    return std::max(of_a, of_b) <= kMostVectorElements ? vectors_of(spec, *form) : nullptr;
  }
  const bool has_rows_of_b = one.b.column_stride == 1 && one.n >= lanes;
  const bool has_lines_of_a = one.a.column_stride == 1 || one.a.row_stride == 1 || one.k == 1;
  if (one.in == DType::kFloat32 && has_rows_of_b && has_lines_of_a && one.k <= kTileDepth &&
      std::max(of_a, of_b) <= kMostTiledElements) {
    auto loop = std::make_shared<TileBatch>();
    loop->spec = spec;
    loop->order = one.a.column_stride == 1 || one.k == 1 ? TileRows::kApart : TileRows::kColumns;
    return loop;
  }
  return is_tiny ? lanes_of(spec) : nullptr;
}

}  // namespace

std::optional<ProductBatch> ProductBatch::of(const BatchSpec& spec) {
  std::shared_ptr<const Loop> loop = loop_of(spec);
  return loop != nullptr ? std::optional<ProductBatch>(ProductBatch(std::move(loop))) : std::nullopt;
}

void ProductBatch::run(const std::byte* a, const std::byte* b, std::byte* c, int64_t count) const {
  loop_->run(a, b, c, count);
}

}  // namespace meshd::kernels
