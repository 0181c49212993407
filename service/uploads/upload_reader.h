// The bytes of an upload, from its first part to its last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "service/uploads/upload_store.h"

namespace meshd::uploads {

/// Reads each part once, with its checksums. One file is open at a time. One thread at a time; the upload must not be
/// finished or deleted meanwhile.
class UploadReader {
 public:
  UploadReader(UploadStore& store, const Upload& upload);

  /// At least one byte, at most the span; 0 at the end. Throws storage_failed where a page has another checksum.
  size_t read_some(std::span<std::byte> out);
  [[nodiscard]] int64_t total_bytes() const { return total_; }
  [[nodiscard]] int64_t bytes_read() const { return read_; }

 private:
  size_t read_parts(std::span<std::byte> out);

  storage::Store& store_;
  std::vector<storage::UploadPartRow> parts_;
  size_t next_ = 0;
  std::optional<storage::BlobReader> part_;
  int64_t in_part_ = 0;
  std::vector<std::byte> page_;  ///< what small reads take from
  size_t in_page_ = 0;
  int64_t total_ = 0, read_ = 0;
};

}  // namespace meshd::uploads
