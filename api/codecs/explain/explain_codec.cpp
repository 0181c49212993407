#include "api/codecs/explain/explain_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/codecs/mesh_codec.h"
#include "api/codecs/runs/assignment_codec.h"
#include "api/codecs/runs/numpy_arguments.h"
#include "api/codecs/value.h"
#include "service/compile/rewrite/specialised.h"
#include "service/ir/walk.h"
#include "service/sharding/layout.h"

namespace meshd::api {
namespace {

using compile::ExplainedMove;
using compile::Explanation;
using partition::MoveCause;
using propagation::MaybeSharding;

// As sdy.sharding writes it; null where the value is replicated.
using SdySharding = Nullable<std::string>;

SdySharding sdy_of(const MaybeSharding& sharding) {
  return {sharding ? std::optional(sharding::to_sdy(*sharding)) : std::nullopt};
}

std::vector<SdySharding> sdy_of(const std::vector<MaybeSharding>& shardings) {
  std::vector<SdySharding> out;
  for (const MaybeSharding& sharding : shardings) out.push_back(sdy_of(sharding));
  return out;
}

const std::vector<std::string_view> kOriginWords = {"nothing",    "argument",           "result",         "annotation",
                                                    "constraint", "manual_computation", "sharding_group", "rule"};

// Something of the program, whose ops its document names.
template <typename T>
struct BesideOps {
  const T& item;
  const OpsByLine& ops;
};
using Decision = BesideOps<propagation::Origin>;
using ExplainedValue = BesideOps<propagation::ValueReport>;

template <typename T>
std::vector<BesideOps<T>> beside_ops(const std::vector<T>& items, const OpsByLine& ops) {
  std::vector<BesideOps<T>> out;
  for (const T& item : items) out.push_back({item, ops});
  return out;
}

struct Decisions {
  std::vector<Decision> arguments, results;
};

struct MoveDocument {
  const ExplainedMove& made;
  const Explanation& explanation;
  const OpsByLine& ops;
};

// An argument of the program, or a result of the op at a line.
struct MovedValue {
  std::optional<int64_t> argument, line, result;
};

struct FunctionDocument {
  const Explanation& explanation;
  const OpsByLine& ops;
  size_t number = 0;

  [[nodiscard]] const propagation::FunctionReport& report() const { return explanation.functions[number]; }
  [[nodiscard]] std::vector<MoveDocument> moves(MoveCause cause) const {
    std::vector<MoveDocument> out;
    for (const ExplainedMove& made : explanation.moves) {
      if (made.function == number && !made.is_again && made.move.cause == cause)
        out.push_back({made, explanation, ops});
    }
    return out;
  }
};

// What one device has to do; loops are counted once.
struct ExplainedTotals {
  int64_t flops = 0, bytes_touched = 0, bytes_moved = 0;
  bool loops_counted_once = false;
};

struct MemoryBytes {
  int64_t arguments = 0, arena = 0, results = 0, constants = 0, scratch = 0, peak = 0;
};

struct ExplainedMemory {
  MemoryBytes device, process;
};

struct ExplainedStep {
  const compile::Step& step;
  int64_t shards = 0;
  std::optional<int64_t> between_processes;
};

struct PlannedDonation {
  int64_t argument = 0;
  Nullable<int64_t> result;
  int64_t bytes = 0;
};

int64_t whole(double value) { return static_cast<int64_t>(std::llround(value)); }

ExplainedTotals totals_of(const Explanation& explanation) {
  double flops = 0;
  double bytes = 0;
  for (const compile::Block& block : explanation.plan->blocks) {
    for (const compile::Step& step : block.steps) {
      flops += step.device_flops();
      bytes += step.device_bytes();
    }
  }
  return {whole(flops), whole(bytes), explanation.moved_bytes(), explanation.plan->has_loops};
}

ExplainedMemory memory_of(const Explanation& explanation) {
  const compile::Plan& plan = *explanation.plan;
  const compile::PlanMemory& memory = plan.memory;
  return {{memory.device_arguments, memory.device_arena, memory.device_own, memory.device_constants,
           plan.device_scratch_bytes(), plan.device_peak_bytes()},
          {memory.arguments, memory.arena, memory.own, memory.constants, memory.scratch, plan.peak_bytes}};
}

std::vector<ExplainedStep> steps_of(const Explanation& explanation) {
  std::vector<ExplainedStep> out;
  const std::optional<compile::Traffic>& traffic = explanation.traffic;
  for (const compile::Block& block : explanation.plan->blocks) {
    for (const compile::Step& step : block.steps) {
      out.push_back({step, static_cast<int64_t>(explanation.plan->table(step.table).count()),
                     traffic ? std::optional(traffic->of_step[static_cast<size_t>(step.number)]) : std::nullopt});
    }
  }
  return out;
}

std::vector<PlannedDonation> donation_of(const Explanation& explanation) {
  std::vector<PlannedDonation> out;
  for (const compile::PlanParameter& argument : explanation.plan->arguments) {
    if (!argument.is_donated) continue;
    PlannedDonation made{static_cast<int64_t>(argument.parameter.position), {}, argument.shard_bytes};
    if (argument.aliased >= 0) made.result.value = argument.aliased;
    out.push_back(made);
  }
  return out;
}

// Absent where there is no plan.
template <typename Make>
auto where_planned(const Explanation& explanation, const Make& make) {
  return explanation.plan == nullptr ? std::nullopt : std::optional(make(explanation));
}

std::optional<int64_t> unless_none(int64_t line) { return line > 0 ? std::optional(line) : std::nullopt; }

// Shapes of arguments with dynamic dimensions: the program is specialised for them, as a run does.
void read_shapes(const Json* shapes, compile::Compiler& compiler, jobs::JobRequest& out, core::Diagnostics& wrong) {
  const compile::ParsedProgram& program = *out.program;
  std::vector<tensor::TensorType> types;
  for (size_t i = 0; i < program.arguments.size(); ++i) types.push_back(program.argument(i).type.tensor);
  if (shapes != nullptr && !shapes->is_array()) {
    return wrong.add("/shapes",
                     fmt::format("expected a list with the shape of each argument, got {}", shapes->kind_name()));
  }
  const JsonArray given = shapes == nullptr ? JsonArray() : shapes->elements();
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string place = entry_pointer("/shapes", i);
    const tensor::TensorType declared = types[i];
    if (i < given.size() && !given[i].is_null()) {
      types[i].dims.clear();
      if (const auto* numbers = given[i].as<JsonNumbers>()) {
        numbers->each([&](size_t, const JsonNumber& size) {
          types[i].dims.push_back(size.i);
          return true;
        });
      }
      if (!compile::fits(types[i], declared)) {
        return wrong.add(place, fmt::format("the argument is {}, the shape given is [{}]", tensor::to_string(declared),
                                            fmt::join(types[i].dims, ",")));
      }
    }
    if (std::any_of(types[i].dims.begin(), types[i].dims.end(), [](int64_t size) { return size < 0; })) {
      return wrong.add(place, fmt::format("the argument is {}: its dimensions are dynamic, give the shapes that a run "
                                          "would bring",
                                          tensor::to_string(declared)));
    }
  }
  out.program = compiler.specialise(out.program, types);
}

}  // namespace

struct PlacementInput : AssignmentInput {
  std::optional<std::vector<int64_t>> donate;
  const Json* shapes = nullptr;
  const Json* arguments = nullptr;
  const Json* keywords = nullptr;
  const Json* statics = nullptr;
};

template <>
Schema<PlacementInput> make_schema() {
  using In = PlacementInput;
  std::vector<Field<In>> fields = assignment_fields<In>();
  fields.emplace_back("donate", &In::donate, Rules{.low = 0, .high = INT32_MAX});
  fields.emplace_back("shapes", &In::shapes,
                      Rules{.low = 0, .high = kLargestExact - 1, .like = json_type<std::vector<std::vector<int64_t>>>});
  fields.emplace_back("arguments", &In::arguments, Rules{.like = json_type<std::vector<ValueType>>});
  fields.emplace_back("keywords", &In::keywords, Rules{.like = map_of<const Json*>});
  fields.emplace_back("static", &In::statics, Rules{.like = map_of<const Json*>});
  return {"PlacementInput", fields};
}

template <>
Schema<Decision> make_schema() {
  using Doc = Decision;
  using propagation::OriginKind;
  return {
      "Decision",
      {{"by", [](const Doc& doc) { return kOriginWords[static_cast<size_t>(doc.item.kind)]; }, {.words = kOriginWords}},
       {"number",
        [](const Doc& doc) {
          const bool has = doc.item.kind == OriginKind::kArgument || doc.item.kind == OriginKind::kResult;
          return has ? std::optional(doc.item.number) : std::nullopt;
        }},
       {"line", [](const Doc& doc) { return unless_none(doc.item.line); }},
       {"op",
        [](const Doc& doc) {
          const std::string_view op = doc.ops.at(doc.item.line);
          return op.empty() ? std::nullopt : std::optional(op);
        }},
       {"text", [](const Doc& doc) { return origin_text(doc.item, doc.ops); }}}};
}

template <>
Schema<Decisions> make_schema() {
  return {"Decisions", {{"arguments", &Decisions::arguments}, {"results", &Decisions::results}}};
}

template <>
Schema<propagation::CopyReport> make_schema() {
  using Doc = propagation::CopyReport;
  return {"ExplainedCopy",
          {{"shardings", [](const Doc& doc) { return sdy_of(doc.shardings); }},
           {"for", [](const Doc& doc) {
              std::vector<std::vector<int64_t>> out;
              for (const auto& [line, operand] : doc.users) out.push_back({line, operand});
              return out;
            }}}};
}

template <>
Schema<ExplainedValue> make_schema() {
  using Doc = ExplainedValue;
  static constexpr auto kAlike = [](const propagation::ValueReport& value) {
    return std::all_of(value.copies.begin(), value.copies.end(),
                       [&](const auto& copy) { return copy.shardings == value.copies.front().shardings; });
  };
  return {"ExplainedValue",
          {{"line", [](const Doc& doc) { return doc.item.line; }},
           {"value", [](const Doc& doc) -> std::string_view { return doc.item.value; }},
           {"op", [](const Doc& doc) -> std::string_view { return doc.item.op; }},
           {"shardings",
            [](const Doc& doc) {
              return kAlike(doc.item) ? std::optional(sdy_of(doc.item.copies.front().shardings)) : std::nullopt;
            }},
           {"copies",
            [](const Doc& doc) { return kAlike(doc.item) ? std::nullopt : std::optional(std::span(doc.item.copies)); }},
           {"operands",
            [](const Doc& doc) {
              return doc.item.operands.empty() ? std::nullopt : std::optional(sdy_of(doc.item.operands));
            }},
           {"decided", [](const Doc& doc) {
              return Decision{doc.item.origin, doc.ops};
            }}}};
}

template <>
Schema<MovedValue> make_schema() {
  return {"MovedValue",
          {{"argument", &MovedValue::argument}, {"line", &MovedValue::line}, {"result", &MovedValue::result}}};
}

template <>
Schema<MoveDocument> make_schema() {
  using Doc = MoveDocument;
  return {
      "Move",
      {{"kind",
        [](const Doc& doc) { return partition::name(doc.made.move.kind); },
        {.words = {"all_gather", "all_slice", "all_to_all", "collective_permute", "halo_exchange", "reshard",
                   "all_reduce", "reduce_scatter", "collective"}}},
       {"axes", [](const Doc& doc) -> std::string_view { return doc.made.axes; }},
       {"of",
        [](const Doc& doc) {
          const ExplainedMove& made = doc.made;
          return made.of_argument ? MovedValue{made.argument, {}, {}} : MovedValue{{}, made.of_line, made.of_result};
        }},
       {"value",
        [](const Doc& doc) { return std::string_view(doc.explanation.local->value(doc.made.move.from).name); }},
       {"from", [](const Doc& doc) { return or_null(doc.made.from); }, {.like = json_type<SdySharding>}},
       {"to", [](const Doc& doc) { return or_null(doc.made.to); }, {.like = json_type<SdySharding>}},
       {"op", [](const Doc& doc) { return doc.ops.at(doc.made.move.location.line); }},
       {"why", [](const Doc& doc) -> std::string_view { return doc.made.move.reason; }},
       {"line", [](const Doc& doc) { return doc.made.move.location.line; }},
       {"column", [](const Doc& doc) { return doc.made.move.location.column; }},
       {"location", [](const Doc& doc) { return unless_empty(doc.made.move.location.name); }},
       {"calls",
        [](const Doc& doc) {
          const auto& calls = doc.made.move.location.calls;
          return calls.empty() ? std::nullopt : std::optional(std::span(calls));
        }},
       {"bytes", [](const Doc& doc) { return doc.made.move.bytes; }},
       {"bytes_between_processes",
        [](const Doc& doc) { return doc.explanation.bytes_between_processes(doc.made.move); }},
       {"loops", [](const Doc& doc) { return unless_none(doc.made.move.loop_depth); }}}};
}

template <>
Schema<FunctionDocument> make_schema() {
  using Doc = FunctionDocument;
  return {
      "ExplainedFunction",
      {{"name", [](const Doc& doc) -> std::string_view { return doc.report().name; }},
       {"calls",
        [](const Doc& doc) { return doc.number == 0 ? std::nullopt : std::optional(std::span(doc.report().calls)); }},
       {"arguments", [](const Doc& doc) { return sdy_of(doc.report().arguments); }},
       {"results", [](const Doc& doc) { return sdy_of(doc.report().results); }},
       {"decided",
        [](const Doc& doc) -> std::optional<Decisions> {
          if (doc.number > 0) return std::nullopt;
          return Decisions{beside_ops(doc.report().argument_origins, doc.ops),
                           beside_ops(doc.explanation.propagated.result_origins, doc.ops)};
        }},
       {"values", [](const Doc& doc) { return beside_ops(doc.report().values, doc.ops); }},
       {"collectives", [](const Doc& doc) { return doc.moves(MoveCause::kSharding); }},
       {"neighbours", [](const Doc& doc) { return doc.moves(MoveCause::kNeighbours); }},
       {"unruled", [](const Doc& doc) { return doc.moves(MoveCause::kUnruled); }},
       {"written", [](const Doc& doc) { return doc.moves(MoveCause::kText); }}}};
}

template <>
Schema<ExplainedTotals> make_schema() {
  using Doc = ExplainedTotals;
  return {"ExplainedTotals",
          {{"flops", &Doc::flops},
           {"bytes_touched", &Doc::bytes_touched},
           {"bytes_moved", &Doc::bytes_moved},
           {"loops_counted_once", &Doc::loops_counted_once}}};
}

template <>
Schema<MemoryBytes> make_schema() {
  using Doc = MemoryBytes;
  return {"MemoryBytes",
          {{"arguments", &Doc::arguments},
           {"arena", &Doc::arena},
           {"results", &Doc::results},
           {"constants", &Doc::constants},
           {"scratch", &Doc::scratch},
           {"peak", &Doc::peak}}};
}

template <>
Schema<ExplainedMemory> make_schema() {
  return {"ExplainedMemory", {{"device", &ExplainedMemory::device}, {"process", &ExplainedMemory::process}}};
}

template <>
Schema<ExplainedStep> make_schema() {
  using Doc = ExplainedStep;
  return {"ExplainedStep",
          {{"name", [](const Doc& doc) { return std::string_view(doc.step.name); }},
           {"lines", [](const Doc& doc) { return std::vector<int64_t>(doc.step.lines.begin(), doc.step.lines.end()); }},
           {"flops", [](const Doc& doc) { return whole(doc.step.flops); }},
           {"bytes", [](const Doc& doc) { return whole(doc.step.bytes); }},
           {"shards", &Doc::shards},
           {"bytes_between_processes", &Doc::between_processes}}};
}

template <>
Schema<compile::Traffic> make_schema() {
  using Doc = compile::Traffic;
  return {"ProcessTraffic", {{"steps", &Doc::steps}, {"arguments", &Doc::arguments}, {"results", &Doc::results}}};
}

template <>
Schema<compile::Indivisible::Choice> make_schema() {
  using Doc = compile::Indivisible::Choice;
  return {"DividingSpec", {{"axes", &Doc::axes}, {"parts", &Doc::ways}}};
}

template <>
Schema<compile::Indivisible> make_schema() {
  using Doc = compile::Indivisible;
  return {
      "Indivisible",
      {{"value", &Doc::value},
       {"line", [](const Doc& one) { return unless_none(one.line); }},
       {"dimension", &Doc::dim},
       {"size", &Doc::size},
       {"axes", &Doc::axes},
       {"parts", &Doc::ways},
       {"effect",
        [](const Doc& one) { return one.is_sharded ? "padded" : "replicated"; },
        {.words = {"padded", "replicated"}}},
       {"op", [](const Doc& one) { return one.is_sharded ? std::nullopt : std::optional<std::string_view>(one.op); }},
       {"op_line", [](const Doc& one) { return one.is_sharded ? std::nullopt : std::optional(one.op_line); }},
       {"nearest", &Doc::nearest},
       {"nearest_sizes", &Doc::nearest_sizes}}};
}

template <>
Schema<PlannedDonation> make_schema() {
  using Doc = PlannedDonation;
  return {"PlannedDonation", {{"argument", &Doc::argument}, {"result", &Doc::result}, {"bytes", &Doc::bytes}}};
}

template <>
Schema<core::Error> make_schema() {
  return {"Unplanned",
          {{"code", [](const core::Error& error) { return error.code().word(); }},
           {"detail", [](const core::Error& error) -> std::string_view { return error.detail(); }}}};
}

template <>
Schema<compile::NotRun> make_schema() {
  using Doc = compile::NotRun;
  return {"CannotRunPlace",
          {{"line", [](const Doc& place) { return place.location.line; }},
           {"column", [](const Doc& place) { return place.location.column; }},
           {"op", &Doc::op},
           {"detail", &Doc::detail}}};
}

template <>
Schema<compile::Snapshot> make_schema() {
  using Doc = compile::Snapshot;
  return {"StageSnapshot",
          {{"name", &Doc::name}, {"text", &Doc::text}, {"bytes", &Doc::bytes}, {"truncated", &Doc::is_truncated}}};
}

template <>
Schema<ExplanationDocument> make_schema() {
  using Doc = ExplanationDocument;
  return {
      "Explanation",
      {{"program", [](const Doc& doc) -> std::string_view { return doc.explanation.parsed->id; }},
       {"devices", [](const Doc& doc) { return doc.explanation.device_count; }},
       {"functions",
        [](const Doc& doc) {
          std::vector<FunctionDocument> out;
          for (size_t f = 0; f < doc.explanation.functions.size(); ++f) out.push_back({doc.explanation, doc.ops, f});
          return out;
        }},
       {"indivisible", [](const Doc& doc) { return std::span(doc.explanation.indivisible); }},
       {"totals", [](const Doc& doc) { return where_planned(doc.explanation, totals_of); }},
       {"memory", [](const Doc& doc) { return where_planned(doc.explanation, memory_of); }},
       {"steps", [](const Doc& doc) { return where_planned(doc.explanation, steps_of); }},
       {"between_processes", [](const Doc& doc) { return doc.explanation.traffic; }},
       {"donation", [](const Doc& doc) { return where_planned(doc.explanation, donation_of); }},
       {"warnings",
        [](const Doc& doc) {
          return where_planned(doc.explanation, [](const Explanation& planned) { return planned.local->warnings; });
        }},
       {"unplanned", [](const Doc& doc) { return doc.explanation.unplanned; }},
       {"stages",
        [](const Doc& doc) { return doc.snapshots.empty() ? std::nullopt : std::optional(std::span(doc.snapshots)); }},
       {"cannot_run", [](const Doc& doc) { return std::span(doc.explanation.not_run); }}}};
}

OpsByLine::OpsByLine(const ir::Module& module) {
  for (const ir::Function& function : module.functions)
    ir::walk(function.body, [&](const ir::Op& op) { names_.emplace(op.location.line, op.name); });
}

std::string_view OpsByLine::at(int32_t line) const {
  const auto found = names_.find(line);
  return line <= 0 || found == names_.end() ? std::string_view() : found->second;
}

std::string origin_text(const propagation::Origin& origin, const OpsByLine& ops) {
  using propagation::OriginKind;
  const std::string line = origin.line > 0 ? fmt::format(" at line {}", origin.line) : "";
  switch (origin.kind) {
    case OriginKind::kNothing:
      return "nobody: nothing is known of it";
    case OriginKind::kArgument:
      return fmt::format("argument {}", origin.number);
    case OriginKind::kResult:
      return fmt::format("result {}", origin.number);
    case OriginKind::kAnnotation:
      return "annotation" + line;
    case OriginKind::kConstraint:
      return "constraint" + line;
    case OriginKind::kManual:
      return "manual computation" + line;
    case OriginKind::kGroup:
      return "sharding group" + line;
    case OriginKind::kRule: {
      const std::string_view op = ops.at(origin.line);
      if (op.empty()) return "what the function gives back";
      return fmt::format("rule of {}{}", op, line);
    }
  }
  return "";
}

namespace {

// The program for arguments of which the body has the types: {"dtype", "shape"}, or values, whose types count.
compile::ParsedRef traced_for(const PlacementInput& in, const jobs::JobRequest& request, compile::Compiler& compiler,
                              core::Diagnostics& wrong) {
  const auto take = [&](const Json& json, const tensor::TensorType* expected,
                        const std::string& pointer) -> std::optional<tensor::TensorType> {
    if (expected != nullptr) return *expected;
    const auto read = read_json<ArgumentInput>(json, pointer, wrong);
    if (read.dtype && read.shape) return tensor::TensorType{*read.dtype, *read.shape};
    wrong.add(pointer, "expected an object with dtype and shape");
    return std::nullopt;
  };
  if (in.arguments == nullptr && in.keywords == nullptr && !request.program->numpy->parameters().empty()) {
    wrong.add("/arguments",
              "is missing: a program of NumPy syntax has shapes only for arguments; give their types, "
              "[{\"dtype\": \"float32\", \"shape\": [2, 3]}]");
  }
  numpy::Inputs inputs =
      read_numpy_arguments(*request.program->numpy, in.arguments, in.keywords, in.statics, take, wrong);
  wrong.throw_if_any("invalid_request");
  return compiler.trace(request.program, inputs, request.mesh);
}

}  // namespace

jobs::JobRequest decode_assignment(const Json& body, const compile::ParsedRef& program, compile::Compiler& compiler,
                                   MeshFinder& meshes) {
  core::Diagnostics wrong;
  auto in = read_json<PlacementInput>(body, "", wrong);
  jobs::JobRequest out;
  out.program = program;
  read_assignment(in, out, meshes, wrong);
  if (program->needs_trace()) {
    out.program = traced_for(in, out, compiler, wrong);
  } else if (in.arguments != nullptr || in.keywords != nullptr || in.statics != nullptr) {
    wrong.add(in.arguments != nullptr  ? "/arguments"
              : in.keywords != nullptr ? "/keywords"
                                       : "/static",
              "is for programs of NumPy syntax; StableHLO says the types of its arguments");
  }
  out.donate = std::move(in.donate);
  for (const int64_t position : out.donate.value_or(std::vector<int64_t>{})) {
    if (position < 0 || position >= static_cast<int64_t>(out.program->arguments.size())) {
      wrong.add("/donate",
                fmt::format("position {} is not one of {} arguments", position, out.program->arguments.size()));
    }
  }
  if (wrong.empty()) read_shapes(in.shapes, compiler, out, wrong);
  wrong.throw_if_any("invalid_request");
  return out;
}

}  // namespace meshd::api
