// Rows of the random generators. rng_bit_generator gives XLA's bits; rng is nondeterministic, as the specification
// allows.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <string>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/random_bits.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using kernels::RandomAlgorithm;
using sharding::FactorKind;
using tensor::Dims;
using tensor::DType;

constexpr int64_t kUnitElements = 16 << 10;
constexpr std::string_view kBits = "meshd.bits";

/// DEFAULT is Philox, as it is for XLA on a CPU.
RandomAlgorithm algorithm_of(const OpView& view) {
  const std::string name = ir::string_or(attributes_of(view), "rng_algorithm", "DEFAULT");
  if (name == "THREE_FRY") return RandomAlgorithm::kThreeFry;
  if (name == "DEFAULT" || name == "PHILOX") return RandomAlgorithm::kPhilox;
  reject(view, "rng_bit_generator I1: rng_algorithm must be DEFAULT, THREE_FRY or PHILOX, got " + name);
}

std::vector<ir::Type> infer_bits(const OpView& view) {
  expect_tensor_operands(view, "rng_bit_generator", 1);
  const ir::Type& state = view.operands[0];
  if (state.rank() != 1 || (state.dtype() != DType::kUint64 && state.dtype() != DType::kUint32)) {
    reject(view, "rng_bit_generator I2: initial_state must be a vector of ui64 or ui32, got " + operand_text(view, 0));
  }
  const int64_t size = state.dims()[0];
  const int64_t each = state.dtype() == DType::kUint64 ? 1 : 2;  // elements of a word
  const bool three_fry = algorithm_of(view) == RandomAlgorithm::kThreeFry;
  if (size != tensor::kDynamicDim && size != 2 * each && (three_fry || size != 3 * each)) {
    reject(view, fmt::format("rng_bit_generator C2: initial_state must have {}{} elements, got {}", 2 * each,
                             three_fry ? "" : fmt::format(" or {}", 3 * each), operand_text(view, 0)));
  }
  std::vector<ir::Type> results = declared(view, "rng_bit_generator", 2);
  if (results[0] != state) {
    reject(view, fmt::format("rng_bit_generator C1: output_state must have the type of initial_state {}, got {}",
                             operand_text(view, 0), ir::to_string(results[0])));
  }
  const ir::Type& output = results[1];
  const bool is_plain = output.is_tensor() &&
                        (tensor::is_integer(output.dtype()) || tensor::is_float(output.dtype())) &&
                        tensor::row(output.dtype()).bits >= 8;
  if (!is_plain) {
    reject(view, fmt::format("rng_bit_generator C3: output must be a tensor of integers or floats, got {}",
                             ir::to_string(output)));
  }
  return results;
}

sharding::FactorRule bits_rule(const OpView& view) {
  sharding::FactorRuleBuilder builder = rule_builder(view);
  builder.factor({0}, {0, -1}, view.operands[0].dims()[0], FactorKind::kNeedReplication, true);
  const Dims& out = view.results[1].dims();
  for (size_t d = 0; d < out.size(); ++d) builder.factor({-1}, {-1, static_cast<int>(d)}, out[d]);
  return builder.build();
}

/// Each result has a step of its own, which does not see the other's type.
ir::AttributeList localize_bits(const OpView& global, const OpView& /*local*/) {
  ir::AttributeList attributes = attributes_of(global);
  const ir::Type& output = global.results[1];
  attributes.emplace_back(std::string(kGlobalDims), ir::int_array_attr(output.dims()));
  attributes.emplace_back(std::string(kBits), ir::integer_attr(8 * tensor::size_bytes(output.dtype())));
  attributes.emplace_back(std::string(kResultsApart), ir::integer_attr(2));
  return attributes;
}

/// Of 64 bits. Two elements of ui32 are one, the low half first, as jax.lax.rng_bit_generator takes its keys.
int word_count(const ir::Type& state) {
  return static_cast<int>(state.dims()[0] * tensor::size_bytes(state.dtype()) / static_cast<int64_t>(sizeof(uint64_t)));
}

PreparedKernel prepare_state(const kernels::RandomBits& bits, int words) {
  PreparedKernel kernel;
  kernel.run = [bits, words](const KernelCall& call) {
    bits.next_state(reinterpret_cast<const uint64_t*>(call.operands[0]), words,
                    reinterpret_cast<uint64_t*>(call.results[0]));
  };
  return kernel;
}

PreparedKernel prepare_bits(const OpView& local) {
  const int64_t only = ir::int_or(attributes_of(local), kOnlyResult, -1);
  const ir::Type& output = only == 0 ? local.results[0] : local.results.back();
  const Dims dims = only == 0 ? Dims{} : output.dims();
  const int words = word_count(local.operands[0]);
  const auto width = static_cast<int>(ir::int_or(attributes_of(local), kBits, tensor::size_bytes(output.dtype()) * 8));
  const kernels::RandomBits bits(algorithm_of(local), ir::ints_or(attributes_of(local), kGlobalDims, dims), width);
  if (only == 0) return prepare_state(bits, words);
  PreparedKernel kernel;
  const int64_t count = tensor::element_count(dims);
  const size_t out = local.results.size() - 1;
  const bool with_state = only < 0;
  kernel.work_count = with_state ? 1 : core::ceil_div(count, kUnitElements);
  kernel.uses_offsets = !with_state;
  kernel.passes_checkpoints = true;
  kernel.flops = static_cast<double>(count) * 40;
  kernel.bytes = static_cast<double>(tensor::byte_count(output.tensor));
  kernel.run = [=](const KernelCall& call) {
    const auto* state = reinterpret_cast<const uint64_t*>(call.operands[0]);
    if (with_state) bits.next_state(state, words, reinterpret_cast<uint64_t*>(call.results[0]));
    const int64_t begin = with_state ? 0 : call.begin * kUnitElements;
    const int64_t end = with_state ? count : std::min(count, call.end * kUnitElements);
    for (int64_t at = begin; at < end; at += kUnitElements) {
      core::pass(call.checkpoint);
      bits.fill(state, words, with_state ? nullptr : call.result_offsets, dims, call.results[out], at,
                std::min(end, at + kUnitElements));
    }
  };
  return kernel;
}

std::vector<ir::Type> infer_rng(const OpView& view) {
  expect_tensor_operands(view, "rng", 3);
  std::vector<ir::Type> results = declared(view, "rng", 1);
  const ir::Type& to = results[0];
  if (view.operands[0].rank() != 0 || view.operands[1].rank() != 0 || !to.is_tensor() ||
      view.operands[0].dtype() != to.dtype() || view.operands[1].dtype() != to.dtype()) {
    reject(view, fmt::format("rng C1: a and b must be scalars of the result's type (a {}, b {}, result {})",
                             operand_text(view, 0), operand_text(view, 1), ir::to_string(to)));
  }
  const ir::Type& shape = view.operands[2];
  if (shape.rank() != 1 || !tensor::is_integer(shape.dtype()) || shape.dims()[0] != to.rank()) {
    reject(view, fmt::format("rng C3: shape must be a vector of integers, one for each dimension of {}, got {}",
                             ir::to_string(to), operand_text(view, 2)));
  }
  const std::string distribution = ir::string_or(attributes_of(view), "rng_distribution", "");
  if (distribution != "UNIFORM" && distribution != "NORMAL") {
    reject(view, "rng I4: rng_distribution must be UNIFORM or NORMAL, got '" + distribution + "'");
  }
  if (distribution == "NORMAL" && !tensor::is_float(to.dtype())) {
    reject(view, fmt::format("rng C2: a normal distribution has floating-point elements, got {}", ir::to_string(to)));
  }
  return results;
}

/// The result may have any sharding; bounds and shape are scalars or short.
sharding::FactorRule rng_rule(const OpView& view) {
  sharding::FactorRuleBuilder builder = rule_builder(view);
  builder.factor({-1, -1, 0}, {-1}, view.operands[2].dims()[0], FactorKind::kNeedReplication, true);
  const Dims& out = view.results[0].dims();
  for (size_t d = 0; d < out.size(); ++d) builder.factor({-1, -1, -1}, {static_cast<int>(d)}, out[d]);
  return builder.build();
}

/// Numbers of one call: 64 bits at a time.
class Stream {
 public:
  explicit Stream(uint64_t seed) : seed_(seed) {}

  uint64_t bits() {
    const auto words = kernels::philox4x32({static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)},
                                           {static_cast<uint32_t>(at_), static_cast<uint32_t>(at_ >> 32), 0, 0});
    ++at_;
    return uint64_t{words[1]} << 32 | words[0];
  }
  /// In [0, 1).
  double unit() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

 private:
  uint64_t seed_;
  uint64_t at_ = 0;
};

uint64_t seed_of(uint64_t start, uint64_t call) {
  const auto words = kernels::philox4x32({static_cast<uint32_t>(start), static_cast<uint32_t>(start >> 32)},
                                         {static_cast<uint32_t>(call), static_cast<uint32_t>(call >> 32), 1, 0});
  return uint64_t{words[1]} << 32 | words[0];
}

/// Each call of the kernel has a seed of its own, so that the iterations of a loop and the shards of an array differ.
PreparedKernel prepare_rng(const OpView& local) {
  const ir::Type& to = local.results[0];
  const DType dtype = to.dtype();
  const bool normal = ir::string_or(attributes_of(local), "rng_distribution", "") == "NORMAL";
  const bool floating = tensor::is_float(dtype);
  // Bounds and numbers go through one wide type.
  const DType wide = floating ? DType::kFloat64 : dtype == DType::kUint64 ? DType::kUint64 : DType::kInt64;
  const kernels::ScalarKernel widen = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, dtype, wide);
  const kernels::ScalarKernel narrow = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, wide, dtype);
  if (widen == nullptr || narrow == nullptr || tensor::is_complex(dtype)) {
    reject(local, "unsupported_dtype", fmt::format("rng of {} is not supported", ir::to_string(to)));
  }
  const int64_t count = tensor::element_count(to.dims());
  const int64_t elem = tensor::size_bytes(dtype);
  auto calls = std::make_shared<std::atomic<uint64_t>>(0);
  const auto start = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
                     std::bit_cast<uint64_t>(calls.get());
  PreparedKernel kernel;
  kernel.bytes = static_cast<double>(count * elem);
  kernel.flops = static_cast<double>(count) * 60;
  kernel.run = [=](const KernelCall& call) {
    Stream stream(seed_of(start, calls->fetch_add(1)));
    std::array<uint64_t, 2> bounds{};
    for (size_t i = 0; i < 2; ++i) widen(&call.operands[i], reinterpret_cast<std::byte*>(&bounds[i]), 1);
    for (int64_t i = 0; i < count; ++i) {
      if (i % kUnitElements == 0) core::pass(call.checkpoint);
      uint64_t value = 0;
      if (floating) {
        const auto a = std::bit_cast<double>(bounds[0]);
        const auto b = std::bit_cast<double>(bounds[1]);
        value = std::bit_cast<uint64_t>(normal ? a + b * stream.normal() : a + (b - a) * stream.unit());
      } else {
        const uint64_t span = bounds[1] - bounds[0];
        value = bounds[0] + (span == 0 ? 0 : stream.bits() % span);
      }
      const auto* from = reinterpret_cast<const std::byte*>(&value);
      narrow(&from, call.results[0] + i * elem, 1);
    }
  };
  return kernel;
}

}  // namespace

std::vector<OpDef> random_rows() {
  return {
      {.name = "stablehlo.rng_bit_generator",
       .summary = "random bits that follow from a state, and the state to go on with; the bits are XLA's",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<4x2xui32>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x2xui32>)
    return %output_state, %output : tensor<2xui64>, tensor<4x2xui32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"rng_algorithm", true, "DEFAULT, which is PHILOX, or THREE_FRY"}}},
       .text = {.fields = {{"algorithm", FieldKind::kEnum, "rng_algorithm", "rng_algorithm"}}},
       .infer = infer_bits,
       .rule = bits_rule,
       .body = LocalKernel{prepare_bits},
       .new_dims_may_be_sharded = true,
       .localize = localize_bits},
      {.name = "stablehlo.rng",
       .summary = "random numbers, others each time: uniform between a and b, or normal with mean a and deviation b",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<4x2xf32> {
    %c = stablehlo.constant dense<[4, 2]> : tensor<2xi64>
    %0 = stablehlo.rng %arg0, %arg1, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}
)",
       .signature = {.operand_min = 3,
                     .operand_max = 3,
                     .attributes = {{"rng_distribution", true, "UNIFORM or NORMAL"}}},
       .text = {.fields = {{"distribution", FieldKind::kEnum, "rng_distribution", "rng_distribution"}}},
       .infer = infer_rng,
       .rule = rng_rule,
       .body = LocalKernel{prepare_rng},
       .new_dims_may_be_sharded = true,
       .is_random = true},
  };
}

}  // namespace meshd::ops
