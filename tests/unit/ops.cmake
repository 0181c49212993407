meshd_test(ops_test
  SOURCES ops_table_test.cpp ops_pointwise_test.cpp ops_control_test.cpp ops_collectives_test.cpp ops_custom_calls_test.cpp
          ops_scalar_region_test.cpp
  LINKS meshd_ops)
