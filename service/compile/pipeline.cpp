#include "service/compile/pipeline.h"

#include <algorithm>

#include "service/compile/reciprocals.h"
#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/partition/partition.h"
#include "service/program/inline_calls.h"
#include "service/program/parse.h"
#include "service/program/specialise.h"
#include "service/propagation/propagate.h"

namespace meshd::compile {
namespace {

std::string key_of(const std::optional<sharding::TensorSharding>& sharding) {
  return sharding ? mesh::to_sdy(*sharding->mesh) + sharding::to_sdy(*sharding) : "-";
}

std::string key_of(const ParsedProgram& parsed, const LowerRequest& request) {
  std::string key = parsed.id + "|" + (request.mesh ? mesh::to_sdy(*request.mesh) : "") + "|" +
                    std::to_string(request.device_count) + "|";
  for (const auto* list : {&request.in_shardings, &request.out_shardings}) {
    for (const auto& sharding : *list) key += key_of(sharding) + ";";
    key += "|";
  }
  if (request.donate) {
    for (const int64_t position : *request.donate) key += std::to_string(position) + ",";
  } else {
    key += "text";
  }
  return key;
}

// Options of a request by position in the text, tokens counted.
std::vector<std::optional<sharding::TensorSharding>> with_tokens(
    const std::vector<std::optional<sharding::TensorSharding>>& given, const std::vector<size_t>& positions,
    size_t total) {
  std::vector<std::optional<sharding::TensorSharding>> out(total);
  for (size_t i = 0; i < given.size() && i < positions.size(); ++i) out[positions[i]] = given[i];
  return out;
}

// A sharding as the plan uses it: closed, nothing reserved.
sharding::TensorSharding closed(sharding::TensorSharding sharding) {
  for (sharding::DimSharding& dim : sharding.dims) {
    dim.open = false;
    dim.priority.reset();
  }
  sharding.replicated.clear();
  return sharding;
}

void check_against_text(const ir::Parameter& parameter, const std::optional<sharding::TensorSharding>& asked,
                        const char* what, size_t position) {
  if (!asked || !parameter.sharding) return;
  if (sharding::same_placement(closed(*asked), closed(*parameter.sharding))) return;
  throw core::Error("invalid_spec", std::string(what) + " " + std::to_string(position) + ": the program annotates it " +
                                        sharding::to_sdy(*parameter.sharding) + ", the request says " +
                                        sharding::to_sdy(*asked));
}

}  // namespace

std::vector<const ir::NamedMesh*> real_meshes(const ir::Module& module) {
  std::vector<const ir::NamedMesh*> out;
  for (const ir::NamedMesh& named : module.meshes) {
    if (!named.mesh->axes.empty()) out.push_back(&named);
  }
  return out;
}

Compiler::Compiler(int threads, size_t cache_entries) : threads_(threads), cache_entries_(cache_entries) {}

template <typename V>
std::optional<V> Compiler::look(State& state, Cache<V>& cache, const std::string& key) {
  const auto found = cache.entries.find(key);
  if (found == cache.entries.end()) return std::nullopt;
  found->second.used = ++state.clock;
  return found->second.value;
}

template <typename V>
void Compiler::keep(State& state, Cache<V>& cache, const std::string& key, V value) const {
  if (cache.entries.size() >= cache_entries_) {
    const auto oldest = std::min_element(cache.entries.begin(), cache.entries.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    cache.entries.erase(oldest);
  }
  cache.entries[key] = {std::move(value), ++state.clock};
}

ParsedRef Compiler::parse(const std::string& format, const std::string& text) {
  if (format != "stablehlo") {
    throw core::Error("unsupported_format", "program format '" + format + "' is not read here; known: stablehlo");
  }
  const std::string id = core::digest_id("prog", format + "\n" + text);
  if (ParsedRef known = find(id)) {
    state_.with([](State& state) { ++state.counters.parse_hits; });
    return known;
  }
  auto parsed = std::make_shared<ParsedProgram>();
  parsed->id = id;
  parsed->format = format;
  parsed->text = text;
  parsed->module = program::parse_stablehlo(parsed->text);
  const ir::Function& main = parsed->module->main();
  ir::Module flat = program::inline_calls(*parsed->module);
  // Where arguments have dynamic dimensions, a run specialises for what it brings.
  if (program::has_static_arguments(flat) &&
      (program::has_more_than_plain_ops(flat) || program::has_dynamic_shapes(flat))) {
    flat = program::specialise(flat);
  }
  parsed->flat = std::make_shared<const ir::Module>(std::move(flat));
  for (size_t i = 0; i < main.arguments.size(); ++i) {
    if (!main.arguments[i].is_token) parsed->arguments.push_back(i);
  }
  for (size_t i = 0; i < main.results.size(); ++i) {
    if (!main.results[i].is_token) parsed->results.push_back(i);
  }
  return state_.with([&](State& state) -> ParsedRef {
    ++state.counters.parse_count;
    keep<ParsedRef>(state, state.parsed, id, parsed);
    return parsed;
  });
}

ParsedRef Compiler::find(const std::string& id) {
  return state_.with([&](State& state) { return look(state, state.parsed, id).value_or(nullptr); });
}

LoweredRef Compiler::lower(const ParsedRef& parsed, const LowerRequest& request) {
  const std::string key = key_of(*parsed, request);
  if (auto known = state_.with([&](State& state) {
        auto found = look(state, state.lowered, key);
        if (found) ++state.counters.lower_hits;
        return found;
      })) {
    return *known;
  }
  const ir::Function& main = parsed->flat->main();
  for (size_t i = 0; i < request.in_shardings.size() && i < parsed->arguments.size(); ++i) {
    check_against_text(parsed->argument(i), request.in_shardings[i], "argument", i);
  }
  for (size_t i = 0; i < request.out_shardings.size() && i < parsed->results.size(); ++i) {
    check_against_text(parsed->result(i), request.out_shardings[i], "result", i);
  }
  propagation::Options options;
  options.argument_seeds = with_tokens(request.in_shardings, parsed->arguments, main.arguments.size());
  options.result_seeds = with_tokens(request.out_shardings, parsed->results, main.results.size());
  const propagation::Propagated propagated = propagation::propagate(*parsed->flat, options);

  partition::PartitionInput input;
  ir::Module module = *propagated.module;
  input.value_shardings = propagated.values;
  multiply_by_reciprocals(module, input.value_shardings);
  input.module = &module;
  const ir::Function& flat_main = propagated.module->main();
  for (const ir::ValueId argument : flat_main.body.arguments)
    input.argument_shardings.push_back(propagated.of(argument));
  input.result_shardings = propagated.results;
  input.device_count = request.device_count;
  input.donate = request.donate;
  const partition::LocalProgram local = partition::partition(input);

  auto lowered = std::make_shared<LoweredProgram>();
  lowered->key = key;
  lowered->parsed = parsed;
  PlanOptions plan_options;
  plan_options.threads = threads_;
  for (const partition::LocalParameter& argument : local.arguments) {
    lowered->argument_shardings.push_back(argument.sharding);
    if (argument.is_donated) {
      lowered->donated.push_back(argument.position);
      plan_options.donate.push_back(argument.position);
    }
  }
  for (const partition::LocalParameter& result : local.results) lowered->result_shardings.push_back(result.sharding);
  lowered->plan = make_plan(local, plan_options);
  lowered->warnings = local.warnings;
  return state_.with([&](State& state) -> LoweredRef {
    ++state.counters.lower_count;
    keep<LoweredRef>(state, state.lowered, key, lowered);
    return lowered;
  });
}

bool Compiler::bind(const LoweredRef& lowered, const std::vector<int64_t>& devices) {
  std::string key = lowered->key + "@";
  for (const int64_t device : devices) key += std::to_string(device) + ",";
  return state_.with([&](State& state) {
    if (look(state, state.bound, key)) {
      ++state.counters.bind_hits;
      return true;
    }
    ++state.counters.bind_count;
    keep<bool>(state, state.bound, key, true);
    return false;
  });
}

CompileCounters Compiler::counters() const {
  return state_.with([](const State& state) { return state.counters; });
}

}  // namespace meshd::compile
