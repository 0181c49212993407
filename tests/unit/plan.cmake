meshd_test(plan_test
  SOURCES plan_fusion_test.cpp plan_storage_test.cpp plan_collective_test.cpp
  LINKS meshd_device meshd_compile)
