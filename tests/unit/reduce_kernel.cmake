meshd_test(reduce_kernel_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/reduce_kernel_test.cpp LINKS meshd_program meshd_ops)
