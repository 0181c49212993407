meshd_test(long_kernels_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/long_kernels_test.cpp LINKS meshd_kernels)
