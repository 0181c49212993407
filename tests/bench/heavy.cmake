add_executable(heavy_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/heavy_bench.cpp)
target_link_libraries(heavy_bench PRIVATE meshd_kernels meshd_ops meshd_options PkgConfig::openblas hwy_contrib dnnl)
