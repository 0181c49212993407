// What a preloaded shim shares with the test that runs the server (shim.py): a file of integers, mapped.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace meshd::tests {

/// Null where the process runs without a test. Maps anew at each call, and allocates nothing.
template <typename Words>
Words* map_shim_words() {
  const char* path = std::getenv("SHIM_WORDS");
  const int fd = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* mapped = ::mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return mapped == MAP_FAILED ? nullptr : static_cast<Words*>(mapped);
}

}  // namespace meshd::tests
