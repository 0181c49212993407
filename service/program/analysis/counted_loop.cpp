#include "service/program/analysis/counted_loop.h"

#include <algorithm>
#include <string>

#include "service/core/checked_math.h"
#include "service/ir/walk.h"
#include "service/ops/scalar_facts.h"

namespace meshd::program {
namespace {

const ir::Op* definition(const ir::Region& region, ir::ValueId id) {
  const auto found = std::find_if(region.ops.begin(), region.ops.end(), [&](const ir::Op& op) {
    return std::find(op.results.begin(), op.results.end(), id) != op.results.end();
  });
  return found == region.ops.end() ? nullptr : &*found;
}

std::optional<size_t> argument_number(const ir::Region& region, ir::ValueId id) {
  const auto found = std::find(region.arguments.begin(), region.arguments.end(), id);
  if (found == region.arguments.end()) return std::nullopt;
  return static_cast<size_t>(found - region.arguments.begin());
}

std::string mirrored(const std::string& direction) {
  if (direction == "LT") return "GT";
  if (direction == "LE") return "GE";
  if (direction == "GT") return "LT";
  if (direction == "GE") return "LE";
  return direction;
}

// What the body adds to a carried value.
std::optional<int64_t> step_of(const ir::Function& function, const ir::Op& op, size_t counter,
                               const ValueFacts& facts) {
  const ir::Region& body = op.regions[1];
  const ir::Op* made = definition(body, body.ops.back().operands[counter]);
  if (made == nullptr || made->operands.size() != 2) return std::nullopt;
  const ops::OpInstance instance(function, *made);
  const ops::Sum sum = ops::sum_of(ops::op(made->code), instance.view);
  const ir::ValueId argument = body.arguments[counter];
  if (sum == ops::Sum::kOfBoth) {
    if (made->operands[0] == argument) return facts.known(made->operands[1]);
    if (made->operands[1] == argument) return facts.known(made->operands[0]);
  }
  if (sum == ops::Sum::kDifference && made->operands[0] == argument) {
    const auto taken = facts.known(made->operands[1]);
    return taken && *taken != INT64_MIN ? std::optional(-*taken) : std::nullopt;
  }
  return std::nullopt;
}

// How many of start, start + step, ... are on this side of the limit before one is not. Nothing where they never end.
std::optional<int64_t> count_of(int64_t start, int64_t step, const std::string& direction, int64_t limit) {
  // Sizes of 63 bits do not come up in loops that end.
  constexpr int64_t kMost = int64_t{1} << 61;
  for (const int64_t value : {start, step, limit}) {
    if (value > kMost || value < -kMost) return std::nullopt;
  }
  const auto upwards = [](int64_t distance, int64_t by) -> std::optional<int64_t> {
    if (distance <= 0) return 0;
    if (by <= 0) return std::nullopt;
    return core::ceil_div(distance, by);
  };
  if (direction == "LT") return upwards(limit - start, step);
  if (direction == "LE") return upwards(limit - start + 1, step);
  if (direction == "GT") return upwards(start - limit, -step);
  if (direction == "GE") return upwards(start - limit + 1, -step);
  if (direction == "NE" && step != 0 && (limit - start) % step == 0 && (limit - start) / step >= 0)
    return (limit - start) / step;
  return std::nullopt;
}

// False where the counter wraps around before it is beyond the limit.
bool holds(tensor::DType dtype, int64_t value) {
  return value >= tensor::least_value(dtype) &&
         (value < 0 || static_cast<uint64_t>(value) <= tensor::largest_value(dtype));
}

}  // namespace

std::optional<CountedLoop> counted_loop(const ir::Function& function, const ir::Op& op, const ValueFacts& facts) {
  const ir::Region& condition = op.regions[0];
  const ir::Op* compare = definition(condition, condition.ops.back().operands.at(0));
  if (compare == nullptr || compare->operands.size() != 2) return std::nullopt;
  std::string direction = ir::string_or(compare->attributes, "comparison_direction", "");
  size_t side = 0;
  auto counter = argument_number(condition, compare->operands[0]);
  if (!counter || facts.known(compare->operands[0])) {
    side = 1;
    counter = argument_number(condition, compare->operands[1]);
    direction = mirrored(direction);
  }
  if (direction.empty() || !counter) return std::nullopt;
  const auto limit = facts.known(compare->operands[1 - side]);
  const auto start = facts.known(op.operands[*counter]);
  const auto step = step_of(function, op, *counter, facts);
  if (!limit || !start || !step) return std::nullopt;
  const auto trips = count_of(*start, *step, direction, *limit);
  if (!trips || !holds(function.type_of(op.results[*counter]).dtype(), *start + *trips * *step)) return std::nullopt;
  return CountedLoop{*counter, *start, *step, *trips};
}

std::unordered_map<ir::ValueId, int64_t> trip_counts(const ir::Function& function) {
  std::unordered_map<ir::ValueId, int64_t> out;
  const auto is_loop = [](const ir::Op& op) {
    return ops::role_of(ops::op(op.code).body) == ops::Structural::kWhile && !op.results.empty();
  };
  if (!ir::any_op(function.body, is_loop)) return out;
  const ValueFacts facts(function, {});
  ir::walk(function.body, [&](const ir::Op& op) {
    if (!is_loop(op)) return;
    if (const auto loop = counted_loop(function, op, facts)) out.emplace(op.results[0], loop->trips);
  });
  return out;
}

}  // namespace meshd::program
