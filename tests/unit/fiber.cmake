meshd_test(fiber_test SOURCES fiber_test.cpp LINKS meshd_core)
