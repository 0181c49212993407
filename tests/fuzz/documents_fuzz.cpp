// libFuzzer target: any bytes as a document or a short text of the API are read or refused with core::Error. The first
// byte says as what: JSON, the body of a program, an artifact, NumPy syntax, a request of the Open Inference Protocol,
// a form, a partition spec, a slice, a .npy file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "api/codecs/files/form.h"
#include "api/codecs/files/npy.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/program_codec.h"
#include "api/codecs/runs/inference_codec.h"
#include "api/json/json.h"
#include "service/arrays/regions/region.h"
#include "service/core/error.h"
#include "service/numpy/numpy.h"
#include "service/program/bytecode/artifact.h"

namespace {

using namespace meshd;

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

void read_npy(std::string_view text) {
  size_t at = 0;
  const auto head = api::read_npy_head([&](std::span<std::byte> to) {
    if (to.size() > text.size() - at) throw core::Error("malformed_body", "the end");
    std::memcpy(to.data(), text.data() + at, to.size());
    at += to.size();
  });
  if (tensor::byte_count(head.type) < 0) std::abort();
}

void read(uint8_t kind, std::string_view text) {
  switch (kind % 9) {
    case 0:
      (void)api::Json::parse(std::string(text));
      break;
    case 1:
      (void)api::decode_program(api::Json::parse(std::string(text)), "name", nullptr);
      break;
    case 2:
      (void)program::read_artifact(text);
      break;
    case 3:
      (void)numpy::read(text);
      break;
    case 4:
      read_inference(text);
      break;
    case 5:
      (void)api::read_form("multipart/form-data; boundary=B", text);
      break;
    case 6:
      (void)api::parse_spec_query(text);
      break;
    case 7:
      read_slices(text);
      break;
    default:
      read_npy(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  } catch (const core::Error&) {
  }
  return 0;
}
