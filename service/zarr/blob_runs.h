// Reads and writes many short runs of bytes of pending blobs, a page at a time where they are near each other: a call
// to the system for each would take a hundred times what copying it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/pending_blobs.h"

namespace meshd::zarr {

/// One thread, and nobody else in the blobs. Written runs are in the blobs after finish().
///
/// Example: the chunk {n, 1} of uint8[n, 2] is n runs of one byte, two apart. The first goes to the blob by itself;
/// from the second on 8 KiB, then 16 KiB and so on are read, changed and written back.
class BlobRuns {
 public:
  /// `blob_bytes`: of each of the blobs.
  BlobRuns(storage::PendingBlobs& blobs, int64_t blob_bytes);

  void write(size_t blob, int64_t at, std::span<const std::byte> bytes);
  void read(size_t blob, int64_t at, std::span<std::byte> bytes);
  void finish();

 private:
  struct Page {
    int64_t last_end = -1;  ///< of the run before; -1: there was none
    int64_t begin = 0;
    std::vector<std::byte> bytes;  ///< empty: none is open
    int64_t next_size = 0;         ///< of the next page
    bool is_changed = false;
  };
  /// Where the run is in the blob's page; null: it goes to the blob by itself.
  std::byte* place(size_t blob, int64_t at, size_t size);
  void close(size_t blob);

  storage::PendingBlobs& blobs_;
  const int64_t blob_bytes_;
  const int64_t largest_;
  std::vector<Page> pages_;  ///< by blob
};

}  // namespace meshd::zarr
