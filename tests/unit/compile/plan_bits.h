// Plans with a pass and without, and their results as bits: arguments of any numbers, special ones among them, runs,
// and where two results differ.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/compile/stages.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "tests/unit/device/engine_support.h"

namespace meshd::test {

/// A program in StableHLO as each of its devices has it, for as many devices as its meshes have.
inline partition::LocalProgram local_of(const std::string& text) {
  const compile::ParsedRef parsed = compile::Compiler(1, 8).parse("stablehlo", text);
  compile::LowerRequest request;
  for (const auto& named : parsed->flat->meshes)
    request.device_count = std::max(request.device_count, named.mesh->position_count());
  return compile::partition_for(compile::propagate_for(*parsed, request), request);
}

/// Its plan for two threads, with one of the passes or without.
inline compile::PlanRef plan_with(const partition::LocalProgram& local, bool compile::PlanSettings::*pass, bool is_on) {
  compile::PlanOptions options;
  options.threads = 2;
  options.*pass = is_on;
  return compile::make_plan(local, options);
}

/// Numbers of a dtype, one in 64 of them special.
inline std::vector<std::byte> numbers(tensor::DType dtype, int64_t bytes, std::mt19937& random) {
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  const auto fill = [&]<typename T>(T) {
    const T specials[] = {std::numeric_limits<T>::quiet_NaN(),
                          std::numeric_limits<T>::infinity(),
                          -std::numeric_limits<T>::infinity(),
                          T{-0.0},
                          T{0},
                          std::numeric_limits<T>::denorm_min()};
    std::normal_distribution<T> normal;
    for (size_t at = 0; at < out.size(); at += sizeof(T)) {
      const T value = random() % 64 == 0 ? specials[random() % std::size(specials)] : normal(random);
      std::memcpy(out.data() + at, &value, sizeof(T));
    }
  };
  switch (dtype) {
    case tensor::DType::kFloat32:
    case tensor::DType::kComplex64:
      fill(float{});
      break;
    case tensor::DType::kFloat64:
    case tensor::DType::kComplex128:
      fill(double{});
      break;
    case tensor::DType::kBool:
      for (std::byte& byte : out) byte = std::byte(random() % 2);
      break;
    default:  // any bits are a number
      for (std::byte& byte : out) byte = std::byte(random() % 256);
  }
  return out;
}

/// Result or argument, shard, bytes.
using Bits = std::vector<std::vector<std::vector<std::byte>>>;

/// Which of two NaNs an operation gives is the compiler's choice for each lane of a block; all are one here.
inline void make_nans_one(tensor::DType dtype, std::vector<std::byte>& bytes) {
  if (tensor::is_complex(dtype)) {
    return make_nans_one(dtype == tensor::DType::kComplex64 ? tensor::DType::kFloat32 : tensor::DType::kFloat64, bytes);
  }
  if (!tensor::is_float(dtype)) return;
  const auto widen = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, dtype, tensor::DType::kFloat64);
  const auto size = static_cast<size_t>(tensor::size_bytes(dtype));
  for (size_t at = 0; at < bytes.size(); at += size) {
    double wide = 0;
    const std::byte* const from = bytes.data() + at;
    if (widen != nullptr)
      widen(&from, reinterpret_cast<std::byte*>(&wide), 1);
    else
      std::memcpy(&wide, from, size);
    if (std::isnan(wide)) std::memset(bytes.data() + at, 0xFF, size);
  }
}

/// What a shard holds beyond its block is anything; zero here.
inline void clear_padding(const compile::PlanParameter& parameter, int64_t shard, std::vector<std::byte>& bytes) {
  const tensor::Dims& local = parameter.type.local.dims;
  const tensor::Dims real = parameter.shard_dims(shard);
  if (real == local) return;
  const auto size = static_cast<size_t>(tensor::size_bytes(parameter.type.local.dtype));
  tensor::Dims index(local.size(), 0);
  for (size_t at = 0; at < bytes.size(); at += size) {
    const bool is_real = std::equal(index.begin(), index.end(), real.begin(), std::less<>());
    if (!is_real) std::memset(bytes.data() + at, 0, size);
    for (size_t d = index.size(); d-- > 0 && ++index[d] == local[d];) index[d] = 0;
  }
}

inline Bits run(Bench& bench, const compile::PlanRef& plan, const Bits& arguments) {
  std::vector<device::RunArgument> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    device::RunArgument argument;
    for (const auto& shard : arguments[i]) argument.shards.push_back(bench.buffer(shard));
    argument.may_overwrite = plan->arguments[i].is_donated;
    given.push_back(std::move(argument));
  }
  const device::RunOutcome outcome = bench.run(plan, std::move(given));
  EXPECT_FALSE(outcome.error) << outcome.error->detail();
  Bits out;
  for (size_t r = 0; r < outcome.outputs.size(); ++r) {
    out.emplace_back();
    const compile::PlanParameter& result = plan->results[r];
    for (const tensor::BufferRef& shard : outcome.outputs[r]) {
      out.back().emplace_back(shard->data(), shard->data() + result.shard_bytes);
      make_nans_one(result.type.local.dtype, out.back().back());
      clear_padding(result, static_cast<int64_t>(out.back().size()) - 1, out.back().back());
    }
  }
  return out;
}

inline Bits arguments_of(const compile::PlanRef& plan, unsigned seed) {
  std::mt19937 random(seed);
  Bits out;
  for (const compile::PlanParameter& argument : plan->arguments) {
    out.emplace_back();
    for (int64_t shard = 0; shard < argument.shard_count(); ++shard)
      out.back().push_back(numbers(argument.type.local.dtype, argument.shard_bytes, random));
  }
  return out;
}

/// The first bytes that differ, for people; empty where all are the same.
inline std::string difference(const Bits& a, const Bits& b) {
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t shard = 0; shard < a[r].size(); ++shard) {
      if (a[r][shard] == b[r][shard]) continue;
      const auto [x, y] = std::mismatch(a[r][shard].begin(), a[r][shard].end(), b[r][shard].begin());
      const auto at = (x - a[r][shard].begin()) / 8 * 8;
      uint64_t left = 0;
      uint64_t right = 0;
      const auto count = std::min<size_t>(8, a[r][shard].size() - static_cast<size_t>(at));
      std::memcpy(&left, a[r][shard].data() + at, count);
      std::memcpy(&right, b[r][shard].data() + at, count);
      std::ostringstream text;
      text << "result " << r << ", shard " << shard << ", byte " << at << ": " << std::hex << left << " and " << right;
      return text.str();
    }
  }
  return {};
}

}  // namespace meshd::test
