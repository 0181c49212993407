meshd_test(fused_loop_test SOURCES fused_loop_test.cpp LINKS meshd_kernels)
