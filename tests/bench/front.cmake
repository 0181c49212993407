add_executable(front_bench front_bench.cpp raw_server.cpp)
target_link_libraries(front_bench PRIVATE meshd_api meshd_options)
