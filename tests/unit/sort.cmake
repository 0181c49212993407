meshd_test(sort_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/sort_test.cpp LINKS meshd_program meshd_ops)
