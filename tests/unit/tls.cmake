meshd_test(tls_test
  SOURCES tls_stream_test.cpp tls_context_test.cpp
  LINKS meshd_api meshd_http_toys OpenSSL::SSL)
