#include "storage/blobs/blob_writer.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "service/core/error.h"
#include "storage/blobs/blob_footer.h"

namespace meshd::storage {
namespace {

constexpr size_t kGatherBytes = 64 * 1024;
// Bytes are checksummed just before they are copied to the kernel, a piece at a time: while the processor's cache has
// them.
constexpr size_t kPieceBytes = 1024 * 1024;
// Large enough for the disk to write at its rate, small against what a process with little memory may have dirty.
constexpr int64_t kWritebackBytes = 8 * 1024 * 1024;
constexpr std::array<std::byte, 4096> kZeros{};
// Below this the reservation costs more than it saves.
constexpr int64_t kReserveFrom = 1024 * 1024;

}  // namespace

BlobWriter::Impl::Impl(std::shared_ptr<BlobStoreState> state, std::string name, int64_t length, BlobSpace space)
    : state_(std::move(state)),
      name_(std::move(name)),
      length_(length),
      pin_(state_, name_),
      pages_(static_cast<size_t>(blob_page_count(length))),
      page_begun_(pages_.size()),
      page_known_(pages_.size()),
      running_(XXH3_createState()) {
  if (!running_) throw std::bad_alloc();
  file_ = state_->files.create(state_->temporary_path(name_));
  try {
    if (space == BlobSpace::kReserved && length_ >= kReserveFrom) file_->reserve(length_ + blob_footer_bytes(length_));
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

void BlobWriter::Impl::read(int64_t offset, std::span<std::byte> out) {
  const auto size = static_cast<int64_t>(out.size());
  if (offset < 0 || size > length_ || offset > length_ - size)
    throw core::Error("internal", "a shard was read outside of its bounds");
  flush();
  read_or_zero(offset, out);
}

// Bytes never written are a hole or beyond the end: zero either way.
void BlobWriter::Impl::read_or_zero(int64_t offset, std::span<std::byte> out) {
  const size_t got = file_->read_at(offset, out);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(got), out.end(), std::byte{0});
}

void BlobWriter::Impl::flush() {
  if (gathered_.empty()) return;
  put(gathered_offset_, gathered_);
  gathered_offset_ += static_cast<int64_t>(gathered_.size());
  gathered_.clear();
}

void BlobWriter::Impl::put(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    for (size_t done = 0; done < piece.size();) {
      const int64_t at = offset + static_cast<int64_t>(done);
      const int64_t page_end = (at / BlobStore::kPageBytes + 1) * BlobStore::kPageBytes;
      const size_t take = std::min(piece.size() - done, static_cast<size_t>(page_end - at));
      hash(at, piece.subspan(done, take));
      done += take;
    }
    file_->write_at(offset, piece);
    bytes = bytes.subspan(piece.size());
    offset += static_cast<int64_t>(piece.size());
    dirty_bytes_ += static_cast<int64_t>(piece.size());
    if (dirty_bytes_ < kWritebackBytes) continue;
    file_->start_writeback();
    dirty_bytes_ = 0;
  }
}

// `bytes` are within one page.
void BlobWriter::Impl::hash(int64_t offset, std::span<const std::byte> bytes) {
  const int64_t page = offset / BlobStore::kPageBytes;
  if (page != running_page_) {
    leave_page();
    const bool is_first_visit = !page_begun_[static_cast<size_t>(page)];
    page_begun_[static_cast<size_t>(page)] = true;
    page_known_[static_cast<size_t>(page)] = false;
    if (!is_first_visit) return;
    running_page_ = page;
    running_end_ = page * BlobStore::kPageBytes;
    XXH3_64bits_reset(running_.get());
  }
  if (offset < running_end_) {
    running_page_ = -1;
    return;
  }
  hash_zeros_to(offset);
  XXH3_64bits_update(running_.get(), bytes.data(), bytes.size());
  running_end_ += static_cast<int64_t>(bytes.size());
  if (running_end_ == blob_page_end(length_, page)) leave_page();
}

// The page's checksum, should nothing more be written to it.
void BlobWriter::Impl::leave_page() {
  if (running_page_ < 0) return;
  hash_zeros_to(blob_page_end(length_, running_page_));
  pages_[static_cast<size_t>(running_page_)] = XXH3_64bits_digest(running_.get());
  page_known_[static_cast<size_t>(running_page_)] = true;
  running_page_ = -1;
}

void BlobWriter::Impl::hash_zeros_to(int64_t offset) {
  while (running_end_ < offset) {
    const auto count = std::min<int64_t>(offset - running_end_, static_cast<int64_t>(kZeros.size()));
    XXH3_64bits_update(running_.get(), kZeros.data(), static_cast<size_t>(count));
    running_end_ += count;
  }
}

void BlobWriter::Impl::end_at(int64_t length) {
  if (length < 0 || length > length_) throw core::Error("internal", "a blob ends outside of its bounds");
  flush();
  const auto pages = static_cast<size_t>(blob_page_count(length));
  if (running_page_ >= static_cast<int64_t>(pages)) running_page_ = -1;
  // A last page that was left before has the checksum of what it would have had up to the old end.
  if (pages > 0 && length != blob_page_end(length_, static_cast<int64_t>(pages) - 1)) page_known_[pages - 1] = false;
  length_ = length;
  pages_.resize(pages);
  page_begun_.resize(pages);
  page_known_.resize(pages);
}

uint64_t BlobWriter::Impl::finish() {
  flush();
  leave_page();
  std::vector<std::byte> again;
  for (size_t page = 0; page < pages_.size(); ++page) {
    if (page_known_[page]) continue;
    const auto number = static_cast<int64_t>(page);
    again.assign(static_cast<size_t>(blob_page_length(length_, number)), std::byte{0});
    read_or_zero(number * BlobStore::kPageBytes, again);
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
