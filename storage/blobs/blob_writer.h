// Implementation of BlobWriter. Inside storage only.
#pragma once

#include <xxhash.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/blobs/blob_state.h"
#include "storage/blobs/blob_store.h"

namespace meshd::storage {

/// One unfinished blob. Page checksums are made as bytes pass by, as long as a page is written in ascending order; what
/// is left out in between is zero, as in the file. Any other page is read again when the blob is finished. One thread.
/// Example: a row of 100 bytes at 0 and one at 128 give the page 100 bytes, 28 zeros, 100 bytes: the padding of a shard
/// costs no second read.
struct BlobWriter::Impl {
  Impl(std::shared_ptr<BlobStoreState> state, std::string name, int64_t length, BlobSpace space);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void write(int64_t offset, std::span<const std::byte> bytes);
  void read(int64_t offset, std::span<std::byte> out);
  void end_at(int64_t length);
  /// Writes the footer and syncs the file: step 1 of a commit. Returns the checksum of the blob.
  uint64_t finish();
  /// Gives the file its name: step 2. Durable once the bucket is synced.
  void publish();

  std::shared_ptr<BlobStoreState> state_;
  std::string name_;
  int64_t length_;
  BlobPin pin_;

 private:
  struct StateFree {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  void flush();
  void read_or_zero(int64_t offset, std::span<std::byte> out);
  void put(int64_t offset, std::span<const std::byte> bytes);
  void hash(int64_t offset, std::span<const std::byte> bytes);
  void hash_zeros_to(int64_t offset);
  void leave_page();

  std::unique_ptr<File> file_;
  std::vector<std::byte> gathered_;
  int64_t gathered_offset_ = 0;
  std::vector<uint64_t> pages_;
  std::vector<bool> page_begun_;  ///< something was written to it
  std::vector<bool> page_known_;  ///< its checksum is in `pages_`
  int64_t running_page_ = -1;     ///< page that `running_` has seen from its start up to `running_end_`
  int64_t running_end_ = 0;
  int64_t dirty_bytes_ = 0;  ///< written since the disk was last told to start
  std::unique_ptr<XXH3_state_t, StateFree> running_;
};

}  // namespace meshd::storage
