// The blob store, for bytes too big for rows: one file a blob, written once, never changed. A blob is durable before
// the row that names it.
//
// A file is the data, then its footer: one XXH3-64 for each 256 KiB page of the data (little endian), the data's length
// (8 bytes), and 8 bytes of magic. The blob's checksum, which the row keeps, is the XXH3-64 of the footer. So a read of
// any range checks the footer against the row and the pages it touches against the footer, and reads no more than
// those.
//
// Names are made of [A-Za-z0-9_.-], at most 200 characters, with no leading dot. Names that agree up to their first dot
// share a folder, so that all shards of an array ("arr_X.v1.w7.s0", "arr_X.v1.w8.s1") cost one folder sync.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/fatal.h"
#include "storage/file_system.h"

namespace meshd::storage {

class BlobStore;
class RankBlobs;
struct BlobStoreState;

/// What a row stores to find and verify a blob.
struct BlobRef {
  std::string name;
  int64_t length = 0;     ///< bytes of data, without the footer
  uint64_t checksum = 0;  ///< XXH3-64 of the footer
};

/// Protects a blob that no row names yet from garbage collection. Hold it until the transaction that names the blob has
/// completed; if that failed, drop it, and the file is collected. Any thread.
class BlobPin {
 public:
  BlobPin() = default;
  BlobPin(std::shared_ptr<BlobStoreState> state, std::string name);
  BlobPin(BlobPin&& other) noexcept;
  BlobPin& operator=(BlobPin&& other) noexcept;
  ~BlobPin();

 private:
  std::shared_ptr<BlobStoreState> state_;
  std::string name_;
};

/// A blob that is on the disk for good, but in no row yet.
struct CommittedBlob {
  BlobRef ref;
  BlobPin pin;
};

/// Takes the bytes of one blob at offsets, in any order; bytes never written are zero. Small writes in order are
/// gathered (up to 64 KiB), so a caller may scatter rows into shards. The disk is kept busy while bytes come, so that a
/// commit has little left to sync. Destroyed before `commit`, it leaves nothing behind. One thread at a time.
class BlobWriter {
 public:
  BlobWriter(BlobWriter&&) noexcept;
  BlobWriter& operator=(BlobWriter&&) noexcept;
  ~BlobWriter();

  /// offset + bytes.size() <= length. Throws disk_full, storage_failed.
  void write(int64_t offset, std::span<const std::byte> bytes);
  /// Fills `out` with what was written; bytes that were not are zero. offset + out.size() <= length. Not checked: the
  /// blob has no checksums yet. Throws storage_failed.
  void read(int64_t offset, std::span<std::byte> out);
  [[nodiscard]] int64_t length() const;
  /// The blob ends here, before the length that it was begun with: nothing was written behind `length`.
  void end_at(int64_t length);
  /// Writes the footer, syncs the file, renames it, syncs the folder. The writer is used up, also when it throws.
  /// Throws disk_full; or storage_failed after the fatal handler was called, when a sync failed.
  [[nodiscard]] CommittedBlob commit();

 private:
  friend class BlobStore;
  friend std::vector<CommittedBlob> commit_blobs(std::vector<BlobWriter> writers);
  struct Impl;
  explicit BlobWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Commits many blobs of one store, with one sync for each folder. When it throws, those that have their name already
/// are left to the collector. Errors as BlobWriter::commit.
[[nodiscard]] std::vector<CommittedBlob> commit_blobs(std::vector<BlobWriter> writers);

/// An open blob whose footer has been checked: for streams that read one range after another. Stays readable when the
/// blob is removed meanwhile. Any thread.
class BlobReader {
 public:
  BlobReader(BlobReader&&) noexcept;
  BlobReader& operator=(BlobReader&&) noexcept;
  ~BlobReader();

  [[nodiscard]] int64_t length() const;
  /// Fills `out` with the bytes at `offset`; offset + out.size() <= length. Throws storage_failed when a page that is
  /// touched does not have its checksum; `out` is then not to be used.
  void read(int64_t offset, std::span<std::byte> out) const;

 private:
  friend class BlobStore;
  struct Impl;
  explicit BlobReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// When the disk gives a blob its space.
enum class BlobSpace : uint8_t {
  kReserved,   ///< from 1 MiB on before its first byte, so that a full disk shows then
  kAsWritten,  ///< as its bytes come: one that is announced and never sent holds none
};

/// A blob file in its folder.
struct StoredBlob {
  std::string name;
  int64_t file_bytes = 0;  ///< data and footer
};

enum class BlobCopy {
  kLinkOrBytes,  ///< a hard link where the file system can: no space, but one file for both
  kBytes,        ///< a file of its own
};

/// All blobs under one folder. Any thread.
class BlobStore {
 public:
  static constexpr int64_t kPageBytes = 256 * 1024;

  /// Makes the folder and its buckets when missing. `files` must outlive the store.
  BlobStore(FileSystem& files, std::string folder, FatalHandler fatal);
  ~BlobStore();

  /// Blobs are looked for there, too: those of other ranks (rank_blobs.h). Before the first is read; it outlives this.
  void look_in(RankBlobs& ranks);

  /// Starts a blob of `length` bytes. Throws storage_failed when a blob of this name exists or is being written (names
  /// carry a version, they are never used twice), disk_full when the space cannot be reserved.
  [[nodiscard]] BlobWriter begin(std::string name, int64_t length, BlobSpace space = BlobSpace::kReserved);
  /// Opens and checks the footer. Throws storage_failed when the file is missing, has another length, or a footer with
  /// another checksum than `ref` has.
  [[nodiscard]] BlobReader open(const BlobRef& ref) const;
  /// The file of a blob as it is, footer and all, unchecked; nullptr where there is none.
  [[nodiscard]] std::unique_ptr<File> open_file(const std::string& name) const;
  /// One range, checked: open and read.
  void read(const BlobRef& ref, int64_t offset, std::span<std::byte> out) const;
  /// Reads everything and checks every page. Throws storage_failed.
  void verify(const BlobRef& ref) const;

  /// The bytes that a file of a blob of this length has.
  [[nodiscard]] static int64_t file_bytes(int64_t length);
  /// Every committed blob, in no order, those of other ranks among them; names that cannot be ours are left out.
  [[nodiscard]] std::vector<StoredBlob> list() const;
  /// Removes unfinished writes of an earlier process; only before the first `begin`. Returns how many.
  int64_t remove_temporary_files();
  /// As long as it is held the blob is not removed, whether a row names it or not.
  [[nodiscard]] BlobPin pin(std::string name) { return BlobPin(state_, std::move(name)); }
  /// Garbage collection: unlinks each of `names` that is not pinned and for which `is_named(name)` is then false. In
  /// this order a blob whose row is just being committed is kept. Returns how many files were removed.
  int64_t remove_unnamed(std::span<const std::string> names, const std::function<bool(const std::string&)>& is_named);
  /// For backups: gives the committed blobs of `source` for which `is_named(name)` is true a place here too. Nothing
  /// may be removed from `source` meanwhile.
  void copy_from(const BlobStore& source, BlobCopy how, const std::function<bool(const std::string&)>& is_named);
  [[nodiscard]] int64_t free_bytes() const;

 private:
  [[nodiscard]] std::vector<StoredBlob> list_own() const;

  std::shared_ptr<BlobStoreState> state_;
};

/// True when a blob may have this name.
bool is_blob_name(std::string_view name);

}  // namespace meshd::storage
