#include "service/compile/pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "service/compile/program_size.h"
#include "service/compile/rewrite/gradient_text.h"
#include "service/compile/rewrite/specialised.h"
#include "service/compile/rewrite/static_arguments.h"
#include "service/compile/stages.h"
#include "service/compile/work_memory.h"
#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/core/near_names.h"
#include "service/ir/op_builder.h"
#include "service/numpy/syntax/limits.h"
#include "service/ops/op_def.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "service/program/verify/verify_tokens.h"

namespace meshd::compile {
namespace {

constexpr std::string_view kNumpyFormat = "numpy";

std::string key_of(const std::optional<sharding::TensorSharding>& sharding) {
  return sharding ? mesh::to_sdy(*sharding->mesh) + sharding::to_sdy(*sharding) : "-";
}

std::string key_of(const ParsedProgram& parsed, const LowerRequest& request) {
  std::string key =
      fmt::format("{}|{}|{}|", parsed.id, request.mesh ? mesh::to_sdy(*request.mesh) : "", request.device_count);
  for (const auto* list : {&request.in_shardings, &request.out_shardings}) {
    for (const auto& sharding : *list) key += key_of(sharding) + ";";
    key += "|";
  }
  if (request.donate) {
    for (const int64_t position : *request.donate) key += fmt::format("{},", position);
  } else {
    key += "text";
  }
  if (request.is_unfused) key += "|unfused";
  return key;
}

// Fills in what follows from the module.
void finish(ParsedProgram& parsed_program) {
  ParsedProgram* const parsed = &parsed_program;
  const ir::Function& main = parsed->module->main();
  ir::Module flat = program::inline_calls(*parsed->module);
  // Where arguments have dynamic dimensions, a run specialises for the shapes of its inputs.
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
}

// A module that stands for a program which is not traced yet.
ir::ModuleRef empty_module(const std::string& name) {
  auto module = std::make_shared<ir::Module>();
  module->name = "numpy_" + name;
  ir::Function& main = module->functions.emplace_back();
  main.name = "main";
  main.is_public = true;
  ir::OpBuilder(main, ops::code_of, main.body.ops).create("func.return", {}, {});
  return module;
}

ParsedRef parsed_of(const std::string& id, const std::string& format, const std::string& text, WorkMemory& memory) {
  auto parsed = std::make_shared<ParsedProgram>();
  parsed->id = id;
  parsed->format = format;
  parsed->text = text;
  if (format == kNumpyFormat) {
    parsed->numpy = numpy::read(parsed->text);
    parsed->module = parsed->flat = empty_module(parsed->numpy->main->name);
  } else {
    parsed->module = program::parse_stablehlo(parsed->text, [&](int64_t bytes) { memory.hold(bytes); });
    finish(*parsed);
  }
  return parsed;
}

ParsedRef traced_of(const std::string& id, const ParsedProgram& source, const numpy::Inputs& inputs,
                    const mesh::MeshRef& mesh, WorkMemory& memory) {
  numpy::Traced traced = numpy::trace(*source.numpy, inputs, mesh, [&](int64_t bytes) { memory.hold(bytes); });
  auto parsed = std::make_shared<ParsedProgram>(source);
  parsed->id = id;
  parsed->is_traced = true;
  parsed->module = std::make_shared<const ir::Module>(std::move(traced.module));
  parsed->result_tree = std::move(traced.result_tree);
  parsed->logs = std::move(traced.logs);
  parsed->derivation.emplace_back(TraceStep{inputs, mesh});
  finish(*parsed);
  return parsed;
}

// What compiling takes while it is done, measured on long programs of small ops: the texts, and for each value of a
// StableHLO text that is named what stands for it (its parser counts attributes); for each character of a NumPy text
// its share of tokens and syntax, of which short names have the most; the steps behind, a few times the program.
constexpr int64_t kTexts = 3;
constexpr int64_t kOfName = 500;
constexpr int64_t kOfNumpyCharacter = 300;
constexpr int64_t kRewriting = 2;
constexpr int64_t kLowering = 5;
constexpr int64_t kDifferentiating = 8;

int64_t parsing_bytes(const std::string& format, const std::string& text) {
  if (format == kNumpyFormat)
    return kOfNumpyCharacter * static_cast<int64_t>(std::min(text.size(), numpy::kMaxTextBytes));
  return kTexts * static_cast<int64_t>(text.size()) + kOfName * std::count(text.begin(), text.end(), '%');
}

LoweredRef lowered_of(const std::string& key, const ParsedRef& parsed, const LowerRequest& request,
                      const PlanSettings& settings) {
  const partition::LocalProgram local = partition_for(propagate_for(*parsed, request), request);
  auto lowered = std::make_shared<LoweredProgram>();
  lowered->key = key;
  lowered->id = core::digest_id("lowered", key);
  lowered->parsed = parsed;
  lowered->request = request;
  for (const partition::LocalParameter& argument : local.arguments)
    lowered->argument_shardings.push_back(argument.sharding);
  for (const partition::LocalParameter& result : local.results) lowered->result_shardings.push_back(result.sharding);
  lowered->donated = donated_of(local);
  lowered->plan = plan_for(local, request, settings);
  lowered->warnings = local.warnings;
  // Only what @main is given can be given up (behaviour P17).
  for (const ir::Function& function : parsed->module->functions) {
    if (&function == &parsed->module->main()) continue;
    const bool donates = std::any_of(function.arguments.begin(), function.arguments.end(),
                                     [](const ir::Parameter& p) { return p.aliases_output.has_value() || p.is_donor; });
    if (donates)
      lowered->warnings.push_back("nested donation is not supported: that of @" + function.name + " is ignored");
  }
  return lowered;
}

}  // namespace

std::vector<const ir::NamedMesh*> real_meshes(const ir::Module& module) {
  std::vector<const ir::NamedMesh*> out;
  for (const ir::NamedMesh& named : module.meshes) {
    if (!named.mesh->axes.empty()) out.push_back(&named);
  }
  return out;
}

int64_t device_span(const ir::Module& module) {
  int64_t span = 0;
  for (const ir::NamedMesh& named : module.meshes) {
    const mesh::Mesh& mesh = *named.mesh;
    if (!mesh.axes.empty()) span = std::max(span, mesh.position_count());
    for (const int64_t device : mesh.device_ids) span = std::max(span, device + 1);
  }
  return span;
}

Compiler::Compiler(const PlanSettings& settings, size_t cache_entries, int64_t cache_bytes,
                   core::MemoryReservation memory)
    : settings_(settings), state_(State(cache_entries, cache_bytes, std::move(memory))) {}

void Compiler::State::settle() {
  memory.hold(parsed.bytes() + traced.bytes() + with_static.bytes() + specialised.bytes() + lowered.bytes() +
              bound.bytes());
}

void Compiler::count_work(const WorkAccount& account) {
  state_.with([&](State& state) { state.work = account; });
}

template <typename Value, typename Work, typename Make>
Value Compiler::cached(core::LruCache<Value> State::*cache, const std::string& key, int64_t CompileCounters::*count,
                       int64_t CompileCounters::*hits, Work&& work, Make&& make) {
  WorkAccount account;
  const Value known = state_.with([&](State& state) -> Value {
    const Value* found = (state.*cache).find(key);
    if (found == nullptr) {
      account = state.work;
      return nullptr;
    }
    ++(state.counters.*hits);
    return *found;
  });
  if (known != nullptr) return known;
  WorkMemory memory(std::move(account));
  memory.hold(work());
  Value made = make(memory);
  const int64_t bytes = size_bytes(*made) + static_cast<int64_t>(key.size());
  return state_.with([&](State& state) -> Value {
    ++(state.counters.*count);
    Value kept = (state.*cache).insert(key, std::move(made), bytes);
    state.settle();
    return kept;
  });
}

ParsedRef Compiler::parse(const std::string& format, const std::string& text) {
  if (format != "stablehlo" && format != kNumpyFormat) {
    throw core::Error("unsupported_format",
                      "program format '" + format + "' is not read here; known: stablehlo, numpy" +
                          core::did_you_mean(format, std::array{std::string_view("stablehlo"), kNumpyFormat}));
  }
  const std::string id = core::digest_id("prog", format + "\n" + text);
  return cached(
      &State::parsed, id, &CompileCounters::parse_count, &CompileCounters::parse_hits,
      [&] { return parsing_bytes(format, text); },
      [&](WorkMemory& memory) { return core::in_text(text, {}, [&] { return parsed_of(id, format, text, memory); }); });
}

ParsedRef Compiler::find(const std::string& id) {
  return state_.with([&](State& state) {
    const ParsedRef* found = state.parsed.find(id);
    return found == nullptr ? nullptr : *found;
  });
}

ParsedRef Compiler::trace(const ParsedRef& parsed, const numpy::Inputs& inputs, const std::optional<mesh::Mesh>& mesh) {
  mesh::MeshRef abstract;
  if (mesh && !mesh->axes.empty()) {
    auto made = std::make_shared<mesh::Mesh>();
    made->axes = mesh->axes;
    abstract = std::move(made);
  }
  const std::string key = numpy::key_of(inputs) + "|" + (abstract == nullptr ? "" : mesh::to_sdy(*abstract));
  const std::string id = parsed->id + "," + core::digest_id("trace", key);
  return cached(
      &State::traced, id, &CompileCounters::trace_count, &CompileCounters::trace_hits, [] { return 0; },
      [&](WorkMemory& memory) {
        return core::in_text(parsed->text, {}, [&] { return traced_of(id, *parsed, inputs, abstract, memory); });
      });
}

ParsedRef Compiler::with_static(const ParsedRef& parsed, const std::map<size_t, tensor::DenseValue>& values) {
  if (values.empty()) return parsed;
  const std::string id = static_id(*parsed, values);
  return cached(
      &State::with_static, id, &CompileCounters::static_count, &CompileCounters::static_hits,
      [&] { return kRewriting * size_bytes(*parsed); },
      [&](WorkMemory&) { return compile::with_static(id, *parsed, values); });
}

ParsedRef Compiler::specialise(const ParsedRef& parsed, const std::vector<tensor::TensorType>& arguments) {
  if (!has_dynamic_arguments(*parsed)) return parsed;
  const std::string id = specialised_id(*parsed, arguments);
  return cached(
      &State::specialised, id, &CompileCounters::specialise_count, &CompileCounters::specialise_hits,
      [&] { return kRewriting * size_bytes(*parsed); },
      [&](WorkMemory&) {
        return core::in_text(parsed->text, {}, [&] { return specialised(id, *parsed, arguments); });
      });
}

LoweredRef Compiler::lower(const ParsedRef& parsed, const LowerRequest& request) {
  const std::string key = key_of(*parsed, request);
  bool is_known = true;
  LoweredRef lowered = cached(
      &State::lowered, key, &CompileCounters::lower_count, &CompileCounters::lower_hits,
      [&] { return kLowering * size_bytes(*parsed); },
      [&](WorkMemory&) {
        is_known = false;
        return core::in_text(parsed->text, {}, [&] { return lowered_of(key, parsed, request, settings_); });
      });
  if (observer_ != nullptr) observer_->on_lowered(*lowered, request, is_known);
  return lowered;
}

std::string Compiler::gradient_text(const ParsedProgram& parsed, const DifferentiationRequest& request) {
  WorkMemory memory(state_.with([](const State& state) { return state.work; }));
  memory.hold(kDifferentiating * size_bytes(parsed));
  return compile::gradient_text(parsed, request);
}

bool Compiler::keeps(const LoweredProgram& lowered) {
  return state_.with([&](State& state) { return state.lowered.find(lowered.key) != nullptr; });
}

bool Compiler::count_binding(const LoweredRef& lowered, const std::vector<int64_t>& devices) {
  std::string key = lowered->key + "@";
  for (const int64_t device : devices) key += fmt::format("{},", device);
  return state_.with([&](State& state) {
    const bool is_known = state.bound.find(key) != nullptr;
    ++(is_known ? state.counters.bind_hits : state.counters.bind_count);
    if (is_known) return true;
    const auto bytes = static_cast<int64_t>(key.size());
    state.bound.insert(std::move(key), true, bytes);
    state.settle();
    return false;
  });
}

double Compiler::fullness() const {
  return state_.with([](const State& state) { return std::max(state.parsed.fullness(), state.lowered.fullness()); });
}

CompileCounters Compiler::counters() const {
  return state_.with([](const State& state) { return state.counters; });
}

}  // namespace meshd::compile
