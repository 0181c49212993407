meshd_test(gather_scatter_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/gather_scatter_test.cpp LINKS meshd_program meshd_ops)
