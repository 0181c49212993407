// Any bytes as a document or a short text of the API are read or refused with core::Error: JSON, the body of a program,
// an artifact, NumPy syntax, a request of the Open Inference Protocol, a form, a partition spec, a slice.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "api/codecs/files/form.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/program_codec.h"
#include "api/codecs/runs/inference_codec.h"
#include "api/json/json.h"
#include "service/arrays/regions/region.h"
#include "service/numpy/numpy.h"
#include "service/program/bytecode/artifact.h"
#include "tests/fuzz/format.h"

namespace meshd::fuzz {
namespace {

void read_inference(std::string_view text) {
  static const auto pool = tensor::BufferPool::create(0);
  static const models::ModelSpec spec = [] {
    models::ModelSpec made;
    made.name = "m";
    made.version = 1;
    made.max_batch_size = 4;
    made.inputs = {{"x", tensor::DType::kFloat32, {2}}, {"n", tensor::DType::kInt8, {}}};
    made.outputs = {{"y", tensor::DType::kFloat32, {2}}};
    return made;
  }();
  // Behind the head are the bytes of tensors; without a brace all is JSON.
  const size_t end = text.rfind('}');
  const bool has_tail = end != std::string_view::npos && end + 1 < text.size();
  (void)api::decode_inference(std::string(text), has_tail ? std::optional<int64_t>(end + 1) : std::nullopt, spec, *pool,
                              nullptr);
}

void read_slices(std::string_view text) {
  constexpr int64_t kDims[] = {7, 3};
  const auto slices = arrays::parse_slices(text, kDims);
  for (size_t i = 0; i < slices.size(); ++i) {
    const auto dims = arrays::slice_dims(slices);
    if (dims[i] < 0 || dims[i] > kDims[i]) std::abort();
  }
}

void read_json(std::string_view text) { (void)api::Json::parse(std::string(text)); }
void read_program(std::string_view text) {
  (void)api::decode_program(api::Json::parse(std::string(text)), "name", nullptr);
}
void read_artifact(std::string_view bytes) { (void)program::read_artifact(bytes); }
void read_numpy(std::string_view text) { (void)numpy::read(text); }
void read_form(std::string_view text) { (void)api::read_form("multipart/form-data; boundary=B", text); }
void read_spec(std::string_view text) { (void)api::parse_spec_query(text); }

constexpr Format kFormats[] = {{"json", read_json},   {"program", read_program},     {"artifact", read_artifact},
                               {"numpy", read_numpy}, {"inference", read_inference}, {"form", read_form},
                               {"spec", read_spec},   {"slice", read_slices}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace meshd::fuzz
