#include "storage/disk_reserve.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "service/core/error.h"

namespace meshd::storage {
namespace {

constexpr int64_t kFilledAtOnce = int64_t{64} << 10;

}  // namespace

DiskReserve::DiskReserve(FileSystem& files, std::string folder, int64_t bytes)
    : files_(files), folder_(std::move(folder)), path_(folder_ + "/reserve"), bytes_(bytes) {}

bool DiskReserve::keep() {
  const std::lock_guard<std::mutex> held(mutex_);
  try {
    if (const auto file = files_.open(path_); file != nullptr && file->size() >= bytes_) return is_kept_ = true;
    remove();  // one that a crash or a full disk left without its space
    // Some file systems tell of no free bytes, though there are: whether there is room, they say when it is taken.
    const int64_t free = files_.free_bytes(folder_);
    if (free > 0 && free < 2 * bytes_) return false;
    return make();
  } catch (const core::Error&) {
    return false;  // retried later; nothing that was acknowledged depends on it
  }
}

bool DiskReserve::make() {
  const std::unique_ptr<File> file = files_.create(path_);
  try {
    file->reserve(bytes_);
    // Zeros, where the file system does not reserve.
    const std::vector<std::byte> zeros(kFilledAtOnce);
    for (int64_t at = file->size(); at < bytes_; at += kFilledAtOnce)
      file->write_at(at, std::span(zeros).first(static_cast<size_t>(std::min<int64_t>(bytes_ - at, kFilledAtOnce))));
  } catch (...) {
    remove();
    throw;
  }
  return is_kept_ = true;
}

bool DiskReserve::release() {
  const std::lock_guard<std::mutex> held(mutex_);
  return remove();
}

bool DiskReserve::remove() {
  is_kept_ = false;
  try {
    return files_.unlink(path_);
  } catch (const core::Error&) {
    return false;
  }
}

int64_t DiskReserve::free_bytes() const noexcept {
  try {
    return files_.free_bytes(folder_);
  } catch (...) {
    return INT64_MAX;  // a write that finds no room says so
  }
}

}  // namespace meshd::storage
