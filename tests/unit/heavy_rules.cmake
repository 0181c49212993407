meshd_test(heavy_rules_test SOURCES heavy_rules_test.cpp LINKS meshd_ops)
