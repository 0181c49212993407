#include "storage/pending_blobs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "storage/store.h"

namespace meshd::storage {

PendingBlobs::PendingBlobs(PendingBlobs&& other) noexcept { *this = std::move(other); }

PendingBlobs& PendingBlobs::operator=(PendingBlobs&& other) noexcept {
  std::swap(store_, other.store_);
  names_.swap(other.names_);
  writers_.swap(other.writers_);
  committed_.swap(other.committed_);
  return *this;
}

PendingBlobs::~PendingBlobs() {
  // The collector passes over pinned blobs, and forgets their names.
  writers_.clear();
  committed_.clear();
  if (!names_.empty()) store_->abandon(std::move(names_));
}

void PendingBlobs::add(std::string name, std::span<const std::byte> bytes) {
  names_.push_back(name);
  writers_.push_back(store_->blobs().begin(std::move(name), static_cast<int64_t>(bytes.size())));
  writers_.back().write(0, bytes);
}

void PendingBlobs::adopt(BlobRef blob) {
  names_.push_back(blob.name);
  BlobPin pin = store_->blobs().pin(blob.name);
  committed_.push_back({std::move(blob), std::move(pin)});
}

void PendingBlobs::begin(std::string name, int64_t length) {
  names_.push_back(name);
  writers_.push_back(store_->blobs().begin(std::move(name), length, BlobSpace::kAsWritten));
}

void PendingBlobs::write(size_t number, int64_t offset, std::span<const std::byte> bytes) {
  writers_.at(number - committed_.size()).write(offset, bytes);
}

void PendingBlobs::read(size_t number, int64_t offset, std::span<std::byte> out) {
  writers_.at(number - committed_.size()).read(offset, out);
}

void PendingBlobs::end_at(size_t number, int64_t length) { writers_.at(number - committed_.size()).end_at(length); }

void PendingBlobs::append(PendingBlobs other) {
  names_.reserve(names_.size() + other.names_.size());
  committed_.reserve(committed_.size() + other.committed_.size());
  std::move(other.names_.begin(), other.names_.end(), std::back_inserter(names_));
  std::move(other.committed_.begin(), other.committed_.end(), std::back_inserter(committed_));
  other.keep();
}

std::vector<BlobRef> PendingBlobs::sync() {
  if (!writers_.empty()) {
    for (CommittedBlob& blob : commit_blobs(std::exchange(writers_, {}))) committed_.push_back(std::move(blob));
  }
  std::vector<BlobRef> refs;
  for (const CommittedBlob& blob : committed_) refs.push_back(blob.ref);
  return refs;
}

void PendingBlobs::keep() {
  names_.clear();
  committed_.clear();
}

}  // namespace meshd::storage
