# The binary held to openapi.yaml.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME contract COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/contract_test.py $<TARGET_FILE:meshd>
                               ${CMAKE_SOURCE_DIR})
set_tests_properties(contract PROPERTIES TIMEOUT 300)
