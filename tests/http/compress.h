// Encoded bodies for tests: small texts, and bombs.
#pragma once

#include <cstddef>
#include <string>

namespace meshd::http_test {

std::string gzip_of(const std::string& text);
std::string zstd_of(const std::string& text);
/// `size` zero bytes. A `window_log` of 0 is the library's own choice.
std::string gzip_zeros(size_t size);
std::string zstd_zeros(size_t size, int window_log);

}  // namespace meshd::http_test
