#include "api/codecs/job_codec.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "api/codecs/infeed_codec.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/trees.h"
#include "api/codecs/value.h"
#include "service/compile/rewrite/static_arguments.h"
#include "service/effects/effect_log.h"
#include "service/jobs/call_plan.h"
#include "service/jobs/parts_assignment.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {

namespace call_plan = jobs::call_plan;

const JsonLimits kJobLimits{64, 64'000'000};

namespace {

// A day is the longest deadline that can be asked for.
constexpr double kLongestDeadlineSeconds = 86'400;

tensor::BufferRef to_buffer(const std::vector<std::byte>& bytes, tensor::BufferPool& pool) {
  tensor::BufferRef buffer = pool.allocate(static_cast<int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

void read_program(ObjectReader& reader, const JobContext& context, jobs::JobRequest& out, ProgramTrees& trees,
                  core::Diagnostics& wrong) {
  const Json* program = reader.field("program");
  if (program == nullptr) return reader.missing("program");
  ObjectReader fields(*program, reader.pointer("program"), wrong);
  const auto id = fields.string("id");
  const auto format = fields.string("format");
  const auto text = fields.string("text");
  fields.finish();
  if (id) {
    if (format || text) wrong.add(fields.pointer("id"), "stands beside format or text; give one or the other");
    const registry::StoredProgram stored =
        context.was_accepted ? context.programs.get_for_accepted_job(*id) : context.programs.get(*id, out.principal);
    out.program = stored.parsed;
    out.program_id = *id;
    if (!stored.in_tree.empty()) trees.arguments = Json::parse(stored.in_tree);
    if (!stored.out_tree.empty()) trees.results = Json::parse(stored.out_tree);
  } else if (text) {
    out.program = context.compiler.parse(format.value_or("stablehlo"), *text);
  } else {
    fields.missing("text");
  }
}

void read_argument(const Json& json, size_t number, const std::string& pointer, const JobContext& context,
                   jobs::JobRequest& out, core::Diagnostics& wrong) {
  const auto* object = json.as<JsonObject>();
  bool is_array = false;
  if (object != nullptr) {
    for (const auto& [key, value] : *object) is_array = is_array || key == "array";
  }
  if (is_array) {
    ObjectReader reader(json, pointer, wrong);
    const auto id = reader.string("array");
    const auto slice = reader.string("slice");
    reader.finish();
    if (!id) return;
    jobs::ArrayArgument argument{context.arrays.find(*id, out.principal), std::nullopt};
    if (slice) {
      try {
        argument.slices = arrays::parse_slices(*slice, argument.array->info().type.dims);
      } catch (const core::Error& error) {
        wrong.add(reader.pointer("slice"), error.detail());
        return;
      }
    }
    out.arguments.emplace_back(std::move(argument));
    return;
  }
  const tensor::TensorType* expected = nullptr;
  if (out.program != nullptr && number < out.program->arguments.size())
    expected = &out.program->argument(number).type.tensor;
  if (auto value = read_value(json, expected, pointer, wrong)) {
    out.arguments.emplace_back(jobs::InlineArgument{value->type, to_buffer(value->bytes, context.pool)});
  }
}

// A list with an entry for each value; or, where the program has a tree, a prefix of it.
std::vector<std::optional<jobs::NamedSpec>> read_specs(ObjectReader& reader, std::string_view name,
                                                       const std::optional<Json>& tree, core::Diagnostics& wrong) {
  std::vector<std::optional<jobs::NamedSpec>> out;
  const Json* list = reader.field(name);
  if (list == nullptr) return out;
  if (tree) {
    for (const TreeLeaf& leaf : flatten_specs(*list, *tree, Leaves::kStars, reader.pointer(name)))
      out.push_back(leaf.value.is_null() ? std::nullopt : read_spec(leaf.value, leaf.pointer, wrong));
    return out;
  }
  if (!list->is_array()) wrong.add(reader.pointer(name), "expected a list, got " + std::string(list->kind_name()));
  for (size_t i = 0; i < list->size() && has_room(wrong); ++i) {
    const Json item = list->at(i);
    // Some generated clients drop nulls from lists; an object without fields says the same.
    const auto* object = item.as<JsonObject>();
    const bool open = item.is_null() || (object != nullptr && object->empty());
    out.push_back(open ? std::nullopt : read_spec(item, reader.pointer(name) + "/" + std::to_string(i), wrong));
  }
  return out;
}

// Values that are constants of the program: {"1": 3}, by position among all arguments. The program that is run takes
// the others. Gives the static positions, ascending.
std::vector<int64_t> read_static(ObjectReader& reader, jobs::JobRequest& out, core::Diagnostics& wrong) {
  std::vector<int64_t> positions;
  const Json* given = reader.field("static");
  if (given == nullptr || out.program == nullptr) return positions;
  const auto* object = given->as<JsonObject>();
  if (object == nullptr) {
    wrong.add("/static", "expected an object, got " + std::string(given->kind_name()));
    return positions;
  }
  const auto count = static_cast<int64_t>(out.program->arguments.size());
  std::map<size_t, compile::StaticValue> values;
  for (const auto& [key, value] : *object) {
    if (!has_room(wrong)) break;
    const std::string pointer = "/static/" + pointer_token(key);
    int64_t position = -1;
    if (std::from_chars(key.data(), key.data() + key.size(), position).ptr != key.data() + key.size()) position = -1;
    if (position < 0) {
      wrong.add(pointer, "names of static arguments are their positions: \"0\", \"1\", ...");
    } else if (position >= count) {
      wrong.add(pointer,
                "static argument " + std::to_string(position) + ", but there " + call_plan::only_positional(count));
    } else if (auto read = read_value(value, &out.program->argument(static_cast<size_t>(position)).type.tensor, pointer,
                                      wrong)) {
      positions.push_back(position);
      values.emplace(static_cast<size_t>(position), compile::StaticValue{read->type, std::move(read->bytes)});
    }
  }
  std::sort(positions.begin(), positions.end());
  if (wrong.empty()) out.program = compile::with_static(out.program, values);
  return positions;
}

void read_partitions(ObjectReader& reader, jobs::JobRequest& out) {
  out.num_partitions = reader.integer("num_partitions", 1, INT32_MAX);
  out.local_num_partitions = reader.integer("local_num_partitions", 1, INT32_MAX);
  out.as_process = reader.integer("as_process", 0, INT32_MAX);
  if (out.as_process) out.processes.check(*out.as_process);
  if (const auto platform = reader.string("platform"); platform && *platform != "cpu")
    throw core::Error("not_implemented", "not supported for platform " + quote(*platform) + "; there is cpu");
  if (reader.field("keywords") != nullptr)
    throw core::Error("not_implemented", "keyword arguments are not implemented; pass them positionally");
}

// Positions count all arguments, static ones too (behaviours P10 to P13).
void read_donation(ObjectReader& reader, const std::vector<int64_t>& statics, size_t dynamic_count,
                   jobs::JobRequest& out, core::Diagnostics& wrong) {
  const Json* donate = reader.field("donate");
  if (donate == nullptr) return;
  std::vector<int64_t> positions;
  if (donate->as<JsonNumber>() != nullptr) {
    if (const auto one = reader.integer("donate", 0, INT32_MAX)) positions = {*one};
  } else {
    positions = reader.integers("donate").value_or(std::vector<int64_t>{});
  }
  try {
    out.donate = call_plan::rebase_donation(positions, statics, static_cast<int64_t>(dynamic_count + statics.size()));
  } catch (const core::Error& error) {
    wrong.add("/donate", error.detail());
  }
}

// Arrays that the job updates, by the position of the argument (static ones counted) and of the result.
void read_updates(ObjectReader& reader, const std::vector<int64_t>& statics, jobs::JobRequest& out,
                  core::Diagnostics& wrong) {
  const Json* update = reader.field("update");
  if (update == nullptr) return;
  if (!update->is_array())
    wrong.add(reader.pointer("update"), "expected a list, got " + std::string(update->kind_name()));
  for (size_t i = 0; i < update->size() && has_room(wrong); ++i) {
    const Json item = update->at(i);
    ObjectReader fields(item, reader.pointer("update") + "/" + std::to_string(i), wrong);
    const auto argument = fields.integer("argument", 0, INT32_MAX);
    const auto result = fields.integer("result", 0, INT32_MAX);
    const auto version = fields.integer("version", 1, INT64_MAX);
    if (fields.field("argument") == nullptr) fields.missing("argument");
    if (fields.field("result") == nullptr) fields.missing("result");
    fields.finish();
    if (!argument || !result) continue;
    if (std::find(statics.begin(), statics.end(), *argument) != statics.end()) {
      wrong.add(fields.pointer("argument"), "is static, which arrays that are updated are not");
      continue;
    }
    const auto before = std::count_if(statics.begin(), statics.end(), [&](int64_t s) { return s < *argument; });
    out.updates.push_back({static_cast<size_t>(*argument - before), static_cast<size_t>(*result), version});
  }
}

void read_callbacks(ObjectReader& reader, jobs::JobRequest& out, core::Diagnostics& wrong) {
  const Json* callbacks = reader.field("callbacks");
  if (callbacks == nullptr) return;
  const auto* object = callbacks->as<JsonObject>();
  if (object == nullptr) {
    wrong.add(reader.pointer("callbacks"), "expected an object, got " + std::string(callbacks->kind_name()));
    return;
  }
  for (const auto& [key, value] : *object) {
    if (!has_room(wrong)) break;
    const std::string pointer = reader.pointer("callbacks") + "/" + pointer_token(key);
    int64_t index = -1;
    try {
      size_t used = 0;
      index = std::stoll(key, &used);
      if (used != key.size() || index < 0) index = -1;
    } catch (const std::exception&) {
      index = -1;
    }
    if (index < 0) wrong.add(pointer, "names of callbacks are their numbers in the program: \"0\", \"1\", ...");
    ObjectReader fields(value, pointer, wrong);
    effects::Binding binding;
    binding.name = fields.string("name").value_or("callback_" + key);
    if (const auto effect = fields.string("effect")) {
      binding.kind = effects::find_effect_kind(*effect);
      if (binding.kind == nullptr) {
        throw core::Error("unsupported_effect", pointer + "/effect: " + quote(*effect) +
                                                    " is no effect that is known here; /v1/effects lists them");
      }
    } else if (fields.field("effect") == nullptr) {
      fields.missing("effect");
    }
    binding.live = fields.boolean("live").value_or(false);
    if (const Json* answers = fields.field("answers")) {
      for (size_t call = 0; call < answers->size() && has_room(wrong); ++call) {
        const Json list = answers->at(call);
        std::vector<effects::OwnedValue> values;
        for (size_t v = 0; v < list.size() && has_room(wrong); ++v) {
          const std::string place = pointer + "/answers/" + std::to_string(call) + "/" + std::to_string(v);
          if (auto read = read_value(list.at(v), nullptr, place, wrong))
            values.push_back({read->type, std::move(read->bytes)});
        }
        binding.answers.push_back(std::move(values));
      }
    }
    fields.finish();
    if (index >= 0 && binding.kind != nullptr) out.callbacks.emplace(index, std::move(binding));
  }
}

// What infeeds take before anything of the session's queues.
void read_infeed(ObjectReader& reader, const JobContext& context, jobs::JobRequest& out, core::Diagnostics& wrong) {
  const Json* infeed = reader.field("infeed");
  if (infeed == nullptr) return;
  if (!infeed->is_array())
    wrong.add(reader.pointer("infeed"), "expected a list, got " + std::string(infeed->kind_name()));
  for (size_t i = 0; i < infeed->size() && has_room(wrong); ++i) {
    const Json item = infeed->at(i);
    ObjectReader fields(item, reader.pointer("infeed") + "/" + std::to_string(i), wrong);
    out.infeeds.push_back(read_infeed_entry(fields, {context.arrays, out.principal, &out.fed_arrays}, wrong));
    fields.finish();
  }
}

void read_results(ObjectReader& reader, jobs::JobRequest& out, ResultForm& form, core::Diagnostics& wrong) {
  const Json* results = reader.field("results");
  if (results == nullptr) return;
  ObjectReader fields(*results, reader.pointer("results"), wrong);
  const auto encoding = fields.word("encoding", {"json", "base64", "array", "none"});
  const auto durability = fields.word("durability", {"durable", "memory"});
  fields.finish();
  if (encoding) {
    form.base64 = *encoding == "base64";
    if (*encoding == "array") out.results = jobs::ResultMode::kArray;
    if (*encoding == "none") out.results = jobs::ResultMode::kNone;
  }
  if (durability && *durability == "memory") out.durability = storage::Durability::kMemory;
}

void append_dense(std::string& out, const jobs::JobValue& value, bool base64) {
  arrays::GatherReader reader(value.layout, tensor::size_bytes(value.type.dtype), value.shards,
                              arrays::whole_slices(value.type.dims));
  const auto pieces = reader.pieces(1);
  const ValueEncoding encoding = base64 ? ValueEncoding::kBase64 : ValueEncoding::kJson;
  if (pieces && pieces->size() == 1) return append_value_fields(out, value.type, pieces->front(), encoding);
  std::vector<std::byte> bytes(static_cast<size_t>(reader.total_bytes()));
  reader.read(bytes);
  append_value_fields(out, value.type, bytes, encoding);
}

void append_number(std::string& out, std::string_view name, double value) {
  out += ",\"" + std::string(name) + "\":";
  append_double(out, value);
}

void append_values(std::string& out, const std::vector<effects::OwnedValue>& values, bool base64) {
  out += "[";
  for (size_t i = 0; i < values.size(); ++i) {
    out += i ? ",{" : "{";
    append_value_fields(out, values[i].type, values[i].bytes, base64 ? ValueEncoding::kBase64 : ValueEncoding::kJson);
    out += "}";
  }
  out += "]";
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

}  // namespace

std::string kept_document(const std::string& body, const mesh::Mesh* session_mesh) {
  if (session_mesh == nullptr || session_mesh->is_empty()) return body;
  return "{\"session_mesh\":" + mesh::to_document(*session_mesh) + ",\"body\":" + body + "}";
}

std::pair<Json, std::optional<mesh::Mesh>> open_kept_document(const std::string& document) {
  Json json = Json::parse(document, kJobLimits);
  const auto* object = json.as<JsonObject>();
  // No body has a field of this name: it would have been refused.
  if (object == nullptr || object->size() != 2 || object->front().first != "session_mesh") return {std::move(json), {}};
  core::Diagnostics wrong;
  auto mesh = read_mesh(object->front().second, "/session_mesh", wrong);
  wrong.throw_if_any("internal");
  return {object->back().second, std::move(mesh)};
}

void read_assignment(ObjectReader& reader, jobs::JobRequest& out, core::Diagnostics& wrong, const ProgramTrees& trees) {
  if (const Json* mesh = reader.field("mesh"); mesh != nullptr && !mesh->is_null())
    out.mesh = read_mesh(*mesh, "/mesh", wrong);
  if (const Json* meshes = reader.field("meshes")) {
    if (const auto* object = meshes->as<JsonObject>()) {
      for (const auto& [name, value] : *object) {
        if (!has_room(wrong)) break;
        const std::string symbol = name.starts_with("@") ? name.substr(1) : name;
        if (auto mesh = read_mesh(value, "/meshes/" + pointer_token(name), wrong))
          out.meshes.emplace(symbol, std::move(*mesh));
      }
    } else {
      wrong.add("/meshes", "expected an object, got " + std::string(meshes->kind_name()));
    }
  }
  out.in_specs = read_specs(reader, "in_shardings", trees.arguments, wrong);
  out.out_specs = read_specs(reader, "out_shardings", trees.results, wrong);
}

std::pair<jobs::JobRequest, ResultForm> decode_job(const Json& body, const std::string& principal,
                                                   const std::string& session, const JobContext& context) {
  core::Diagnostics wrong;
  jobs::JobRequest out;
  ResultForm form;
  out.principal = principal;
  ObjectReader reader(body, "", wrong);
  ProgramTrees trees;
  read_program(reader, context, out, trees, wrong);
  const std::vector<int64_t> statics = read_static(reader, out, wrong);
  const Json* arguments = reader.field("arguments");
  size_t argument_count = 0;
  if (arguments == nullptr) {
    reader.missing("arguments");
  } else if (trees.arguments) {
    if (!statics.empty()) throw core::Error("unsupported_field", "/static: not beside a tree of arguments yet");
    for (const TreeLeaf& leaf : flatten(*trees.arguments, *arguments, "/arguments"))
      read_argument(leaf.value, argument_count++, leaf.pointer, context, out, wrong);
  } else if (!arguments->is_array()) {
    wrong.add("/arguments", "expected a list, got " + std::string(arguments->kind_name()));
  } else {
    for (; argument_count < arguments->size() && has_room(wrong); ++argument_count) {
      const std::string pointer = "/arguments/" + std::to_string(argument_count);
      if (const auto* items = arguments->as<JsonArray>()) {
        read_argument((*items)[argument_count], argument_count, pointer, context, out, wrong);
      } else {
        read_argument(arguments->at(argument_count), argument_count, pointer, context, out, wrong);
      }
    }
  }
  read_assignment(reader, out, wrong, trees);
  out.least_loaded = reader.word("devices", {"least_loaded"}).has_value();
  out.processes = context.processes;
  read_partitions(reader, out);
  if (!out.mesh && context.session_mesh != nullptr && out.program != nullptr && reader.field("meshes") == nullptr &&
      wrong.empty() && !jobs::asks_for_parts(out))
    out.mesh = fitting_mesh(*out.program, *context.session_mesh);
  if (trees.results) form.result_tree = numbered_tree(*trees.results);
  read_donation(reader, statics, argument_count, out, wrong);
  read_updates(reader, statics, out, wrong);
  if (const auto donation = reader.word("donation", {"strict", "warn"})) out.strict_donation = *donation == "strict";
  out.reshard = reader.boolean("reshard").value_or(false);
  read_callbacks(reader, out, wrong);
  read_infeed(reader, context, out, wrong);
  read_results(reader, out, form, wrong);
  const auto named_session = reader.string("session");
  out.session = !session.empty() ? session : named_session.value_or("");
  if (!session.empty() && named_session && *named_session != session)
    wrong.add("/session", "is another session than the path's");
  if (const auto deadline = reader.number("deadline", 0.001, kLongestDeadlineSeconds)) {
    out.deadline = std::chrono::milliseconds(static_cast<int64_t>(*deadline * 1000));
  }
  out.profile = reader.boolean("profile").value_or(false);
  for (const std::string_view later : {"kept", "in_tree"}) {
    if (reader.field(later) != nullptr)
      throw core::Error("unsupported_field", "/" + std::string(later) + " is not supported yet");
  }
  reader.finish();
  wrong.throw_if_any("invalid_request");
  return {std::move(out), form};
}

std::string encode_result(const jobs::JobResult& result, const ResultForm& form) {
  std::string out = "{";
  if (!result.job.empty()) out += "\"job\":" + quote(result.job) + ",";
  out += "\"results\":[";
  for (size_t i = 0; i < result.results.size(); ++i) {
    const jobs::JobValue& value = result.results[i];
    out += i ? ",{" : "{";
    if (value.array != nullptr || value.shards.empty()) {
      out += "\"dtype\":\"" + std::string(tensor::name(value.type.dtype)) +
             "\",\"shape\":" + integer_list(value.type.dims);
      if (value.array != nullptr) out += ",\"array\":" + quote(value.array->info().id);
      if (value.version > 0) out += ",\"version\":" + std::to_string(value.version);
    } else {
      append_dense(out, value, form.base64);
    }
    if (!value.result_info.empty()) out += ",\"name\":" + quote(value.result_info);
    out += "}";
  }
  out += "],\"effects\":[";
  for (size_t i = 0; i < result.effects.size(); ++i) {
    const jobs::JobEffect& effect = result.effects[i];
    out += (i ? "," : "") + std::string("{\"sequence\":") + std::to_string(effect.sequence) +
           ",\"effect\":" + quote(effect.effect.kind->name) + ",\"name\":" + quote(effect.effect.name) +
           ",\"ordered\":" + (effect.effect.ordered ? "true" : "false");
    if (!result.job.empty()) out += ",\"job\":" + quote(result.job);
    out += ",\"shard\":" + std::to_string(effect.effect.shard_index) +
           ",\"point\":" + std::to_string(effect.effect.point) + ",\"device\":" + std::to_string(effect.effect.device);
    if (effect.number > 0) out += ",\"number\":" + std::to_string(effect.number);
    out += ",\"values\":";
    append_values(out, effect.effect.values, form.base64);
    out += "}";
  }
  std::string meshes_seen;
  bool several = false;
  const auto look = [&](const std::optional<sharding::TensorSharding>& sharding) {
    if (!sharding) return;
    if (!meshes_seen.empty() && meshes_seen != sharding->mesh_name) several = true;
    meshes_seen = sharding->mesh_name;
  };
  for (const auto& sharding : result.argument_shardings) look(sharding);
  for (const auto& value : result.results) look(value.sharding);
  out += "],";
  if (!form.result_tree.empty()) out += "\"result_tree\":" + form.result_tree + ",";
  if (result.partitions) {
    out += "\"partitions\":{\"num_partitions\":" + std::to_string(result.partitions->count) +
           ",\"local_num_partitions\":" + std::to_string(result.partitions->local) +
           ",\"devices\":" + integer_list(result.partitions->devices) + "},";
  }
  out += "\"shardings\":{\"arguments\":[";
  for (size_t i = 0; i < result.argument_shardings.size(); ++i) {
    const auto& sharding = result.argument_shardings[i];
    out +=
        (i ? "," : "") + sharding_document(sharding, sharding ? sharding->rank() : result.argument_ranks[i], several);
  }
  out += "],\"results\":[";
  for (size_t i = 0; i < result.results.size(); ++i) {
    out += (i ? "," : "") + sharding_document(result.results[i].sharding, result.results[i].type.rank(), several);
  }
  out += "]}";
  if (!result.warnings.empty()) {
    out += ",\"warnings\":[";
    for (size_t i = 0; i < result.warnings.size(); ++i) out += (i ? "," : "") + quote(result.warnings[i]);
    out += "]";
  }
  out += ",\"statistics\":{\"steps\":" + std::to_string(result.stats.steps) +
         ",\"planned_peak_bytes\":" + std::to_string(result.planned_peak_bytes) +
         ",\"peak_bytes\":" + std::to_string(result.stats.peak_bytes);
  append_number(out, "queue_ms", result.timings.queue_ms);
  append_number(out, "run_ms", result.timings.run_ms);
  return out + "}}";
}

std::string callback_document(const effects::SessionCallback& asked, bool base64) {
  const effects::CallbackRequest& request = asked.request;
  const bool asks_for_parts = effects::asks_for_parts(asked);
  std::string out =
      "{\"number\":" + std::to_string(asked.number) + (asks_for_parts ? ",\"job\":null,\"array\":" : ",\"job\":") +
      quote(asked.job) + ",\"state\":" + quote(effects::to_string(asked.state)) +
      ",\"callback\":" + std::to_string(request.callback) + ",\"name\":" + quote(request.name) +
      ",\"ordered\":" + (request.ordered ? "true" : "false") + ",\"shard\":" + std::to_string(request.shard) +
      ",\"point\":" + std::to_string(request.point) + ",\"device\":" + std::to_string(request.device) +
      ",\"created\":" + quote(core::to_rfc3339(asked.created)) + ",\"values\":";
  append_values(out, request.values, base64);
  out += ",\"expected\":[";
  for (size_t i = 0; i < request.expected.size(); ++i) {
    out += (i ? ",{" : "{") + std::string("\"dtype\":\"") + std::string(tensor::name(request.expected[i].dtype)) +
           "\",\"shape\":" + integer_list(request.expected[i].dims) + "}";
  }
  out += "]";
  if (asked.state == effects::CallbackState::kAnswered && !asks_for_parts) {
    out += ",\"answer\":";
    append_values(out, asked.answer, base64);
  }
  return out + "}";
}

std::string effect_document(const storage::EffectRow& row, bool base64) {
  const effects::EffectOrigin place = effects::place_from_text(row.values);
  std::string out = "{\"sequence\":" + std::to_string(row.sequence) + ",\"effect\":" + quote(row.kind) +
                    ",\"name\":" + quote(row.name) + ",\"ordered\":" + (row.ordered ? "true" : "false") +
                    ",\"job\":" + quote(row.job) + ",\"shard\":" + std::to_string(row.shard_index) +
                    ",\"point\":" + std::to_string(place.point) + ",\"device\":" + std::to_string(place.device);
  if (row.number > 0) out += ",\"number\":" + std::to_string(row.number);
  out += ",\"values\":";
  append_values(out, effects::values_from_text(row.values), base64);
  return out + "}";
}

std::string job_document(const jobs::JobView& view, bool with_answer) {
  const storage::JobRow& row = view.row;
  std::string out = "{\"id\":" + quote(row.id) + ",\"session\":" + (row.session.empty() ? "null" : quote(row.session)) +
                    ",\"number\":" + std::to_string(row.number) + ",\"state\":" + quote(storage::to_string(row.state)) +
                    ",\"attempt\":" + std::to_string(row.attempt) +
                    ",\"created\":" + quote(core::to_rfc3339(row.created));
  const auto time = [&](std::string_view name, const std::optional<core::WallTime>& value) {
    if (value) out += ",\"" + std::string(name) + "\":" + quote(core::to_rfc3339(*value));
  };
  time("started", row.started);
  time("finished", row.finished);
  time("deadline", row.deadline);
  if (view.progress) {
    out += ",\"progress\":{\"steps_done\":" + std::to_string(view.progress->steps_done) +
           ",\"steps_estimated\":" + std::to_string(view.progress->steps_estimated) +
           ",\"op\":" + quote(view.progress->op) + ",\"line\":" + std::to_string(view.progress->line) +
           ",\"effects\":" + std::to_string(view.effect_count);
    if (view.waits && view.waits->request > 0) {
      out += ",\"waits_for\":{\"callback\":" + std::to_string(view.waits->request) + "}";
    } else if (view.waits) {
      out += ",\"waits_for\":{\"infeed\":" + quote(view.waits->queue) + "}";
    }
    out += "}";
  }
  if (!row.error_code.empty()) {
    out += ",\"error\":{\"code\":" + quote(row.error_code) + ",\"detail\":" + quote(row.error_detail) + "}";
  }
  if (with_answer && !row.answer.empty()) out += ",\"answer\":" + row.answer;
  return out + "}";
}

}  // namespace meshd::api
