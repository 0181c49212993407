// Values as JSON: what their text takes.
#include "api/codecs/value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "api/json/schema.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

using tensor::DType;

std::string text_of(const tensor::DenseValue& value) {
  return to_json(value_documents({value}, ValueEncoding::kJson).front());
}

TEST(Value, text_is_no_longer_than_it_is_said_to_be) {
  const auto pool = tensor::BufferPool::create(0);
  for (const tensor::Dims& dims : std::vector<tensor::Dims>{{}, {3}, {0}, {2, 0}, {2, 3}, {5, 1, 1, 1}}) {
    for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
      const tensor::DenseValue value = tensor::new_dense({row.dtype, dims}, *pool);
      std::fill(value.buffer->bytes().begin(), value.buffer->bytes().end(), std::byte{0x81});
      clean_elements(row.dtype, value.buffer->bytes());
      std::string text;
      try {
        JsonCodec<NestedElements>::append(text, {value.type, value.bytes()});
      } catch (const core::Error& error) {
        EXPECT_EQ(error.code(), core::ErrorCode("unsupported_dtype"));  // has base64 alone
      }
      EXPECT_LE(static_cast<int64_t>(text.size()), nested_text_bytes(value.type) + 1) << text;
    }
  }
}

TEST(Value, many_lists_of_few_bytes_are_base64) {
  const auto pool = tensor::BufferPool::create(0);
  const auto has_data = [&](DType dtype, tensor::Dims dims) {
    return text_of(tensor::new_dense({dtype, std::move(dims)}, *pool)).find("\"data\"") != std::string::npos;
  };
  EXPECT_TRUE(has_data(DType::kUint8, {100'000, 1}));
  EXPECT_TRUE(has_data(DType::kFloat32, {10'000, 1, 1, 1}));
  EXPECT_TRUE(has_data(DType::kUint8, {3, 1, 1, 1, 1, 1}));
  EXPECT_FALSE(has_data(DType::kUint8, {100'000, 1, 1, 1, 1}));
  EXPECT_FALSE(has_data(DType::kFloat32, {1'000'000'000'000, 0}));
}

}  // namespace
}  // namespace meshd::api
