add_executable(parse_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/parse_bench.cpp)
target_link_libraries(parse_bench PRIVATE meshd_program meshd_options)
