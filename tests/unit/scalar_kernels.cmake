meshd_test(scalar_kernels_test
  SOURCES scalar_math_test.cpp scalar_exact_test.cpp scalar_convert_test.cpp
          scalar_complex_test.cpp half_test.cpp
  LINKS meshd_kernels)
