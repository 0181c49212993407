// A planted bug of tests with a PowerDisk: the disk is not told of the syncs of folders.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/support/system_watcher.h"

namespace meshd::testing {

enum class FolderSyncs { kDone, kForgotten };

/// Passes everything else on to a disk, which must outlive it.
class ForgetfulWatcher final : public SystemWatcher {
 public:
  explicit ForgetfulWatcher(SystemWatcher& disk) : disk_(disk) {}
  [[nodiscard]] bool fails(const std::string& operation) override { return disk_.fails(operation); }
  void created(const std::string& path) override { disk_.created(path); }
  void wrote(const std::string& path, int64_t offset, std::span<const std::byte> bytes) override {
    disk_.wrote(path, offset, bytes);
  }
  void resized(const std::string& path, int64_t size) override { disk_.resized(path, size); }
  void synced(const std::string& path) override { disk_.synced(path); }
  void renamed(const std::string& from, const std::string& to) override { disk_.renamed(from, to); }
  void removed(const std::string& path) override { disk_.removed(path); }
  void synced_folder(const std::string&) override {}

 private:
  SystemWatcher& disk_;
};

}  // namespace meshd::testing
