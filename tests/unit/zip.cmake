meshd_test(zip_test SOURCES zip_test.cpp LINKS meshd_codecs)
