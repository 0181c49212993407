meshd_test(auth_test SOURCES auth_token_file_test.cpp auth_roles_test.cpp LINKS meshd_app)
