meshd_test(movement_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/movement_test.cpp LINKS meshd_kernels)
meshd_test(movement_rows_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/movement_rows_test.cpp LINKS meshd_ops)
