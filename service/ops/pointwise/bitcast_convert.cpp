// bitcast_convert: the same bits under another type. Between types of one width it is pointwise; otherwise the smaller
// elements have an innermost dimension more, and that dimension stays in one place.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/pointwise/builders.h"
#include "service/ops/pointwise/pointwise_special.h"
#include "service/ops/rewrites/batching.h"

namespace meshd::ops {
namespace {

using tensor::DType;

/// Elements of 1, 2 and 4 bits take a byte each in memory, so that packing them is a loop and not a copy. XLA
/// has no bits of booleans (its answers have other shapes than it declares); these are the specification's,
/// num_bits(i1) = 1, the least significant bit first.
bool is_packed(DType dtype) { return tensor::row(dtype).bits < 8; }

std::vector<ir::Type> infer_bitcast_convert(const OpView& view) {
  expect_tensor_operands(view, "bitcast_convert", 1);
  std::vector<ir::Type> results = declared(view, "bitcast_convert", 1);
  const ir::Type& from = view.operands[0];
  const ir::Type& to = results[0];
  const auto mismatch = [&](std::string_view rule) {
    reject(view, fmt::format("bitcast_convert C1: {} ({} and {})", rule, ir::to_string(from), ir::to_string(to)));
  };
  if (!to.is_tensor()) mismatch("the result must be a tensor");
  if (tensor::is_complex(from.dtype()) != tensor::is_complex(to.dtype())) {
    reject(view, fmt::format("bitcast_convert C2: complex numbers become complex numbers only ({} and {})",
                             ir::to_string(from), ir::to_string(to)));
  }
  const int from_bits = tensor::row(from.dtype()).bits;
  const int to_bits = tensor::row(to.dtype()).bits;
  if (from_bits == to_bits) {
    if (!compatible_shapes(from.dims(), to.dims())) mismatch("types of one width must have one shape");
    return results;
  }
  const bool grows = from_bits > to_bits;  // the result has the dimension more
  tensor::Dims longer = grows ? to.dims() : from.dims();
  const tensor::Dims& shorter = grows ? from.dims() : to.dims();
  const int ratio = grows ? from_bits / to_bits : to_bits / from_bits;
  if (std::max(from_bits, to_bits) % std::min(from_bits, to_bits) != 0)
    mismatch("the width of one element must be a multiple of the width of the other");
  if (longer.empty() || (longer.back() != ratio && longer.back() != tensor::kDynamicDim)) {
    mismatch(fmt::format("the innermost dimension of the smaller elements must be {}", ratio));
  }
  longer.pop_back();
  if (!compatible_shapes(longer, shorter)) mismatch("all other dimensions must be equal");
  return results;
}

sharding::FactorRule rule(const OpView& view) {
  const tensor::Dims from = view.operands[0].dims();
  const tensor::Dims to = view.results[0].dims();
  sharding::FactorRuleBuilder builder({from}, {to});
  const size_t shared = std::min(from.size(), to.size());
  for (size_t i = 0; i < shared; ++i) builder.factor({static_cast<int>(i)}, {static_cast<int>(i)}, from[i]);
  if (to.size() > from.size()) {
    builder.factor({-1}, {static_cast<int>(shared)}, to.back(), sharding::FactorKind::kNeedReplication);
  }
  if (from.size() > to.size()) {
    builder.factor({static_cast<int>(shared)}, {-1}, from.back(), sharding::FactorKind::kNeedReplication);
  }
  return builder.build();
}

/// Splits each byte of `from` into `count` elements of `bits` bits, least significant first; signed ones are extended.
void split_bytes(const std::byte* from, std::byte* to, int64_t bytes, int bits, bool is_signed) {
  const int per_byte = 8 / bits;
  const int shift = 8 - bits;
  for (int64_t i = 0; i < bytes; ++i) {
    const auto whole = static_cast<uint8_t>(from[i]);
    for (int k = 0; k < per_byte; ++k) {
      const auto top = static_cast<uint8_t>(whole >> (k * bits) << shift);
      const int element = is_signed ? static_cast<int8_t>(top) >> shift : top >> shift;
      to[i * per_byte + k] = static_cast<std::byte>(element);
    }
  }
}

void join_bytes(const std::byte* from, std::byte* to, int64_t bytes, int bits) {
  const int per_byte = 8 / bits;
  const unsigned mask = (1U << static_cast<unsigned>(bits)) - 1;
  for (int64_t i = 0; i < bytes; ++i) {
    unsigned whole = 0;
    for (int k = 0; k < per_byte; ++k) whole |= (static_cast<unsigned>(from[i * per_byte + k]) & mask) << (k * bits);
    to[i] = static_cast<std::byte>(whole);
  }
}

constexpr int64_t kWorkItemBytes = int64_t{1} << 18;

PreparedKernel prepare_bitcast_convert(const OpView& local) {
  const tensor::TensorType from = local.operands[0].tensor;
  const tensor::TensorType to = local.results[0].tensor;
  const int64_t from_bytes = tensor::byte_count(from);
  const int64_t to_bytes = tensor::byte_count(to);
  PreparedKernel kernel;
  kernel.bytes = static_cast<double>(from_bytes + to_bytes);
  if (is_packed(from.dtype) && is_packed(to.dtype)) {
    // Between elements of fewer than 8 bits, through one byte for each element: never printed by JAX.
    reject(local, "unsupported_type",
           fmt::format("bitcast_convert between {} and {} is not supported", ir::to_string(local.operands[0]),
                       ir::to_string(local.results[0])));
  }
  if (is_packed(to.dtype)) {
    kernel.work_count = core::ceil_div(from_bytes, kWorkItemBytes);
    kernel.run = [from_bytes, bits = tensor::row(to.dtype).bits,
                  is_signed = tensor::is_signed_integer(to.dtype)](const KernelCall& call) {
      const int64_t begin = call.begin * kWorkItemBytes;
      const int64_t end = std::min(from_bytes, call.end * kWorkItemBytes);
      split_bytes(call.operands[0] + begin, call.results[0] + begin * 8 / bits, end - begin, bits, is_signed);
    };
    return kernel;
  }
  if (is_packed(from.dtype)) {
    kernel.work_count = core::ceil_div(to_bytes, kWorkItemBytes);
    kernel.run = [to_bytes, bits = tensor::row(from.dtype).bits](const KernelCall& call) {
      const int64_t begin = call.begin * kWorkItemBytes;
      const int64_t end = std::min(to_bytes, call.end * kWorkItemBytes);
      join_bytes(call.operands[0] + begin * 8 / bits, call.results[0] + begin, end - begin, bits);
    };
    return kernel;
  }
  // Elements are little-endian and row-major, so that the innermost dimension is the bytes of the wider element in
  // order.
  kernel.in_place = {{0, 0}};
  kernel.work_count = core::ceil_div(to_bytes, kWorkItemBytes);
  kernel.run = [to_bytes](const KernelCall& call) {
    const int64_t begin = call.begin * kWorkItemBytes;
    const int64_t end = std::min(to_bytes, call.end * kWorkItemBytes);
    if (call.operands[0] != call.results[0] && begin < end)
      std::memcpy(call.results[0] + begin, call.operands[0] + begin, static_cast<size_t>(end - begin));
  };
  return kernel;
}

Body choose_bitcast_body(const OpView& view) {
  const bool same_width = tensor::row(view.operands[0].dtype()).bits == tensor::row(view.results[0].dtype()).bits;
  if (same_width) return ScalarMath{.op = kernels::ScalarOp::kBitcast};
  return LocalKernel{prepare_bitcast_convert};
}

}  // namespace

OpDef bitcast_convert_row() {
  OpDef def = pointwise_unary_to<"stablehlo.bitcast_convert", kAnyDType, Gives::kSame, "f32", "i32">(
      "the same bits under another element type", {.op = kernels::ScalarOp::kBitcast});
  def.propagation.elementwise = Elementwise::kSameShapes;
  def.infer = infer_bitcast_convert;
  def.quantized = kQuantizedHeld;
  def.rule = rule;
  def.choose_body = choose_bitcast_body;
  def.batch = batch_leading;
  def.derivative = kZeroDerivative;  // as jax.grad has it, of floats to floats too
  return def;
}

}  // namespace meshd::ops
