// An explanation as lines for a terminal.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "api/codecs/explain/explain_codec.h"
#include "service/core/number_text.h"

namespace meshd::api {
namespace {

using compile::ExplainedMove;
using compile::Explanation;
using propagation::MaybeSharding;

std::string shown(const MaybeSharding& sharding) { return sharding ? sharding::to_sdy(*sharding) : "replicated"; }

std::string shown(const std::vector<MaybeSharding>& shardings) {
  std::string out;
  for (const MaybeSharding& sharding : shardings) out += (out.empty() ? "" : "; ") + shown(sharding);
  return out;
}

struct Row {
  std::array<std::string, 5> cells;  // line, value, op, sharding, decided by
  std::vector<std::string> notes;    // below it
};

std::string move_text(const ExplainedMove& made, const Explanation& explanation) {
  const partition::Move& move = made.move;
  const std::string& name = explanation.local->value(move.from).name;
  std::string out = std::string(partition::name(move.kind)) + " " + made.axes + " of " +
                    (name.empty() ? "an intermediate value" : name);
  if (made.from != made.to) {
    out += ": " + (made.from.empty() ? "replicated" : made.from) + " -> " + (made.to.empty() ? "replicated" : made.to);
  }
  out += ", " + core::grouped_number(move.bytes) + " bytes a device";
  if (const auto between = explanation.bytes_between_processes(move))
    out += ", " + core::grouped_number(*between) + " bytes between processes";
  if (move.loop_depth > 0) out += " in each iteration";
  if (move.cause == partition::MoveCause::kNeighbours) out += ", because the op reads its neighbours' rows";
  if (!move.reason.empty()) out += " (" + move.reason + ")";
  return out;
}

void append_function(const Explanation& explanation, const OpsByLine& ops, size_t number, std::string& out) {
  const propagation::FunctionReport& function = explanation.functions[number];
  std::vector<Row> rows;
  const auto& main = explanation.propagated.module->main();
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    const bool is_main = number == 0;
    rows.push_back({{"", is_main ? main.values[static_cast<size_t>(main.body.arguments[i])].name : "argument",
                     fmt::format("argument {}", i), shown(function.arguments[i]),
                     is_main ? origin_text(function.argument_origins[i], ops) : ""},
                    {}});
  }
  for (const propagation::ValueReport& value : function.values) {
    Row row;
    row.cells = {std::to_string(value.line), value.value, value.op, shown(value.copies.front().shardings),
                 origin_text(value.origin, ops)};
    for (size_t c = 1; c < value.copies.size(); ++c) {
      if (value.copies[c].shardings == value.copies.front().shardings) continue;
      row.notes.push_back("another copy: " + shown(value.copies[c].shardings));
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::string> last;
  for (const ExplainedMove& made : explanation.moves) {
    if (made.function != number || made.is_again) continue;
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
      return row.cells[0] == std::to_string(made.move.location.line);
    });
    (at == rows.end() ? last : at->notes).push_back(move_text(made, explanation));
  }
  for (size_t i = 0; i < function.results.size(); ++i) {
    rows.push_back({{"", "result", std::to_string(i), shown(function.results[i]),
                     number == 0 ? origin_text(explanation.propagated.result_origins[i], ops) : ""},
                    {}});
    if (i == 0) rows.back().notes = last;
  }
  std::array<size_t, 5> widths{};
  for (const Row& row : rows) {
    for (size_t c = 0; c < 4; ++c) widths[c] = std::max(widths[c], row.cells[c].size());
  }
  out += "\n@" + function.name + "\n";
  for (const Row& row : rows) {
    std::string line = "  " + std::string(widths[0] - row.cells[0].size(), ' ') + row.cells[0];
    for (size_t c = 1; c < 5; ++c)
      line += "  " + row.cells[c] + std::string(c < 4 ? widths[c] - row.cells[c].size() : 0, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
    for (const std::string& note : row.notes) out += std::string(widths[0] + 6, ' ') + "^ " + note + "\n";
  }
}

std::string indivisible_text(const compile::Indivisible& one) {
  std::string out =
      fmt::format("  {}{} dimension {} of {} rows: {} shards it {} ways, which does not divide; {}", one.value,
                  one.line > 0 ? fmt::format(" (line {})", one.line) : "", one.dim, one.size, one.axes, one.ways,
                  one.is_sharded ? "its shards are padded"
                                 : fmt::format("it stays replicated for {} at line {}", one.op, one.op_line));
  for (size_t i = 0; i < one.nearest.size(); ++i) {
    out += fmt::format("{}{} ({} ways)", i == 0 ? "; nearest that divide: " : ", ", one.nearest[i].axes,
                       one.nearest[i].ways);
  }
  if (one.nearest.empty()) out += "; nothing of the mesh divides it";
  out += "; or a size of";
  for (size_t i = 0; i < one.nearest_sizes.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? " " : " or ", one.nearest_sizes[i]);
  return out + "\n";
}

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  std::string out = explanation.parsed->id + " on " + core::grouped_number(explanation.device_count) +
                    (explanation.device_count == 1 ? " device\n" : " devices\n");
  for (const ir::NamedMesh& named : explanation.parsed->module->meshes)
    out += "mesh @" + named.name + " " + mesh::to_sdy(*named.mesh) + "\n";
  const OpsByLine ops(*explanation.parsed->module);
  for (size_t f = 0; f < explanation.functions.size(); ++f) append_function(explanation, ops, f, out);
  if (!explanation.indivisible.empty()) {
    out += "\nWhat does not divide\n";
    for (const compile::Indivisible& one : explanation.indivisible) out += indivisible_text(one);
  }
  if (explanation.plan != nullptr) {
    const compile::Plan& plan = *explanation.plan;
    out += "\nA device: " + core::grouped_number(explanation.flops()) + " operations, " +
           core::grouped_number(explanation.moved_bytes()) + " bytes received, " +
           core::grouped_number(plan.device_peak_bytes()) + " bytes at the peak" +
           (plan.has_loops ? " (loops counted once)\n" : "\n");
    if (const std::optional<compile::Traffic>& traffic = explanation.traffic) {
      out += fmt::format("Between processes: {} bytes of steps, {} of arguments, {} of results\n",
                         core::grouped_number(traffic->steps), core::grouped_number(traffic->arguments),
                         core::grouped_number(traffic->results));
    }
    for (const compile::PlanParameter& argument : plan.arguments) {
      if (!argument.is_donated) continue;
      out += fmt::format("Donated: argument {}{}\n", argument.parameter.position,
                         argument.aliased >= 0 ? fmt::format(", its memory becomes result {}", argument.aliased)
                                               : ", but no result can take its memory");
    }
    for (const std::string& warning : explanation.local->warnings) out += "Warning: " + warning + "\n";
  }
  for (const compile::NotRun& place : explanation.not_run) {
    out +=
        fmt::format("\nCannot run: line {}, column {}: {}\n", place.location.line, place.location.column, place.detail);
  }
  if (explanation.unplanned) out += "\nNot planned: " + explanation.unplanned->detail() + "\n";
  return out;
}

}  // namespace meshd::api
