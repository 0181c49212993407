meshd_test(app_test SOURCES app_environment_test.cpp LINKS meshd_app)
