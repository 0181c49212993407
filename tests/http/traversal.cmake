# Names and paths that lead out of the data folder.
add_test(NAME http_traversal COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/traversal_test.py $<TARGET_FILE:meshd>)
set_tests_properties(http_traversal PROPERTIES TIMEOUT 300)
