meshd_test(layout_property_test SOURCES layout_property_test.cpp LINKS meshd_sharding)
# Seconds for 10^8 rounds of each property, else for 10^6 at most.
set(patience 1200)
if("$ENV{LONG}" STREQUAL "1")
  set(patience 28800)
endif()
meshd_test(sizes_property_test SOURCES sizes_property_test.cpp LINKS meshd_sharding TIMEOUT ${patience})
