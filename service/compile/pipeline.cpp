#include "service/compile/pipeline.h"

#include <algorithm>

#include "service/compile/stages.h"
#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/program/parse/parse.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "service/program/verify/verify_tokens.h"

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
  program::verify_tokens(flat);
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
  const partition::LocalProgram local = partition_for(propagate_for(*parsed, request), request);
  auto lowered = std::make_shared<LoweredProgram>();
  lowered->key = key;
  lowered->parsed = parsed;
  for (const partition::LocalParameter& argument : local.arguments)
    lowered->argument_shardings.push_back(argument.sharding);
  for (const partition::LocalParameter& result : local.results) lowered->result_shardings.push_back(result.sharding);
  lowered->donated = donated_of(local);
  lowered->plan = plan_for(local, threads_);
  lowered->warnings = local.warnings;
  // Only what @main is given can be given up (behaviour P17).
  for (const ir::Function& function : parsed->module->functions) {
    if (&function == &parsed->module->main()) continue;
    const bool donates = std::any_of(function.arguments.begin(), function.arguments.end(),
                                     [](const ir::Parameter& p) { return p.aliases_output.has_value() || p.is_donor; });
    if (donates)
      lowered->warnings.push_back("nested donation is not supported: that of @" + function.name + " is ignored");
  }
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
