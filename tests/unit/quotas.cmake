meshd_test(quotas_test SOURCES quotas_test.cpp LINKS meshd_quotas)
