#include "api/codecs/runs/inference_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

#include "api/codecs/value.h"

namespace meshd::api {
namespace {

using tensor::DenseValue;
using tensor::TensorType;

struct InferenceInput {
  std::string name, datatype;
  std::vector<int64_t> shape;
  const Json* data = nullptr;
  const Json* parameters = nullptr;
};

struct InferenceOutputChoice {
  std::string name;
  const Json* parameters = nullptr;
};

struct InferenceRequest {
  std::optional<std::string> id;
  std::vector<InferenceInput> inputs;
  std::optional<std::vector<InferenceOutputChoice>> outputs;
  const Json* parameters = nullptr;
};

// All elements in one flat list; 64 bit integers are numbers here, as the protocol has no other form for them.
struct FlatElements {
  const TensorType& type;
  std::span<const std::byte> bytes;
};

struct BinarySize {
  int64_t bytes = 0;
};

struct InferenceOutput {
  std::string_view name;
  const TensorType& type;
  std::span<const std::byte> bytes;
  bool is_binary = false;
};

struct InferenceResponse {
  const models::ModelSpec& spec;
  std::string_view id;
  std::vector<InferenceOutput> outputs;
};

}  // namespace

template <>
struct JsonCodec<FlatElements> {
  static JsonType type() { return {}; }
  template <typename T>
  static void append_integers(std::string& out, std::span<const std::byte> bytes) {
    out += '[';
    for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      if (at > 0) out += ',';
      out += std::to_string(value);
    }
    out += ']';
  }
  static void append(std::string& out, const FlatElements& elements) {
    const tensor::DType dtype = elements.type.dtype;
    if (dtype == tensor::DType::kInt64) return append_integers<int64_t>(out, elements.bytes);
    if (dtype == tensor::DType::kUint64) return append_integers<uint64_t>(out, elements.bytes);
    const TensorType flat{dtype, {tensor::element_count(elements.type)}};
    JsonCodec<NestedElements>::append(out, {flat, elements.bytes});
  }
};

template <>
Schema<InferenceInput> make_schema() {
  using In = InferenceInput;
  return {"InferenceInput",
          {{"name", &In::name},
           {"datatype", &In::datatype},
           {"shape", &In::shape, {.low = 0, .high = kLargestExact - 1}},
           {"data", &In::data},
           {"parameters", &In::parameters, {.like = map_of<const Json*>}}}};
}

template <>
Schema<InferenceOutputChoice> make_schema() {
  using In = InferenceOutputChoice;
  return {"InferenceOutputChoice",
          {{"name", &In::name}, {"parameters", &In::parameters, {.like = map_of<const Json*>}}}};
}

template <>
Schema<InferenceRequest> make_schema() {
  using In = InferenceRequest;
  return {"InferenceRequest",
          {{"id", &In::id},
           {"inputs", &In::inputs},
           {"outputs", &In::outputs},
           {"parameters", &In::parameters, {.like = map_of<const Json*>}}}};
}

template <>
Schema<BinarySize> make_schema() {
  return {"BinarySize", {{"binary_data_size", &BinarySize::bytes, {.low = 0}}}};
}

template <>
Schema<InferenceOutput> make_schema() {
  using Doc = InferenceOutput;
  return {"InferenceOutput",
          {{"name", &Doc::name},
           {"datatype", [](const Doc& doc) { return tensor::row(doc.type.dtype).oip; }},
           {"shape", [](const Doc& doc) -> std::span<const int64_t> { return doc.type.dims; }, {.low = 0}},
           {"parameters",
            [](const Doc& doc) {
              return doc.is_binary ? std::optional(BinarySize{static_cast<int64_t>(doc.bytes.size())}) : std::nullopt;
            }},
           {"data", [](const Doc& doc) {
              return doc.is_binary ? std::nullopt : std::optional(FlatElements{doc.type, doc.bytes});
            }}}};
}

template <>
Schema<InferenceResponse> make_schema() {
  using Doc = InferenceResponse;
  return {"InferenceResponse",
          {{"model_name", [](const Doc& doc) -> std::string_view { return doc.spec.name; }},
           {"model_version", [](const Doc& doc) { return std::to_string(doc.spec.version); }},
           {"id", [](const Doc& doc) { return unless_empty(doc.id); }},
           {"outputs", &Doc::outputs}}};
}

const SchemaBase& inference_request_schema() { return schema<InferenceRequest>(); }
const SchemaBase& inference_response_schema() { return schema<InferenceResponse>(); }

namespace {

[[noreturn]] void refuse(std::string_view what, const std::string& pointer, std::string_view instead) {
  const std::string detail = fmt::format("{} is not supported: {}", what, instead);
  throw core::Error("unsupported_extension", detail, {{pointer, detail}});
}

std::optional<int64_t> integer_in(const Json& json) {
  const auto* number = json.as<JsonNumber>();
  if (number == nullptr || number->kind != JsonNumber::Kind::kSigned) return std::nullopt;
  return number->i;
}

bool is_nothing(const Json& json) {
  const auto* text = json.as<std::string>();
  const auto* flag = json.as<bool>();
  return integer_in(json) == 0 || (text != nullptr && text->empty()) || (flag != nullptr && !*flag);
}

/// Fields of `parameters`, by whom they are read.
struct Parameters {
  std::optional<int64_t> binary_size;
  std::optional<bool> binary_data, binary_outputs;
  std::optional<int64_t> priority, timeout;
};

enum class Of { kRequest, kInput, kOutput };

std::optional<int64_t> read_count(const Json& value, const std::string& pointer, core::Diagnostics& wrong) {
  const auto count = integer_in(value);
  if (count && *count >= 0) return count;
  wrong.add(pointer, "expected a whole number from 0 on");
  return std::nullopt;
}

std::optional<bool> read_flag(const Json& value, const std::string& pointer, core::Diagnostics& wrong) {
  if (const auto* flag = value.as<bool>()) return *flag;
  wrong.add(pointer, fmt::format("expected true or false, got {}", value.kind_name()));
  return std::nullopt;
}

void read_parameter(const std::string& name, const Json& value, Of what, const std::string& pointer, Parameters& out,
                    core::Diagnostics& wrong) {
  const auto is = [&](Of place, std::string_view known) { return what == place && name == known; };
  if (is(Of::kInput, "binary_data_size")) {
    out.binary_size = read_count(value, pointer, wrong);
  } else if (is(Of::kOutput, "binary_data")) {
    out.binary_data = read_flag(value, pointer, wrong);
  } else if (is(Of::kRequest, "binary_data_output")) {
    out.binary_outputs = read_flag(value, pointer, wrong);
  } else if (is(Of::kRequest, "priority")) {
    out.priority = read_count(value, pointer, wrong);
  } else if (is(Of::kRequest, "timeout")) {
    out.timeout = read_count(value, pointer, wrong);
  } else if (is(Of::kOutput, "classification")) {
    if (!is_nothing(value)) refuse("classification", pointer, "take the output itself and sort it");
  } else if (name.starts_with("shared_memory_")) {
    refuse("shared memory", pointer, "send the bytes behind the JSON (binary_data_size)");
  } else if (is(Of::kRequest, "sequence_id") || is(Of::kRequest, "sequence_start") ||
             is(Of::kRequest, "sequence_end")) {
    if (!is_nothing(value)) refuse("a sequence", pointer, "models have no state; keep it in a session of /v1/sessions");
  } else {
    wrong.add(pointer, "is not a parameter that is known here");
  }
}

Parameters read_parameters(const Json* json, Of what, const std::string& pointer, core::Diagnostics& wrong) {
  Parameters out;
  const JsonObject* object = json == nullptr ? nullptr : expect_object(*json, pointer, wrong);
  if (object == nullptr) return out;
  for (const auto& [name, value] : *object) {
    if (!has_room(wrong)) break;
    read_parameter(name, value, what, pointer + "/" + pointer_token(name), out, wrong);
  }
  return out;
}

std::optional<tensor::DType> dtype_of(const std::string& datatype, const std::string& pointer,
                                      core::Diagnostics& wrong) {
  if (datatype == "BYTES") {
    const std::string detail = "BYTES is not supported: arrays have numbers and booleans; encode texts before";
    throw core::Error("unsupported_dtype", detail, {{pointer, detail}});
  }
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (!row.oip.empty() && row.oip == datatype) return row.dtype;
  }
  std::string known;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (!row.oip.empty()) known += (known.empty() ? "" : ", ") + std::string(row.oip);
  }
  wrong.add(pointer, fmt::format("expected one of {}, got {}", known, quote(datatype)));
  return std::nullopt;
}

/// Takes the binary inputs off the bytes behind the JSON, in their order.
class BinaryTail {
 public:
  explicit BinaryTail(std::string_view bytes) : bytes_(bytes) {}
  std::string_view take(int64_t count, const std::string& name) {
    if (count > static_cast<int64_t>(bytes_.size())) {
      throw core::Error("malformed_body",
                        fmt::format("unexpected end of the body: input '{}' has {} bytes, {} are left "
                                    "behind the JSON",
                                    name, count, bytes_.size()));
    }
    const std::string_view out = bytes_.substr(0, static_cast<size_t>(count));
    bytes_.remove_prefix(static_cast<size_t>(count));
    return out;
  }
  void expect_end() const {
    if (bytes_.empty()) return;
    throw core::Error("malformed_body",
                      fmt::format("unexpected additional input data: {} bytes behind the last input", bytes_.size()));
  }

 private:
  std::string_view bytes_;
};

DenseValue value_of_bytes(const TensorType& type, std::string_view bytes, tensor::BufferPool& pool) {
  DenseValue out = tensor::dense_copy(type, std::as_bytes(std::span(bytes)), pool);
  clean_elements(type.dtype, out.buffer->bytes());
  return out;
}

std::optional<DenseValue> read_tensor(const InferenceInput& in, const std::string& pointer, BinaryTail& tail,
                                      tensor::BufferPool& pool, core::Diagnostics& wrong) {
  const auto dtype = dtype_of(in.datatype, pointer + "/datatype", wrong);
  const Parameters parameters = read_parameters(in.parameters, Of::kInput, pointer + "/parameters", wrong);
  if (!dtype) return std::nullopt;
  const TensorType type{*dtype, in.shape};
  if ((in.data != nullptr) == parameters.binary_size.has_value()) {
    wrong.add(pointer, "expected data, or parameters with binary_data_size, and not both");
    return std::nullopt;
  }
  if (in.data != nullptr) return read_elements(*in.data, type, pool, pointer + "/data", wrong);
  const int64_t expected = tensor::byte_count(type);
  const std::string_view bytes = tail.take(*parameters.binary_size, in.name);
  if (expected == *parameters.binary_size) return value_of_bytes(type, bytes, pool);
  wrong.add(pointer + "/parameters/binary_data_size",
            fmt::format("input byte size mismatch for input '{}'. Expected {}, got {}", in.name, expected,
                        *parameters.binary_size));
  return std::nullopt;
}

template <typename Tensors>
std::optional<size_t> number_of(const Tensors& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& one) { return one.name == name; });
  return found == tensors.end() ? std::nullopt : std::optional<size_t>(found - tensors.begin());
}

std::string names_of(const std::vector<models::TensorSpec>& tensors) {
  std::string out;
  for (const models::TensorSpec& one : tensors) out += (out.empty() ? "'" : ", '") + one.name + "'";
  return out;
}

void read_inputs(const std::vector<InferenceInput>& inputs, const models::ModelSpec& spec, BinaryTail tail,
                 tensor::BufferPool& pool, DecodedInference& out, core::Diagnostics& wrong) {
  if (inputs.size() != spec.inputs.size()) {
    wrong.add("/inputs", fmt::format("expected {} inputs but got {} inputs for model '{}': {}", spec.inputs.size(),
                                     inputs.size(), spec.name, names_of(spec.inputs)));
    return;
  }
  std::vector<std::optional<DenseValue>> values(spec.inputs.size());
  for (size_t i = 0; i < inputs.size() && has_room(wrong); ++i) {
    const std::string pointer = entry_pointer("/inputs", i);
    auto value = read_tensor(inputs[i], pointer, tail, pool, wrong);
    const auto number = number_of(spec.inputs, inputs[i].name);
    if (!number) {
      wrong.add(pointer + "/name", fmt::format("unexpected inference input '{}' for model '{}'; it has {}",
                                               inputs[i].name, spec.name, names_of(spec.inputs)));
    } else if (values[*number]) {
      wrong.add(pointer + "/name", "is named twice");
    } else {
      values[*number] = std::move(value);
    }
  }
  if (!wrong.empty()) return;
  tail.expect_end();
  for (auto& value : values) out.request.inputs.push_back(std::move(*value));
}

void read_outputs(const InferenceRequest& in, bool is_binary, const models::ModelSpec& spec, DecodedInference& out,
                  core::Diagnostics& wrong) {
  if (!in.outputs || in.outputs->empty()) {
    for (size_t i = 0; i < spec.outputs.size(); ++i) out.outputs.push_back({i, is_binary});
    return;
  }
  for (size_t i = 0; i < in.outputs->size() && has_room(wrong); ++i) {
    const InferenceOutputChoice& choice = (*in.outputs)[i];
    const std::string pointer = entry_pointer("/outputs", i);
    const Parameters parameters = read_parameters(choice.parameters, Of::kOutput, pointer + "/parameters", wrong);
    const auto number = number_of(spec.outputs, choice.name);
    if (!number) {
      wrong.add(pointer + "/name", fmt::format("unexpected inference output '{}' for model '{}'; it has {}",
                                               choice.name, spec.name, names_of(spec.outputs)));
      continue;
    }
    const bool is_twice = std::any_of(out.outputs.begin(), out.outputs.end(),
                                      [&](const WantedOutput& other) { return other.number == *number; });
    if (is_twice) wrong.add(pointer + "/name", "is named twice");
    out.outputs.push_back({*number, parameters.binary_data.value_or(is_binary)});
  }
}

// The body is the bytes of the only input, and the answer is binary.
DecodedInference decode_raw(std::string_view body, const models::ModelSpec& spec, tensor::BufferPool& pool) {
  if (spec.inputs.size() != 1) {
    throw core::Error("invalid_request", fmt::format("a raw binary request (Inference-Header-Content-Length: 0) is for "
                                                     "models with one input; '{}' has {}",
                                                     spec.name, spec.inputs.size()));
  }
  const models::TensorSpec& input = spec.inputs.front();
  TensorType type{input.dtype, input.dims};
  if (spec.max_batch_size > 0) type.dims.insert(type.dims.begin(), tensor::kDynamicDim);
  const auto free = std::count(type.dims.begin(), type.dims.end(), tensor::kDynamicDim);
  std::replace(type.dims.begin(), type.dims.end(), tensor::kDynamicDim, int64_t{1});
  const int64_t unit = tensor::byte_count(type);
  const auto bytes = static_cast<int64_t>(body.size());
  if (free > 1) {
    throw core::Error("invalid_request", fmt::format("a raw binary request has no shape, and '{}' has several "
                                                     "dimensions of any size: send the JSON",
                                                     input.name));
  }
  if (unit == 0 || bytes % unit != 0 || (free == 0 && bytes != unit)) {
    throw core::Error("malformed_body", fmt::format("input byte size mismatch for input '{}'. Expected {}{}, got {}",
                                                    input.name, free == 0 ? "" : "a multiple of ", unit, bytes));
  }
  if (free == 1) {
    const tensor::Dims& dims = input.dims;
    const auto place = std::find(dims.begin(), dims.end(), tensor::kDynamicDim) - dims.begin();
    type.dims[spec.max_batch_size > 0 ? 0 : static_cast<size_t>(place)] = bytes / unit;
  }
  DecodedInference out;
  out.request.inputs.push_back(value_of_bytes(type, body, pool));
  for (size_t i = 0; i < spec.outputs.size(); ++i) out.outputs.push_back({i, true});
  return out;
}

}  // namespace

std::optional<int64_t> head_length_of(std::optional<std::string_view> field) {
  if (!field) return std::nullopt;
  const auto length = whole_number(*field);
  if (length) return length;
  throw core::Error(
      "malformed_request",
      fmt::format("Inference-Header-Content-Length: expected the bytes of the JSON, got {}", quote(*field)));
}

DecodedInference decode_inference(std::string body, std::optional<int64_t> head_length, const models::ModelSpec& spec,
                                  tensor::BufferPool& pool, core::MemoryReservation* memory) {
  if (head_length == 0) return decode_raw(body, spec, pool);
  const auto head = static_cast<size_t>(head_length.value_or(static_cast<int64_t>(body.size())));
  if (head > body.size()) {
    throw core::Error("malformed_body", fmt::format("Inference-Header-Content-Length says {} bytes of JSON, the body "
                                                    "has {}",
                                                    head, body.size()));
  }
  const bool is_all_json = head == body.size();
  if (!is_all_json && memory != nullptr) memory->grow(static_cast<int64_t>(head));
  const Json document =
      Json::parse(is_all_json ? std::exchange(body, {}) : body.substr(0, head), kInlineLimits, memory);
  const std::string_view tail = is_all_json ? std::string_view() : std::string_view(body).substr(head);
  core::Diagnostics wrong;
  const auto in = read_json<InferenceRequest>(document, "", wrong);
  wrong.throw_if_any("invalid_request");
  DecodedInference out;
  out.id = in.id.value_or("");
  const Parameters parameters = read_parameters(in.parameters, Of::kRequest, "/parameters", wrong);
  if (parameters.priority && *parameters.priority > 0) out.request.priority = parameters.priority;
  if (parameters.timeout && *parameters.timeout > 0)
    out.request.timeout = std::chrono::microseconds(*parameters.timeout);
  read_outputs(in, parameters.binary_outputs.value_or(false), spec, out, wrong);
  read_inputs(in.inputs, spec, BinaryTail(tail), pool, out, wrong);
  wrong.throw_if_any("invalid_request");
  return out;
}

EncodedInference encode_inference(const models::ModelSpec& spec, const DecodedInference& request,
                                  const std::vector<models::InferOutput>& outputs) {
  InferenceResponse response{spec, request.id, {}};
  EncodedInference out;
  for (const WantedOutput& wanted : request.outputs) {
    const models::InferOutput& output = outputs[wanted.number];
    response.outputs.push_back({spec.outputs[wanted.number].name, output.type, output.bytes, wanted.is_binary});
    if (!wanted.is_binary) continue;
    out.has_binary = true;
    out.pieces.push_back(output.bytes);
  }
  out.head = to_json(response);
  return out;
}

}  // namespace meshd::api
