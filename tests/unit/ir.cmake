meshd_test(ir_test SOURCES ir_test.cpp LINKS meshd_ir)
