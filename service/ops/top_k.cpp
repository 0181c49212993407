#include "service/ops/top_k.h"

#include <cstring>
#include <memory>
#include <string>

#include "service/kernels/sort.h"
#include "service/kernels/top_k.h"
#include "service/ops/checks.h"
#include "service/ops/custom_call_rules.h"
#include "service/ops/expansions.h"

namespace meshd::ops {
namespace {

using tensor::Dims;

std::vector<ir::Type> infer_top_k(const OpView& view) {
  expect_operand_count(view, "top_k", 1);
  expect_tensor(view, "top_k", 0);
  const ir::Type& operand = view.operands[0];
  if (operand.rank() == 0 || tensor::is_complex(operand.dtype())) {
    reject(view, "top_k I1: operand must have a dimension and elements with an order, got " + operand_text(view, 0));
  }
  const int64_t k = ir::int_or(attributes_of(view), "k", -1);
  Dims dims = operand.dims();
  if (k < 0 || (dims.back() != tensor::kDynamicDim && k > dims.back())) {
    reject(view, "top_k C1: k must be between 0 and the size of the last dimension of " + operand_text(view, 0) +
                     ", got " + std::to_string(k));
  }
  dims.back() = k;
  return agree(view, "top_k C2", {ir::Type::of({operand.dtype(), dims}), ir::Type::of({tensor::DType::kInt32, dims})});
}

PreparedKernel prepare(const OpView& local, int64_t k, bool largest) {
  const ir::Type& operand = local.operands[0];
  const Dims& dims = operand.dims();
  if (local.results.size() != 2 || dims.empty() || local.results[1].dtype() != tensor::DType::kInt32 ||
      local.results[0].dims().back() != k || k > dims.back()) {
    reject(local, "top_k: gives the values and, as i32, the indices of k = " + std::to_string(k) + " elements of " +
                      operand_text(local, 0));
  }
  kernels::TopKSpec spec;
  spec.length = dims.back();
  for (size_t d = 0; d + 1 < dims.size(); ++d) spec.lines *= dims[d];
  spec.k = k;
  spec.dtype = operand.dtype();
  spec.largest = largest;
  auto top = std::make_shared<const kernels::TopK>(spec);
  PreparedKernel kernel;
  kernel.unit_count = top->unit_count();
  kernel.bytes = static_cast<double>(tensor::byte_count(operand.tensor));
  kernel.flops = static_cast<double>(tensor::element_count(dims)) * 2;
  kernel.run = [top](const KernelCall& call) {
    top->run(call.operands[0], call.results[0], reinterpret_cast<int32_t*>(call.results[1]), call.begin, call.end);
  };
  return kernel;
}

PreparedKernel prepare_chlo_top_k(const OpView& local) {
  return prepare(local, ir::int_or(attributes_of(local), "k", 0), true);
}

std::vector<OpDef> make_rows() {
  std::vector<OpDef> rows;
  rows.push_back(
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
       .infer = infer_top_k,
       .rule = top_k_rule,
       .body = LocalKernel{prepare_chlo_top_k}});
  return rows;
}

}  // namespace

PreparedKernel prepare_mhlo_top_k(const OpView& local) {
  const ir::AttributeList& entries = ir::dict(attributes_of(local), "mhlo.attributes").entries;
  return prepare(local, ir::int_or(entries, "k", 0), ir::bool_or(entries, "largest", true));
}

PreparedKernel prepare_approx_top_k(const OpView& local) {
  const size_t count = local.results.size();
  if (local.regions.size() != 1 || count == 0 || local.operands.size() != 2 * count) {
    reject(local, "unsupported_custom_call",
           "a custom call of approximate top k needs called_computations with one comparator, and an initial value "
           "for each operand");
  }
  const size_t dim = approx_reduced_dim(local);
  const Dims& in = local.operands[0].dims();
  const Dims& out = local.results[0].dims();
  if (in.size() != out.size() || dim >= in.size() || out[dim] > in[dim]) {
    reject(local, "approximate top k: result " + ir::to_string(local.results[0]) + " is not a part of " +
                      operand_text(local, 0));
  }
  kernels::SortSpec spec;
  spec.length = in[dim];
  for (size_t d = 0; d < in.size(); ++d) {
    if (d < dim) spec.outer *= in[d];
    if (d > dim) spec.inner *= in[d];
  }
  PreparedKernel kernel;
  struct Part {
    int64_t from_row = 0;  ///< bytes from one index of the outer dimensions to the next, sorted
    int64_t to_row = 0;    ///< the same, of the result
  };
  std::vector<Part> parts;
  std::vector<int64_t> sorted_at;  // where each sorted operand lies in scratch
  int64_t sorted_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const tensor::DType dtype = local.operands[i].dtype();
    spec.dtypes.push_back(dtype);
    const int64_t line = spec.inner * tensor::size_bytes(dtype);
    parts.push_back({in[dim] * line, out[dim] * line});
    sorted_at.push_back(sorted_bytes);
    sorted_bytes += core::round_up(tensor::byte_count(local.operands[i].tensor), 64);
    kernel.bytes += 2.0 * static_cast<double>(tensor::byte_count(local.operands[i].tensor));
  }
  spec.comparator = compile_scalar_region(*local.function, local.regions[0]);
  kernel.flops = static_cast<double>(tensor::element_count(in)) * 20;
  const int64_t outer = spec.outer;
  auto sort = std::make_shared<const kernels::Sort>(std::move(spec));
  kernel.scratch_bytes = sorted_bytes + sort->scratch_bytes();
  // One unit: a line is sorted into scratch, which belongs to a call.
  kernel.run = [=](const KernelCall& call) {
    std::vector<std::byte*> sorted;
    for (const int64_t at : sorted_at) sorted.push_back(call.scratch + at);
    sort->run(call.operands, sorted.data(), call.scratch + sorted_bytes, 0, sort->unit_count());
    for (size_t i = 0; i < parts.size(); ++i) {
      for (int64_t row = 0; row < outer; ++row) {
        std::memcpy(call.results[i] + row * parts[i].to_row, sorted[i] + row * parts[i].from_row,
                    static_cast<size_t>(parts[i].to_row));
      }
    }
  };
  return kernel;
}

bool takes_comparator(std::string_view target) { return target == "ApproxTopK" || target == "PartialReduce"; }

std::span<const OpDef> top_k_rows() {
  static const std::vector<OpDef> kRows = make_rows();
  return kRows;
}

}  // namespace meshd::ops
