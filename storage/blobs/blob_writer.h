// Implementation of BlobWriter. Inside storage only.
#pragma once

#include <xxhash.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/blobs/blob_state.h"
#include "storage/blobs/blob_store.h"

namespace meshd::storage {

/// One unfinished blob. Page checksums are made as bytes pass by, as long as a page is written in order from its start;
/// any other page is read again when the blob is finished. One thread.
struct BlobWriter::Impl {
  Impl(std::shared_ptr<BlobStoreState> state, std::string name, int64_t length);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void write(int64_t offset, std::span<const std::byte> bytes);
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
  void put(int64_t offset, std::span<const std::byte> bytes);
  void hash(int64_t offset, std::span<const std::byte> bytes);

  std::unique_ptr<File> file_;
  std::vector<std::byte> gathered_;
  int64_t gathered_offset_ = 0;
  std::vector<uint64_t> pages_;
  std::vector<bool> page_known_;
  int64_t running_page_ = -1;  ///< page that `running_` has seen from its start up to `running_end_`
  int64_t running_end_ = 0;
  std::unique_ptr<XXH3_state_t, StateFree> running_;
};

}  // namespace meshd::storage
