# Small requests that ask for much.
add_test(NAME http_bombs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/bombs_test.py $<TARGET_FILE:meshd>)
set_tests_properties(http_bombs PROPERTIES TIMEOUT 600)
if(MESHD_ASAN OR MESHD_TSAN)
  set_tests_properties(http_bombs PROPERTIES ENVIRONMENT HAS_SANITIZER=1)
endif()
