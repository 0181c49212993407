#include "storage/blobs/blob_writer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "service/core/error.h"
#include "storage/blobs/blob_footer.h"

namespace meshd::storage {
namespace {

constexpr size_t kGatherBytes = 64 * 1024;
// Below this the reservation costs more than it saves.
constexpr int64_t kReserveFrom = 1024 * 1024;

}  // namespace

BlobWriter::Impl::Impl(std::shared_ptr<BlobStoreState> state, std::string name, int64_t length)
    : state_(std::move(state)),
      name_(std::move(name)),
      length_(length),
      pin_(state_, name_),
      pages_(static_cast<size_t>(blob_page_count(length))),
      page_known_(pages_.size()),
      running_(XXH3_createState()) {
  if (!running_) throw std::bad_alloc();
  file_ = state_->files.create(state_->temporary_path(name_));
  try {
    if (length_ >= kReserveFrom) file_->reserve(length_ + blob_footer_bytes(length_));
  } catch (...) {
    file_.reset();
    state_->files.unlink(state_->temporary_path(name_));
    throw;
  }
}

BlobWriter::Impl::~Impl() {
  if (!file_) return;
  file_.reset();
  try {
    state_->files.unlink(state_->temporary_path(name_));
  } catch (const core::Error&) {
    // The next start removes temporary files, so a failure here is ignored.
  }
}

void BlobWriter::Impl::write(int64_t offset, std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (offset < 0 || size > length_ || offset > length_ - size) {
    throw core::Error("internal", "a shard was written outside of its bounds");
  }
  const bool follows = offset == gathered_offset_ + static_cast<int64_t>(gathered_.size());
  if (!follows || gathered_.size() + bytes.size() > kGatherBytes) flush();
  if (bytes.size() >= kGatherBytes) {
    put(offset, bytes);
    gathered_offset_ = offset + size;
    return;
  }
  if (gathered_.empty()) gathered_offset_ = offset;
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
}

void BlobWriter::Impl::flush() {
  if (gathered_.empty()) return;
  put(gathered_offset_, gathered_);
  gathered_offset_ += static_cast<int64_t>(gathered_.size());
  gathered_.clear();
}

void BlobWriter::Impl::put(int64_t offset, std::span<const std::byte> bytes) {
  file_->write_at(offset, bytes);
  while (!bytes.empty()) {
    const int64_t page_end = (offset / BlobStore::kPageBytes + 1) * BlobStore::kPageBytes;
    const size_t take = std::min(bytes.size(), static_cast<size_t>(page_end - offset));
    hash(offset, bytes.first(take));
    bytes = bytes.subspan(take);
    offset += static_cast<int64_t>(take);
  }
}

// `bytes` are within one page.
void BlobWriter::Impl::hash(int64_t offset, std::span<const std::byte> bytes) {
  const int64_t page = offset / BlobStore::kPageBytes;
  const int64_t page_start = page * BlobStore::kPageBytes;
  page_known_[static_cast<size_t>(page)] = false;
  if (offset == page_start) {
    running_page_ = page;
    running_end_ = offset;
    XXH3_64bits_reset(running_.get());
  }
  if (page != running_page_) return;
  if (offset != running_end_) {
    running_page_ = -1;
    return;
  }
  XXH3_64bits_update(running_.get(), bytes.data(), bytes.size());
  running_end_ += static_cast<int64_t>(bytes.size());
  if (running_end_ == page_start + blob_page_length(length_, page)) {
    pages_[static_cast<size_t>(page)] = XXH3_64bits_digest(running_.get());
    page_known_[static_cast<size_t>(page)] = true;
    running_page_ = -1;
  }
}

uint64_t BlobWriter::Impl::finish() {
  flush();
  std::vector<std::byte> again;
  for (size_t page = 0; page < pages_.size(); ++page) {
    if (page_known_[page]) continue;
    const auto number = static_cast<int64_t>(page);
    again.assign(static_cast<size_t>(blob_page_length(length_, number)), std::byte{0});
    // Bytes never written are a hole or beyond the end: zero either way.
    const size_t got = file_->read_at(number * BlobStore::kPageBytes, again);
    std::fill(again.begin() + static_cast<std::ptrdiff_t>(got), again.end(), std::byte{0});
    pages_[page] = blob_checksum(again);
  }
  const std::vector<std::byte> footer = encode_blob_footer(length_, pages_);
  file_->write_at(length_, footer);
  try {
    file_->sync();
  } catch (const core::Error& error) {
    // A full disk fails this blob alone; after any other error the state of the kernel's page cache is unknown.
    if (error.code() != core::ErrorCode("disk_full")) state_->fatal("sync of a blob failed: " + error.internal());
    throw;
  }
  return blob_checksum(footer);
}

void BlobWriter::Impl::publish() {
  state_->files.rename(state_->temporary_path(name_), state_->path(name_));
  file_.reset();
}

}  // namespace meshd::storage
