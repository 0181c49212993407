#include <gtest/gtest.h>

#include "service/tensor/dtype.h"

namespace meshd::tensor {
namespace {

TEST(DTypeMeant, names_of_other_libraries_and_misspelt_ones_are_recognised) {
  for (const auto& [given, meant] : {std::pair{"flaot32", DType::kFloat32},
                                     {"Float32", DType::kFloat32},
                                     {"f32", DType::kFloat32},
                                     {"torch.float32", DType::kFloat32},
                                     {"jnp.bfloat16", DType::kBfloat16},
                                     {"double", DType::kFloat64},
                                     {"long", DType::kInt64},
                                     {"<i8", DType::kInt64},
                                     {"BF16", DType::kBfloat16},
                                     {"F8_E4M3", DType::kFloat8E4M3FN},
                                     {"unit8", DType::kUint8},
                                     {"complex<f32>", DType::kComplex64},
                                     {"float23", DType::kFloat32},
                                     {"float8_e4m3fm", DType::kFloat8E4M3FN},
                                     {"pred", DType::kBool},
                                     {"s32", DType::kInt32}})
    EXPECT_EQ(dtype_meant(given), meant) << given;
}

TEST(DTypeMeant, what_is_near_to_several_types_means_none) {
  for (const char* given : {"", "i3", "f4", "float8", "int7", "string", "object", "str", ".", "f4E3M0FN"})
    EXPECT_EQ(dtype_meant(given), std::nullopt) << given;
  EXPECT_EQ(dtype_meant(std::string(100'000, 'f')), std::nullopt);
  EXPECT_EQ(dtype_meant("<V1"), std::nullopt) << "the descr of all types of one byte that NumPy has not";
}

TEST(DTypeMeant, advice_is_a_name_of_ours_or_the_list) {
  EXPECT_EQ(dtype_advice("double"), "; did you mean 'float64'?");
  EXPECT_NE(dtype_advice("decimal").find("known are bool"), std::string::npos);
}

}  // namespace
}  // namespace meshd::tensor
