add_executable(linalg_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/linalg_bench.cpp)
target_link_libraries(linalg_bench PRIVATE meshd_kernels meshd_options)
# kissfft is the peer where it is installed (libkissfft-dev); nothing else needs it.
pkg_check_modules(kissfft QUIET IMPORTED_TARGET kissfft-float)
if(kissfft_FOUND)
  target_link_libraries(linalg_bench PRIVATE PkgConfig::kissfft)
  target_compile_definitions(linalg_bench PRIVATE MESHD_HAS_KISSFFT)
endif()
