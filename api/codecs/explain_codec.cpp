#include "api/codecs/explain_codec.h"

#include <algorithm>
#include <cmath>

#include "api/codecs/job_codec.h"
#include "api/codecs/mesh_codec.h"
#include "service/compile/rewrite/specialised.h"
#include "service/ir/walk.h"
#include "service/sharding/layout.h"

namespace meshd::api {
namespace {

using compile::ExplainedMove;
using compile::Explanation;
using partition::MoveCause;
using propagation::MaybeSharding;

std::string sharding_json(const MaybeSharding& sharding) {
  return sharding ? quote(sharding::to_sdy(*sharding)) : "null";
}

template <typename T, typename F>
std::string list_json(const std::vector<T>& items, const F& item) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i ? "," : "") + item(items[i]);
  return out + "]";
}

std::string shardings_json(const std::vector<MaybeSharding>& shardings) { return list_json(shardings, sharding_json); }

std::string_view word(propagation::OriginKind kind) {
  using propagation::OriginKind;
  switch (kind) {
    case OriginKind::kNothing:
      return "nothing";
    case OriginKind::kArgument:
      return "argument";
    case OriginKind::kResult:
      return "result";
    case OriginKind::kAnnotation:
      return "annotation";
    case OriginKind::kConstraint:
      return "constraint";
    case OriginKind::kManual:
      return "manual_computation";
    case OriginKind::kGroup:
      return "sharding_group";
    case OriginKind::kRule:
      return "rule";
  }
  return "";
}

std::string origin_json(const propagation::Origin& origin, const ir::Module& module) {
  using propagation::OriginKind;
  std::string out = "{\"by\":" + quote(word(origin.kind));
  if (origin.kind == OriginKind::kArgument || origin.kind == OriginKind::kResult)
    out += ",\"number\":" + std::to_string(origin.number);
  if (origin.line > 0) out += ",\"line\":" + std::to_string(origin.line);
  if (const std::string op = op_at(module, origin.line); !op.empty()) out += ",\"op\":" + quote(op);
  return out + ",\"text\":" + quote(origin_text(origin, module)) + "}";
}

std::string users_json(const std::vector<std::pair<int32_t, int>>& users) {
  return list_json(users, [](const auto& user) {
    return "[" + std::to_string(user.first) + "," + std::to_string(user.second) + "]";
  });
}

std::string value_json(const propagation::ValueReport& value, const ir::Module& module) {
  std::string out =
      "{\"line\":" + std::to_string(value.line) + ",\"value\":" + quote(value.value) + ",\"op\":" + quote(value.op);
  const bool alike = std::all_of(value.copies.begin(), value.copies.end(),
                                 [&](const auto& copy) { return copy.shardings == value.copies.front().shardings; });
  if (alike) {
    out += ",\"shardings\":" + shardings_json(value.copies.front().shardings);
  } else {
    out += ",\"copies\":" + list_json(value.copies, [](const propagation::CopyReport& copy) {
             return "{\"shardings\":" + shardings_json(copy.shardings) + ",\"for\":" + users_json(copy.users) + "}";
           });
  }
  if (!value.operands.empty()) out += ",\"operands\":" + shardings_json(value.operands);
  return out + ",\"decided\":" + origin_json(value.origin, module) + "}";
}

std::string place_json(const ir::Location& location) {
  std::string out = "\"line\":" + std::to_string(location.line) + ",\"column\":" + std::to_string(location.column);
  if (!location.name.empty()) out += ",\"location\":" + quote(location.name);
  if (!location.calls.empty()) {
    out += ",\"calls\":" + list_json(location.calls, [](int32_t line) { return std::to_string(line); });
  }
  return out;
}

std::string sdy_or_null(const std::string& text) { return text.empty() ? "null" : quote(text); }

std::string move_json(const ExplainedMove& made, const Explanation& explanation) {
  const partition::Move& move = made.move;
  const std::string of = made.of_argument ? "{\"argument\":" + std::to_string(made.argument) + "}"
                                          : "{\"line\":" + std::to_string(made.of_line) +
                                                ",\"result\":" + std::to_string(made.of_result) + "}";
  std::string out = "{\"kind\":" + quote(partition::name(move.kind)) + ",\"axes\":" + quote(made.axes) +
                    ",\"of\":" + of + ",\"value\":" + quote(explanation.local->value(move.from).name) +
                    ",\"from\":" + sdy_or_null(made.from) + ",\"to\":" + sdy_or_null(made.to) +
                    ",\"op\":" + quote(op_at(*explanation.parsed->module, move.location.line)) +
                    ",\"why\":" + quote(move.reason) + "," + place_json(move.location) + ",\"bytes\":";
  append_integer(out, move.bytes);
  if (move.loop_depth > 0) out += ",\"loops\":" + std::to_string(move.loop_depth);
  return out + "}";
}

std::string moves_json(const Explanation& explanation, size_t function, MoveCause cause) {
  std::string out = "[";
  for (const ExplainedMove& made : explanation.moves) {
    if (made.function != function || made.is_again || made.move.cause != cause) continue;
    out += (out.size() > 1 ? "," : "") + move_json(made, explanation);
  }
  return out + "]";
}

std::string function_json(const Explanation& explanation, size_t number) {
  const propagation::FunctionReport& function = explanation.functions[number];
  const ir::Module& module = *explanation.parsed->module;
  std::string out = "{\"name\":" + quote(function.name);
  if (number > 0) {
    out += ",\"calls\":" + list_json(function.calls, [](const std::vector<int32_t>& path) {
             return list_json(path, [](int32_t line) { return std::to_string(line); });
           });
  }
  out += ",\"arguments\":" + shardings_json(function.arguments) + ",\"results\":" + shardings_json(function.results);
  if (number == 0) {
    const auto origins = [&](const std::vector<propagation::Origin>& list) {
      return list_json(list, [&](const propagation::Origin& origin) { return origin_json(origin, module); });
    };
    out += ",\"decided\":{\"arguments\":" + origins(function.argument_origins) +
           ",\"results\":" + origins(explanation.propagated.result_origins) + "}";
  }
  out += ",\"values\":" + list_json(function.values, [&](const auto& value) { return value_json(value, module); });
  out += ",\"collectives\":" + moves_json(explanation, number, MoveCause::kSharding);
  out += ",\"neighbours\":" + moves_json(explanation, number, MoveCause::kNeighbours);
  out += ",\"unruled\":" + moves_json(explanation, number, MoveCause::kUnruled);
  out += ",\"written\":" + moves_json(explanation, number, MoveCause::kText);
  return out + "}";
}

std::string whole_number(double value) {
  std::string out;
  append_integer(out, static_cast<int64_t>(std::llround(value)));
  return out;
}

std::string totals_json(const Explanation& explanation) {
  double flops = 0;
  double bytes = 0;
  for (const compile::Block& block : explanation.plan->blocks) {
    for (const compile::Step& step : block.steps) {
      flops += step.kernel.flops;
      bytes += step.kernel.bytes;
    }
  }
  std::string out =
      "{\"flops\":" + whole_number(flops) + ",\"bytes_touched\":" + whole_number(bytes) + ",\"bytes_moved\":";
  append_integer(out, explanation.moved_bytes());
  return out + ",\"loops_counted_once\":" + (explanation.plan->has_loops ? "true" : "false") + "}";
}

std::string memory_json(const compile::Plan& plan) {
  const compile::PlanMemory& memory = plan.memory;
  std::string out = "{\"device\":{";
  const auto field = [&](const char* name, int64_t value, bool first = false) {
    out += std::string(first ? "\"" : ",\"") + name + "\":";
    append_integer(out, value);
  };
  field("arguments", memory.device_arguments, true);
  field("arena", memory.device_arena);
  field("results", memory.device_own);
  field("constants", memory.device_constants);
  field("scratch", plan.scratch_bytes);
  field("peak", plan.device_peak_bytes());
  out += "},\"process\":{";
  field("arguments", memory.arguments, true);
  field("arena", memory.arena);
  field("results", memory.own);
  field("constants", memory.constants);
  field("scratch", memory.scratch);
  field("peak", plan.peak_bytes);
  return out + "}}";
}

std::string steps_json(const compile::Plan& plan) {
  std::string out = "[";
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) {
      out += std::string(out.size() > 1 ? "," : "") + "{\"name\":" + quote(step.name) +
             ",\"lines\":" + list_json(step.lines, [](int32_t line) { return std::to_string(line); }) +
             ",\"flops\":" + whole_number(step.kernel.flops) + ",\"bytes\":" + whole_number(step.kernel.bytes) +
             ",\"shards\":" + std::to_string(plan.table(step.table).count()) + "}";
    }
  }
  return out + "]";
}

std::string indivisible_json(const compile::Indivisible& one) {
  std::string out = "{\"value\":" + quote(one.value);
  if (one.line > 0) out += ",\"line\":" + std::to_string(one.line);
  out += ",\"dimension\":" + std::to_string(one.dim) + ",\"size\":";
  append_integer(out, one.size);
  out += ",\"axes\":" + quote(one.axes) + ",\"parts\":" + std::to_string(one.ways) +
         ",\"effect\":" + (one.is_cut ? "\"padded\"" : "\"replicated\"");
  if (!one.is_cut) out += ",\"op\":" + quote(one.op) + ",\"op_line\":" + std::to_string(one.op_line);
  out += ",\"nearest\":" + list_json(one.nearest, [](const compile::Indivisible::Choice& choice) {
           return "{\"axes\":" + quote(choice.axes) + ",\"parts\":" + std::to_string(choice.ways) + "}";
         });
  return out + ",\"nearest_sizes\":" + integer_list(one.nearest_sizes) + "}";
}

std::string snapshot_json(const compile::Snapshot& snapshot) {
  return "{\"name\":" + quote(snapshot.name) + ",\"text\":" + quote(snapshot.text) +
         ",\"bytes\":" + std::to_string(snapshot.bytes) +
         ",\"truncated\":" + (snapshot.is_truncated ? "true" : "false") + "}";
}

std::string donation_json(const compile::Plan& plan) {
  std::string out = "[";
  for (const compile::PlanParameter& argument : plan.arguments) {
    if (!argument.is_donated) continue;
    out += std::string(out.size() > 1 ? "," : "") + "{\"argument\":" + std::to_string(argument.parameter.position) +
           ",\"result\":" + (argument.aliased >= 0 ? std::to_string(argument.aliased) : "null") + ",\"bytes\":";
    append_integer(out, argument.shard_bytes);
    out += "}";
  }
  return out + "]";
}

// What arguments with dynamic dimensions would bring: the program is specialised for it, as a run does.
void read_shapes(ObjectReader& reader, jobs::JobRequest& out, core::Diagnostics& wrong) {
  const compile::ParsedProgram& program = *out.program;
  std::vector<tensor::TensorType> types;
  for (size_t i = 0; i < program.arguments.size(); ++i) types.push_back(program.argument(i).type.tensor);
  const Json* shapes = reader.field("shapes");
  if (shapes != nullptr && !shapes->is_array()) {
    wrong.add("/shapes", "expected a list with the shape of each argument, got " + std::string(shapes->kind_name()));
    return;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string place = "/shapes/" + std::to_string(i);
    const tensor::TensorType declared = types[i];
    if (shapes != nullptr && i < shapes->size() && !shapes->at(i).is_null()) {
      const Json shape = shapes->at(i);
      types[i].dims.clear();
      const auto* numbers = shape.as<JsonNumbers>();
      for (size_t d = 0; numbers != nullptr && d < numbers->size(); ++d) types[i].dims.push_back((*numbers)[d].i);
      if (!compile::fits(types[i], declared)) {
        wrong.add(place, "the argument is " + tensor::to_string(declared) + ", the shape given is " +
                             integer_list(types[i].dims));
        return;
      }
    }
    if (std::any_of(types[i].dims.begin(), types[i].dims.end(), [](int64_t size) { return size < 0; })) {
      wrong.add(place, "the argument is " + tensor::to_string(declared) +
                           ": its dimensions are dynamic, give the shapes that a run would bring");
      return;
    }
  }
  out.program = compile::specialised(out.program, types);
}

}  // namespace

std::string op_at(const ir::Module& module, int32_t line) {
  if (line <= 0) return {};
  for (const ir::Function& function : module.functions) {
    const ir::Op* found = ir::first_op(function.body, [&](const ir::Op& op) { return op.location.line == line; });
    if (found != nullptr) return found->name;
  }
  return {};
}

std::string origin_text(const propagation::Origin& origin, const ir::Module& module) {
  using propagation::OriginKind;
  const std::string line = origin.line > 0 ? " at line " + std::to_string(origin.line) : "";
  switch (origin.kind) {
    case OriginKind::kNothing:
      return "nobody: nothing is known of it";
    case OriginKind::kArgument:
      return "argument " + std::to_string(origin.number);
    case OriginKind::kResult:
      return "result " + std::to_string(origin.number);
    case OriginKind::kAnnotation:
      return "annotation" + line;
    case OriginKind::kConstraint:
      return "constraint" + line;
    case OriginKind::kManual:
      return "manual computation" + line;
    case OriginKind::kGroup:
      return "sharding group" + line;
    case OriginKind::kRule: {
      const std::string op = op_at(module, origin.line);
      if (op.empty()) return "what the function gives back";
      return "rule of " + op + line;
    }
  }
  return "";
}

std::string not_run_json(const std::vector<compile::NotRun>& places) {
  return list_json(places, [](const compile::NotRun& place) {
    return "{\"line\":" + std::to_string(place.location.line) + ",\"column\":" + std::to_string(place.location.column) +
           ",\"op\":" + quote(place.op) + ",\"detail\":" + quote(place.detail) + "}";
  });
}

jobs::JobRequest decode_assignment(const Json& body, const compile::ParsedRef& program) {
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  jobs::JobRequest out;
  out.program = program;
  read_assignment(reader, out, wrong);
  out.donate = reader.integers("donate");
  for (const int64_t position : out.donate.value_or(std::vector<int64_t>{})) {
    if (position < 0 || position >= static_cast<int64_t>(program->arguments.size())) {
      wrong.add("/donate", "position " + std::to_string(position) + " is not one of " +
                               std::to_string(program->arguments.size()) + " arguments");
    }
  }
  read_shapes(reader, out, wrong);
  reader.finish();
  wrong.throw_if_any("invalid_request");
  return out;
}

std::string explanation_json(const Explanation& explanation, const std::vector<compile::Snapshot>& snapshots) {
  std::string out = "{\"program\":" + quote(explanation.parsed->id) +
                    ",\"devices\":" + std::to_string(explanation.device_count) + ",\"functions\":[";
  for (size_t f = 0; f < explanation.functions.size(); ++f) out += (f ? "," : "") + function_json(explanation, f);
  out += "],\"indivisible\":" + list_json(explanation.indivisible, indivisible_json);
  if (explanation.plan != nullptr) {
    out +=
        ",\"totals\":" + totals_json(explanation) + ",\"memory\":" + memory_json(*explanation.plan) +
        ",\"steps\":" + steps_json(*explanation.plan) + ",\"donation\":" + donation_json(*explanation.plan) +
        ",\"warnings\":" + list_json(explanation.local->warnings, [](const std::string& text) { return quote(text); });
  }
  if (explanation.unplanned) {
    out += ",\"unplanned\":{\"code\":" + quote(explanation.unplanned->code().word()) +
           ",\"detail\":" + quote(explanation.unplanned->detail()) + "}";
  }
  if (!snapshots.empty()) out += ",\"stages\":" + list_json(snapshots, snapshot_json);
  return out + ",\"cannot_run\":" + not_run_json(explanation.not_run) + "}";
}

}  // namespace meshd::api
