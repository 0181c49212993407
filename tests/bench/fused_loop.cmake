add_executable(fused_loop_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/fused_loop_bench.cpp)
target_link_libraries(fused_loop_bench PRIVATE meshd_kernels meshd_options)
# The loops written by hand stand for the best a compiler makes of the chain on this processor.
target_compile_options(fused_loop_bench PRIVATE -O3 -march=native -fno-math-errno -fno-trapping-math)
