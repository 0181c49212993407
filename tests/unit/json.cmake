meshd_test(json_test SOURCES json_test.cpp LINKS meshd_codecs)
