#include "api/codecs/model_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/codecs/artifact_codec.h"
#include "api/codecs/at_pointer.h"
#include "api/codecs/program_codec.h"
#include "api/codecs/value.h"
#include "api/json/schema_map.h"

namespace meshd::api {
namespace {

constexpr int64_t kMostBatchRows = 65'536;
constexpr int64_t kMostWaitingRequests = 1'000'000;
constexpr int64_t kMostPriorityLevels = 100;
constexpr int64_t kMostInstances = 64;
constexpr int64_t kLongestDelay = 10'000'000;     // ten seconds
constexpr int64_t kLongestTimeout = 600'000'000;  // ten minutes
constexpr size_t kMostLabels = 64;
constexpr size_t kMostPreferredSizes = 16;  // each is compiled, and run when the model is registered

struct ModelProgram {
  std::optional<std::string> id, text, base64;
  std::optional<ProgramFormat> format;
};

struct ModelArgument {
  std::optional<std::string> input, array;
  std::optional<tensor::DType> dtype;
  std::optional<std::vector<int64_t>> shape;
  const Json* data = nullptr;
  const Json* base64 = nullptr;
};

struct ModelBatching {
  std::optional<int64_t> queue_delay, most_waiting, timeout, levels, default_level, instances;
  std::optional<std::vector<int64_t>> preferred;
};

struct ModelInput {
  ModelProgram program;
  const Json* arguments = nullptr;
  std::optional<std::vector<std::string>> outputs;
  std::optional<int64_t> max_batch_size;
  std::optional<ModelBatching> batching;
  std::optional<std::map<std::string, std::string>> labels;
  std::optional<bool> shared, warm_up;
};

/// An input or output of a model, as it is shown.
struct ModelTensor {
  const models::TensorSpec& tensor;
  const models::ModelSpec& spec;
};

/// An argument of a model, as it is shown.
struct BoundArgument {
  const models::ArgumentSource& source;
  const models::ModelSpec& spec;

  [[nodiscard]] const tensor::TensorType* value_type() const {
    const auto* value = std::get_if<tensor::DenseValue>(&source);
    return value == nullptr ? nullptr : &value->type;
  }
};

}  // namespace

template <>
Schema<ModelProgram> make_schema() {
  using In = ModelProgram;
  return {"ModelProgram", {{"id", &In::id}, {"format", &In::format}, {"text", &In::text}, {"base64", &In::base64}}};
}

template <>
Schema<ModelArgument> make_schema() {
  using In = ModelArgument;
  return {"ModelArgument",
          {{"input", &In::input},
           {"array", &In::array},
           {"dtype", &In::dtype},
           {"shape", &In::shape, {.low = -1, .high = kLargestExact - 1}},
           {"data", &In::data},
           {"base64", &In::base64, {.like = json_type<Base64Elements>}}}};
}

template <>
Schema<ModelBatching> make_schema() {
  using In = ModelBatching;
  return {"ModelBatching",
          {{"max_queue_delay_microseconds", &In::queue_delay, {.low = 0, .high = kLongestDelay}},
           {"preferred_batch_sizes", &In::preferred, {.low = 1, .high = kMostBatchRows}},
           {"max_queue_size", &In::most_waiting, {.low = 1, .high = kMostWaitingRequests}},
           {"timeout_microseconds", &In::timeout, {.low = 1, .high = kLongestTimeout}},
           {"priority_levels", &In::levels, {.low = 1, .high = kMostPriorityLevels}},
           {"default_priority_level", &In::default_level, {.low = 1, .high = kMostPriorityLevels}},
           {"instances", &In::instances, {.low = 1, .high = kMostInstances}}}};
}

template <>
Schema<ModelInput> make_schema() {
  using In = ModelInput;
  return {"ModelInput",
          {{"program", &In::program},
           {"arguments", &In::arguments, {.required = true, .like = json_type<std::vector<ModelArgument>>}},
           {"outputs", &In::outputs},
           {"max_batch_size", &In::max_batch_size, {.low = 0, .high = kMostBatchRows}},
           {"batching", &In::batching},
           {"labels", &In::labels},
           {"shared", &In::shared},
           {"warm_up", &In::warm_up}}};
}

const SchemaBase& model_input_schema() { return schema<ModelInput>(); }

namespace {

registry::StoredProgram program_of(ModelProgram in, const std::string& principal, const ModelContext& context) {
  if (!context.stored_program.empty()) return context.programs.get_for_accepted_job(context.stored_program);
  core::Diagnostics wrong;
  if (in.id) {
    for (const bool is_given : {in.text.has_value(), in.base64.has_value(), in.format.has_value()}) {
      if (is_given) wrong.add("/program", "id excludes text, base64 and format");
    }
    wrong.throw_if_any("invalid_request");
    return at_pointer("/program/id", [&] { return context.programs.get(*in.id, principal); });
  }
  ProgramSource source{std::move(in.text), std::move(in.base64), std::nullopt};
  check_source(source, "/program", wrong);
  wrong.throw_if_any("invalid_request");
  std::string text = source.text.value_or("");
  if (source.is_artifact()) {
    auto artifact = read_artifact_source(source, "/program", nullptr, context.memory, wrong);
    wrong.throw_if_any("invalid_request");
    text = std::move(artifact->text);
  }
  const std::string format = in.format ? in.format->word : "stablehlo";
  return core::in_text(text, "/program/text", [&] { return context.programs.put(format, text, {}, principal).first; });
}

void read_input(ModelArgument in, const std::string& pointer, models::ModelSpec& spec,
                std::vector<models::DeclaredInput>& inputs, core::Diagnostics& wrong) {
  if (in.array || in.data != nullptr || in.base64 != nullptr)
    wrong.add(pointer, "is an input, or has a value: leave one of them away");
  models::DeclaredInput& declared = inputs.emplace_back();
  declared.name = std::move(*in.input);
  declared.dtype = in.dtype;
  declared.pointer = pointer;
  if (in.shape) {
    declared.dims = std::move(*in.shape);
    std::replace(declared.dims->begin(), declared.dims->end(), int64_t{-1}, tensor::kDynamicDim);
  }
  spec.arguments.emplace_back(models::InputSource{inputs.size() - 1});
}

void read_arguments(const Json& list, const ModelContext& context, models::ModelSpec& spec,
                    std::vector<models::DeclaredInput>& inputs, core::Diagnostics& wrong) {
  each_entry(list, "/arguments", wrong, [&](size_t, const Json& entry, const std::string& pointer) {
    const size_t before = wrong.list().size();
    auto in = read_json<ModelArgument>(entry, pointer, wrong);
    if (wrong.list().size() != before) return;
    if (in.input) return read_input(std::move(in), pointer, spec, inputs, wrong);
    if (in.array) {
      if (in.dtype || in.shape || in.data != nullptr || in.base64 != nullptr)
        return wrong.add(pointer, "array excludes dtype, shape, data and base64");
      const bool is_new = context.stored_program.empty();
      spec.arguments.emplace_back(at_pointer(pointer, [&] {
        return is_new ? context.arrays.find(*in.array, spec.principal)
                      : context.arrays.find_kept(*in.array, spec.principal);
      }));
      return;
    }
    if (auto value = read_value(entry, nullptr, context.pool, pointer, wrong))
      spec.arguments.emplace_back(std::move(*value));
  });
}

void take_batching(const ModelBatching& in, models::Batching& out) {
  using std::chrono::microseconds;
  out.queue_delay = microseconds(in.queue_delay.value_or(out.queue_delay.count()));
  out.preferred_sizes = in.preferred.value_or(std::vector<int64_t>());
  out.most_waiting = in.most_waiting.value_or(out.most_waiting);
  out.timeout = microseconds(in.timeout.value_or(out.timeout.count()));
  out.priority_levels = in.levels.value_or(out.priority_levels);
  out.default_priority = in.default_level.value_or((out.priority_levels + 1) / 2);
  out.instances = in.instances.value_or(out.instances);
}

}  // namespace

models::ModelSpec decode_model(const std::string& body, const std::string& principal, const std::string& name,
                               const ModelContext& context) {
  const Json document = Json::parse(body, {}, context.memory);
  core::Diagnostics wrong;
  auto in = read_json<ModelInput>(document, "", wrong);
  models::ModelSpec spec;
  spec.principal = principal;
  spec.name = name;
  std::vector<models::DeclaredInput> inputs;
  if (in.labels && in.labels->size() > kMostLabels)
    wrong.add("/labels", fmt::format("at most {}, got {}", kMostLabels, in.labels->size()));
  if (in.batching && in.batching->preferred && in.batching->preferred->size() > kMostPreferredSizes) {
    wrong.add("/batching/preferred_batch_sizes",
              fmt::format("at most {}, got {}", kMostPreferredSizes, in.batching->preferred->size()));
  }
  wrong.throw_if_any("invalid_request");
  read_arguments(*in.arguments, context, spec, inputs, wrong);
  wrong.throw_if_any("invalid_request");
  registry::StoredProgram program = program_of(std::move(in.program), principal, context);
  spec.program_id = program.id;
  spec.program = std::move(program.parsed);
  spec.output_names = in.outputs.value_or(std::vector<std::string>());
  spec.max_batch_size = in.max_batch_size.value_or(0);
  if (in.batching) take_batching(*in.batching, spec.batching);
  spec.labels = in.labels.value_or(std::map<std::string, std::string>());
  spec.is_shared = in.shared.value_or(false);
  spec.warms_up = in.warm_up.value_or(true);
  spec.document = body;
  core::in_text(spec.program->text, "/program/text", [&] { models::complete(spec, inputs, context.compiler); });
  return spec;
}

bool is_shared_model(const std::string& document) {
  try {
    core::Diagnostics wrong;
    return read_json<ModelInput>(Json::parse(document), "", wrong).shared.value_or(false);
  } catch (const std::exception&) {
    return false;  // it is no JSON
  }
}

template <>
Schema<ModelTensor> make_schema() {
  using Doc = ModelTensor;
  return {"ModelTensor",
          {{"name", [](const Doc& doc) -> std::string_view { return doc.tensor.name; }},
           {"dtype", [](const Doc& doc) { return doc.tensor.dtype; }},
           {"shape",
            [](const Doc& doc) { return models::shown_dims(doc.tensor.dims, doc.spec.max_batch_size > 0); },
            {.low = -1}}}};
}

template <>
Schema<BoundArgument> make_schema() {
  using Doc = BoundArgument;
  return {"BoundArgument",
          {{"input",
            [](const Doc& doc) {
              const auto* input = std::get_if<models::InputSource>(&doc.source);
              return input == nullptr ? std::nullopt
                                      : std::optional<std::string_view>(doc.spec.inputs[input->input].name);
            }},
           {"array",
            [](const Doc& doc) {
              const auto* array = std::get_if<arrays::ArrayRef>(&doc.source);
              return array == nullptr ? std::nullopt : std::optional<std::string_view>((*array)->info().id);
            }},
           {"dtype",
            [](const Doc& doc) {
              return doc.value_type() == nullptr ? std::nullopt : std::optional(doc.value_type()->dtype);
            }},
           {"shape", [](const Doc& doc) {
              return doc.value_type() == nullptr ? std::nullopt : std::optional(doc.value_type()->dims);
            }}}};
}

template <>
Schema<models::Batching> make_schema() {
  using Doc = models::Batching;
  return {"ModelBatchingState",
          {{"max_queue_delay_microseconds", [](const Doc& doc) { return int64_t{doc.queue_delay.count()}; }},
           {"preferred_batch_sizes", &Doc::preferred_sizes},
           {"max_queue_size", &Doc::most_waiting},
           {"timeout_microseconds", [](const Doc& doc) { return int64_t{doc.timeout.count()}; }},
           {"priority_levels", &Doc::priority_levels},
           {"default_priority_level", &Doc::default_priority},
           {"instances", &Doc::instances}}};
}

template <>
Schema<ModelDocument> make_schema() {
  using Doc = ModelDocument;
  static constexpr auto kTensors = [](const models::ModelSpec& spec, const std::vector<models::TensorSpec>& tensors) {
    std::vector<ModelTensor> out;
    for (const models::TensorSpec& tensor : tensors) out.push_back({tensor, spec});
    return out;
  };
  return {
      "Model",
      {{"name", [](const Doc& doc) -> std::string_view { return doc.model->spec().name; }},
       {"version", [](const Doc& doc) { return doc.model->spec().version; }, {.low = 1}},
       {"versions", [](const Doc& doc) { return doc.versions.empty() ? std::nullopt : std::optional(doc.versions); }},
       {"state",
        [](const Doc& doc) { return models::to_string(doc.model->status().state); },
        {.words = {"LOADING", "READY", "UNAVAILABLE"}}},
       {"reason",
        [](const Doc& doc) {
          std::string reason = doc.model->status().reason;
          return reason.empty() ? std::nullopt : std::optional(std::move(reason));
        }},
       {"program",
        [](const Doc& doc) -> std::string_view {
          return doc.is_own ? std::string_view(doc.model->spec().program_id) : "";
        }},
       {"arguments",
        [](const Doc& doc) {
          std::vector<BoundArgument> out;
          if (!doc.is_own) return out;
          for (const auto& source : doc.model->spec().arguments) out.push_back({source, doc.model->spec()});
          return out;
        }},
       {"inputs", [](const Doc& doc) { return kTensors(doc.model->spec(), doc.model->spec().inputs); }},
       {"outputs", [](const Doc& doc) { return kTensors(doc.model->spec(), doc.model->spec().outputs); }},
       {"max_batch_size", [](const Doc& doc) { return doc.model->spec().max_batch_size; }},
       {"batching", [](const Doc& doc) -> const models::Batching& { return doc.model->spec().batching; }},
       {"labels", [](const Doc& doc) -> const std::map<std::string, std::string>& { return doc.model->spec().labels; }},
       {"shared", [](const Doc& doc) { return doc.model->spec().is_shared; }},
       {"warm_up", [](const Doc& doc) { return doc.model->spec().warms_up; }},
       {"created", [](const Doc& doc) { return doc.model->spec().created; }}}};
}

}  // namespace meshd::api
