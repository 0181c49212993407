meshd_test(engine_test
  SOURCES engine_run_test.cpp engine_control_test.cpp engine_effects_test.cpp engine_queue_test.cpp engine_ranks_test.cpp
          engine_turns_test.cpp engine_cancel_test.cpp
  LINKS meshd_device meshd_compile)
