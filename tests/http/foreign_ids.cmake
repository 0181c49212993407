# What one principal has, another cannot tell from what nobody has.
add_test(NAME foreign_ids COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/foreign_ids_test.py $<TARGET_FILE:meshd>
                                  ${CMAKE_SOURCE_DIR})
set_tests_properties(foreign_ids PROPERTIES TIMEOUT 300)
if(DEFINED ENV{MESHD_LONG})  # which also judges times
  set_tests_properties(foreign_ids PROPERTIES RUN_SERIAL ON TIMEOUT 1200)
endif()
