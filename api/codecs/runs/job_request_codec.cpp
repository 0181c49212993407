#include "api/codecs/runs/job_request_codec.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/array_document.h"
#include "api/codecs/artifact_codec.h"
#include "api/codecs/at_pointer.h"
#include "api/codecs/base64.h"
#include "api/codecs/program_codec.h"
#include "api/codecs/runs/assignment_codec.h"
#include "api/codecs/runs/infeed_codec.h"
#include "api/codecs/runs/numpy_arguments.h"
#include "api/codecs/runs/trees.h"
#include "api/codecs/value.h"
#include "service/compile/rewrite/static_arguments.h"
#include "service/jobs/admission/argument_count.h"
#include "service/jobs/admission/call_plan.h"
#include "service/jobs/admission/parts_assignment.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {

namespace call_plan = jobs::call_plan;

namespace {

constexpr double kShortestDeadlineSeconds = 0.001;
constexpr double kLongestDeadlineSeconds = 86'400;

struct ProgramChoice {
  std::optional<std::string> id, text, base64, part;
  std::optional<ProgramFormat> format;
};

struct ResultOptions {
  std::optional<std::string> encoding, durability;
  std::optional<std::vector<std::string>> names;
};

// An array that the job updates: position of the argument (static ones counted), number of the result.
struct ArrayUpdateInput {
  int64_t argument = 0, result = 0;
  std::optional<int64_t> version;
};

struct CallbackBinding {
  std::string effect;
  std::optional<std::string> name;
  const Json* answers = nullptr;
  bool live = false;
};

struct RunInput : AssignmentInput {
  const Json* program = nullptr;
  const Json* arguments = nullptr;
  std::optional<OneOrMore<int64_t>> donate;
  const Json* statics = nullptr;
  std::optional<int64_t> num_partitions, local_num_partitions, as_process;
  std::optional<std::string> platform;
  const Json* keywords = nullptr;
  const Json* update = nullptr;
  std::optional<std::string> donation, devices, session, effects;
  bool reshard = false, profile = false, debug_nans = false, debug_infs = false;
  const Json* callbacks = nullptr;
  const Json* infeed = nullptr;
  ResultOptions results;
  std::optional<double> deadline;
  const Json* kept = nullptr;
  const Json* in_tree = nullptr;
};

}  // namespace

template <>
Schema<ProgramChoice> make_schema() {
  return {"ProgramChoice",
          {{"id", &ProgramChoice::id},
           {"format", &ProgramChoice::format},
           {"text", &ProgramChoice::text},
           {"base64", &ProgramChoice::base64},
           {"part", &ProgramChoice::part}}};
}

template <>
Schema<ResultOptions> make_schema() {
  return {"ResultOptions",
          {{"encoding", &ResultOptions::encoding, {.words = {"json", "base64", "array", "none"}}},
           {"durability", &ResultOptions::durability, {.words = kDurabilities}},
           {"names", &ResultOptions::names}}};
}

template <>
Schema<ArrayUpdateInput> make_schema() {
  return {"ArrayUpdate",
          {{"argument", &ArrayUpdateInput::argument, {.low = 0, .high = INT32_MAX}},
           {"result", &ArrayUpdateInput::result, {.low = 0, .high = INT32_MAX}},
           {"version", &ArrayUpdateInput::version, {.low = 1}}}};
}

template <>
Schema<CallbackBinding> make_schema() {
  return {"CallbackBinding",
          {{"effect", &CallbackBinding::effect},
           {"name", &CallbackBinding::name},
           {"answers", &CallbackBinding::answers, {.like = json_type<std::vector<std::vector<FormValueInput>>>}},
           {"live", &CallbackBinding::live, {.optional = true}}}};
}

template <>
Schema<RunInput> make_schema() {
  using In = RunInput;
  std::vector<Field<In>> fields = assignment_fields<In>();
  const Rules count{.low = 1, .high = INT32_MAX};
  const Rules position{.low = 0, .high = INT32_MAX};
  for (const Field<In>& field : std::vector<Field<In>>{
           {"program", &In::program, {.required = true, .like = json_type<ProgramChoice>}},
           {"arguments", &In::arguments, {.required = true, .like = json_type<std::vector<ArgumentInput>>}},
           {"donate", &In::donate, position},
           {"static", &In::statics, {.like = map_of<const Json*>}},
           {"num_partitions", &In::num_partitions, count},
           {"local_num_partitions", &In::local_num_partitions, count},
           {"as_process", &In::as_process, position},
           {"platform", &In::platform},
           {"keywords", &In::keywords, {.like = map_of<const Json*>}},
           {"update", &In::update, {.like = json_type<std::vector<ArrayUpdateInput>>}},
           {"donation", &In::donation, {.words = {"strict", "warn"}}},
           {"reshard", &In::reshard, {.optional = true}},
           {"devices", &In::devices, {.words = {"least_loaded"}}},
           {"callbacks", &In::callbacks, {.like = map_of<CallbackBinding>}},
           {"infeed", &In::infeed, {.like = json_type<std::vector<InfeedEntryInput>>}},
           {"effects", &In::effects, {.words = kEffectModes}},
           {"results", &In::results, {.optional = true}},
           {"session", &In::session},
           {"deadline", &In::deadline, {.low = kShortestDeadlineSeconds, .high = kLongestDeadlineSeconds}},
           {"profile", &In::profile, {.optional = true}},
           {"debug_nans", &In::debug_nans, {.optional = true}},
           {"debug_infs", &In::debug_infs, {.optional = true}},
           {"kept", &In::kept, {.hidden = true}},
           {"in_tree", &In::in_tree, {.hidden = true}}})
    fields.push_back(field);
  return {"RunInput", fields};
}

const SchemaBase& run_input_schema() { return schema<RunInput>(); }

namespace {

void read_program(const Json* given, const JobContext& context, jobs::JobRequest& out, ProgramTrees& trees,
                  core::Diagnostics& wrong) {
  if (given == nullptr) return;
  if (given->as<std::string>() != nullptr) {
    wrong.add("/program",
              R"(expected an object, got a string: {"format": "numpy", "text": "def f(x): ..."} for NumPy syntax, )"
              R"({"text": "..."} for StableHLO, {"id": "prog_..."} for a stored program)");
    return;
  }
  const size_t before = wrong.list().size();
  auto program = read_json<ProgramChoice>(*given, "/program", wrong);
  const ProgramSource source{std::move(program.text), std::move(program.base64), std::move(program.part)};
  if (program.id) {
    if (program.format || source.text || source.is_artifact())
      wrong.add("/program/id", "is given beside format or text; give one or the other");
    const registry::StoredProgram stored = at_pointer("/program/id", [&] {
      return context.was_accepted ? context.programs.get_for_accepted_job(*program.id)
                                  : context.programs.get(*program.id, out.principal);
    });
    out.program = stored.parsed;
    out.program_id = *program.id;
    if (!stored.in_tree.empty()) trees.arguments = Json::parse(stored.in_tree);
    if (!stored.out_tree.empty()) trees.results = Json::parse(stored.out_tree);
  } else if (wrong.list().size() == before) {
    check_source(source, "/program", wrong);
    if (wrong.list().size() != before) return;
    const auto parse = [&](const std::string& text, std::string_view pointer) {
      return core::in_text({}, pointer, [&] {
        return context.compiler.parse(program.format ? program.format->word : "stablehlo", text);
      });
    };
    if (source.text) {
      out.program = parse(*source.text, "/program/text");
      return;
    }
    const auto artifact = read_artifact_source(source, "/program", context.files, context.memory, wrong);
    if (!artifact) return;
    out.program = parse(artifact->text, source.base64 ? "/program/base64" : "/program/part");
    if (!artifact->in_tree.empty()) trees.arguments = Json::parse(artifact->in_tree);
    if (!artifact->out_tree.empty()) trees.results = Json::parse(artifact->out_tree);
  }
}

// The argument that a source means for this request.
std::optional<jobs::Argument> resolve(const DecodedRun::Source& source, const tensor::TensorType* expected,
                                      const JobContext& context, const std::string& principal,
                                      core::Diagnostics& wrong) {
  if (source.value) return *source.value;
  if (source.part) {
    auto value = read_part(*source.part, expected, context.files, source.pointer, wrong);
    return value ? std::optional<jobs::Argument>(std::move(*value)) : std::nullopt;
  }
  return at_pointer(source.pointer, [&] {
    const std::string array = source.of_job ? context.result_array(*source.of_job) : *source.array;
    return jobs::ArrayArgument{context.arrays.find_argument(array, principal, context.was_accepted), source.slices,
                               source.of_job ? source.of_job->job : std::string()};
  });
}

const tensor::TensorType* expected_type(const compile::ParsedProgram* program, size_t number) {
  if (program == nullptr || number >= program->arguments.size()) return nullptr;
  return &program->argument(number).type.tensor;
}

void read_argument_of(const Json& json, const tensor::TensorType* expected, const std::string& pointer,
                      const JobContext& context, jobs::JobRequest& out, std::vector<DecodedRun::Source>& sources,
                      core::Diagnostics& wrong) {
  Argument read = read_argument(json, expected, context.pool, pointer, wrong);
  if (!read.value && !read.part && !read.array && !read.of_job) return;
  if (read.of_job && context.result_array == nullptr) return wrong.add(pointer + "/job", "is for jobs of a session");
  DecodedRun::Source source{pointer,      std::move(read.value), std::move(read.part), std::move(read.array),
                            std::nullopt, std::move(read.of_job)};
  auto argument = resolve(source, expected, context, out.principal, wrong);
  if (!argument) return;
  if (read.slice) {
    auto& stored = std::get<jobs::ArrayArgument>(*argument);
    try {
      stored.slices = arrays::parse_slices(*read.slice, stored.array->info().type.dims);
      source.slices = stored.slices;
    } catch (const core::Error& error) {
      return wrong.add(pointer + "/slice", error.detail());
    }
  }
  out.arguments.push_back(std::move(*argument));
  sources.push_back(std::move(source));
}

// What is known of an argument that was not read: of a value its dtype and shape, of a list its shape.
jobs::GivenArgument given_argument(const Json& json, const JobContext& context, const std::string& principal) {
  jobs::GivenArgument out;
  core::Diagnostics unread;
  if (const Json* array = json.find("array"); array != nullptr && array->as<std::string>() != nullptr) {
    try {
      const DecodedRun::Source source{{}, std::nullopt, std::nullopt, *array->as<std::string>(), std::nullopt};
      const auto argument = resolve(source, nullptr, context, principal, unread);
      const auto& type = std::get<jobs::ArrayArgument>(*argument).array->info().type;
      out.dtype = type.dtype;
      if (json.find("slice") == nullptr) out.dims = type.dims;
    } catch (const core::Error&) {
      // An array that is not there fits wherever it stands.
    }
    return out;
  }
  if (json.as<JsonObject>() == nullptr) {
    if (const auto type = inferred_type(json, "", unread)) out.dims = type->dims;
    return out;
  }
  const auto read = read_json<ArgumentInput>(json, "", unread);
  return {read.dtype, read.shape};
}

// Where the list is not as long as the program's, nothing of it is read.
void check_count(const Json& arguments, const compile::ParsedProgram& program, const JobContext& context,
                 const std::string& principal) {
  if (!arguments.is_array() || arguments.size() == program.arguments.size()) return;
  std::vector<jobs::GivenArgument> given;
  arguments.each([&](size_t, const Json& argument) {
    given.push_back(given_argument(argument, context, principal));
    return true;
  });
  jobs::check_argument_count(program, given);
}

// Values that are constants of the program: {"1": 3}, by position among all arguments. The program that is run takes
// the others. Gives the static positions, ascending.
std::vector<int64_t> read_static(const Json* given, const JobContext& context, jobs::JobRequest& out,
                                 core::Diagnostics& wrong) {
  std::vector<int64_t> positions;
  const JsonObject* object =
      out.program == nullptr || given == nullptr ? nullptr : expect_object(*given, "/static", wrong);
  if (object == nullptr) return positions;
  const auto count = static_cast<int64_t>(out.program->arguments.size());
  std::map<size_t, tensor::DenseValue> values;
  for (const auto& [key, value] : *object) {
    if (!has_room(wrong)) break;
    const std::string pointer = "/static/" + pointer_token(key);
    const auto position = whole_number(key);
    if (!position) {
      wrong.add(pointer, R"(names of static arguments are their positions: "0", "1", ...)");
    } else if (*position >= count) {
      wrong.add(pointer, fmt::format("static argument {}, but there {}", *position, call_plan::only_positional(count)));
    } else if (auto read = read_value(value, &out.program->argument(static_cast<size_t>(*position)).type.tensor,
                                      context.pool, pointer, wrong)) {
      positions.push_back(*position);
      values.emplace(static_cast<size_t>(*position), std::move(*read));
    }
  }
  std::sort(positions.begin(), positions.end());
  if (wrong.empty()) out.program = context.compiler.with_static(out.program, values);
  out.statics = std::move(values);
  return positions;
}

// The type of what the program is given for an argument.
tensor::TensorType type_of(const jobs::Argument& argument) {
  if (const auto* value = std::get_if<tensor::DenseValue>(&argument)) return value->type;
  const auto& stored = std::get<jobs::ArrayArgument>(argument);
  tensor::TensorType type = stored.array->info().type;
  if (stored.slices) {
    type.dims = arrays::slice_dims(*stored.slices);
  }
  return type;
}

// Arguments of a program of NumPy syntax, whose types it is traced for.
numpy::Inputs read_numpy(const RunInput& in, const JobContext& context, jobs::JobRequest& out,
                         std::vector<DecodedRun::Source>& sources, core::Diagnostics& wrong) {
  const auto take = [&](const Json& json, const tensor::TensorType* expected,
                        const std::string& pointer) -> std::optional<tensor::TensorType> {
    const size_t before = out.arguments.size();
    // {"dtype", "data"} has the shape of its lists.
    const Json* data = json.find("data");
    const Json* dtype = json.find("dtype");
    std::optional<tensor::TensorType> shaped;
    if (data != nullptr && dtype != nullptr && json.as<JsonObject>()->size() == 2) {
      shaped = inferred_type(*data, pointer + "/data", wrong);
      if (!shaped || !JsonCodec<tensor::DType>::read(*dtype, {json_type<tensor::DType>(), pointer + "/dtype", wrong},
                                                     shaped->dtype))
        return std::nullopt;
    }
    if (shaped) {
      read_argument_of(*data, &*shaped, pointer + "/data", context, out, sources, wrong);
    } else {
      read_argument_of(json, expected, pointer, context, out, sources, wrong);
    }
    if (out.arguments.size() == before) return std::nullopt;
    return type_of(out.arguments.back());
  };
  return read_numpy_arguments(*out.program->numpy, in.arguments, in.keywords, in.statics, take, wrong);
}

// The mesh that partition specs of a program are over: the request's, the session's, or that of its first array.
std::optional<mesh::Mesh> mesh_of_specs(const jobs::JobRequest& request, const JobContext& context) {
  if (request.mesh) return request.mesh;
  for (const jobs::Argument& argument : request.arguments) {
    const auto* stored = std::get_if<jobs::ArrayArgument>(&argument);
    if (stored != nullptr && stored->array->info().committed && !stored->array->info().sharding.mesh->axes.empty())
      return *stored->array->info().sharding.mesh;
  }
  if (context.session_mesh != nullptr && !context.session_mesh->is_empty()) return *context.session_mesh;
  return std::nullopt;
}

// Effects that the request does not bind are entries of the log that are named by their texts.
void bind_logs(jobs::JobRequest& out) {
  for (size_t i = 0; i < out.program->logs.size(); ++i) {
    effects::Binding binding;
    binding.kind = effects::find_effect_kind("log");
    binding.name = out.program->logs[i];
    out.callbacks.emplace(static_cast<int64_t>(i), std::move(binding));
  }
}

void read_partitions(const RunInput& in, jobs::JobRequest& out) {
  out.num_partitions = in.num_partitions;
  out.local_num_partitions = in.local_num_partitions;
  out.as_process = in.as_process;
  if (out.as_process) out.processes.check(*out.as_process);
  if (in.platform && *in.platform != "cpu") {
    throw core::Error("not_implemented",
                      fmt::format("not supported for platform {}; there is cpu", quote(*in.platform)));
  }
  if (in.keywords != nullptr && out.program->numpy == nullptr)
    throw core::Error("not_implemented", "keyword arguments are not implemented; pass them positionally");
}

// Positions count all arguments, static ones too (behaviours P10 to P13).
void read_donation(const RunInput& in, const std::vector<int64_t>& statics, size_t dynamic_count, jobs::JobRequest& out,
                   core::Diagnostics& wrong) {
  if (!in.donate) return;
  try {
    out.donate =
        call_plan::rebase_donation(in.donate->values, statics, static_cast<int64_t>(dynamic_count + statics.size()));
  } catch (const core::Error& error) {
    wrong.add("/donate", error.detail());
  }
}

// Arrays that the job updates.
void read_updates(const Json* update, const std::vector<int64_t>& statics, jobs::JobRequest& out,
                  core::Diagnostics& wrong) {
  if (update == nullptr) return;
  each_entry(*update, "/update", wrong, [&](size_t, const Json& item, const std::string& pointer) {
    const size_t before = wrong.list().size();
    const auto read = read_json<ArrayUpdateInput>(item, pointer, wrong);
    if (wrong.list().size() != before) return;
    if (std::find(statics.begin(), statics.end(), read.argument) != statics.end()) {
      return wrong.add(pointer + "/argument", "is static, which arrays that are updated are not");
    }
    const auto taken = std::count_if(statics.begin(), statics.end(), [&](int64_t s) { return s < read.argument; });
    out.updates.push_back({static_cast<size_t>(read.argument - taken), static_cast<size_t>(read.result), read.version});
  });
}

// For each call of a callback the values it gives back.
std::vector<std::vector<tensor::DenseValue>> read_answers(const Json& answers, const std::string& pointer,
                                                          const JobContext& context, core::Diagnostics& wrong) {
  std::vector<std::vector<tensor::DenseValue>> out;
  each_entry(answers, pointer, wrong, [&](size_t, const Json& list, const std::string& call) {
    std::vector<tensor::DenseValue>& values = out.emplace_back();
    each_entry(list, call, wrong, [&](size_t, const Json& value, const std::string& place) {
      if (auto read = read_form_value(value, nullptr, context.files, context.pool, place, wrong))
        values.push_back(std::move(*read));
    });
  });
  return out;
}

void read_callbacks(const Json* callbacks, const JobContext& context, jobs::JobRequest& out, core::Diagnostics& wrong) {
  const JsonObject* object = callbacks == nullptr ? nullptr : expect_object(*callbacks, "/callbacks", wrong);
  if (object == nullptr) return;
  for (const auto& [key, value] : *object) {
    if (!has_room(wrong)) break;
    const std::string pointer = "/callbacks/" + pointer_token(key);
    const auto index = whole_number(key);
    if (!index) wrong.add(pointer, R"(names of callbacks are their numbers in the program: "0", "1", ...)");
    const auto read = read_json<CallbackBinding>(value, pointer, wrong);
    effects::Binding binding;
    binding.name = read.name.value_or("callback_" + key);
    binding.live = read.live;
    binding.kind = effects::find_effect_kind(read.effect);
    if (binding.kind == nullptr && !read.effect.empty()) {
      throw core::Error("unsupported_effect",
                        fmt::format("{}/effect: {} is no effect that is known here; /v1/effects lists them", pointer,
                                    quote(read.effect)));
    }
    if (read.answers != nullptr) binding.answers = read_answers(*read.answers, pointer + "/answers", context, wrong);
    if (index && binding.kind != nullptr) out.callbacks.emplace(*index, std::move(binding));
  }
}

// What infeeds take before anything of the session's queues.
void read_infeed(const Json* infeed, const JobContext& context, jobs::JobRequest& out, core::Diagnostics& wrong) {
  if (infeed == nullptr) return;
  each_entry(*infeed, "/infeed", wrong, [&](size_t, const Json& item, const std::string& pointer) {
    const auto read = read_json<InfeedEntryInput>(item, pointer, wrong);
    if (item.as<JsonObject>() == nullptr) return;
    out.infeeds.push_back(infeed_entry(read, pointer,
                                       {context.arrays, context.pool, out.principal, &out.fed_arrays,
                                        out.infeeds.size(), context.was_accepted, context.files},
                                       wrong));
  });
}

void apply_results(const ResultOptions& results, jobs::JobRequest& out, core::Diagnostics& wrong) {
  const std::string encoding = results.encoding.value_or("json");
  out.form.base64 = encoding == "base64";
  if (encoding == "array") out.results = jobs::ResultMode::kArray;
  if (encoding == "none") out.results = jobs::ResultMode::kNone;
  if (results.durability) out.durability = durability_of(*results.durability);
  if (results.names && encoding != "array")
    wrong.add("/results/names", R"(is for results that are stored: "encoding": "array")");
  if (results.names) out.result_names = *results.names;
}

// The session's mesh where the program can run on it: it has none of its own, or one of the same axes, and as many
// devices as all of its meshes need.
std::optional<mesh::Mesh> fitting_mesh(const compile::ParsedProgram& program, const mesh::Mesh& mesh) {
  if (mesh.is_empty() || mesh.position_count() < compile::device_span(*program.module)) return std::nullopt;
  const auto own = compile::real_meshes(*program.module);
  for (const ir::NamedMesh* named : own) {
    if (named->mesh->axes == mesh.axes) return mesh;
  }
  return own.empty() ? std::optional(mesh) : std::nullopt;
}

// Nothing of them is looked up, or changes with the session or with the files beside the document.
bool can_be_repeated(const RunInput& in, const jobs::JobRequest& request, const MeshFinder& meshes) {
  return meshes.found().empty() && in.program->find("part") == nullptr && request.session.empty() &&
         in.statics == nullptr && in.callbacks == nullptr && in.infeed == nullptr && in.update == nullptr;
}

DecodedRun decoded_run(const jobs::JobRequest& request, std::vector<DecodedRun::Source> arguments) {
  DecodedRun out;
  out.request = request;
  out.request.arguments.clear();
  out.request.program.reset();
  out.program = request.program;
  out.arguments = std::move(arguments);
  // The request that was decoded may write its values.
  for (DecodedRun::Source& source : out.arguments) {
    if (source.value) source.value = tensor::dense_copy(source.value->type, source.value->bytes());
  }
  return out;
}

}  // namespace

std::optional<jobs::JobRequest> decode_again(const DecodedRun& run, const JobContext& context) {
  jobs::JobRequest out = run.request;
  out.program = run.program.lock();
  if (out.program == nullptr) return std::nullopt;
  if (!out.program_id.empty()) {
    const compile::ParsedRef stored = context.programs.get(out.program_id, out.principal).parsed;
    const bool is_same = stored == out.program || (stored->numpy != nullptr && stored->numpy == out.program->numpy);
    if (!is_same) return std::nullopt;
  }
  core::Diagnostics wrong;
  for (const DecodedRun::Source& source : run.arguments) {
    if (source.value) {
      out.arguments.emplace_back(tensor::dense_copy(source.value->type, source.value->bytes(), context.pool));
    } else if (auto argument = resolve(source, expected_type(out.program.get(), out.arguments.size()), context,
                                       out.principal, wrong)) {
      out.arguments.push_back(std::move(*argument));
    }
  }
  wrong.throw_if_any("invalid_request");
  return out;
}

jobs::JobRequest decode_job(const Json& body, const std::string& principal, const std::string& session,
                            const JobContext& context, std::shared_ptr<DecodedRun>* again) {
  core::Diagnostics wrong;
  jobs::JobRequest out;
  std::vector<DecodedRun::Source> sources;
  out.principal = principal;
  const auto in = read_json<RunInput>(body, "", wrong);
  ProgramTrees trees;
  read_program(in.program, context, out, trees, wrong);
  // How an argument is read depends on what the program expects.
  if (out.program == nullptr) wrong.throw_if_any("invalid_request");
  const bool is_numpy = out.program->numpy != nullptr;
  const std::vector<int64_t> statics = is_numpy ? std::vector<int64_t>() : read_static(in.statics, context, out, wrong);
  size_t argument_count = 0;
  numpy::Inputs inputs;
  if (is_numpy) {
    inputs = read_numpy(in, context, out, sources, wrong);
    argument_count = out.arguments.size();
  } else if (in.arguments != nullptr && trees.arguments) {
    if (!statics.empty()) throw core::Error("unsupported_field", "/static: not beside a tree of arguments yet");
    for (const TreeLeaf& leaf : flatten(*trees.arguments, *in.arguments, "/arguments"))
      read_argument_of(leaf.value, expected_type(out.program.get(), argument_count++), leaf.pointer, context, out,
                       sources, wrong);
  } else if (in.arguments != nullptr) {
    argument_count = in.arguments->size();
    if (wrong.empty()) check_count(*in.arguments, *out.program, context, principal);
    each_entry(*in.arguments, "/arguments", wrong, [&](size_t i, const Json& argument, const std::string& pointer) {
      read_argument_of(argument, expected_type(out.program.get(), i), pointer, context, out, sources, wrong);
    });
  }
  read_assignment(in, out, context.meshes, wrong, trees);
  if (is_numpy) {
    wrong.throw_if_any("invalid_request");
    out.program = core::in_text({}, out.program_id.empty() ? "/program/text" : "/program/id", [&] {
      out.trace = {std::move(inputs), mesh_of_specs(out, context)};
      return context.compiler.trace(out.program, out.trace->inputs, out.trace->mesh);
    });
    if (!out.program->result_tree.empty()) trees.results = Json::parse(out.program->result_tree);
  }
  out.least_loaded = in.devices.has_value();
  out.processes = context.processes;
  read_partitions(in, out);
  if (!out.mesh && context.session_mesh != nullptr && out.program != nullptr && in.meshes == nullptr && wrong.empty() &&
      !jobs::asks_for_parts(out))
    out.mesh = fitting_mesh(*out.program, *context.session_mesh);
  if (trees.results) out.form.result_tree = numbered_tree(*trees.results);
  read_donation(in, statics, argument_count, out, wrong);
  read_updates(in.update, statics, out, wrong);
  out.strict_donation = in.donation == "strict";
  out.reshard = in.reshard;
  read_callbacks(in.callbacks, context, out, wrong);
  if (is_numpy) bind_logs(out);
  read_infeed(in.infeed, context, out, wrong);
  apply_results(in.results, out, wrong);
  out.session = !session.empty() ? session : in.session.value_or("");
  if (!session.empty() && in.session && *in.session != session)
    wrong.add("/session", "is another session than the path's");
  if (in.effects) {
    out.effects = effect_mode_of(*in.effects);
    if (out.effects == storage::EffectMode::kStreaming && out.session.empty())
      wrong.add("/effects", "effects are streamed to the log of a session: name one in \"session\"");
  }
  if (in.deadline) out.deadline = std::chrono::milliseconds(static_cast<int64_t>(*in.deadline * 1000));
  out.profile = in.profile;
  out.nonfinite = {.nans = in.debug_nans, .infinities = in.debug_infs};
  if (in.kept != nullptr) throw core::Error("unsupported_field", "/kept is not supported yet");
  if (in.in_tree != nullptr) throw core::Error("unsupported_field", "/in_tree is not supported yet");
  wrong.throw_if_any("invalid_request");
  if (again != nullptr && can_be_repeated(in, out, context.meshes))
    *again = std::make_shared<DecodedRun>(decoded_run(out, std::move(sources)));
  return out;
}

}  // namespace meshd::api
