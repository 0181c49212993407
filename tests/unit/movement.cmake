meshd_test(movement_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/movement_test.cpp LINKS meshd_kernels)
