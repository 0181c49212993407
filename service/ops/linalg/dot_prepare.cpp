// The kernel of dot_general: operands become batches of matrices. A matrix whose strides a product can read is used in
// place, transposed or not; rows of the left one, or columns of the right one, that are several groups of such are a
// product for each group. Another operand, or one of a type that no product takes, is first packed into scratch. Work
// is split into work items of batches, and large products into blocks of rows and columns, or of terms where there are
// few rows and columns, by shapes alone: so the bits of a result do not depend on which thread computes which work
// item. Sums of several products, each of operands of its own, are made block by block: a block is added to the result
// while it is in the cache.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "service/core/error.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/movement/movement.h"
#include "service/kernels/product/gemm.h"
#include "service/kernels/product/product_batch.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/linalg/dot.h"

namespace meshd::ops {
namespace {

using kernels::Gemm;
using kernels::GemmSpec;
using kernels::MatrixLayout;
using kernels::ScalarKernel;
using kernels::StridedCopy;
using tensor::Dims;
using tensor::DType;

constexpr double kWorkItemFlops = 2e6;      // less is not worth handing to another thread
constexpr double kWorkItemBytes = 1 << 19;  // of a batch's work item: what is more had better be read by another thread
constexpr double kBlockFlops = 2e6;         // a product is split into blocks of at least this much,
constexpr double kBlockNs = 2e4;            // and that take at least this long
// And at least so many rows and columns, since each block copies both operands again into the caches: with blocks of
// 256 rows libraries are as fast as with all at once, of 128 it costs 7 %. Products with fewer blocks than threads take
// smaller ones, those with many larger ones.
constexpr int64_t kBlockRows = 256;
constexpr int64_t kFewBlockRows = 128;
constexpr int64_t kBlockColumns = 512;
constexpr int64_t kFewBlockColumns = 128;
constexpr double kFastPerNs = 500;  // against faster products copies weigh more: twice as many columns
constexpr int64_t kFewBlocks = 4;
constexpr int64_t kManyBlocks = 16;
// Rows or columns: smaller groups are packed together. Loops of f32 keep the other operand packed, libraries copy both
// operands in each call.
constexpr int64_t kLeastGroup = 128;
constexpr int64_t kLeastGroupOfF32 = 16;
constexpr double kLeastGroupFlops = 2e5;  // where both operands have groups
constexpr int64_t kLeastTerms = 512;      // of a part of the terms, so that writing and adding sums costs little
constexpr int64_t kMostTermParts = 8;
constexpr int64_t kAddedAtOnce = 16 * 1024;  // elements of a work item that adds parts
constexpr int64_t kEvenRowBlocks = 8;  // fewer are an even number: of 3 blocks, one of two threads would compute 2

struct Loops {
  Dims extent;
  Dims stride;  // elements

  [[nodiscard]] int64_t count() const { return tensor::element_count(extent); }
};

Loops loops_of(const ir::Type& type, const std::vector<int64_t>& dims) {
  const Dims strides = tensor::row_major_strides(type.dims());
  Loops loops;
  for (const int64_t d : dims) {
    loops.extent.push_back(type.dims()[static_cast<size_t>(d)]);
    loops.stride.push_back(strides[static_cast<size_t>(d)]);
  }
  return loops;
}

// The one stride that steps through all indices of the loops in order, where there is one.
std::optional<int64_t> single_stride(const Loops& loops) {
  std::optional<int64_t> outer;  // stride the next loop outwards must have
  int64_t inner = 1;
  for (size_t i = loops.extent.size(); i-- > 0;) {
    if (loops.extent[i] == 1) continue;
    if (!outer) {
      inner = loops.stride[i];
    } else if (loops.stride[i] != *outer) {
      return std::nullopt;
    }
    outer = loops.stride[i] * loops.extent[i];
  }
  return inner;
}

int64_t offset_of(const Loops& loops, int64_t index) {
  int64_t offset = 0;
  for (size_t i = loops.extent.size(); i-- > 0;) {
    offset += index % loops.extent[i] * loops.stride[i];
    index /= loops.extent[i];
  }
  return offset;
}

ScalarKernel conversion(const OpView& view, DType from, DType to) {
  const ScalarKernel kernel = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, from, to);
  if (kernel == nullptr) {
    reject(view, "unsupported_dtype",
           "dot_general of " + operand_text(view, 0) + " and " + operand_text(view, 1) + " is not supported");
  }
  return kernel;
}

constexpr int64_t kConvertedAtOnce = int64_t{1} << 20;  // elements, between two checkpoints

// The innermost loops that one stride steps through, and those outside of them.
struct GroupedLoops {
  Loops groups;
  Loops inner;
};
GroupedLoops grouped(const Loops& loops) {
  GroupedLoops out{{}, loops};
  while (!single_stride(out.inner)) {
    out.groups.extent.push_back(out.inner.extent.front());
    out.groups.stride.push_back(out.inner.stride.front());
    out.inner.extent.erase(out.inner.extent.begin());
    out.inner.stride.erase(out.inner.stride.begin());
  }
  return out;
}

// One operand: rows x columns matrices, one for each batch index, and how they reach the product.
struct Side {
  Loops batch;
  Loops groups;         // of free loops, where the product reads them as they are
  MatrixLayout layout;  // as the product reads it
  int64_t elem = 1;     // bytes, in memory
  bool is_packed = false;
  std::optional<StridedCopy> gather;  // packed: into dense order, unless it is so already
  ScalarKernel convert = nullptr;     // packed: then into the product's type
  int64_t count = 0;                  // elements of one matrix
  int64_t gathered_bytes = 0;         // scratch for each step
  int64_t converted_bytes = 0;
  int64_t converted_elem = 1;

  [[nodiscard]] int64_t scratch_bytes() const { return gathered_bytes + converted_bytes; }
  [[nodiscard]] int64_t group_bytes(int64_t group) const { return offset_of(groups, group) * elem; }

  // Where the product finds matrix `index`; packs it into scratch where it must.
  const std::byte* matrix(const std::byte* operand, int64_t index, std::byte* scratch,
                          core::Checkpoint* checkpoint) const {
    const std::byte* at = operand + offset_of(batch, index) * elem;
    if (!is_packed) return at;
    if (gather) {
      for (int64_t work_item = 0; work_item < gather->work_count(); ++work_item) {
        gather->run(scratch, at, work_item, work_item + 1);
        core::pass(checkpoint);
      }
      at = scratch;
    }
    if (convert == nullptr) return at;
    std::byte* converted = scratch + gathered_bytes;
    for (int64_t from = 0; from < count; from += kConvertedAtOnce) {
      const std::byte* const piece = at + from * elem;
      convert(&piece, converted + from * converted_elem, std::min(kConvertedAtOnce, count - from));
      core::pass(checkpoint);
    }
    return converted;
  }
};

int64_t least_group(DType in) { return in == DType::kFloat32 ? kLeastGroupOfF32 : kLeastGroup; }

/// `least`: groups of fewer rows or columns are packed.
Side make_side(const OpView& view, size_t operand, const Loops& batch, const Loops& rows, const Loops& columns,
               DType in, int64_t least) {
  const ir::Type& type = view.operands[operand];
  Side side;
  side.batch = batch;
  side.elem = tensor::size_bytes(type.dtype());
  side.count = rows.count() * columns.count();
  const auto takes = [&](MatrixLayout layout) {
    return operand == 0 ? kernels::gemm_takes_a(in, rows.count(), columns.count(), layout)
                        : kernels::gemm_takes_b(in, rows.count(), columns.count(), layout);
  };
  const std::optional<int64_t> row_stride = single_stride(rows);
  const std::optional<int64_t> column_stride = single_stride(columns);
  const GroupedLoops free = grouped(operand == 0 ? rows : columns);
  const std::optional<int64_t>& sum_stride = operand == 0 ? column_stride : row_stride;
  if (!free.groups.extent.empty() && sum_stride && free.inner.count() >= least && type.dtype() == in) {
    const int64_t stride = *single_stride(free.inner);
    const MatrixLayout layout = operand == 0 ? MatrixLayout{stride, *sum_stride} : MatrixLayout{*sum_stride, stride};
    const bool takes_groups = operand == 0 ? kernels::gemm_takes_a(in, free.inner.count(), columns.count(), layout)
                                           : kernels::gemm_takes_b(in, rows.count(), free.inner.count(), layout);
    if (takes_groups) {
      side.groups = free.groups;
      side.layout = layout;
      return side;
    }
  }
  const bool fits = row_stride && column_stride && takes({*row_stride, *column_stride});
  if (fits) side.layout = {*row_stride, *column_stride};
  if (fits && type.dtype() == in) return side;

  side.is_packed = true;
  const bool is_dense = fits && (side.layout.column_stride == 1
                                     ? side.layout.row_stride == columns.count() || rows.count() == 1
                                     : side.layout.row_stride == 1 && side.layout.column_stride == rows.count());
  if (!is_dense) {
    // Dense with the loop inside that steps least in memory, so that packing reads along.
    const bool transposed =
        row_stride.value_or(INT64_MAX) < column_stride.value_or(INT64_MAX) && takes({1, rows.count()});
    const Loops& outer = transposed ? columns : rows;
    const Loops& inner = transposed ? rows : columns;
    side.layout = transposed ? MatrixLayout{1, rows.count()} : MatrixLayout{columns.count(), 1};
    Dims extent = outer.extent;
    extent.insert(extent.end(), inner.extent.begin(), inner.extent.end());
    Dims strides = outer.stride;
    strides.insert(strides.end(), inner.stride.begin(), inner.stride.end());
    side.gather.emplace(extent, tensor::row_major_strides(extent), strides, side.elem);
    side.gathered_bytes = core::round_up(side.count * side.elem, 64);
  }
  if (type.dtype() != in) {
    side.convert = conversion(view, type.dtype(), in);
    side.converted_elem = tensor::size_bytes(in);
    side.converted_bytes = core::round_up(side.count * tensor::size_bytes(in), 64);
  }
  return side;
}

bool accumulates_f64(const OpView& view) {
  const ir::Attribute* algorithm = ir::find(attributes_of(view), "algorithm");
  const auto* entries = algorithm != nullptr ? algorithm->as<ir::DictAttr>() : nullptr;
  const ir::Attribute* type = entries != nullptr ? ir::find(entries->entries, "accumulation_type") : nullptr;
  const auto* wanted = type != nullptr ? type->as<ir::TypeAttr>() : nullptr;
  return wanted != nullptr && wanted->results.size() == 1 && wanted->results[0].dtype() == DType::kFloat64;
}

struct Types {
  DType in;   // what both operands are converted to
  DType out;  // dtype of the product; converted to the result's type where that differs
};

// Types a product is made in: those of the text where a product takes them, else the next wider ones that lose nothing.
Types product_types(const OpView& view, int64_t m, int64_t n, int64_t k) {
  const DType lhs = view.operands[0].dtype();
  const DType rhs = view.operands[1].dtype();
  const DType result = view.results[0].dtype();
  if (accumulates_f64(view) && tensor::is_float(result)) return {DType::kFloat64, DType::kFloat64};
  // Narrow operands are widened on the way, and so is the sum where the result is narrow, too: integers wrap around
  // modulo the result's width whatever they are widened to.
  for (const DType made : {result, DType::kFloat32, DType::kInt32}) {
    const bool is_wider = tensor::size_bytes(result) < tensor::size_bytes(made) &&
                          (made == DType::kInt32 ? tensor::is_integer(result) : tensor::is_float(result));
    const bool fits = made == result || is_wider;
    if (lhs == rhs && fits && kernels::gemm_takes(lhs, made) && kernels::gemm_is_worth_it(lhs, m, n, k))
      return {lhs, made};
  }
  if (tensor::is_complex(result) || tensor::is_complex(lhs) || tensor::is_complex(rhs)) {
    const bool wide = lhs == DType::kComplex128 || rhs == DType::kComplex128 || result == DType::kComplex128;
    return wide ? Types{DType::kComplex128, DType::kComplex128} : Types{DType::kComplex64, DType::kComplex64};
  }
  if (tensor::is_float(result) || tensor::is_float(lhs) || tensor::is_float(rhs)) {
    const bool wide = lhs == DType::kFloat64 || rhs == DType::kFloat64 || result == DType::kFloat64;
    return wide ? Types{DType::kFloat64, DType::kFloat64} : Types{DType::kFloat32, DType::kFloat32};
  }
  // Sums of booleans count, and become true.
  if (kernels::gemm_takes(result, result)) return {result, result};
  return {DType::kInt32, DType::kInt32};
}

struct Product {
  Side lhs;
  Side rhs;
  // [the last block of rows][of columns], where those have fewer
  using Blocks = std::array<std::array<std::optional<Gemm>, 2>, 2>;
  Blocks blocks;
  int64_t parts = 1;           // products that are added, in order
  Blocks later;                // those of parts behind the first one, where no result is converted
  bool adds_in_place = false;  // `later` add to the result; else their blocks are made apart
  ScalarKernel add = nullptr;  // of results, where there are several parts
  int64_t batch_count = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t group_rows = 0;     // of a group of lhs, all of them where there are none
  int64_t group_columns = 0;  // and of rhs
  int64_t block_rows = 0;
  int64_t block_columns = 0;
  int64_t column_blocks = 1;           // of one product
  int64_t block_count = 1;             // of one product
  int64_t products_per_work_item = 1;  // where products are not split
  int64_t work_count = 0;
  int64_t a_row_bytes = 0;     // between rows of lhs as the product reads it
  int64_t b_column_bytes = 0;  // between columns of rhs
  int64_t out_elem = 4;
  int64_t result_elem = 4;
  ScalarKernel convert_result = nullptr;
  std::optional<kernels::ProductBatch> batch;  // in the place of blocks: small products
  // Terms are cut into parts, each a product whose result is left in the workspace; they are added behind a barrier.
  int64_t term_parts = 1;
  std::array<std::optional<Gemm>, 2> of_terms;  // the last part may have fewer
  int64_t a_part_bytes = 0;                     // from a part's terms to the next one's
  int64_t b_part_bytes = 0;
  int64_t term_bytes = 0;    // of a part's result
  int64_t add_items = 1;     // work items that add the parts of one product
  int64_t a_step_bytes = 0;  // of a batch: from one product's operand to the next one's
  int64_t b_step_bytes = 0;
  // Scratch for a block in the product's type, where it is not made in place, and for a part in the result's.
  int64_t made_bytes = 0;
  int64_t part_bytes = 0;
  int64_t scratch_bytes = 0;

  void run(const KernelCall& call) const {
    if (batch) {
      run_batch(call);
      return;
    }
    if (term_parts > 1) {
      run_terms(call);
      return;
    }
    std::byte* lhs_scratch = call.scratch;
    std::byte* rhs_scratch = lhs_scratch + lhs.scratch_bytes();
    std::byte* out_scratch = rhs_scratch + rhs.scratch_bytes();
    std::byte* part_scratch = out_scratch + made_bytes;
    std::byte* gemm_scratch = part_scratch + part_bytes;
    const std::byte* a = nullptr;
    const std::byte* b = nullptr;
    int64_t current = -1;
    const int64_t first = call.begin * products_per_work_item;
    const int64_t last_block = std::min(call.end * products_per_work_item, batch_count * block_count);
    for (int64_t block = first; block < last_block; ++block) {
      const int64_t index = block / block_count;
      // Blocks that read the same columns of rhs follow each other.
      const int64_t row_blocks = block_count / column_blocks;
      const Place row = place(block % row_blocks, group_rows, block_rows);
      const Place column = place(block % block_count / row_blocks, group_columns, block_columns);
      const int64_t rows = std::min(block_rows, group_rows - row.at);
      const int64_t columns = std::min(block_columns, group_columns - column.at);
      std::byte* const c =
          call.results[0] +
          ((index * m + row.group * group_rows + row.at) * n + column.group * group_columns + column.at) * result_elem;
      const int64_t a_bytes = lhs.group_bytes(row.group) + row.at * a_row_bytes;
      const int64_t b_bytes = rhs.group_bytes(column.group) + column.at * b_column_bytes;
      for (int64_t part = 0; part < parts; ++part) {
        if (index * parts + part != current) {
          a = lhs.matrix(call.operands[2 * part], index, lhs_scratch, call.checkpoint);
          b = rhs.matrix(call.operands[2 * part + 1], index, rhs_scratch, call.checkpoint);
          current = index * parts + part;
        }
        const bool is_in_place = convert_result == nullptr && (part == 0 || adds_in_place);
        const Blocks& of_part = part > 0 && convert_result == nullptr ? later : blocks;
        const Gemm& gemm = *of_part[rows < block_rows ? 1 : 0][columns < block_columns ? 1 : 0];
        gemm.run(a + a_bytes, b + b_bytes, is_in_place ? c : out_scratch, gemm_scratch, call.checkpoint, call.kept);
        core::pass(call.checkpoint);
        if (!is_in_place) store(out_scratch, rows, columns, c, part > 0 ? part_scratch : nullptr);
      }
    }
  }

 private:
  struct Place {
    int64_t group;
    int64_t at;  // in the group
  };
  static Place place(int64_t block, int64_t group_size, int64_t block_size) {
    const int64_t in_group = core::ceil_div(group_size, block_size);
    return {block / in_group, block % in_group * block_size};
  }

  void run_terms(const KernelCall& call) const {
    const int64_t barrier = batch_count * term_parts;
    for (int64_t item = call.begin; item < std::min(call.end, barrier); ++item) {
      const int64_t part = item % term_parts;
      const std::byte* const a = lhs.matrix(call.operands[0], item / term_parts, nullptr, nullptr);
      const std::byte* const b = rhs.matrix(call.operands[1], item / term_parts, nullptr, nullptr);
      const Gemm& gemm = *of_terms[part == term_parts - 1 ? 1 : 0];
      gemm.run(a + part * a_part_bytes, b + part * b_part_bytes, call.workspace + item * term_bytes, call.scratch,
               call.checkpoint);
      core::pass(call.checkpoint);
    }
    for (int64_t item = std::max(call.begin, barrier); item < call.end; ++item)
      add_terms(call, (item - barrier) / add_items, (item - barrier) % add_items * kAddedAtOnce);
  }

  // Elements of the result of product `index`, from `first` on.
  void add_terms(const KernelCall& call, int64_t index, int64_t first) const {
    const int64_t count = std::min(kAddedAtOnce, m * n - first);
    std::byte* const sum = call.workspace + index * term_parts * term_bytes + first * out_elem;
    for (int64_t part = 1; part < term_parts; ++part) {
      const std::byte* const pair[] = {sum, sum + part * term_bytes};
      add(pair, sum, count);
    }
    std::byte* const to = call.results[0] + (index * m * n + first) * result_elem;
    const std::byte* const made = sum;
    if (convert_result != nullptr)
      convert_result(&made, to, count);
    else
      std::memcpy(to, made, static_cast<size_t>(count * out_elem));
  }

  // Work items are as small as the distance between two checkpoints may be.
  void run_batch(const KernelCall& call) const {
    for (int64_t item = call.begin; item < call.end; ++item) {
      const int64_t first = item * products_per_work_item;
      batch->run(call.operands[0] + first * a_step_bytes, call.operands[1] + first * b_step_bytes,
                 call.results[0] + first * m * n * result_elem, std::min(products_per_work_item, batch_count - first));
      core::pass(call.checkpoint);
    }
  }

  // A block that was made apart becomes part of the result; with scratch for a part, it is added to what is there.
  void store(const std::byte* made, int64_t rows, int64_t columns, std::byte* c, std::byte* part) const {
    const bool is_dense = columns == n;
    const int64_t length = is_dense ? rows * n : columns;
    for (int64_t line = 0; line < (is_dense ? 1 : rows); ++line) {
      const std::byte* from = made + line * columns * out_elem;
      std::byte* const to = c + line * n * result_elem;
      if (convert_result != nullptr) {
        std::byte* const converted = part != nullptr ? part : to;
        convert_result(&from, converted, length);
        from = converted;
      }
      if (part == nullptr) continue;
      const std::byte* const pair[] = {to, from};
      add(pair, to, length);
    }
  }
};

// Blocks of rows, and of columns where the kernel of products takes any block. `flops`: 0 where it is not split.
void set_blocks(Product& product, const GemmSpec& spec, double flops) {
  const bool may_cut_columns = kernels::gemm_takes_blocks(spec);
  const double flops_per_ns = kernels::gemm_flops_per_ns(spec);
  const double least_flops = std::max(kBlockFlops, flops_per_ns * kBlockNs);
  const int64_t least_columns = flops_per_ns > kFastPerNs ? 2 * kBlockColumns : kBlockColumns;
  const int64_t most_blocks = std::max<int64_t>(1, static_cast<int64_t>(flops / least_flops));
  const auto parts = [](int64_t size, int64_t least, int64_t most) {
    return std::clamp<int64_t>(size / least, 1, std::max<int64_t>(1, most));
  };
  const int64_t m = product.group_rows;
  const int64_t n = product.group_columns;
  const int64_t row_groups = product.m / m;
  const int64_t column_groups = product.n / n;
  const bool has_many = may_cut_columns && (m / (2 * kBlockRows)) * (n / kBlockColumns) >= kManyBlocks;
  const int64_t least_rows = m < 2 * kBlockRows ? kFewBlockRows : kBlockRows * (has_many ? 2 : 1);
  int64_t row_blocks = parts(m, least_rows, most_blocks);
  const bool is_odd = row_blocks > 1 && row_blocks < kEvenRowBlocks && row_blocks % 2 == 1;
  if (is_odd && row_blocks < most_blocks && m / (row_blocks + 1) >= kFewBlockRows) ++row_blocks;
  int64_t column_blocks = 1;
  if (may_cut_columns) {
    column_blocks = parts(n, least_columns, most_blocks / row_blocks);
    if (row_blocks * column_blocks * row_groups * column_groups < kFewBlocks)
      column_blocks = parts(n, kFewBlockColumns, std::min(most_blocks, kFewBlocks) / row_blocks);
  }
  product.block_rows = core::round_up(core::ceil_div(m, row_blocks), row_blocks > 1 ? 16 : 1);
  product.block_columns = core::round_up(core::ceil_div(n, column_blocks), column_blocks > 1 ? 32 : 1);
  product.column_blocks = column_groups * core::ceil_div(n, product.block_columns);
  product.block_count = row_groups * core::ceil_div(m, product.block_rows) * product.column_blocks;
}

// Cuts the terms of a product of few rows and columns, of which both operands are read as they are, into parts. False
// where it has too few terms or operations.
bool set_term_parts(Product& product, const OpView& view, GemmSpec spec, double flops) {
  if (view.copies > 1 || product.parts > 1 || product.batch_count * product.block_count >= kFewBlocks) return false;
  if (product.block_count > 1 || product.lhs.is_packed || product.rhs.is_packed) return false;
  const double least_flops = std::max(kBlockFlops, kernels::gemm_flops_per_ns(spec) * kBlockNs);
  const auto most = std::min<int64_t>(kMostTermParts, static_cast<int64_t>(flops / least_flops));
  const int64_t wanted = std::min(most, spec.k / kLeastTerms);
  if (wanted < 2) return false;
  const DType result = spec.out;
  const bool is_narrow = tensor::is_float(result) && tensor::size_bytes(result) < 4;
  // Sums are rounded once.
  if (is_narrow && !kernels::gemm_takes(spec.in, DType::kFloat32)) return false;
  if (is_narrow) spec.out = DType::kFloat32;
  product.add = kernels::find_scalar_kernel(kernels::ScalarOp::kAdd, spec.out, spec.out);
  if (product.add == nullptr) return false;
  if (is_narrow) {
    product.convert_result = conversion(view, DType::kFloat32, result);
    product.out_elem = tensor::size_bytes(DType::kFloat32);
  }
  const int64_t terms = core::round_up(core::ceil_div(spec.k, wanted), 16);
  product.term_parts = core::ceil_div(spec.k, terms);
  product.a_part_bytes = terms * spec.a.column_stride * product.lhs.elem;
  product.b_part_bytes = terms * spec.b.row_stride * product.rhs.elem;
  product.term_bytes = core::round_up(spec.m * spec.n * product.out_elem, 64);
  product.add_items = core::ceil_div(spec.m * spec.n, kAddedAtOnce);
  const int64_t all = spec.k;
  spec.k = terms;
  product.of_terms[0].emplace(spec);
  spec.k = all - (product.term_parts - 1) * terms;
  product.of_terms[1].emplace(spec);
  return true;
}

// The products of blocks; returns the scratch that one of them needs.
int64_t set_products(Product& product, GemmSpec spec) {
  int64_t scratch = 0;
  const auto for_each_block = [&](const auto& f) {
    for (const size_t last_row : {0, 1}) {
      for (const size_t last_column : {0, 1}) {
        spec.m = last_row == 1 ? product.group_rows % product.block_rows : product.block_rows;
        spec.n = last_column == 1 ? product.group_columns % product.block_columns : product.block_columns;
        if (spec.m != 0 && spec.n != 0) f(last_row, last_column);
      }
    }
  };
  const auto make = [&](std::optional<Gemm>& gemm, bool is_in_place) {
    spec.c_stride = is_in_place ? product.n : spec.n;
    scratch = std::max(scratch, gemm.emplace(spec).scratch_bytes());
  };
  const bool converts = product.convert_result != nullptr;
  for_each_block([&](size_t row, size_t column) { make(product.blocks[row][column], !converts); });
  if (product.parts == 1 || converts) return scratch;
  product.adds_in_place = true;
  for_each_block([&](size_t, size_t) { product.adds_in_place = product.adds_in_place && kernels::gemm_adds(spec); });
  spec.adds = product.adds_in_place;
  for_each_block([&](size_t row, size_t column) { make(product.later[row][column], product.adds_in_place); });
  return scratch;
}

// Small products that lie at regular distances.
void set_batch(Product& product, const GemmSpec& spec) {
  const std::optional<int64_t> a_step = single_stride(product.lhs.batch);
  const std::optional<int64_t> b_step = single_stride(product.rhs.batch);
  if (product.batch_count == 1 || !a_step || !b_step) return;
  product.batch = kernels::ProductBatch::of({spec, *a_step, *b_step});
  product.a_step_bytes = *a_step * product.lhs.elem;
  product.b_step_bytes = *b_step * product.rhs.elem;
}

Side side_of(const OpView& view, size_t operand, const DotDims& dims, DType in) {
  const ir::Type& type = view.operands[operand];
  const std::vector<int64_t>& batch = operand == 0 ? dims.lhs_batch : dims.rhs_batch;
  const std::vector<int64_t>& contract = operand == 0 ? dims.lhs_contract : dims.rhs_contract;
  const Loops free = loops_of(type, free_dims(type.rank(), batch, contract));
  const Loops sum = loops_of(type, contract);
  return make_side(view, operand, loops_of(type, batch), operand == 0 ? free : sum, operand == 0 ? sum : free, in,
                   least_group(in));
}

PreparedKernel prepare_product(const OpView& view, const DotDims& dims, int64_t parts = 1) {
  const ir::Type& lhs = view.operands[0];
  const ir::Type& rhs = view.operands[1];
  const ir::Type& result = view.results[0];
  const Loops lhs_batch = loops_of(lhs, dims.lhs_batch);
  const Loops rows = loops_of(lhs, free_dims(lhs.rank(), dims.lhs_batch, dims.lhs_contract));
  const Loops lhs_sum = loops_of(lhs, dims.lhs_contract);
  const Loops rhs_batch = loops_of(rhs, dims.rhs_batch);
  const Loops rhs_sum = loops_of(rhs, dims.rhs_contract);
  const Loops columns = loops_of(rhs, free_dims(rhs.rank(), dims.rhs_batch, dims.rhs_contract));

  const double multiplications =
      static_cast<double>(rows.count()) * static_cast<double>(columns.count()) * static_cast<double>(lhs_sum.count());
  const Types types = product_types(view, rows.count(), columns.count(), lhs_sum.count());
  auto product = std::make_shared<Product>();
  product->lhs = make_side(view, 0, lhs_batch, rows, lhs_sum, types.in, least_group(types.in));
  product->rhs = make_side(view, 1, rhs_batch, rhs_sum, columns, types.in, least_group(types.in));
  const double groups_of_both =
      static_cast<double>(product->lhs.groups.count()) * static_cast<double>(product->rhs.groups.count());
  const bool has_both = !product->lhs.groups.extent.empty() && !product->rhs.groups.extent.empty();
  if (has_both && 2 * multiplications < kLeastGroupFlops * groups_of_both)
    product->rhs = make_side(view, 1, rhs_batch, rhs_sum, columns, types.in, std::numeric_limits<int64_t>::max());
  product->batch_count = lhs_batch.count();
  product->m = rows.count();
  product->n = columns.count();
  product->group_rows = product->m / std::max<int64_t>(1, product->lhs.groups.count());
  product->group_columns = product->n / std::max<int64_t>(1, product->rhs.groups.count());
  const int64_t k = lhs_sum.count();
  product->out_elem = tensor::size_bytes(types.out);
  product->result_elem = tensor::size_bytes(result.dtype());
  product->a_row_bytes = product->lhs.layout.row_stride * tensor::size_bytes(types.in);
  product->b_column_bytes = product->rhs.layout.column_stride * tensor::size_bytes(types.in);
  if (types.out != result.dtype()) product->convert_result = conversion(view, types.out, result.dtype());
  product->parts = parts;
  if (parts > 1) product->add = kernels::find_scalar_kernel(kernels::ScalarOp::kAdd, result.dtype(), result.dtype());

  PreparedKernel kernel;
  const GemmSpec spec{product->group_rows, product->group_columns, k, types.in, types.out,
                      product->lhs.layout, product->rhs.layout};
  const double flops_of_one = (tensor::is_complex(types.in) ? 8 : 2) * multiplications;
  kernel.parts = parts;
  const auto all_parts = static_cast<double>(parts);
  kernel.flops = flops_of_one * static_cast<double>(product->batch_count) * all_parts;
  kernel.flops_per_ns = kernels::gemm_flops_per_ns(spec);
  kernel.bytes = static_cast<double>(tensor::byte_count(lhs.tensor)) * all_parts +
                 static_cast<double>(tensor::byte_count(rhs.tensor)) * all_parts +
                 static_cast<double>(tensor::byte_count(result.tensor));
  kernel.work_count = 0;
  if (tensor::element_count(result.dims()) == 0) return kernel;

  // An operand is packed for an entire product, so such products are not split.
  const bool may_cut = !product->lhs.is_packed && !product->rhs.is_packed;
  const auto groups = static_cast<double>((product->m / product->group_rows) * (product->n / product->group_columns));
  set_blocks(*product, spec, may_cut ? flops_of_one / groups : 0);
  if (set_term_parts(*product, view, spec, flops_of_one)) {
    const int64_t barrier = product->batch_count * product->term_parts;
    kernel.work_count = barrier + product->batch_count * product->add_items;
    kernel.barriers = {barrier};
    kernel.workspace_bytes = barrier * product->term_bytes;
    for (const std::optional<Gemm>& gemm : product->of_terms)
      kernel.scratch_bytes = std::max(kernel.scratch_bytes, core::round_up(gemm->scratch_bytes(), 64));
    kernel.passes_checkpoints = true;
    kernel.run = [product](const KernelCall& call) { product->run(call); };
    return kernel;
  }
  if (may_cut && parts == 1 && product->convert_result == nullptr && product->block_count == 1)
    set_batch(*product, spec);
  if (product->batch) {
    const double bytes_of_one = kernel.bytes / static_cast<double>(product->batch_count);
    const double most = std::min(kWorkItemFlops / flops_of_one, kWorkItemBytes / bytes_of_one);
    product->products_per_work_item = std::max<int64_t>(1, static_cast<int64_t>(most));
    kernel.work_count = core::ceil_div(product->batch_count, product->products_per_work_item);
    kernel.passes_checkpoints = true;
    kernel.run = [product](const KernelCall& call) { product->run(call); };
    return kernel;
  }
  const int64_t gemm_scratch = set_products(*product, spec);
  if (product->block_count == 1) {
    product->products_per_work_item =
        std::max<int64_t>(1, static_cast<int64_t>(kWorkItemFlops / std::max(1.0, flops_of_one * all_parts)));
  }
  const std::optional<Gemm>& first = product->blocks[0][0];
  if (parts == 1 && !product->rhs.is_packed && first && first->keeps_packed()) kernel.packed_operand = 1;
  const int64_t block_elements = product->block_rows * product->block_columns;
  if (product->convert_result != nullptr || (parts > 1 && !product->adds_in_place))
    product->made_bytes = core::round_up(block_elements * product->out_elem, 64);
  if (product->convert_result != nullptr && parts > 1)
    product->part_bytes = core::round_up(block_elements * product->result_elem, 64);
  product->scratch_bytes = product->lhs.scratch_bytes() + product->rhs.scratch_bytes() + product->made_bytes +
                           product->part_bytes + core::round_up(gemm_scratch, 64);
  kernel.work_count = core::ceil_div(product->batch_count * product->block_count, product->products_per_work_item);
  kernel.scratch_bytes = product->scratch_bytes;
  kernel.passes_checkpoints = true;
  kernel.run = [product](const KernelCall& call) { product->run(call); };
  return kernel;
}

}  // namespace

bool dot_reads_in_place(const OpView& local, const DotDims& dims, size_t operand) {
  // Whatever the number of operations: a copy of a small product is small, too.
  const Types types = product_types(local, 0, 0, 0);
  return !side_of(local, operand, dims, types.in).gather;
}

PreparedKernel prepare_dot_general(const OpView& local) { return prepare_product(local, dot_general_dims(local)); }
PreparedKernel prepare_dot(const OpView& local) { return prepare_product(local, dot_dims(local)); }

std::optional<PreparedKernel> prepare_dot_sum(const OpView& local, int64_t parts) {
  const DType dtype = local.results[0].dtype();
  if (kernels::find_scalar_kernel(kernels::ScalarOp::kAdd, dtype, dtype) == nullptr) return std::nullopt;
  return prepare_product(local, dot_general_dims(local), parts);
}

}  // namespace meshd::ops
