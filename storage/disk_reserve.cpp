#include "storage/disk_reserve.h"

#include <memory>
#include <utility>

#include "service/core/error.h"

namespace meshd::storage {

DiskReserve::DiskReserve(FileSystem& files, std::string folder, int64_t bytes)
    : files_(files), folder_(std::move(folder)), path_(folder_ + "/reserve"), bytes_(bytes) {}

bool DiskReserve::keep() {
  try {
    if (files_.open(path_) != nullptr) return true;
    if (files_.free_bytes(folder_) < 2 * bytes_) return false;
    files_.create(path_)->reserve(bytes_);
    return true;
  } catch (const core::Error&) {
    return false;  // retried later; nothing that was acknowledged depends on it
  }
}

bool DiskReserve::release() {
  try {
    return files_.unlink(path_);
  } catch (const core::Error&) {
    return false;
  }
}

}  // namespace meshd::storage
