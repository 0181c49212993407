// Bodies of the Open Inference Protocol: lengths, shapes and data that are right and wrong.
#include "api/codecs/runs/inference_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "service/core/error.h"

namespace meshd::api {
namespace {

using tensor::DType;
using tensor::kDynamicDim;

models::ModelSpec two_inputs() {
  models::ModelSpec spec;
  spec.name = "m";
  spec.version = 3;
  spec.max_batch_size = 4;
  spec.inputs = {{"x", DType::kFloat32, {2}}, {"n", DType::kInt8, {}}};
  spec.outputs = {{"y", DType::kFloat32, {2}}, {"k", DType::kInt64, {}}};
  return spec;
}

models::ModelSpec one_input(int64_t most, tensor::Dims dims) {
  models::ModelSpec spec = two_inputs();
  spec.max_batch_size = most;
  spec.inputs = {{"x", DType::kFloat32, std::move(dims)}};
  return spec;
}

class InferenceCodec : public ::testing::Test {
 protected:
  DecodedInference decode(const std::string& body, std::optional<int64_t> head = {},
                          const models::ModelSpec& spec = two_inputs()) {
    return decode_inference(body, head, spec, *pool_, nullptr);
  }
  // "code pointer pointer": what it is refused with.
  std::string refused(const std::string& body, std::optional<int64_t> head = {},
                      const models::ModelSpec& spec = two_inputs()) {
    try {
      decode(body, head, spec);
    } catch (const core::Error& error) {
      std::string out(error.code().word());
      for (const core::Diagnostic& one : error.diagnostics()) out += " " + one.pointer;
      return out;
    }
    return "taken";
  }
  static std::string with_x(const std::string& x, const std::string& rest = "") {
    return R"({"inputs": [)" + x + R"(, {"name": "n", "datatype": "INT8", "shape": [1], "data": [5]}])" + rest + "}";
  }

  std::shared_ptr<tensor::BufferPool> pool_ = tensor::BufferPool::create(0);
};

constexpr const char* kX = R"({"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]})";

std::vector<float> floats(const tensor::DenseValue& value) {
  std::vector<float> out(value.bytes().size() / sizeof(float));
  std::memcpy(out.data(), value.bytes().data(), value.bytes().size());
  return out;
}

TEST_F(InferenceCodec, takes_flat_and_nested_data_in_any_order_of_inputs) {
  for (const char* data : {"[1.5, 2]", "[[1.5, 2]]"}) {
    const auto got = decode(R"({"id": "7", "inputs": [{"name": "n", "datatype": "INT8", "shape": [1], "data": [-5]},
      {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": )" +
                            std::string(data) + "}]}");
    EXPECT_EQ(got.id, "7");
    EXPECT_EQ(floats(got.request.inputs.at(0)), (std::vector<float>{1.5, 2}));
    EXPECT_EQ(got.request.inputs.at(0).type.dims, (tensor::Dims{1, 2}));
    EXPECT_EQ(got.outputs.size(), 2U);
    EXPECT_FALSE(got.outputs[0].is_binary);
  }
}

TEST_F(InferenceCodec, takes_the_bytes_behind_the_json_in_the_order_of_the_inputs) {
  const std::string head = R"({"inputs": [
    {"name": "n", "datatype": "INT8", "shape": [2], "parameters": {"binary_data_size": 2}},
    {"name": "x", "datatype": "FP32", "shape": [2, 2], "parameters": {"binary_data_size": 16}}],
    "parameters": {"binary_data_output": true, "priority": 2, "timeout": 5000}, "outputs": [{"name": "k"},
    {"name": "y", "parameters": {"binary_data": false, "classification": 0}}]})";
  const float rows[] = {1, 2, 3, 4};
  std::string body = head + "\x07\x08";
  body.append(reinterpret_cast<const char*>(rows), sizeof rows);
  const auto got = decode(body, static_cast<int64_t>(head.size()));
  EXPECT_EQ(floats(got.request.inputs.at(0)), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(got.request.inputs.at(1).bytes()[1], std::byte{8});
  EXPECT_EQ(got.request.priority, 2);
  EXPECT_EQ(got.request.timeout, std::chrono::microseconds(5000));
  ASSERT_EQ(got.outputs.size(), 2U);
  EXPECT_EQ(got.outputs[0].number, 1U);
  EXPECT_TRUE(got.outputs[0].is_binary);
  EXPECT_FALSE(got.outputs[1].is_binary);
  // One byte less, one byte more, and sizes that are not the shape's.
  EXPECT_EQ(refused(body.substr(0, body.size() - 1), static_cast<int64_t>(head.size())), "malformed_body");
  EXPECT_EQ(refused(body + "x", static_cast<int64_t>(head.size())), "malformed_body");
  std::string wrong = body;
  wrong.replace(wrong.find("[2, 2]"), 6, "[1, 2]");
  EXPECT_EQ(refused(wrong, static_cast<int64_t>(head.size())), "invalid_request /inputs/1/parameters/binary_data_size");
}

TEST_F(InferenceCodec, lengths_of_the_json_that_do_not_fit_are_refused) {
  const std::string body = with_x(kX);
  EXPECT_EQ(refused(body), "taken");
  EXPECT_EQ(refused(body, static_cast<int64_t>(body.size())), "taken");
  EXPECT_EQ(refused(body, static_cast<int64_t>(body.size() + 1)), "malformed_body");
  EXPECT_EQ(refused(body, INT64_MAX), "malformed_body");
  EXPECT_EQ(refused(body, 10), "malformed_json ");
  EXPECT_EQ(refused(""), "malformed_json ");
  for (const char* field : {"", "-1", "x", "1e3", "99999999999999999999", "1 2"}) {
    try {
      head_length_of(field);
      ADD_FAILURE() << field;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code().word(), "malformed_request");
    }
  }
  EXPECT_EQ(head_length_of("17"), 17);
  EXPECT_EQ(head_length_of(std::nullopt), std::nullopt);
}

TEST_F(InferenceCodec, a_raw_body_is_the_only_input) {
  const float rows[] = {1, 2, 3, 4, 5, 6};
  const std::string body(reinterpret_cast<const char*>(rows), sizeof rows);
  const auto got = decode(body, 0, one_input(8, {2}));
  EXPECT_EQ(got.request.inputs.at(0).type.dims, (tensor::Dims{3, 2}));
  EXPECT_TRUE(got.outputs.at(0).is_binary);
  EXPECT_EQ(decode(body, 0, one_input(0, {3, kDynamicDim})).request.inputs.at(0).type.dims, (tensor::Dims{3, 2}));
  EXPECT_EQ(refused(body, 0), "invalid_request");
  EXPECT_EQ(refused(body.substr(1), 0, one_input(8, {2})), "malformed_body");
  EXPECT_EQ(refused(body, 0, one_input(0, {2})), "malformed_body");
  EXPECT_EQ(refused(body, 0, one_input(8, {kDynamicDim})), "invalid_request");
}

TEST_F(InferenceCodec, inputs_and_outputs_are_those_of_the_model) {
  const std::string n = R"({"name": "n", "datatype": "INT8", "shape": [1], "data": [5]})";
  EXPECT_EQ(refused(R"({"inputs": []})"), "invalid_request /inputs");
  EXPECT_EQ(refused(R"({"inputs": [)" + n + "," + n + "]}"), "invalid_request /inputs/1/name");
  EXPECT_EQ(refused(with_x(R"({"name": "z", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]})")),
            "invalid_request /inputs/0/name");
  EXPECT_EQ(refused(with_x(kX, R"(, "outputs": [{"name": "z"}])")), "invalid_request /outputs/0/name");
  EXPECT_EQ(refused(with_x(kX, R"(, "outputs": [{"name": "y"}, {"name": "y"}])")), "invalid_request /outputs/1/name");
  EXPECT_EQ(refused(with_x(kX, R"(, "more": 1)")), "invalid_request /more");
}

TEST_F(InferenceCodec, shapes_and_data_agree) {
  const auto x = [](const std::string& fields) { return with_x(R"({"name": "x", "datatype": )" + fields + "}"); };
  EXPECT_EQ(refused(x(R"("FP32", "shape": [1, 2], "data": [1, 2, 3])")), "invalid_request /inputs/0/data");
  EXPECT_EQ(refused(x(R"("FP32", "shape": [1, 2], "data": [[1], [2]])")), "invalid_request /inputs/0/data");
  EXPECT_EQ(refused(x(R"("FP32", "shape": [1, -2], "data": [1, 2])")), "invalid_request /inputs/0/shape/1");
  EXPECT_EQ(refused(x(R"("FP32", "shape": [1, 2])")), "invalid_request /inputs/0");
  EXPECT_EQ(refused(x(R"("FP32", "shape": [1, 2], "data": ["a", 2])")), "invalid_request /inputs/0/data/0");
  EXPECT_EQ(refused(x(R"("INT8", "shape": [1, 2], "data": [128, 2])")), "invalid_request /inputs/0/data/0");
  EXPECT_EQ(refused(x(R"("FP31", "shape": [1, 2], "data": [1, 2])")), "invalid_request /inputs/0/datatype");
  EXPECT_EQ(refused(x(R"("FP32", "shape": [9007199254740991, 9007199254740991], "data": [1, 2])")), "invalid_array");
  EXPECT_EQ(refused(x(R"("FP32", "shape": [1, 2], "data": [1, 2], "parameters": {"binary_data_size": 8})")),
            "invalid_request /inputs/0");
  for (const char* size : {"-8", "1.5", "\"8\"", "18446744073709551615"}) {
    const std::string body =
        x(R"("FP32", "shape": [1, 2], "parameters": {"binary_data_size": )" + std::string(size) + "}");
    EXPECT_TRUE(refused(body).starts_with("invalid_request /inputs/0/parameters/binary_data_size")) << size;
  }
}

TEST_F(InferenceCodec, what_is_not_supported_is_refused_by_name) {
  EXPECT_EQ(refused(with_x(R"({"name": "x", "datatype": "BYTES", "shape": [1], "data": ["a"]})")),
            "unsupported_dtype /inputs/0/datatype");
  EXPECT_EQ(refused(with_x(kX, R"(, "outputs": [{"name": "y", "parameters": {"classification": 3}}])")),
            "unsupported_extension /outputs/0/parameters/classification");
  EXPECT_EQ(refused(with_x(R"({"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters":
            {"shared_memory_region": "r", "shared_memory_byte_size": 8}})")),
            "unsupported_extension /inputs/0/parameters/shared_memory_region");
  EXPECT_EQ(refused(with_x(kX, R"(, "parameters": {"sequence_id": 1})")),
            "unsupported_extension /parameters/sequence_id");
  EXPECT_EQ(refused(with_x(kX, R"(, "parameters": {"sequence_id": 0, "sequence_start": false})")), "taken");
  EXPECT_EQ(refused(with_x(kX, R"(, "parameters": {"mine": 1})")), "invalid_request /parameters/mine");
}

TEST_F(InferenceCodec, a_response_has_json_and_the_bytes_behind_it) {
  const models::ModelSpec spec = two_inputs();
  const float y[] = {1.5, -0.0F};
  const int64_t k[] = {(int64_t{1} << 53) + 1};
  const std::vector<models::InferOutput> outputs = {{{DType::kFloat32, {1, 2}}, std::as_bytes(std::span(y)), nullptr},
                                                    {{DType::kInt64, {1}}, std::as_bytes(std::span(k)), nullptr}};
  DecodedInference request;
  request.id = "a";
  request.outputs = {{1, false}, {0, true}};
  const EncodedInference got = encode_inference(spec, request, outputs);
  EXPECT_EQ(got.head, R"({"model_name":"m","model_version":"3","id":"a","outputs":[)"
                      R"({"name":"k","datatype":"INT64","shape":[1],"data":[9007199254740993]},)"
                      R"({"name":"y","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]})");
  ASSERT_EQ(got.pieces.size(), 1U);
  EXPECT_EQ(got.pieces[0].data(), outputs[0].bytes.data());
}

// Bodies with a few bytes changed are taken or refused, and nothing else happens.
TEST_F(InferenceCodec, no_body_does_harm) {
  const std::string head = R"({"inputs": [{"name": "n", "datatype": "INT8", "shape": [2], "parameters":
    {"binary_data_size": 2}}, {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}],
    "parameters": {"binary_data_output": true, "priority": 2}, "outputs": [{"name": "y"}]})";
  std::mt19937 random(5);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string body = head + "\x07\x08";
    for (int change = 0; change < 3; ++change) {
      const size_t at = random() % body.size();
      if (random() % 2 == 0) body[at] = static_cast<char>(random());
      if (random() % 4 == 0) body.erase(at, 1 + random() % 8);
      if (body.empty()) body = "{";
    }
    const auto length = static_cast<int64_t>(head.size()) - static_cast<int64_t>(random() % 3) + 1;
    if (refused(body, length) == "taken") ++taken;
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 20'000);
}

}  // namespace
}  // namespace meshd::api
