meshd_test(front_test
  SOURCES front_head_test.cpp front_body_test.cpp front_router_test.cpp front_http_test.cpp front_worker_pool_test.cpp
          byte_stream_test.cpp
  LINKS meshd_api nlohmann_json::nlohmann_json)
