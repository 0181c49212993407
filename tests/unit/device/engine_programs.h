// Programs that several engine tests run.
#pragma once

#include <random>

#include "tests/unit/device/engine_support.h"

namespace meshd::test {

using Random = std::mt19937;

inline size_t below(Random& random, size_t limit) {
  return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
}

/// Each row backwards.
inline LocalId reversed(LocalBuilder& b, LocalId from) {
  const LocalId out = b.like(from);
  b.op("stablehlo.reverse", {from}, {out}, {{"dimensions", attribute(ir::IntArrayAttr{{1}, "i64"})}});
  return out;
}

/// The first or second half of the columns; `rows` over `shards` positions.
inline LocalId half_of_columns(LocalBuilder& b, LocalId from, int64_t shards, int64_t rows, int64_t columns,
                               bool is_second) {
  const LocalId out = b.value(std::to_string(rows) + "x" + std::to_string(columns / 2) + "xf32", {{0}, {}});
  const int64_t at = is_second ? columns / 2 : 0;
  b.op("stablehlo.slice", {from}, {out},
       {{"start_indices", attribute(ir::IntArrayAttr{{0, at}, "i64"})},
        {"limit_indices", attribute(ir::IntArrayAttr{{rows / shards, at + columns / 2}, "i64"})},
        {"strides", attribute(ir::IntArrayAttr{{1, 1}, "i64"})}});
  return out;
}

/// x (8 rows over 4 positions): a loop of `iterations` iterations; inside a branch by parity, an inner loop, a sum over
/// all shards. Uses every kind of step but effects.
inline LocalId nested_program(LocalBuilder& b, int32_t iterations) {
  const LocalId x = b.argument("8x4xf32", {{0}});
  const LocalId zero = b.splat<int32_t>("i32", 0);
  const auto add_one = [&](LocalId n) { return b.point("stablehlo.add", {n, b.splat<int32_t>("i32", 1)}); };
  const auto out = b.loop(
      {zero, x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", iterations)); },
      [&](const auto& v) {
        const LocalId parity = b.point("stablehlo.and", {v[0], b.splat<int32_t>("i32", 1)});
        const auto taken = b.branch(parity, {[&] {
                                               return std::vector<LocalId>{b.point("stablehlo.add", {v[1], v[1]})};
                                             },
                                             [&] { return std::vector<LocalId>{v[1]}; }});
        const auto inner = b.loop(
            {zero, taken[0]}, [&](const auto& w) { return b.compare("LT", w[0], b.splat<int32_t>("i32", 2)); },
            [&](const auto& w) {
              const LocalId whole = b.reshard(w[1], {{}, {}});
              const LocalId turned = b.like(whole);
              b.op("stablehlo.reverse", {whole}, {turned}, {{"dimensions", attribute(ir::IntArrayAttr{{0}, "i64"})}});
              const LocalId back = b.reshard(turned, {{0}, {}});
              return std::vector<LocalId>{add_one(w[0]), b.point("stablehlo.subtract", {back, w[1]})};
            });
        return std::vector<LocalId>{add_one(v[0]), inner[1]};
      });
  const LocalId sum = b.reduce_shards(b.reshard(out[1], {{0}, {}}), 0b1);
  b.result(out[1]);
  b.result(sum);
  return out[1];
}

inline std::vector<std::vector<float>> counted_shards(size_t shards, size_t count) {
  std::vector<std::vector<float>> out(shards, std::vector<float>(count));
  float next = 1;
  for (auto& shard : out) {
    for (float& value : shard) value = next++;
  }
  return out;
}

/// Each position counts to its own number + 2: x over 4 positions, n = position; while (i < n + 2) { i += 1, x += x }.
/// Diverges.
inline void diverging_program(LocalBuilder& b) {
  const LocalId x = b.argument("4xf32", {{0}});
  const LocalId position = b.position();
  const LocalId limit = b.like(position, "i32");
  b.op("stablehlo.convert", {position}, {limit});
  const LocalId most = b.point("stablehlo.add", {limit, b.splat<int32_t>("i32", 2)});
  const LocalId zero = b.splat<int32_t>("i32", 0);
  const auto out = b.loop(
      {zero, x}, [&](const auto& v) { return b.compare("LT", v[0], most); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}),
                                    b.point("stablehlo.add", {v[1], v[1]})};
      },
      0b1);
  b.result(out[0]);
  b.result(out[1]);
}

}  // namespace meshd::test
