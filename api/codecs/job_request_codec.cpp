#include "api/codecs/job_request_codec.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/array_document.h"
#include "api/codecs/assignment_codec.h"
#include "api/codecs/infeed_codec.h"
#include "api/codecs/program_codec.h"
#include "api/codecs/trees.h"
#include "api/codecs/value.h"
#include "service/compile/rewrite/static_arguments.h"
#include "service/jobs/call_plan.h"
#include "service/jobs/parts_assignment.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {

namespace call_plan = jobs::call_plan;

namespace {

constexpr double kShortestDeadlineSeconds = 0.001;
constexpr double kLongestDeadlineSeconds = 86'400;

struct ProgramChoice {
  std::optional<std::string> id, text;
  std::optional<ProgramFormat> format;
};

struct ResultOptions {
  std::optional<std::string> encoding, durability;
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
  std::optional<std::string> donation, devices, session;
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
const Schema<ProgramChoice>& schema() {
  static const Schema<ProgramChoice> kSchema{
      "ProgramChoice",
      {{"id", &ProgramChoice::id}, {"format", &ProgramChoice::format}, {"text", &ProgramChoice::text}}};
  return kSchema;
}

template <>
const Schema<ResultOptions>& schema() {
  static const Schema<ResultOptions> kSchema{
      "ResultOptions",
      {{"encoding", &ResultOptions::encoding, {.words = {"json", "base64", "array", "none"}}},
       {"durability", &ResultOptions::durability, {.words = kDurabilities}}}};
  return kSchema;
}

template <>
const Schema<ArrayUpdateInput>& schema() {
  static const Schema<ArrayUpdateInput> kSchema{
      "ArrayUpdate",
      {{"argument", &ArrayUpdateInput::argument, {.low = 0, .high = INT32_MAX}},
       {"result", &ArrayUpdateInput::result, {.low = 0, .high = INT32_MAX}},
       {"version", &ArrayUpdateInput::version, {.low = 1}}}};
  return kSchema;
}

template <>
const Schema<CallbackBinding>& schema() {
  static const Schema<CallbackBinding> kSchema{
      "CallbackBinding",
      {{"effect", &CallbackBinding::effect},
       {"name", &CallbackBinding::name},
       {"answers", &CallbackBinding::answers, {.like = json_type<std::vector<std::vector<ValueInput>>>}},
       {"live", &CallbackBinding::live, {.optional = true}}}};
  return kSchema;
}

template <>
const Schema<RunInput>& schema() {
  using In = RunInput;
  static const Schema<RunInput> kSchema = [] {
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
             {"results", &In::results, {.optional = true}},
             {"session", &In::session},
             {"deadline", &In::deadline, {.low = kShortestDeadlineSeconds, .high = kLongestDeadlineSeconds}},
             {"profile", &In::profile, {.optional = true}},
             {"debug_nans", &In::debug_nans, {.optional = true}},
             {"debug_infs", &In::debug_infs, {.optional = true}},
             {"kept", &In::kept, {.hidden = true}},
             {"in_tree", &In::in_tree, {.hidden = true}}})
      fields.push_back(field);
    return Schema<RunInput>("RunInput", fields);
  }();
  return kSchema;
}

const SchemaBase& run_input_schema() { return schema<RunInput>(); }

namespace {

void read_program(const Json* given, const JobContext& context, jobs::JobRequest& out, ProgramTrees& trees,
                  core::Diagnostics& wrong) {
  if (given == nullptr) return;
  const size_t before = wrong.list().size();
  const auto program = read_json<ProgramChoice>(*given, "/program", wrong);
  if (program.id) {
    if (program.format || program.text) wrong.add("/program/id", "stands beside format or text; give one or the other");
    const registry::StoredProgram stored = context.was_accepted ? context.programs.get_for_accepted_job(*program.id)
                                                                : context.programs.get(*program.id, out.principal);
    out.program = stored.parsed;
    out.program_id = *program.id;
    if (!stored.in_tree.empty()) trees.arguments = Json::parse(stored.in_tree);
    if (!stored.out_tree.empty()) trees.results = Json::parse(stored.out_tree);
  } else if (program.text) {
    out.program = context.compiler.parse(program.format ? program.format->word : "stablehlo", *program.text);
  } else if (wrong.list().size() == before) {
    wrong.add("/program/text", "is missing");
  }
}

void read_argument_of(const Json& json, size_t number, const std::string& pointer, const JobContext& context,
                      jobs::JobRequest& out, core::Diagnostics& wrong) {
  const tensor::TensorType* expected = nullptr;
  if (out.program != nullptr && number < out.program->arguments.size())
    expected = &out.program->argument(number).type.tensor;
  Argument read = read_argument(json, expected, context.pool, pointer, wrong);
  if (read.value) out.arguments.emplace_back(std::move(*read.value));
  if (!read.array) return;
  jobs::ArrayArgument argument{context.was_accepted ? context.arrays.find_kept(*read.array, out.principal)
                                                    : context.arrays.find(*read.array, out.principal),
                               std::nullopt};
  if (read.slice) {
    try {
      argument.slices = arrays::parse_slices(*read.slice, argument.array->info().type.dims);
    } catch (const core::Error& error) {
      return wrong.add(pointer + "/slice", error.detail());
    }
  }
  out.arguments.emplace_back(std::move(argument));
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
  return positions;
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
  if (in.keywords != nullptr)
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
                                                          tensor::BufferPool& pool, core::Diagnostics& wrong) {
  std::vector<std::vector<tensor::DenseValue>> out;
  each_entry(answers, pointer, wrong, [&](size_t, const Json& list, const std::string& call) {
    std::vector<tensor::DenseValue>& values = out.emplace_back();
    each_entry(list, call, wrong, [&](size_t, const Json& value, const std::string& place) {
      if (auto read = read_value(value, nullptr, pool, place, wrong)) values.push_back(std::move(*read));
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
    if (read.answers != nullptr)
      binding.answers = read_answers(*read.answers, pointer + "/answers", context.pool, wrong);
    if (index && binding.kind != nullptr) out.callbacks.emplace(*index, std::move(binding));
  }
}

// What infeeds take before anything of the session's queues.
void read_infeed(const Json* infeed, const JobContext& context, jobs::JobRequest& out, core::Diagnostics& wrong) {
  if (infeed == nullptr) return;
  each_entry(*infeed, "/infeed", wrong, [&](size_t, const Json& item, const std::string& pointer) {
    const auto read = read_json<InfeedEntryInput>(item, pointer, wrong);
    if (item.as<JsonObject>() == nullptr) return;
    out.infeeds.push_back(infeed_entry(
        read, pointer, {context.arrays, context.pool, out.principal, &out.fed_arrays, context.was_accepted}, wrong));
  });
}

void apply_results(const ResultOptions& results, jobs::JobRequest& out, ResultForm& form) {
  const std::string encoding = results.encoding.value_or("json");
  form.base64 = encoding == "base64";
  if (encoding == "array") out.results = jobs::ResultMode::kArray;
  if (encoding == "none") out.results = jobs::ResultMode::kNone;
  if (results.durability) out.durability = durability_of(*results.durability);
}

// The session's mesh where the program can run on it: it has none of its own, or one of the same axes.
std::optional<mesh::Mesh> fitting_mesh(const compile::ParsedProgram& program, const mesh::Mesh& mesh) {
  if (mesh.is_empty()) return std::nullopt;
  const auto own = compile::real_meshes(*program.module);
  for (const ir::NamedMesh* named : own) {
    if (named->mesh->axes == mesh.axes) return mesh;
  }
  return own.empty() ? std::optional(mesh) : std::nullopt;
}

// What a job's row keeps to decode it again, where the session had a mesh; else it keeps the body alone.
struct KeptDocument {
  Raw session_mesh, body;
};

}  // namespace

template <>
const Schema<KeptDocument>& schema() {
  static const Schema<KeptDocument> kSchema{
      "KeptDocument", {{"session_mesh", &KeptDocument::session_mesh}, {"body", &KeptDocument::body}}};
  return kSchema;
}

std::string kept_document(const std::string& body, const mesh::Mesh* session_mesh) {
  if (session_mesh == nullptr || session_mesh->is_empty()) return body;
  return to_json(KeptDocument{{mesh::to_document(*session_mesh)}, {body}});
}

std::pair<Json, std::optional<mesh::Mesh>> open_kept_document(const std::string& document) {
  Json json = Json::parse(document, kInlineLimits);
  const auto* object = json.as<JsonObject>();
  // No body has a field of this name: it would have been refused.
  if (object == nullptr || object->size() != 2 || object->front().first != "session_mesh")
    return {std::move(json), std::nullopt};
  core::Diagnostics wrong;
  auto mesh = read_mesh(object->front().second, "/session_mesh", wrong);
  wrong.throw_if_any("internal");
  return {object->back().second, std::move(mesh)};
}

std::pair<jobs::JobRequest, ResultForm> decode_job(const Json& body, const std::string& principal,
                                                   const std::string& session, const JobContext& context) {
  core::Diagnostics wrong;
  jobs::JobRequest out;
  ResultForm form;
  out.principal = principal;
  const auto in = read_json<RunInput>(body, "", wrong);
  ProgramTrees trees;
  read_program(in.program, context, out, trees, wrong);
  // How an argument is read depends on what the program expects.
  if (out.program == nullptr) wrong.throw_if_any("invalid_request");
  const std::vector<int64_t> statics = read_static(in.statics, context, out, wrong);
  size_t argument_count = 0;
  if (in.arguments != nullptr && trees.arguments) {
    if (!statics.empty()) throw core::Error("unsupported_field", "/static: not beside a tree of arguments yet");
    for (const TreeLeaf& leaf : flatten(*trees.arguments, *in.arguments, "/arguments"))
      read_argument_of(leaf.value, argument_count++, leaf.pointer, context, out, wrong);
  } else if (in.arguments != nullptr) {
    argument_count = in.arguments->size();
    each_entry(*in.arguments, "/arguments", wrong, [&](size_t i, const Json& argument, const std::string& pointer) {
      read_argument_of(argument, i, pointer, context, out, wrong);
    });
  }
  read_assignment(in, out, wrong, trees);
  out.least_loaded = in.devices.has_value();
  out.processes = context.processes;
  read_partitions(in, out);
  if (!out.mesh && context.session_mesh != nullptr && out.program != nullptr && in.meshes == nullptr && wrong.empty() &&
      !jobs::asks_for_parts(out))
    out.mesh = fitting_mesh(*out.program, *context.session_mesh);
  if (trees.results) form.result_tree = numbered_tree(*trees.results);
  read_donation(in, statics, argument_count, out, wrong);
  read_updates(in.update, statics, out, wrong);
  out.strict_donation = in.donation == "strict";
  out.reshard = in.reshard;
  read_callbacks(in.callbacks, context, out, wrong);
  read_infeed(in.infeed, context, out, wrong);
  apply_results(in.results, out, form);
  out.session = !session.empty() ? session : in.session.value_or("");
  if (!session.empty() && in.session && *in.session != session)
    wrong.add("/session", "is another session than the path's");
  if (in.deadline) out.deadline = std::chrono::milliseconds(static_cast<int64_t>(*in.deadline * 1000));
  out.profile = in.profile;
  out.nonfinite = {.nans = in.debug_nans, .infinities = in.debug_infs};
  if (in.kept != nullptr) throw core::Error("unsupported_field", "/kept is not supported yet");
  if (in.in_tree != nullptr) throw core::Error("unsupported_field", "/in_tree is not supported yet");
  wrong.throw_if_any("invalid_request");
  return {std::move(out), form};
}

}  // namespace meshd::api
