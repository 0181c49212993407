meshd_test(session_queue_test SOURCES session_queue_test.cpp LINKS meshd_sessions)
meshd_test(fair_queue_test SOURCES fair_queue_test.cpp LINKS meshd_jobs)
