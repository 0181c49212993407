#include "service/compile/explain/snapshots.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "service/ir/walk.h"
#include "service/program/gspmd/import_gspmd.h"
#include "service/program/parse/parse.h"
#include "service/program/print.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/unpack_tuples.h"

namespace meshd::compile {
namespace {

using Shardings = std::vector<std::optional<sharding::TensorSharding>>;

// Annotates the ops whose results all have shardings. Ops that have shardings of their own (constraints, reshards,
// manual computations) keep these.
void annotate(ir::Module& module, const Shardings& values, const Shardings& arguments, const Shardings& results) {
  for (ir::Function& function : module.functions) {
    if (function.name != module.main().name) continue;
    ir::walk(function.body, [&](ir::Op& op) {
      ir::ShardingAttr made{{}, true};
      for (const ir::ValueId id : op.results) {
        if (static_cast<size_t>(id) < values.size() && values[static_cast<size_t>(id)])
          made.shardings.push_back(*values[static_cast<size_t>(id)]);
      }
      const bool has_own = ir::find(op.attributes, "sharding") != nullptr || ir::find(op.attributes, "out_shardings");
      if (!made.shardings.empty() && made.shardings.size() == op.results.size() && !has_own)
        ir::set(op.attributes, "sdy.sharding", {std::move(made)});
    });
    const auto set_all = [](std::vector<ir::Parameter>& parameters, const Shardings& shardings) {
      for (size_t i = 0; i < parameters.size() && i < shardings.size(); ++i) {
        if (shardings[i]) ir::set(parameters[i].attributes, "sdy.sharding", {ir::ShardingAttr{{*shardings[i]}, false}});
      }
    };
    set_all(function.arguments, arguments);
    set_all(function.results, results);
  }
}

std::string propagated_text(const Explanation& explanation) {
  const propagation::Propagated& propagated = explanation.propagated;
  ir::Module module = *propagated.module;
  Shardings arguments;
  for (const ir::ValueId id : module.main().body.arguments) arguments.push_back(propagated.of(id));
  annotate(module, propagated.values, arguments, propagated.results);
  return program::print_generic(module);
}

std::string rewritten_text(const Explanation& explanation, const LowerRequest& request) {
  RewrittenProgram rewritten = rewrite_for(explanation.propagated, request);
  const partition::PartitionInput& input = rewritten.input;
  annotate(rewritten.module, input.value_shardings, input.argument_shardings, input.result_shardings);
  return program::print_generic(rewritten.module);
}

// As the text has it; of NumPy syntax, as it was traced.
ir::Module parsed_module(const Explanation& explanation) {
  if (explanation.parsed->numpy != nullptr) return *explanation.parsed->module;
  return program::parse_unverified(explanation.parsed->text);
}

ir::Module unpacked(const Explanation& explanation) { return program::unpack_tuples(parsed_module(explanation)); }

struct Stage {
  std::string_view name;
  std::optional<std::string> (*text)(const Explanation&, const LowerRequest&);
};

using MaybeText = std::optional<std::string>;

constexpr std::array<Stage, 10> kStages = {{
    {"parse",
     [](const Explanation& of, const LowerRequest&) -> MaybeText { return program::print_generic(parsed_module(of)); }},
    {"unpack_tuples",
     [](const Explanation& of, const LowerRequest&) -> MaybeText { return program::print_generic(unpacked(of)); }},
    {"import_gspmd",
     [](const Explanation& of, const LowerRequest&) -> MaybeText {
       ir::Module module = unpacked(of);
       return program::print_generic(program::uses_gspmd(module) ? program::import_gspmd(std::move(module)) : module);
     }},
    {"static_arguments",
     [](const Explanation& of, const LowerRequest&) -> MaybeText {
       return program::print_generic(*of.parsed->module);
     }},
    {"inline_calls",
     [](const Explanation& of, const LowerRequest&) -> MaybeText {
       return program::print_generic(program::inline_calls(*of.parsed->module));
     }},
    {"specialise",
     [](const Explanation& of, const LowerRequest&) -> MaybeText { return program::print_generic(*of.parsed->flat); }},
    {"propagate", [](const Explanation& of, const LowerRequest&) -> MaybeText { return propagated_text(of); }},
    {"rewrite",
     [](const Explanation& of, const LowerRequest& request) -> MaybeText { return rewritten_text(of, request); }},
    {"partition",
     [](const Explanation& of, const LowerRequest&) -> MaybeText {
       return of.local ? MaybeText(partition::to_text(*of.local)) : std::nullopt;
     }},
    {"plan",
     [](const Explanation& of, const LowerRequest&) -> MaybeText {
       return of.plan ? MaybeText(to_text(*of.plan)) : std::nullopt;
     }},
}};

Snapshot bounded(std::string_view name, std::string text) {
  Snapshot out{name, std::move(text), 0, false};
  out.bytes = out.text.size();
  if (out.bytes > kMostSnapshotBytes) {
    const size_t end = out.text.rfind('\n', kMostSnapshotBytes - 1);
    out.text.resize(end == std::string::npos ? kMostSnapshotBytes : end + 1);
    out.is_truncated = true;
  }
  return out;
}

}  // namespace

std::string module_text(const ParsedProgram& parsed) { return program::print_generic(*parsed.module); }

std::vector<std::string_view> read_stage_names(std::string_view list) {
  std::array<bool, kStages.size()> wanted{};
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view word = list.substr(begin, end - begin);
    bool is_known = word == "all";
    for (size_t i = 0; i < kStages.size(); ++i) {
      if (word != "all" && word != kStages[i].name) continue;
      wanted[i] = is_known = true;
    }
    if (!is_known) {
      std::string names = "all";
      for (const Stage& stage : kStages) names += ", " + std::string(stage.name);
      throw core::Error("invalid_query", fmt::format("stages: '{}' is not one of {}", word, names));
    }
    begin = end + 1;
  }
  std::vector<std::string_view> out;
  for (size_t i = 0; i < kStages.size(); ++i) {
    if (wanted[i]) out.push_back(kStages[i].name);
  }
  return out;
}

std::vector<Snapshot> snapshots(const Explanation& explanation, const LowerRequest& request,
                                const std::vector<std::string_view>& names) {
  std::vector<Snapshot> out;
  for (const Stage& stage : kStages) {
    if (std::find(names.begin(), names.end(), stage.name) == names.end()) continue;
    if (MaybeText text = stage.text(explanation, request)) out.push_back(bounded(stage.name, std::move(*text)));
  }
  return out;
}

}  // namespace meshd::compile
