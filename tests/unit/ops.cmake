meshd_test(ops_test
  SOURCES ops_table_test.cpp ops_pointwise_test.cpp ops_control_test.cpp ops_collectives_test.cpp ops_custom_calls_test.cpp
          ops_scalar_region_test.cpp
  LINKS meshd_ops)
meshd_test(ops_interpreted_test
  SOURCES ops_cases_test.cpp ops_conformance_test.cpp ops_rules_test.cpp ../support/interpreter.cpp ../support/case_values.cpp
  LINKS meshd_program meshd_ops nlohmann_json::nlohmann_json)
