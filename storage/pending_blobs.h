// Blobs between the disk and their rows: written for a transaction that may still fail.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "storage/blobs/blob_store.h"

namespace meshd::storage {

class Store;

/// Owns the blobs of one write, which are numbered as they come, until the transaction that names them is durable.
/// Destroyed before keep(), it abandons them (Store::abandon): the next garbage collection removes the files, those
/// that a failed sync() left included. The store must outlive it. One thread at a time.
///
/// Example: three shards of an array, of which the disk has space for two:
///   PendingBlobs blobs(store);
///   for (...) blobs.add(name, bytes);     // the third throws disk_full
///   rows_of(blobs.sync());                // not reached: the first two are abandoned
///   catalog.write(rows), blobs.keep();    // had it been reached: whatever write throws abandons all three
class PendingBlobs {
 public:
  PendingBlobs() = default;
  explicit PendingBlobs(Store& store) : store_(&store) {}
  PendingBlobs(PendingBlobs&& other) noexcept;
  PendingBlobs& operator=(PendingBlobs&& other) noexcept;
  ~PendingBlobs();

  /// Writes one more. Throws as BlobStore::begin and BlobWriter::write.
  void add(std::string name, std::span<const std::byte> bytes);
  /// One more that is on a disk already: another rank has written and synced it, or a row names it, and it is to stay
  /// until this ends. Before the others that are not synced yet.
  void adopt(BlobRef blob);
  /// One more whose bytes come by write(); it has the number count() - 1. Throws as BlobStore::begin.
  void begin(std::string name, int64_t length);
  /// Bytes of blob `number`, which was begun after the last sync(). Throws as BlobWriter::write.
  void write(size_t number, int64_t offset, std::span<const std::byte> bytes);
  /// What was written to blob `number`, which is not synced yet. Throws as BlobWriter::read.
  void read(size_t number, int64_t offset, std::span<std::byte> out);
  /// Blob `number`, which is not synced yet, ends at `length`, before the length that it was begun with.
  void end_at(size_t number, int64_t length);
  /// Makes all durable that are not yet, and returns what the rows of all store, by number. Throws as commit_blobs;
  /// then it is to be destroyed.
  [[nodiscard]] std::vector<BlobRef> sync();
  /// Takes over the blobs of `other`, of the same store, which get the next numbers. Both have synced all of theirs.
  void append(PendingBlobs other);
  [[nodiscard]] size_t count() const { return names_.size(); }
  /// The transaction that names them is durable: they are their rows' from here on.
  void keep();

 private:
  Store* store_ = nullptr;
  std::vector<std::string> names_;
  std::vector<CommittedBlob> committed_;  ///< pinned; the first of names_
  std::vector<BlobWriter> writers_;       ///< not synced yet; the rest
};

}  // namespace meshd::storage
