meshd_test(arrays_pending_test
  SOURCES arrays_pending_test.cpp
  LINKS meshd_arrays)
