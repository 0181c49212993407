#include "api/codecs/runs/run_profile_codec.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace meshd::api {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;
using Microseconds = std::chrono::duration<double, std::micro>;

// One step, all executions together.
struct ProfiledStep {
  const compile::Step& step;
  const device::StepStats& stats;
  const kernels::MachineRates& machine;
  int64_t shards = 1;
  std::optional<int64_t> between_processes = {};  // of one execution

  [[nodiscard]] double operations() const { return step.flops * shard_executions(); }
  [[nodiscard]] double bytes() const { return step.bytes * shard_executions(); }
  // Nothing where there is nothing to count or no time.
  [[nodiscard]] std::optional<double> per_second(double count) const {
    const double seconds = std::chrono::duration<double>(stats.time).count();
    return count > 0 && seconds > 0 ? std::optional(count / seconds) : std::nullopt;
  }
  // What memory and arithmetic of the machine need at least, by what it took.
  [[nodiscard]] std::optional<double> limit_share() const {
    const double seconds = std::chrono::duration<double>(stats.time).count();
    const double least = std::max(bytes() / machine.bytes_per_second, operations() / machine.operations_per_second);
    return seconds > 0 && least > 0 ? std::optional(least / seconds) : std::nullopt;
  }

 private:
  [[nodiscard]] double shard_executions() const { return static_cast<double>(shards * stats.count); }
};

// One execution, as the Trace Event Format has it: a "complete" event.
struct TraceEvent {
  const compile::Step& step;
  const device::StepEvent& event;
};

// What a viewer shows of it.
struct TraceArguments {
  const compile::Step& step;
};

// What was sent: of each execution of a step, and of arguments and results what was not there already.
std::optional<compile::Traffic> sent(const RunProfileDocument& doc) {
  if (!doc.traffic) return std::nullopt;
  compile::Traffic out;
  out.arguments = doc.argument_bytes;
  out.results = doc.result_bytes;
  for (const device::StepStats& stats : doc.profile.steps)
    out.steps += doc.traffic->of_step[static_cast<size_t>(stats.step)] * stats.count;
  return out;
}

std::optional<int64_t> line_of(const compile::Step& step) {
  return step.location.line > 0 ? std::optional<int64_t>(step.location.line) : std::nullopt;
}

// Steps of all blocks by number.
std::vector<const compile::Step*> steps_by_number(const compile::Plan& plan) {
  std::vector<const compile::Step*> steps(static_cast<size_t>(plan.step_count));
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) steps.at(static_cast<size_t>(step.number)) = &step;
  }
  return steps;
}

}  // namespace

template <>
Schema<ProfiledStep> make_schema() {
  using Doc = ProfiledStep;
  return {"ProfiledStep",
          {{"step", [](const Doc& doc) { return doc.step.number; }, {.low = 0}},
           {"op", [](const Doc& doc) -> std::string_view { return doc.step.name; }},
           {"line", [](const Doc& doc) { return line_of(doc.step); }, {.low = 1}},
           {"executions", [](const Doc& doc) { return doc.stats.count; }, {.low = 1}},
           {"ms", [](const Doc& doc) { return Milliseconds(doc.stats.time).count(); }, {.low = 0}},
           {"operations", [](const Doc& doc) { return doc.operations(); }, {.low = 0}},
           {"bytes", [](const Doc& doc) { return doc.bytes(); }, {.low = 0}},
           {"bytes_between_processes",
            [](const Doc& doc) {
              return doc.between_processes ? std::optional(*doc.between_processes * doc.stats.count) : std::nullopt;
            },
            {.low = 0}},
           {"operations_per_second", [](const Doc& doc) { return doc.per_second(doc.operations()); }, {.low = 0}},
           {"bytes_per_second", [](const Doc& doc) { return doc.per_second(doc.bytes()); }, {.low = 0}},
           {"limit_share", [](const Doc& doc) { return doc.limit_share(); }, {.low = 0}}}};
}

template <>
Schema<kernels::MachineRates> make_schema() {
  using Doc = kernels::MachineRates;
  return {"MachineRates",
          {{"bytes_per_second", &Doc::bytes_per_second, {.low = 0}},
           {"operations_per_second", &Doc::operations_per_second, {.low = 0}}}};
}

template <>
Schema<TraceArguments> make_schema() {
  using Doc = TraceArguments;
  return {"TraceArguments",
          {{"step", [](const Doc& doc) { return doc.step.number; }, {.low = 0}},
           {"line", [](const Doc& doc) { return line_of(doc.step); }, {.low = 1}}}};
}

template <>
Schema<TraceEvent> make_schema() {
  using Doc = TraceEvent;
  return {"TraceEvent",
          {{"name", [](const Doc& doc) -> std::string_view { return doc.step.name; }},
           {"ph", [](const Doc&) -> std::string_view { return "X"; }, {.words = {"X"}}},
           {"ts", [](const Doc& doc) { return Microseconds(doc.event.start).count(); }, {.low = 0}},
           {"dur", [](const Doc& doc) { return Microseconds(doc.event.time).count(); }, {.low = 0}},
           {"pid", [](const Doc&) { return int64_t{1}; }, {.low = 1}},
           {"tid", [](const Doc&) { return int64_t{1}; }, {.low = 1}},
           {"args", [](const Doc& doc) { return TraceArguments{doc.step}; }}}};
}

template <>
Schema<RunProfileDocument> make_schema() {
  using Doc = RunProfileDocument;
  return {"RunProfile",
          {{"steps",
            [](const Doc& doc) {
              const auto steps = steps_by_number(doc.plan);
              std::vector<ProfiledStep> out;
              for (const device::StepStats& stats : doc.profile.steps) {
                const compile::Step& step = *steps.at(static_cast<size_t>(stats.step));
                if (stats.count == 0) continue;
                out.push_back({step, stats, doc.machine, doc.plan.table(step.table).count()});
                if (doc.traffic) out.back().between_processes = doc.traffic->of_step[static_cast<size_t>(step.number)];
              }
              return out;
            }},
           {"traceEvents",
            [](const Doc& doc) {
              const auto steps = steps_by_number(doc.plan);
              std::vector<TraceEvent> out;
              for (const device::StepEvent& event : doc.profile.events)
                out.push_back({*steps.at(static_cast<size_t>(event.step)), event});
              return out;
            }},
           {"dropped_events", [](const Doc& doc) { return doc.profile.dropped_events; }, {.low = 0}},
           {"page_faults", [](const Doc& doc) { return doc.profile.page_faults; }, {.low = 0}},
           {"wake_ups", [](const Doc& doc) { return doc.profile.wake_ups; }, {.low = 0}},
           {"machine", [](const Doc& doc) -> const kernels::MachineRates& { return doc.machine; }},
           {"between_processes", [](const Doc& doc) { return sent(doc); }}}};
}

}  // namespace meshd::api
