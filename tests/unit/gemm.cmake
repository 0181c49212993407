meshd_test(gemm_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/gemm_test.cpp LINKS meshd_ops)
