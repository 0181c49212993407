#include "service/partition/halo_dim.h"

#include "service/core/checked_math.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace meshd::partition {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return -core::floor_div(-a, b); }

}  // namespace

HaloRows HaloRows::within(int64_t low, int64_t high) const {
  // from + t * from_step in [low, high)
  int64_t begin = from_step > 0 ? ceil_div(low - from, from_step) : ceil_div(high - 1 - from, from_step);
  int64_t end = from_step > 0 ? ceil_div(high - from, from_step) : core::floor_div(low - from, from_step) + 1;
  begin = std::max<int64_t>(begin, 0);
  end = std::min(end, count);
  if (begin >= end) return {};
  return {to + begin * to_step, to_step, from + begin * from_step, from_step, end - begin};
}

HaloRows rows_read(const HaloDim& dim, int64_t part, int64_t rows) {
  const int64_t place = dim.start + part * dim.part_step;
  const int64_t common = std::gcd(std::abs(dim.row_step), dim.spread);
  HaloRows out;
  out.to_step = dim.spread / common;
  out.from_step = dim.row_step / common;
  // The first row whose place coincides with that of an operand's row, in bounds or not.
  const int64_t tried = std::min(out.to_step, rows);
  while (out.to < tried && (place + out.to * dim.row_step) % dim.spread != 0) ++out.to;
  if (out.to >= tried) return {};
  out.from = (place + out.to * dim.row_step) / dim.spread;
  out.count = (rows - 1 - out.to) / out.to_step + 1;
  return out.within(dim.begin, dim.end);
}

}  // namespace meshd::partition
