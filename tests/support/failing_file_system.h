// storage::FileSystem that asks a FaultPlan before it lets the real one work.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/core/error.h"
#include "storage/file_system.h"
#include "tests/support/fault_plan.h"

namespace meshd::testing {

/// Any thread. `plan` must outlive it. A write that fails leaves the first half of its bytes behind, as disks do.
class FailingFileSystem final : public storage::FileSystem {
 public:
  explicit FailingFileSystem(FaultPlan& plan) : plan_(plan), real_(storage::real_file_system()) {}

  std::unique_ptr<storage::File> create(const std::string& path) override {
    check("create");
    return std::make_unique<FailingFile>(*this, real_->create(path));
  }
  std::unique_ptr<storage::File> open(const std::string& path) override {
    check("open");
    auto file = real_->open(path);
    if (!file) return nullptr;
    return std::make_unique<FailingFile>(*this, std::move(file));
  }
  void rename(const std::string& from, const std::string& to) override {
    check("rename");
    real_->rename(from, to);
  }
  bool unlink(const std::string& path) override {
    check("unlink");
    return real_->unlink(path);
  }
  void sync_folder(const std::string& path) override {
    check("sync_folder");
    real_->sync_folder(path);
  }
  std::vector<storage::FolderEntry> list(const std::string& path) override {
    check("list");
    return real_->list(path);
  }
  void make_folder(const std::string& path) override {
    check("make_folder");
    real_->make_folder(path);
  }
  bool link(const std::string& from, const std::string& to) override {
    check("link");
    return real_->link(from, to);
  }
  int64_t free_bytes(const std::string& path) override { return real_->free_bytes(path); }
  std::unique_ptr<storage::FileLock> try_lock(const std::string& path) override { return real_->try_lock(path); }

 private:
  class FailingFile final : public storage::File {
   public:
    FailingFile(FailingFileSystem& owner, std::unique_ptr<storage::File> file)
        : owner_(owner), file_(std::move(file)) {}
    void write_at(int64_t offset, std::span<const std::byte> bytes) override {
      if (owner_.plan_.fails("write")) {
        file_->write_at(offset, bytes.first(bytes.size() / 2));
        owner_.raise();
      }
      file_->write_at(offset, bytes);
    }
    size_t read_at(int64_t offset, std::span<std::byte> out) const override {
      owner_.check("read");
      return file_->read_at(offset, out);
    }
    void reserve(int64_t size) override {
      owner_.check("reserve");
      file_->reserve(size);
    }
    void sync() override {
      owner_.check("sync");
      file_->sync();
    }
    int64_t size() const override { return file_->size(); }

   private:
    FailingFileSystem& owner_;
    std::unique_ptr<storage::File> file_;
  };

  void check(const char* operation) {
    if (plan_.fails(operation)) raise();
  }
  [[noreturn]] void raise() {
    if (plan_.kind() == FaultKind::kNoSpace) throw core::Error("disk_full", "injected: no space");
    throw core::Error("storage_failed", "injected: input or output error");
  }

  FaultPlan& plan_;
  std::unique_ptr<storage::FileSystem> real_;
};

}  // namespace meshd::testing
