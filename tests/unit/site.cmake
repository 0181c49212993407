meshd_test(site_test SOURCES site_authority_test.cpp site_policy_test.cpp LINKS meshd_api)
