meshd_test(fft_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/fft_test.cpp LINKS meshd_kernels TIMEOUT 600)
meshd_test(lapack_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/lapack_test.cpp LINKS meshd_kernels)
