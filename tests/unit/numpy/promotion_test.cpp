// Promotion against JAX's own table: tests/numpy/promotion.txt, which make_promotion.py makes.
#include "service/numpy/trace/promotion.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace meshd::numpy {
namespace {

WeakType read_type(std::string name) {
  const bool weak = name.back() == '*';
  if (weak) name.pop_back();
  return {tensor::dtype_from_name(name).value(), weak};
}

std::string shown(const std::optional<WeakType>& type) {
  return type ? std::string(tensor::name(type->dtype)) + (type->weak ? "*" : "") : "-";
}

TEST(PromotionTest, every_pair_is_as_in_jax) {
  std::ifstream file(MESHD_SOURCE_DIR "/tests/numpy/promotion.txt");
  int pairs = 0;
  for (std::string line; std::getline(file, line); ++pairs) {
    std::istringstream words(line);
    std::string a;
    std::string b;
    std::string result;
    words >> a >> b >> result;
    EXPECT_EQ(shown(promoted(read_type(a), read_type(b))), result) << a << " and " << b;
  }
  EXPECT_EQ(pairs, 23 * 23);
}

TEST(PromotionTest, inexact_of_integers_is_float32) {
  EXPECT_EQ(shown(inexact_of({tensor::DType::kInt8, false})), "float32");
  EXPECT_EQ(shown(inexact_of({tensor::DType::kInt32, true})), "float32*");
  EXPECT_EQ(shown(inexact_of({tensor::DType::kFloat16, false})), "float16");
  EXPECT_EQ(shown(inexact_of({tensor::DType::kComplex64, false})), "complex64");
}

}  // namespace
}  // namespace meshd::numpy
