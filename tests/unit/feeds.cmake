meshd_test(feeds_test SOURCES feeds_test.cpp LINKS meshd_effects meshd_partition meshd_program)
