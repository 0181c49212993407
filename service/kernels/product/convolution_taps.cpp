// Convolutions of one input feature: each result is a sum of taps times elements of rows, and results that lie side by
// side are computed side by side. Images of one channel, series, and features that do not mix, channels first.
//
// Example: a series of 10^5 elements and 50 taps, "full": 24 chunks of about 4,169 results, of which each reads 49
// elements more than it has results. The first and the last chunk read a copy with zeros where there are none.
#include <algorithm>
#include <cstring>
#include <vector>

#include "service/core/checked_math.h"
#include "service/kernels/product/convolution.h"
#include "service/kernels/product/tap_rows.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

constexpr double kTapsItemFlops = 4e6;
// Of f32, where oneDNN has fast loops: of a row, and results side by side in images of one channel and of some.
constexpr double kLeastRowFlops = 3000;
constexpr int64_t kLeastWidth = 64;
constexpr int64_t kLeastWidthOfSome = 256;
constexpr int64_t kSomeChannels = 4;
/// Of copies with zeros, for each thread.
constexpr int64_t kMostPadded = 4 << 20;
constexpr int64_t kTapsChunk = 4096;  // results of a row that are made at once
/// Features that share their rows; libraries are better at more.
constexpr int64_t kMostFeatures = 8;

/// The loop for a type; null where there is none.
SumTapRows loop_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return sum_tap_rows_f32();
    case DType::kFloat64:
      return sum_tap_rows_f64();
    case DType::kInt32:
    case DType::kUint32:
      return sum_tap_rows_i32();
    case DType::kInt64:
    case DType::kUint64:
      return sum_tap_rows_i64();
    default:
      return nullptr;
  }
}

struct TapsPlan : Convolution::Plan {
  ConvolutionSpec spec;
  SumTapRows sum = nullptr;
  int64_t elem = 4;
  int64_t taps = 1;        // of the last dimension
  int64_t outer_taps = 1;  // of the others
  int64_t outer_rows = 1;  // of the result, in one image
  int64_t row_count = 1;   // in all images, of all features
  int64_t chunks = 1;      // of a row, evenly
  int64_t pieces_per_item = 1;
  int64_t reach = 1;  // elements that one result is behind the first one that it reads
  // Places in scratch.
  int64_t rows_at = 0;
  int64_t padded_at = 0;
  int64_t padded_bytes = 0;  // of one row

  void run(const Convolution::Call& call) const override {
    const int64_t last = std::min(call.end * pieces_per_item, row_count * chunks);
    int64_t kernel = -1;
    for (int64_t piece = call.begin * pieces_per_item; piece < last; ++piece) {
      core::pass(call.checkpoint);
      const int64_t row = piece / chunks;
      const int64_t outer = row % outer_rows;
      const int64_t image = row / outer_rows;  // of a batch, a group and a feature, the first of which is the last
      const int64_t batch = image % spec.batch;
      const int64_t feature = image / spec.batch % spec.out_features;
      const int64_t group = image / spec.batch / spec.out_features;
      if (kernel != image / spec.batch) {
        kernel = image / spec.batch;
        read_kernel(call.rhs + (group * spec.rhs.group + feature * spec.rhs.major) * elem, call.scratch);
      }
      const std::byte* const from = call.lhs + (group * spec.lhs.group + batch * spec.lhs.major) * elem;
      std::byte* const to =
          call.out +
          (group * spec.out.group + batch * spec.out.major + feature * spec.out.minor + result_offset(outer)) * elem;
      run_piece(from, outer, piece % chunks, to, call.scratch);
    }
  }

 private:
  /// Taps in row-major order; a reversed kernel backwards.
  void read_kernel(const std::byte* from, std::byte* to) const {
    const size_t rank = spec.dims.size();
    std::vector<int64_t> at(rank, 0);
    for (int64_t tap = 0; tap < outer_taps * taps; ++tap) {
      int64_t offset = 0;
      for (size_t d = 0; d < rank; ++d) {
        const ConvolutionDim& dim = spec.dims[d];
        offset += (dim.is_reversed ? dim.kernel - 1 - at[d] : at[d]) * spec.rhs.spatial[d];
      }
      std::memcpy(to + tap * elem, from + offset * elem, static_cast<size_t>(elem));
      for (size_t d = rank; d-- > 0;) {
        if (++at[d] < spec.dims[d].kernel) break;
        at[d] = 0;
      }
    }
  }

  [[nodiscard]] int64_t result_offset(int64_t outer) const {
    int64_t offset = 0;
    for (size_t d = spec.dims.size() - 1; d-- > 0; outer /= spec.dims[d].out)
      offset += outer % spec.dims[d].out * spec.out.spatial[d];
    return offset;
  }

  /// Where the row of an outer tap begins, in elements; negative: it is padding.
  [[nodiscard]] int64_t row_offset(int64_t outer, int64_t tap) const {
    int64_t offset = 0;
    for (size_t d = spec.dims.size() - 1; d-- > 0;) {
      const ConvolutionDim& dim = spec.dims[d];
      const int64_t place = outer % dim.out * dim.stride + tap % dim.kernel * dim.rhs_dilation - dim.pad_low;
      if (place < 0 || place >= dim.in) return -1;
      offset += place * spec.lhs.spatial[d];
      outer /= dim.out;
      tap /= dim.kernel;
    }
    return offset;
  }

  /// A chunk of the results of a row.
  void run_piece(const std::byte* image, int64_t outer, int64_t chunk, std::byte* to, std::byte* scratch) const {
    const ConvolutionDim& dim = spec.dims.back();
    const int64_t first = dim.out * chunk / chunks;
    const int64_t count = dim.out * (chunk + 1) / chunks - first;
    const int64_t begin = first - dim.pad_low;  // of what is read
    const int64_t size = count + reach;
    const bool is_inside = begin >= 0 && begin + size <= dim.in;
    const int64_t low = std::clamp<int64_t>(-begin, 0, size);
    const int64_t high = std::clamp<int64_t>(dim.in - begin, low, size);
    auto* const rows = reinterpret_cast<TapRow*>(scratch + rows_at);
    int64_t row_number = 0;
    for (int64_t tap = 0; tap < outer_taps; ++tap) {
      const int64_t offset = row_offset(outer, tap);
      if (offset < 0) continue;
      const std::byte* row = image + (offset + begin) * elem;
      if (!is_inside) {
        std::byte* const padded = scratch + padded_at + row_number * padded_bytes;
        std::memset(padded, 0, static_cast<size_t>(low * elem));
        std::memcpy(padded + low * elem, row + low * elem, static_cast<size_t>((high - low) * elem));
        std::memset(padded + high * elem, 0, static_cast<size_t>((size - high) * elem));
        row = padded;
      }
      rows[row_number++] = {.elements = row, .taps = scratch + tap * taps * elem};
    }
    sum({.rows = rows, .row_count = row_number, .taps = taps, .step = dim.rhs_dilation}, to + first * elem, count);
  }
};

bool has_rows(const ConvolutionSpec& spec) {
  if (spec.dims.empty() || spec.in_features != 1 || spec.out_features > kMostFeatures) return false;
  if (spec.lhs_dtype != spec.rhs_dtype || spec.lhs_dtype != spec.out_dtype) return false;
  const ConvolutionDim& last = spec.dims.back();
  if (last.stride != 1 || last.out < kLeastTapResults) return false;
  if (spec.lhs.spatial.back() != 1 || spec.out.spatial.back() != 1) return false;
  return std::all_of(spec.dims.begin(), spec.dims.end(),
                     [](const ConvolutionDim& dim) { return dim.lhs_dilation == 1 && dim.kernel > 0 && dim.in > 0; });
}

/// Of f32: `row_flops` of a chunk.
bool is_faster_than_onednn(const ConvolutionSpec& spec, double row_flops) {
  if (spec.dims.size() > 3) return true;
  if (row_flops < kLeastRowFlops) return false;
  const int64_t width = spec.dims.back().out;
  const int64_t channels = spec.groups * spec.out_features;
  return spec.dims.size() == 1 || (channels == 1 && width >= kLeastWidth) ||
         (channels <= kSomeChannels && width >= kLeastWidthOfSome);
}

}  // namespace

std::shared_ptr<const Convolution::Plan> plan_convolution_taps(const ConvolutionSpec& spec) {
  const SumTapRows sum = loop_of(spec.out_dtype);
  if (sum == nullptr || !has_rows(spec)) return nullptr;
  auto plan = std::make_shared<TapsPlan>();
  plan->way = "taps";
  plan->spec = spec;
  plan->sum = sum;
  plan->elem = tensor::size_bytes(spec.out_dtype);
  const ConvolutionDim& last = spec.dims.back();
  plan->taps = last.kernel;
  for (size_t d = 0; d + 1 < spec.dims.size(); ++d) {
    plan->outer_taps = core::checked_mul(plan->outer_taps, spec.dims[d].kernel);
    plan->outer_rows = core::checked_mul(plan->outer_rows, spec.dims[d].out);
  }
  // A gradient by weights, few results of many taps, is a product.
  const int64_t all_taps = core::checked_mul(plan->outer_taps, plan->taps);
  if (all_taps > core::checked_mul(plan->outer_rows, last.out)) return nullptr;
  const double flops_of_one = 2.0 * static_cast<double>(all_taps);
  const auto most = std::clamp(static_cast<int64_t>(kTapsItemFlops / flops_of_one), kLeastTapResults, kTapsChunk);
  plan->chunks = std::max<int64_t>(1, last.out / most);
  const int64_t chunk = core::ceil_div(last.out, plan->chunks);
  const double flops = flops_of_one * static_cast<double>(chunk);
  if (spec.out_dtype == DType::kFloat32 && !is_faster_than_onednn(spec, flops)) return nullptr;
  // Copies of rows reach over all taps, however far they are apart.
  const int64_t most_padded = kMostPadded / plan->elem / plan->outer_taps;
  if (last.kernel > 1 && last.rhs_dilation > (most_padded - chunk) / (last.kernel - 1)) return nullptr;
  plan->reach = (last.kernel - 1) * last.rhs_dilation;
  plan->row_count = spec.groups * spec.out_features * spec.batch * plan->outer_rows;
  plan->pieces_per_item = std::max<int64_t>(1, static_cast<int64_t>(kTapsItemFlops / flops));
  plan->work_count = core::ceil_div(plan->row_count * plan->chunks, plan->pieces_per_item);
  plan->rows_at = core::round_up(all_taps * plan->elem, 64);
  plan->padded_at = plan->rows_at + core::round_up(plan->outer_taps * static_cast<int64_t>(sizeof(TapRow)), 64);
  plan->padded_bytes = core::round_up((chunk + plan->reach) * plan->elem, 64);
  plan->scratch_bytes = plan->padded_at + plan->outer_taps * plan->padded_bytes;
  return plan;
}

}  // namespace meshd::kernels
