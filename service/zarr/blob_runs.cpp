#include "service/zarr/blob_runs.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace meshd::zarr {
namespace {

constexpr int64_t kNear = 512;               // bytes between runs of one page, and of a run in it
constexpr int64_t kAllPages = 1024 * 1024;   // of all blobs, where these are few
constexpr int64_t kSmallestPage = 4 * 1024;  // the first one of a blob

}  // namespace

BlobRuns::BlobRuns(storage::PendingBlobs& blobs, int64_t blob_bytes)
    : blobs_(blobs),
      blob_bytes_(blob_bytes),
      largest_(std::max(kAllPages / std::max<int64_t>(static_cast<int64_t>(blobs.count()), 1), kSmallestPage)),
      pages_(blobs.count()) {}

std::byte* BlobRuns::place(size_t blob, int64_t at, size_t size) {
  Page& page = pages_[blob];
  const auto bytes = static_cast<int64_t>(size);
  const int64_t before = std::exchange(page.last_end, at + bytes);
  const auto is_in = [&] {
    return !page.bytes.empty() && at >= page.begin &&
           at + bytes <= page.begin + static_cast<int64_t>(page.bytes.size());
  };
  if (is_in()) return page.bytes.data() + (at - page.begin);
  const bool was_used_up = !page.bytes.empty() && at >= page.begin;
  close(blob);
  const bool is_near = before >= 0 && at >= before && at - before <= kNear && bytes <= kNear;
  if (!is_near) {
    page.next_size = 0;
    return nullptr;
  }
  page.next_size = was_used_up ? std::min(2 * page.next_size, largest_) : kSmallestPage;
  page.begin = at;
  page.bytes.resize(static_cast<size_t>(std::min(page.next_size, blob_bytes_ - at)));
  blobs_.read(blob, at, page.bytes);
  return page.bytes.data();
}

void BlobRuns::close(size_t blob) {
  Page& page = pages_[blob];
  if (std::exchange(page.is_changed, false)) blobs_.write(blob, page.begin, page.bytes);
  page.bytes.clear();
}

void BlobRuns::write(size_t blob, int64_t at, std::span<const std::byte> bytes) {
  std::byte* const there = place(blob, at, bytes.size());
  if (there == nullptr) return blobs_.write(blob, at, bytes);
  std::memcpy(there, bytes.data(), bytes.size());
  pages_[blob].is_changed = true;
}

void BlobRuns::read(size_t blob, int64_t at, std::span<std::byte> bytes) {
  const std::byte* const there = place(blob, at, bytes.size());
  if (there == nullptr) return blobs_.read(blob, at, bytes);
  std::memcpy(bytes.data(), there, bytes.size());
}

void BlobRuns::finish() {
  for (size_t blob = 0; blob < pages_.size(); ++blob) close(blob);
}

}  // namespace meshd::zarr
