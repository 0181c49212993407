meshd_test(sharding_test SOURCES sharding_test.cpp LINKS meshd_sharding)
meshd_test(layout_test SOURCES layout_test.cpp LINKS meshd_sharding)
