// A folder of a test's own, gone when the test is over.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>

namespace meshd::testing {

/// One thread.
class TempFolder {
 public:
  enum class Where {
    kDisk,    ///< what TMPDIR says, else /tmp
    kMemory,  ///< /dev/shm where there is one: for tests that open hundreds of small folders
  };
  explicit TempFolder(Where where = Where::kDisk) {
    static std::atomic<int> count{0};
    const bool in_memory = where == Where::kMemory && std::filesystem::is_directory("/dev/shm");
    const std::filesystem::path parent = in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    path_ = (parent / ("meshd-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count))).string();
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace meshd::testing
