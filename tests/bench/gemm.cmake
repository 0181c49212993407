add_executable(gemm_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/gemm_bench.cpp)
target_link_libraries(gemm_bench PRIVATE meshd_ops meshd_options dnnl PkgConfig::openblas)
