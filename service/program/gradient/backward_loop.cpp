// Loops of the backward pass.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "service/ir/walk.h"
#include "service/program/analysis/counted_loop.h"
#include "service/program/gradient/backward.h"

namespace meshd::program {
namespace {

// Arrays of more bytes than any computer has are refused before they are written down.
constexpr double kMostSavedBytes = double{1ULL << 48U};

const ir::Type& counter_type() {
  static const ir::Type kType = ir::Type::of({tensor::DType::kInt64, {}});
  return kType;
}

tensor::Dims with_iterations(int64_t iterations, const tensor::Dims& dims) {
  tensor::Dims out = {iterations};
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

// Start indices of entry `iteration` of an array with an entry for each iteration.
std::vector<ir::ValueId> starts_of(ir::ValueId iteration, size_t rank, ops::Writer& writer) {
  std::vector<ir::ValueId> out = {iteration};
  if (rank > 0) out.resize(rank + 1, writer.splat(counter_type(), 0));
  return out;
}

std::unordered_set<ir::ValueId> values_read(const ir::Region& region) {
  std::unordered_set<ir::ValueId> out;
  ir::walk(region, [&](const ir::Op& op) { out.insert(op.operands.begin(), op.operands.end()); });
  return out;
}

void put_behind(std::vector<ir::Op>& ops, std::vector<ir::Op> more) {
  std::move(more.begin(), more.end(), std::back_inserter(ops));
}

}  // namespace

// One loop while it is differentiated. Numbers are those of carried values.
struct Backward::Loop {
  ir::Op& op;
  const ir::Op source;  ///< the loop as it was
  CountedLoop counted;
  std::vector<size_t> varied;            ///< whose cotangents are carried
  std::vector<ir::ValueId> read;         ///< values from outside that the body reads; their cotangents are carried, too
  std::vector<ir::ValueId> restored;     ///< by carried value: its name in the backward body
  ir::ValueId iteration = ir::kNoValue;  ///< of the backward body
  std::vector<size_t> saved;
  std::vector<ir::ValueId> arrays;  ///< by saved value: an entry for each iteration

  [[nodiscard]] const ir::Region& body() const { return source.regions[1]; }
  [[nodiscard]] bool is_invariant(size_t i) const { return body().ops.back().operands[i] == body().arguments[i]; }
};

std::vector<ir::Op> Backward::loop(ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out) {
  const auto counted = counted_loop(function_, op, facts_);
  if (!counted) {
    ir::fail("unsupported_op", op.location,
             "the derivative of '" + op.name +
                 "' is supported where the text tells how often it runs: a carried integer that a constant is added "
                 "to, compared with a constant");
  }
  Loop loop{op, op, *counted, {}, {}, {}, ir::kNoValue, {}, {}};
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (facts_.is_varied(loop.body().arguments[i])) loop.varied.push_back(i);
  }
  if (loop.counted.trips == 0) {
    ops::Writer writer(function_, out, loop.source);
    for (const size_t i : loop.varied) {
      const auto found = sums.find(op.results[i]);
      if (found != sums.end()) give(sums, op.operands[i], ops::Term{&writer, found->second}, writer);
    }
    return {};
  }
  loop.read = captured({&loop.body()});
  ir::Region body = backward_body(loop);
  std::vector<ir::Op> before = save_carried(loop, body);
  restore_carried(loop, body);
  run_backward_loop(loop, std::move(body), sums, out);
  return before;
}

// (iteration, cotangents of carried values, sums of values from outside) -> the same one iteration earlier. Carried
// values are read under names that nothing defines yet.
ir::Region Backward::backward_body(Loop& loop) {
  ir::Region made;
  loop.iteration = function_.add_value(counter_type());
  made.arguments.push_back(loop.iteration);
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  for (const ir::ValueId id : loop.body().arguments) {
    loop.restored.push_back(function_.add_value(ir::Type(function_.type_of(id))));
    facts_.copy(id, loop.restored.back());
    names[id] = loop.restored.back();
  }
  made.ops = copy(loop.body().ops, names);
  ir::Op terminator = std::move(made.ops.back());
  made.ops.pop_back();
  std::vector<ir::Op> tail;
  ops::Writer writer(function_, tail, loop.source);
  Cotangents inner;
  const auto carry = [&](ir::ValueId id, ir::ValueId like) {
    const ir::ValueId cotangent = function_.add_value(ir::Type(function_.type_of(like)));
    made.arguments.push_back(cotangent);
    if (facts_.is_varied(id)) give(inner, id, ops::Term{&writer, cotangent}, writer);
  };
  for (const size_t i : loop.varied) carry(terminator.operands[i], loop.restored[i]);
  for (const ir::ValueId id : loop.read) carry(id, id);
  run(made.ops, inner, tail);
  terminator.operands = {
      writer.add("stablehlo.subtract", {loop.iteration, writer.splat(counter_type(), 1)}, {}, counter_type())};
  for (const size_t i : loop.varied) terminator.operands.push_back(sum_or_zero(inner, loop.restored[i], writer));
  for (const ir::ValueId id : loop.read) terminator.operands.push_back(sum_or_zero(inner, id, writer));
  put_behind(made.ops, std::move(tail));
  made.ops.push_back(std::move(terminator));
  clean(made, loop.source);
  return made;
}

// Carries arrays along, in which the forward loop saves what the backward body reads, and the number of the iteration.
std::vector<ir::Op> Backward::save_carried(Loop& loop, const ir::Region& backward) {
  const std::unordered_set<ir::ValueId> wanted = values_read(backward);
  for (size_t i = 0; i < loop.restored.size(); ++i) {
    if (wanted.contains(loop.restored[i]) && !loop.is_invariant(i) && i != loop.counted.counter)
      loop.saved.push_back(i);
  }
  std::vector<ir::Op> before;
  if (loop.saved.empty()) return before;
  ir::Op& op = loop.op;
  ir::Region& condition = op.regions[0];
  ir::Region& body = op.regions[1];
  ir::Op terminator = std::move(body.ops.back());
  body.ops.pop_back();
  ops::Writer outside(function_, before, loop.source);
  ops::Writer inside(function_, body.ops, loop.source);
  const auto carry = [&](const ir::Type& type) {
    op.operands.push_back(outside.zero(type.tensor));
    condition.arguments.push_back(function_.add_value(type));
    body.arguments.push_back(function_.add_value(type));
    op.results.push_back(function_.add_value(type));
    return body.arguments.back();
  };
  const ir::ValueId iteration = carry(counter_type());
  terminator.operands.push_back(
      inside.add("stablehlo.add", {iteration, inside.splat(counter_type(), 1)}, {}, counter_type()));
  for (const size_t i : loop.saved) {
    const ir::ValueId value = body.arguments[i];
    const ir::Type type = function_.type_of(value);
    if (!type.is_tensor()) {
      ir::fail("unsupported_op", op.location,
               "the derivative of '" + op.name + "' reads a carried value that is no tensor");
    }
    const auto bytes = static_cast<double>(tensor::byte_count(type.tensor));
    if (bytes * static_cast<double>(loop.counted.trips) > kMostSavedBytes) {
      ir::fail("unsupported_op", op.location,
               fmt::format("the derivative of '{}' would save {} in each of {} iterations", op.name,
                           ir::to_string(type), loop.counted.trips));
    }
    const ir::ValueId array = carry(ir::Type::of({type.dtype(), with_iterations(loop.counted.trips, type.dims())}));
    std::vector<ir::ValueId> operands = {array, inside.reshape(value, with_iterations(1, type.dims()))};
    for (const ir::ValueId start : starts_of(iteration, type.dims().size(), inside)) operands.push_back(start);
    terminator.operands.push_back(inside.add("stablehlo.dynamic_update_slice", std::move(operands)));
    loop.arrays.push_back(op.results.back());
  }
  body.ops.push_back(std::move(terminator));
  std::erase_if(op.attributes, [](const ir::NamedAttribute& entry) { return entry.name == "sdy.sharding"; });
  return before;
}

// Defines, in front of the backward body, the carried values that it reads.
void Backward::restore_carried(const Loop& loop, ir::Region& body) {
  const std::unordered_set<ir::ValueId> wanted = values_read(body);
  std::vector<ir::Op> head;
  ops::Writer writer(function_, head, loop.source);
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  size_t next = 0;
  for (size_t i = 0; i < loop.restored.size(); ++i) {
    if (!wanted.contains(loop.restored[i])) continue;
    ir::ValueId& name = names[loop.restored[i]];
    const ir::Type type = function_.type_of(loop.restored[i]);
    if (loop.is_invariant(i)) {
      name = loop.source.operands[i];
    } else if (i == loop.counted.counter) {
      const ir::ValueId iterations =
          writer.add("stablehlo.multiply", {loop.iteration, writer.integer(loop.counted.step)});
      const ir::ValueId value = writer.add("stablehlo.add", {iterations, writer.integer(loop.counted.start)});
      name = ops::converted({&writer, value}, type.dtype()).id;
    } else {
      const ir::ValueId array = loop.arrays[next++];
      std::vector<ir::ValueId> operands = {array};
      for (const ir::ValueId start : starts_of(loop.iteration, type.dims().size(), writer)) operands.push_back(start);
      const ir::ValueId entry = writer.add("stablehlo.dynamic_slice", std::move(operands),
                                           {{"slice_sizes", ir::int_array_attr(with_iterations(1, type.dims()))}});
      name = writer.reshape(entry, type.dims());
    }
  }
  for (ir::Op& op : body.ops) ir::rename_values(op, names);
  put_behind(head, std::move(body.ops));
  body.ops = std::move(head);
}

void Backward::run_backward_loop(const Loop& loop, ir::Region body, Cotangents& sums, std::vector<ir::Op>& out) {
  ops::Writer writer(function_, out, loop.source);
  std::vector<ir::ValueId> operands = {writer.integer(loop.counted.trips - 1)};
  for (const size_t i : loop.varied) operands.push_back(sum_or_zero(sums, loop.source.results[i], writer));
  for (const ir::ValueId id : loop.read) operands.push_back(sum_or_zero(sums, id, writer));
  const std::vector<ir::Type> types = function_.types_of(operands);
  std::vector<ir::Region> regions;
  regions.push_back(writer.region(types, [&](const auto& arguments) {
    const ops::Term iteration{&writer, arguments[0]};
    writer.create("stablehlo.return", {ops::compare(iteration, "GE", iteration.number(0)).id}, {});
  }));
  regions.push_back(std::move(body));
  const std::vector<ir::ValueId> results =
      writer.create("stablehlo.while", std::move(operands), types, {}, std::move(regions));
  // What the body reads from outside had its sum carried; what the loop began with gets a part.
  for (size_t k = 0; k < loop.read.size(); ++k) sums[loop.read[k]] = results[1 + loop.varied.size() + k];
  for (size_t k = 0; k < loop.varied.size(); ++k) {
    const ir::ValueId before = loop.source.operands[loop.varied[k]];
    if (facts_.is_varied(before)) give(sums, before, ops::Term{&writer, results[1 + k]}, writer);
  }
}

}  // namespace meshd::program
