meshd_test(reduce_window_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/reduce_window_test.cpp LINKS meshd_program meshd_ops)
meshd_test(convolution_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/convolution_test.cpp LINKS meshd_program meshd_ops)
meshd_test(select_and_scatter_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/select_and_scatter_test.cpp LINKS meshd_program meshd_ops)
meshd_test(batch_norm_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/batch_norm_test.cpp LINKS meshd_ops)
