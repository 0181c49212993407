// storage::FileSystem that asks a SystemWatcher before it lets the real one work, and tells it what was done.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/core/error.h"
#include "storage/file_system.h"
#include "tests/support/system_watcher.h"

namespace meshd::testing {

/// Any thread. `watcher` must outlive it. A write that fails leaves the first half of its bytes behind, as disks do.
class WatchedFileSystem final : public storage::FileSystem {
 public:
  explicit WatchedFileSystem(SystemWatcher& watcher) : watcher_(watcher), real_(storage::real_file_system()) {}

  std::unique_ptr<storage::File> create(const std::string& path) override {
    check("create");
    auto file = std::make_unique<WatchedFile>(*this, real_->create(path), path);
    watcher_.created(path);
    return file;
  }
  std::unique_ptr<storage::File> open(const std::string& path) override {
    check("open");
    auto file = real_->open(path);
    if (!file) return nullptr;
    return std::make_unique<WatchedFile>(*this, std::move(file), path);
  }
  void rename(const std::string& from, const std::string& to) override {
    check("rename");
    real_->rename(from, to);
    watcher_.renamed(from, to);
  }
  bool unlink(const std::string& path) override {
    check("unlink");
    const bool removed = real_->unlink(path);
    if (removed) watcher_.removed(path);
    return removed;
  }
  void sync_folder(const std::string& path) override {
    check("sync_folder");
    real_->sync_folder(path);
    watcher_.synced_folder(path);
  }
  std::vector<storage::FolderEntry> list(const std::string& path) override {
    check("list");
    return real_->list(path);
  }
  void make_folder(const std::string& path) override {
    check("make_folder");
    real_->make_folder(path);
  }
  bool make_private(const std::string& path) override { return real_->make_private(path); }
  bool link(const std::string& from, const std::string& to) override {
    check("link");
    return real_->link(from, to);
  }
  int64_t free_bytes(const std::string& path) override {
    const int64_t told = told_free;
    return told >= 0 ? told : real_->free_bytes(path);
  }
  std::unique_ptr<storage::FileLock> try_lock(const std::string& path) override { return real_->try_lock(path); }

  /// What free_bytes() says; negative: what the real one says.
  std::atomic<int64_t> told_free{-1};

 private:
  class WatchedFile final : public storage::File {
   public:
    WatchedFile(WatchedFileSystem& owner, std::unique_ptr<storage::File> file, std::string path)
        : owner_(owner), file_(std::move(file)), path_(std::move(path)) {}
    void write_at(int64_t offset, std::span<const std::byte> bytes) override {
      if (owner_.watcher_.fails("write")) {
        file_->write_at(offset, bytes.first(bytes.size() / 2));
        owner_.raise();
      }
      file_->write_at(offset, bytes);
      owner_.watcher_.wrote(path_, offset, bytes);
    }
    size_t read_at(int64_t offset, std::span<std::byte> out) const override {
      owner_.check("read");
      return file_->read_at(offset, out);
    }
    void reserve(int64_t size) override {
      owner_.check("reserve");
      file_->reserve(size);
      owner_.watcher_.resized(path_, file_->size());
    }
    void start_writeback() noexcept override { file_->start_writeback(); }
    void sync() override {
      owner_.check("sync");
      file_->sync();
      owner_.watcher_.synced(path_);
    }
    int64_t size() const override { return file_->size(); }

   private:
    WatchedFileSystem& owner_;
    std::unique_ptr<storage::File> file_;
    std::string path_;
  };

  void check(const char* operation) {
    if (watcher_.fails(operation)) raise();
  }
  [[noreturn]] void raise() {
    if (watcher_.kind() == FaultKind::kNoSpace) throw core::Error("disk_full", "injected: no space");
    throw core::Error("storage_failed", "injected: input or output error");
  }

  SystemWatcher& watcher_;
  std::unique_ptr<storage::FileSystem> real_;
};

}  // namespace meshd::testing
