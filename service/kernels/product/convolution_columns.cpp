// Convolution as a product: the patch of each window becomes a row, the kernel a matrix.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/movement/movement_loops.h"
#include "service/kernels/movement/strided_side.h"
#include "service/kernels/product/convolution.h"
#include "service/kernels/product/gemm.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;
using tensor::DType;

constexpr int64_t kTileBytes = 256 << 10;  ///< of patches at once
constexpr int64_t kFewestRows = 16;        ///< of patches, however large they are
// Of patches, where the loops that multiply so few keep the kernel packed from one product to the next: four strips of
// the largest tile.
constexpr int64_t kRowsOfPacked = 56;
constexpr double kPackedTileFlops = 1e6;  // of so many patches, at least
constexpr double kColumnsItemFlops = 4e6;
constexpr double kFlopsOfCopied = 400;  // of a work item, for each element of a kernel that each thread copies

int64_t product_of(const std::vector<ConvolutionDim>& dims, int64_t ConvolutionDim::*field) {
  int64_t out = 1;
  for (const ConvolutionDim& dim : dims) out = core::checked_mul(out, dim.*field);
  return out;
}

/// Rows of patches, one after another: where each tap of the window at the current position finds its element.
class Patches {
 public:
  Patches(const ConvolutionSpec& spec, int64_t position) : spec_(spec), at_(spec.dims.size()), taps_(spec.dims.size()) {
    joins_taps_ = !spec.dims.empty() && spec.dims.back().kernel > 0 && spec.dims.back().lhs_dilation == 1 &&
                  spec.lhs.minor == 1 && spec.lhs.spatial.back() * spec.dims.back().rhs_dilation == spec.in_features;
    for (size_t d = spec.dims.size(); d-- > 0;) {
      at_[d] = position % spec.dims[d].out;
      position /= spec.dims[d].out;
      taps_[d].resize(static_cast<size_t>(spec.dims[d].kernel));
      find_taps(d);
    }
  }

  /// Writes the patch of this position, taps in row-major order, features of a tap next to each other.
  void write(const std::byte* image, std::byte* to, int64_t elem) const { write_from(0, 0, image, to, elem); }

  /// Element of the result at this position.
  [[nodiscard]] int64_t result_offset() const {
    int64_t offset = 0;
    for (size_t d = 0; d < at_.size(); ++d) offset += at_[d] * spec_.out.spatial[d];
    return offset;
  }

  void advance() {
    for (size_t d = at_.size(); d-- > 0;) {
      const bool wraps = ++at_[d] == spec_.dims[d].out;
      if (wraps) at_[d] = 0;
      find_taps(d);
      if (!wraps) return;
    }
  }

 private:
  static constexpr int64_t kNothing = INT64_MIN;

  void find_taps(size_t d) {
    const ConvolutionDim& dim = spec_.dims[d];
    for (int64_t k = 0; k < dim.kernel; ++k) {
      const int64_t place = at_[d] * dim.stride + k * dim.rhs_dilation - dim.pad_low;
      const bool exists = place >= 0 && place % dim.lhs_dilation == 0 && place / dim.lhs_dilation < dim.in;
      taps_[d][static_cast<size_t>(k)] = exists ? place / dim.lhs_dilation * spec_.lhs.spatial[d] : kNothing;
    }
  }

  /// Taps of dimension d and those behind it; returns where the next ones go.
  std::byte* write_from(size_t d, int64_t offset, const std::byte* image, std::byte* to, int64_t elem) const {
    const int64_t row_bytes = spec_.in_features * elem;
    if (d + 1 == taps_.size() && joins_taps_ && taps_[d].front() != kNothing && taps_[d].back() != kNothing) {
      const auto bytes = row_bytes * static_cast<int64_t>(taps_[d].size());
      std::memcpy(to, image + (offset + taps_[d].front()) * elem, static_cast<size_t>(bytes));
      return to + bytes;
    }
    if (d == taps_.size()) {
      copy_strided(to, elem, image + offset * elem, spec_.lhs.minor * elem, spec_.in_features, elem);
      return to + row_bytes;
    }
    for (const int64_t tap : taps_[d]) {
      if (tap != kNothing) {
        to = write_from(d + 1, offset + tap, image, to, elem);
        continue;
      }
      int64_t bytes = row_bytes;
      for (size_t behind = d + 1; behind < taps_.size(); ++behind) bytes *= spec_.dims[behind].kernel;
      std::memset(to, 0, static_cast<size_t>(bytes));
      to += bytes;
    }
    return to;
  }

  const ConvolutionSpec& spec_;
  Dims at_;
  std::vector<Dims> taps_;
  bool joins_taps_ = false;  ///< of the last dimension: they lie next to each other, all their features with them
};

struct ColumnsPlan : Convolution::Plan {
  ConvolutionSpec spec;
  DType type = DType::kFloat32;
  StridedSide kernel;
  int64_t kernel_offset = 0;  ///< of the element that kernel reads first (a reversed one is read from its end)
  std::optional<Gemm> whole;
  std::optional<Gemm> last;
  ScalarKernel convert_lhs = nullptr;
  ScalarKernel convert_out = nullptr;
  int64_t positions = 1;
  int64_t taps = 1;  ///< columns: taps of the window times features
  int64_t tile = 1;  ///< positions at once
  int64_t images_per_work_item = 1;
  int64_t work_items_per_image = 1;  ///< more than one where a work item has one image
  int64_t lhs_elem = 4;
  int64_t rhs_elem = 4;
  int64_t out_elem = 4;
  // Places in scratch.
  int64_t columns_at = 0;
  int64_t converted_at = 0;
  int64_t product_at = 0;
  int64_t result_at = 0;
  int64_t gemm_at = 0;

  void run(const Convolution::Call& call) const override {
    const int64_t images = spec.groups * spec.batch;
    Kernel matrix;
    for (int64_t item = call.begin; item < call.end; ++item) {
      const int64_t first = item / work_items_per_image * images_per_work_item;
      const int64_t part = item % work_items_per_image;
      const int64_t tiles = core::ceil_div(positions, tile);
      const int64_t begin = tiles * part / work_items_per_image * tile;
      const int64_t end = std::min(positions, tiles * (part + 1) / work_items_per_image * tile);
      for (int64_t i = first; i < std::min(first + images_per_work_item, images); ++i) {
        read_kernel(call, i / spec.batch, matrix);
        run_positions(call, i, begin, end, matrix);
      }
    }
  }

  /// The kernel of a group as a matrix, and what the products have packed of it.
  struct Kernel {
    int64_t group = -1;
    const std::byte* data = nullptr;
    PackedOperand packed;
  };

  void read_kernel(const Convolution::Call& call, int64_t group, Kernel& matrix) const {
    if (group == matrix.group) return;
    const std::byte* const from = call.rhs + (group * spec.rhs.group + kernel_offset) * rhs_elem;
    matrix = {group, kernel.read(from, call.scratch), {}};
  }

  void run_positions(const Convolution::Call& call, int64_t number, int64_t begin, int64_t end, Kernel& matrix) const {
    const int64_t group = number / spec.batch;
    const int64_t of_group = number % spec.batch;
    const std::byte* const image = call.lhs + (group * spec.lhs.group + of_group * spec.lhs.major) * lhs_elem;
    std::byte* const out = call.out + (group * spec.out.group + of_group * spec.out.major) * out_elem;
    std::byte* const scratch = call.scratch;
    Patches reading(spec, begin);
    Patches writing(spec, begin);
    for (int64_t position = begin; position < end; position += tile) {
      core::pass(call.checkpoint);
      const int64_t rows = std::min(tile, positions - position);
      std::byte* to = scratch + columns_at;
      for (int64_t row = 0; row < rows; ++row, reading.advance(), to += taps * lhs_elem) {
        reading.write(image, to, lhs_elem);
      }
      const std::byte* columns = scratch + columns_at;
      if (convert_lhs != nullptr) {
        convert_lhs(&columns, scratch + converted_at, rows * taps);
        columns = scratch + converted_at;
      }
      const Gemm& product = rows == tile ? *whole : *last;
      product.run(columns, matrix.data, scratch + product_at, scratch + gemm_at, call.checkpoint, &matrix.packed);
      const std::byte* result = scratch + product_at;
      if (convert_out != nullptr) {
        convert_out(&result, scratch + result_at, rows * spec.out_features);
        result = scratch + result_at;
      }
      for (int64_t row = 0; row < rows; ++row, writing.advance(), result += spec.out_features * out_elem) {
        copy_strided(out + writing.result_offset() * out_elem, spec.out.minor * out_elem, result, out_elem,
                     spec.out_features, out_elem);
      }
    }
  }
};

ScalarKernel conversion(DType from, DType to) {
  if (from == to) return nullptr;
  const ScalarKernel kernel = find_scalar_kernel(ScalarOp::kConvert, from, to);
  if (kernel == nullptr) {
    throw core::Error("unsupported_dtype", fmt::format("a convolution of '{}' into '{}' is not supported",
                                                       tensor::name(from), tensor::name(to)));
  }
  return kernel;
}

}  // namespace

std::shared_ptr<const Convolution::Plan> plan_convolution_columns(const ConvolutionSpec& spec) {
  auto plan = std::make_shared<ColumnsPlan>();
  plan->way = "columns";
  plan->spec = spec;
  plan->type = convolution_type(spec.lhs_dtype, spec.rhs_dtype, spec.out_dtype);
  plan->lhs_elem = tensor::size_bytes(spec.lhs_dtype);
  plan->rhs_elem = tensor::size_bytes(spec.rhs_dtype);
  plan->out_elem = tensor::size_bytes(spec.out_dtype);
  plan->positions = product_of(spec.dims, &ConvolutionDim::out);
  plan->taps = core::checked_mul(product_of(spec.dims, &ConvolutionDim::kernel), spec.in_features);
  plan->convert_lhs = conversion(spec.lhs_dtype, plan->type);
  plan->convert_out = conversion(plan->type, spec.out_dtype);

  Dims extent;
  Dims strides;
  for (size_t d = 0; d < spec.dims.size(); ++d) {
    const bool turned = spec.dims[d].is_reversed;
    extent.push_back(spec.dims[d].kernel);
    strides.push_back(turned ? -spec.rhs.spatial[d] : spec.rhs.spatial[d]);
    if (turned) plan->kernel_offset += (spec.dims[d].kernel - 1) * spec.rhs.spatial[d];
  }
  extent.insert(extent.end(), {spec.in_features, spec.out_features});
  strides.insert(strides.end(), {spec.rhs.minor, spec.rhs.major});
  plan->kernel = StridedSide(extent, strides, spec.rhs_dtype, plan->type);

  const int64_t elem = tensor::size_bytes(plan->type);
  const int64_t row_bytes = core::checked_mul(std::max<int64_t>(plan->taps, 1), std::max(elem, plan->lhs_elem));
  plan->tile = std::clamp<int64_t>(kTileBytes / row_bytes, std::min(kFewestRows, plan->positions), plan->positions);
  const int64_t few = std::min(plan->tile, kRowsOfPacked);
  GemmSpec gemm{few, spec.out_features, plan->taps, plan->type, plan->type, {plan->taps, 1}, {spec.out_features, 1}};
  const double flops_of_position = 2.0 * static_cast<double>(plan->taps) * static_cast<double>(spec.out_features);
  if (flops_of_position * kRowsOfPacked >= kPackedTileFlops && Gemm(gemm).keeps_packed()) {
    plan->tile = core::ceil_div(plan->positions, core::ceil_div(plan->positions, few));  // as even as can be
  }
  gemm.m = plan->tile;
  plan->whole.emplace(gemm);
  int64_t gemm_scratch = plan->whole->scratch_bytes();
  if (const int64_t rest = plan->positions % plan->tile; rest != 0) {
    gemm.m = rest;
    plan->last.emplace(gemm);
    gemm_scratch = std::max(gemm_scratch, plan->last->scratch_bytes());
  }
  int64_t bytes = plan->kernel.scratch_bytes();
  const auto place = [&bytes](int64_t size) {
    const int64_t at = bytes;
    bytes = core::checked_add(bytes, core::round_up(size, 64));
    return at;
  };
  const int64_t columns = core::checked_mul(plan->tile, plan->taps);
  const int64_t results = core::checked_mul(plan->tile, spec.out_features);
  plan->columns_at = place(columns * plan->lhs_elem);
  if (plan->convert_lhs != nullptr) plan->converted_at = place(columns * elem);
  plan->product_at = place(results * elem);
  if (plan->convert_out != nullptr) plan->result_at = place(results * plan->out_elem);
  plan->gemm_at = place(gemm_scratch);
  plan->scratch_bytes = bytes;

  const double flops_of_one = static_cast<double>(plan->positions) * flops_of_position;
  const int64_t images = core::checked_mul(spec.groups, spec.batch);
  plan->images_per_work_item =
      std::clamp<int64_t>(static_cast<int64_t>(kColumnsItemFlops / std::max(1.0, flops_of_one)), 1, images);
  if (plan->images_per_work_item == 1) {
    const double copied = plan->kernel.scratch_bytes() > 0 ? static_cast<double>(plan->kernel.count()) : 0;
    const double least = std::max(kColumnsItemFlops, copied * kFlopsOfCopied);
    const auto worth = static_cast<int64_t>(std::min(flops_of_one / least, 1e9));
    plan->work_items_per_image = std::clamp<int64_t>(worth, 1, core::ceil_div(plan->positions, plan->tile));
  }
  plan->work_count = core::ceil_div(images, plan->images_per_work_item) * plan->work_items_per_image;
  return plan;
}

}  // namespace meshd::kernels
