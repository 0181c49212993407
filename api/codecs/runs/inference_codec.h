// Requests and responses of the Open Inference Protocol, version 2 (KServe, Triton), over HTTP: JSON, with the bytes of
// tensors behind it where a tensor is binary.
//
// Sources: kserve/open-inference-protocol, specification/protocol/inference_rest.md; triton-inference-server/server,
// docs/protocol/extension_binary_data.md.
//
// Example, one input of four float32 in binary form:
//   Inference-Header-Content-Length: 115
//   {"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"parameters":{"binary_data_size":16}}], ...}<16 bytes>
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/schema.h"
#include "service/models/batcher.h"

namespace meshd::api {

/// An output that a request wants.
struct WantedOutput {
  size_t number = 0;       ///< of the model
  bool is_binary = false;  ///< bytes behind the JSON
};

struct DecodedInference {
  models::InferRequest request;  ///< without principal
  std::string id;
  std::vector<WantedOutput> outputs;
};

/// Decodes a body. `head_length`: the field Inference-Header-Content-Length, the bytes of the JSON; nothing: all of the
/// body; 0: the body is the only input's bytes. Throws malformed_body for lengths that do not agree, malformed_json,
/// invalid_request with every mistake, unsupported_dtype, unsupported_extension (classification, shared memory,
/// sequences).
DecodedInference decode_inference(std::string body, std::optional<int64_t> head_length, const models::ModelSpec& spec,
                                  tensor::BufferPool& pool, core::MemoryReservation* memory);
/// The number in a field Inference-Header-Content-Length. Throws malformed_request.
std::optional<int64_t> head_length_of(std::optional<std::string_view> field);

/// A response: JSON, and the binary outputs behind it, which `outputs` own.
struct EncodedInference {
  std::string head;
  bool has_binary = false;
  std::vector<std::span<const std::byte>> pieces;
};
EncodedInference encode_inference(const models::ModelSpec& spec, const DecodedInference& request,
                                  const std::vector<models::InferOutput>& outputs);

const SchemaBase& inference_request_schema();
const SchemaBase& inference_response_schema();

}  // namespace meshd::api
