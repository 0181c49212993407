// Arrays of files in memory: their order, dtypes that files leave open, and files that are cut short or twisted.
#include "api/codecs/files/file_arrays.h"

#include <gtest/gtest.h>

#include "service/core/error.h"
#include "tests/unit/routes/files.h"

namespace meshd::api {
namespace {

using tensor::DType;
using testing::npy_file;
using testing::npz_file;
using testing::safetensors_file;

const tensor::TensorType kByte{DType::kUint8, {1}};

class FileArraysTest : public ::testing::Test {
 protected:
  FileArrays open(FileKind kind, std::string_view data) { return {kind, data, *pool_, &memory_}; }
  std::string names(FileKind kind, std::string_view data) {
    std::string out;
    const FileArrays file = open(kind, data);
    for (const FileArrays::Entry& entry : file.entries()) out += (out.empty() ? "" : " ") + entry.name;
    return out;
  }
  static std::string text_of(const tensor::DenseValue& value) {
    return {reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size()};
  }
  static std::string refusal(const std::function<void()>& action) {
    try {
      action();
    } catch (const core::Error& error) {
      return std::string(error.code().word()) + ": " + error.detail();
    }
    return "";
  }

  std::shared_ptr<tensor::BufferPool> pool_ = tensor::BufferPool::create(0);
  core::MemoryReservation memory_;
};

TEST_F(FileArraysTest, names_are_in_order_with_numbers_in_them_as_numbers) {
  const std::vector<std::string> shuffled = {"arr_10", "b", "arr_2", "a", "7.10", "arr_02", "7.9", "10", "", "arr_"};
  std::vector<testing::FileArray> arrays;
  for (const std::string& name : shuffled) arrays.push_back({name, kByte, "x"});
  const std::string in_order = " 7.9 7.10 10 a arr_ arr_02 arr_2 arr_10 b";
  EXPECT_EQ(names(FileKind::kZip, npz_file(arrays)), in_order.substr(1));
  EXPECT_EQ(names(FileKind::kSafetensors, safetensors_file(arrays)), in_order.substr(1));
}

TEST_F(FileArraysTest, entries_are_found_by_name_among_many) {
  std::vector<testing::FileArray> arrays;
  for (int i = 0; i < 300; ++i) {
    arrays.push_back({"a" + std::to_string(i), kByte, "x"});
    arrays.push_back({"a0" + std::to_string(i), kByte, "y"});
  }
  const std::string data = npz_file(arrays);
  const FileArrays file = open(FileKind::kZip, data);
  for (const testing::FileArray& array : arrays) {
    const std::optional<size_t> at = file.find(array.name);
    ASSERT_TRUE(at) << array.name;
    EXPECT_EQ(file.entries()[*at].name, array.name);
    EXPECT_EQ(text_of(file.read(*at, std::nullopt)), array.bytes);
  }
  for (const char* name : {"a300", "a", "", "b", "a00300", "A1"}) EXPECT_FALSE(file.find(name)) << name;
}

TEST_F(FileArraysTest, what_was_unpacked_is_given_away_without_a_copy) {
  const std::string data =
      npz_file({{"x", {DType::kInt4, {3}}, "abc"}, {"y", {DType::kUint8, {1000}}, std::string(1000, 'z')}});
  FileArrays file = open(FileKind::kZip, data);
  const int64_t held = memory_.bytes();
  EXPECT_GE(held, 1003);
  EXPECT_EQ(text_of(file.take(1, std::nullopt)), std::string(1000, 'z'));
  const tensor::DenseValue four_bits = file.take(0, DType::kInt4);
  EXPECT_EQ(memory_.bytes(), held);
  EXPECT_EQ(four_bits.type, (tensor::TensorType{DType::kInt4, {3}}));
  EXPECT_EQ(text_of(four_bits), text_of(open(FileKind::kZip, data).read(0, DType::kInt4))) << "unused bits are cleaned";
  EXPECT_NE(refusal([&] { static_cast<void>(open(FileKind::kZip, data).take(0, std::nullopt)); }), "");
}

TEST_F(FileArraysTest, values_follow_their_names) {
  const std::vector<testing::FileArray> arrays = {{"arr_10", kByte, "k"}, {"arr_9", {DType::kUint8, {2}}, "ab"}};
  const std::string zip = npz_file(arrays), tensors = safetensors_file(arrays);
  for (const auto& [kind, data] : {std::pair(FileKind::kZip, &zip), std::pair(FileKind::kSafetensors, &tensors)}) {
    const FileArrays file = open(kind, *data);
    ASSERT_EQ(file.entries().size(), 2U);
    EXPECT_EQ(text_of(file.read(0, std::nullopt)), "ab");
    EXPECT_EQ(text_of(file.read(1, std::nullopt)), "k");
  }
}

TEST_F(FileArraysTest, each_member_may_leave_its_dtype_open) {
  const std::string zip = npz_file({{"a", {DType::kBfloat16, {1}}, "xy"},
                                    {"b", {DType::kFloat8E4M3FN, {2}}, "\x7f\xff"},
                                    {"c", {DType::kInt4, {2}}, "\x0f\x17"},
                                    {"d", {DType::kFloat32, {1}}, "wxyz"}});
  const FileArrays file = open(FileKind::kZip, zip);
  ASSERT_EQ(file.entries().size(), 4U);
  EXPECT_EQ(file.read(0, std::nullopt).type.dtype, DType::kBfloat16);
  EXPECT_TRUE(file.entries()[1].is_open);
  EXPECT_EQ(refusal([&] { static_cast<void>(file.read(1, std::nullopt)); }).substr(0, 55),
            "unsupported_dtype: member \"b.npy\": npy: the file says '");
  EXPECT_NE(refusal([&] { static_cast<void>(file.read(1, DType::kFloat32)); }).find("not float32"), std::string::npos);
  // The same bytes twice, as two types of one byte.
  EXPECT_EQ(text_of(file.read(1, DType::kFloat8E4M3FN)), "\x7f\xff");
  EXPECT_EQ(text_of(file.read(1, DType::kInt2)), "\xff\xff");
  EXPECT_EQ(text_of(file.read(2, DType::kInt4)), "\xff\x07");
  EXPECT_EQ(file.read(3, DType::kBfloat16).type.dtype, DType::kFloat32);
}

TEST_F(FileArraysTest, elements_in_fortran_order_are_turned) {
  std::string file = npy_file({DType::kUint8, {2, 3}}, "142536");
  file.replace(file.find("False"), 5, "True ");
  EXPECT_EQ(text_of(open(FileKind::kNpy, file).read(0, std::nullopt)), "123456");
}

TEST_F(FileArraysTest, file_that_is_cut_short_is_refused_at_every_byte) {
  const std::vector<testing::FileArray> arrays = {{"a", {DType::kFloat32, {2}}, "abcdefgh"},
                                                  {"b", {DType::kInt8, {0}}, ""}};
  const std::string npy = npy_file(arrays[0].type, arrays[0].bytes), zip = npz_file(arrays),
                    tensors = safetensors_file(arrays);
  for (const auto& [kind, whole] :
       {std::pair(FileKind::kNpy, npy), std::pair(FileKind::kZip, zip), std::pair(FileKind::kSafetensors, tensors)}) {
    EXPECT_EQ(refusal([&, kind = kind, &whole = whole] { open(kind, whole); }), "");
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      EXPECT_TRUE(refusal([&, kind = kind] { open(kind, cut); }).starts_with("malformed_")) << size;
    }
    EXPECT_TRUE(refusal([&, kind = kind, &whole = whole] { open(kind, whole + "x"); }).starts_with("malformed_body"));
  }
}

TEST_F(FileArraysTest, entries_count_though_they_have_no_elements) {
  std::vector<testing::FileArray> arrays;
  for (int i = 0; i < 100; ++i) arrays.push_back({std::to_string(i), {DType::kFloat64, {0}}, ""});
  const std::string zip = npz_file(arrays);
  static_cast<void>(open(FileKind::kZip, zip));
  EXPECT_GE(memory_.bytes(), 100 * 256);
}

}  // namespace
}  // namespace meshd::api
