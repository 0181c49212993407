// Blobs between the disk and their rows: written for a transaction that may still fail.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "storage/blobs/blob_store.h"

namespace meshd::storage {

class Store;

/// Owns the blobs of one write until the transaction that names them is durable. Destroyed before keep(), it abandons
/// them (Store::abandon): the next garbage collection removes the files, those that a failed sync() left included.
/// The store must outlive it. One thread at a time.
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
  /// Makes all of them durable and returns what their rows store, in the order of add(). Once, after the last add().
  /// Throws as commit_blobs.
  [[nodiscard]] std::vector<BlobRef> sync();
  /// The transaction that names them is durable: they are their rows' from here on.
  void keep();

 private:
  Store* store_ = nullptr;
  std::vector<std::string> names_;
  std::vector<BlobWriter> writers_;       ///< until sync()
  std::vector<CommittedBlob> committed_;  ///< pinned from then on
};

}  // namespace meshd::storage
