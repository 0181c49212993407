#include "service/compile/explain/explain.h"

#include <fmt/core.h>

#include <map>

#include "service/partition/export/device_module.h"
#include "service/partition/local_walk.h"
#include "service/program/print.h"

namespace meshd::compile {
namespace {

// Who makes a value of the local program.
struct Maker {
  const partition::LocalOp* op = nullptr;
  int64_t result = 0;
};

std::vector<ExplainedMove> moves_of(const partition::LocalProgram& local,
                                    const std::vector<propagation::FunctionReport>& functions) {
  std::map<int32_t, std::pair<size_t, bool>> function_of_frame;  // entry, first of it
  for (size_t f = 0; f < functions.size(); ++f) {
    for (size_t i = 0; i < functions[f].frames.size(); ++i) function_of_frame[functions[f].frames[i]] = {f, i == 0};
  }
  std::vector<Maker> makers(local.values.size());
  partition::walk(local.body, [&](const partition::LocalOp& op) {
    for (size_t i = 0; i < op.results.size(); ++i)
      makers[static_cast<size_t>(op.results[i])] = {&op, static_cast<int64_t>(i)};
  });
  std::map<partition::LocalId, int64_t> arguments;
  for (const partition::LocalParameter& argument : local.arguments) arguments[argument.value] = argument.position;

  std::vector<ExplainedMove> out;
  for (partition::Move& move : partition::find_moves(local)) {
    ExplainedMove made;
    if (const auto found = function_of_frame.find(move.location.frame); found != function_of_frame.end()) {
      made.function = found->second.first;
      made.is_again = !found->second.second;
    }
    if (const auto found = arguments.find(move.from); found != arguments.end()) {
      made.of_argument = true;
      made.argument = found->second;
    } else if (const Maker& maker = makers[static_cast<size_t>(move.from)]; maker.op != nullptr) {
      made.of_line = maker.op->location.line;
      made.of_result = maker.result;
    }
    made.from = partition::layout_text(local, move.from);
    made.to = partition::layout_text(local, move.to);
    made.axes = partition::axes_text(local, move.from, move.axes);
    made.move = std::move(move);
    out.push_back(std::move(made));
  }
  return out;
}

// Parts are listed by position from here on, and a mesh may have any number of positions.
void require_plannable(int64_t device_count) {
  if (device_count <= kMaxPlannedDevices) return;
  throw core::Error("too_few_devices", fmt::format("moves and plans are told for at most {} devices, here are {}",
                                                   kMaxPlannedDevices, device_count));
}

}  // namespace

int64_t Explanation::moved_bytes() const {
  int64_t bytes = 0;
  for (const ExplainedMove& move : moves) bytes += move.move.bytes;
  return bytes;
}

double Explanation::flops() const {
  double flops = 0;
  if (plan == nullptr) return flops;
  for (const Block& block : plan->blocks) {
    for (const Step& step : block.steps) flops += step.device_flops();
  }
  return flops;
}

std::optional<int64_t> Explanation::bytes_between_processes(const partition::Move& move) const {
  if (!traffic) return std::nullopt;
  const auto found = traffic->of_move.find({move.from, move.to});
  return found == traffic->of_move.end() ? 0 : found->second;
}

Explanation explain(const ParsedRef& parsed, const LowerRequest& request, const PlanSettings& settings) {
  Explanation out;
  out.parsed = parsed;
  out.device_count = request.device_count;
  out.propagated = propagate_for(*parsed, request);
  out.functions = propagation::report(out.propagated);
  out.indivisible = find_indivisible(out.propagated);
  out.not_run = find_not_run(*parsed);
  try {
    require_plannable(request.device_count);
    out.local = partition_for(out.propagated, request);
    out.moves = moves_of(*out.local, out.functions);
    out.plan = plan_for(*out.local, request, settings);
  } catch (const core::Error& error) {
    out.unplanned = error;
  }
  return out;
}

std::string device_text(const ParsedProgram& parsed, const LowerRequest& request) {
  require_plannable(request.device_count);
  const partition::LocalProgram local = partition_for(propagate_for(parsed, request), request);
  return program::print_generic(partition::device_module(local));
}

}  // namespace meshd::compile
