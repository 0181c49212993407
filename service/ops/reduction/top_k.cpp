#include "service/ops/reduction/top_k.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>

#include "service/core/checked_math.h"
#include "service/kernels/sort/sort.h"
#include "service/kernels/sort/top_k.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/reduction/reduction_vjp.h"
#include "service/ops/reduction/top_k_rules.h"
#include "service/ops/rewrites/batching.h"

namespace meshd::ops {
namespace {

using tensor::Dims;

constexpr int64_t kComparisonsBetweenCheckpoints = int64_t{1} << 16;

std::vector<ir::Type> infer_top_k(const OpView& view) {
  expect_tensor_operands(view, "top_k", 1);
  const ir::Type& operand = view.operands[0];
  if (operand.rank() == 0 || tensor::is_complex(operand.dtype())) {
    reject(view, "top_k I1: operand must have a dimension and elements with an order, got " + operand_text(view, 0));
  }
  const int64_t k = ir::int_or(attributes_of(view), "k", -1);
  Dims dims = operand.dims();
  if (k < 0 || (dims.back() != tensor::kDynamicDim && k > dims.back())) {
    reject(view, fmt::format("top_k C1: k must be between 0 and the size of the last dimension of {}, got {}",
                             operand_text(view, 0), k));
  }
  dims.back() = k;
  return agree(view, "top_k C2", {ir::Type::of({operand.dtype(), dims}), ir::Type::of({tensor::DType::kInt32, dims})});
}

PreparedKernel prepare(const OpView& local, int64_t k, bool largest) {
  const ir::Type& operand = local.operands[0];
  const Dims& dims = operand.dims();
  kernels::TopKSpec spec;
  spec.length = dims.back();
  for (size_t d = 0; d + 1 < dims.size(); ++d) spec.lines *= dims[d];
  spec.k = k;
  spec.dtype = operand.dtype();
  spec.largest = largest;
  auto top = std::make_shared<const kernels::TopK>(spec);
  PreparedKernel kernel;
  kernel.work_count = top->work_count();
  kernel.passes_checkpoints = true;
  kernel.bytes = static_cast<double>(tensor::byte_count(operand.tensor));
  kernel.flops = static_cast<double>(tensor::element_count(dims)) * 2;
  kernel.run = [top](const KernelCall& call) {
    top->run(call.operands[0], call.results[0], reinterpret_cast<int32_t*>(call.results[1]), call.begin, call.end,
             call.checkpoint);
  };
  return kernel;
}

PreparedKernel prepare_chlo_top_k(const OpView& local) {
  return prepare(local, ir::int_or(attributes_of(local), "k", 0), true);
}

/// Dimensions of the operands, of which the results declare a part of dimension `dim`.
Dims declared_part(const OpView& view, size_t dim) {
  Dims dims = view.operands[0].dims();
  const Dims& out = view.results[0].dims();
  if (dim >= dims.size() || dims.size() != out.size() || (dims[dim] != tensor::kDynamicDim && out[dim] > dims[dim])) {
    reject(view, fmt::format("{}: result {} is not a part of {}", call_text(view), ir::to_string(view.results[0]),
                             operand_text(view, 0)));
  }
  dims[dim] = out[dim];
  return dims;
}

/// The first elements of lines in the order of a comparator. XLA does not sort these stably but with std::sort, which
/// decides the order of equal elements; so does this. Lines with elements that have no order (NaN beside numbers) are
/// sorted stably, for which every comparator will do.
class FirstOfLines {
 public:
  FirstOfLines(kernels::SortSpec line, int64_t outer, int64_t inner, int64_t wanted)
      : outer_(outer), inner_(inner), length_(line.length), wanted_(wanted) {
    for (const tensor::DType dtype : line.dtypes) sizes_.push_back(tensor::size_bytes(dtype));
    const auto keys = kernels::recognise_comparator(line.comparator);
    if (keys && keys->size() == 1) key_ = keys->front();
    for (const int64_t size : sizes_) line_bytes_ += 2 * core::round_up(length_ * size, 64);
    stable_ = std::make_shared<const kernels::Sort>(std::move(line));
  }

  [[nodiscard]] int64_t work_count() const {
    return length_ == 0 ? 0 : core::ceil_div(outer_ * inner_, per_work_item());
  }
  /// Input and output row of each operand, then the memory of the sort.
  [[nodiscard]] int64_t scratch_bytes() const {
    return line_bytes_ + core::round_up(stable_->scratch_bytes(), 64) + stable_->workspace_bytes();
  }

  void run(const KernelCall& call) const {
    std::vector<uint64_t> keys(static_cast<size_t>(length_));
    std::vector<int64_t> order(static_cast<size_t>(length_));
    const int64_t stop = std::min(outer_ * inner_, call.end * per_work_item());
    for (int64_t line = call.begin * per_work_item(); line < stop; ++line) {
      core::pass(call.checkpoint);
      std::vector<const std::byte*> from;
      std::vector<std::byte*> to;
      std::byte* scratch = call.scratch;
      for (size_t k = 0; k < sizes_.size(); ++k) {
        const int64_t bytes = core::round_up(length_ * sizes_[k], 64);
        copy(scratch, sizes_[k], call.operands[k] + first(line, length_) * sizes_[k], inner_ * sizes_[k], length_,
             sizes_[k]);
        from.push_back(scratch);
        to.push_back(scratch + bytes);
        scratch += 2 * bytes;
      }
      if (by_keys(from, keys, order, call.checkpoint)) {
        for (size_t k = 0; k < sizes_.size(); ++k) {
          for (int64_t i = 0; i < wanted_; ++i) {
            std::memcpy(to[k] + i * sizes_[k], from[k] + order[static_cast<size_t>(i)] * sizes_[k],
                        static_cast<size_t>(sizes_[k]));
          }
        }
      } else {
        const kernels::Sort::Memory memory{scratch, scratch + core::round_up(stable_->scratch_bytes(), 64)};
        stable_->run(from.data(), to.data(), memory, 0, stable_->work_count(), call.checkpoint);
      }
      for (size_t k = 0; k < sizes_.size(); ++k) {
        copy(call.results[k] + first(line, wanted_) * sizes_[k], inner_ * sizes_[k], to[k], sizes_[k], wanted_,
             sizes_[k]);
      }
    }
  }

 private:
  [[nodiscard]] int64_t per_work_item() const { return std::max<int64_t>(1, (16 << 10) / length_); }
  /// Number of a line's first element where lines are `length` long.
  [[nodiscard]] int64_t first(int64_t line, int64_t length) const {
    return line / inner_ * length * inner_ + line % inner_;
  }
  static void copy(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, int64_t count,
                   int64_t size) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(size));
  }
  bool by_keys(const std::vector<const std::byte*>& from, std::vector<uint64_t>& keys, std::vector<int64_t>& order,
               core::Checkpoint* checkpoint) const {
    if (!key_) return false;
    const kernels::KeyFacts facts =
        kernels::build_keys(*key_, from[static_cast<size_t>(key_->operand)], length_, keys.data());
    if (facts.has_nan && key_->nan_is_unordered) return false;
    std::iota(order.begin(), order.end(), int64_t{0});
    int64_t comparisons = 0;
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (++comparisons % kComparisonsBetweenCheckpoints == 0) core::pass(checkpoint);
      return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
    });
    return true;
  }

  int64_t outer_;
  int64_t inner_;
  int64_t length_;
  int64_t wanted_;
  std::vector<int64_t> sizes_;
  int64_t line_bytes_ = 0;
  std::optional<kernels::SortKey> key_;
  std::shared_ptr<const kernels::Sort> stable_;
};

}  // namespace

void check_mhlo_top_k(const OpView& view) {
  const std::string call = call_text(view);
  expect_tensor_operands(view, call, 1);
  declared(view, call, 2);
  const Dims dims = declared_part(view, view.operands[0].dims().size() - 1);
  agree(view, call, {with_dims(view.operands[0], dims), ir::Type::of({tensor::DType::kInt32, dims})});
}

PreparedKernel prepare_mhlo_top_k(const OpView& local) {
  const ir::AttributeList& entries = ir::dict(attributes_of(local), "mhlo.attributes").entries;
  const int64_t k = ir::int_or(entries, "k", 0);
  if (local.results[0].dims().back() != k)
    reject(local, fmt::format("{}: k is {}, got results {}", call_text(local), k, ir::to_string(local.results[0])));
  return prepare(local, k, ir::bool_or(entries, "largest", true));
}

void check_approx_top_k(const OpView& view) {
  const std::string call = call_text(view);
  expect_inputs_and_inits(view, call, {.count = "I1", .shapes = "I2", .init = "I3"});
  declared(view, call, input_count(view));
  const Dims dims = declared_part(view, approx_reduced_dim(view));
  std::vector<ir::Type> results;
  for (size_t i = 0; i < view.results.size(); ++i) results.push_back(with_dims(view.operands[i], dims));
  agree(view, call, std::move(results));
}

PreparedKernel prepare_approx_top_k(const OpView& local) {
  const size_t count = local.results.size();
  if (local.regions.size() != 1) {
    reject(local, "unsupported_custom_call", call_text(local) + " needs called_computations with one comparator");
  }
  expect_comparator(local, call_text(local), count);
  const size_t dim = approx_reduced_dim(local);
  const Dims& in = local.operands[0].dims();
  const Dims& out = local.results[0].dims();
  kernels::SortSpec line;
  line.length = in[dim];
  int64_t outer = 1;
  int64_t inner = 1;
  for (size_t d = 0; d < in.size(); ++d) {
    if (d < dim) outer *= in[d];
    if (d > dim) inner *= in[d];
  }
  PreparedKernel kernel;
  for (size_t i = 0; i < count; ++i) {
    line.dtypes.push_back(local.operands[i].dtype());
    kernel.bytes += 2.0 * static_cast<double>(tensor::byte_count(local.operands[i].tensor));
  }
  line.comparator = compile_scalar_region(*local.function, local.regions[0]);
  auto lines = std::make_shared<const FirstOfLines>(std::move(line), outer, inner, out[dim]);
  kernel.flops = static_cast<double>(tensor::element_count(in)) * 20;
  kernel.work_count = lines->work_count();
  kernel.passes_checkpoints = true;
  kernel.scratch_bytes = lines->scratch_bytes();
  kernel.run = [lines](const KernelCall& call) { lines->run(call); };
  return kernel;
}

std::vector<OpDef> top_k_rows() {
  return {
      {.name = "chlo.top_k",
       .summary = "the k largest elements of the last dimension, largest first, and their indices",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
    %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
    return %values, %indices : tensor<4x2xf32>, tensor<4x2xi32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"k", true, "how many elements are wanted"}}},
       .text = {.shape = TextShape::kTopK},
       .infer = infer_top_k,
       .rule = top_k_rule,
       .body = LocalKernel{prepare_chlo_top_k},
       .derivative = {vjp_top_k},
       .batch = batch_leading},
  };
}

}  // namespace meshd::ops
