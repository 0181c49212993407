#include "storage/blobs/blob_store.h"

#include <fmt/core.h>

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "service/core/error.h"
#include "storage/blobs/blob_footer.h"
#include "storage/blobs/blob_state.h"
#include "storage/blobs/blob_writer.h"
#include "storage/blobs/rank_blobs.h"

namespace meshd::storage {
namespace {

constexpr size_t kMaxNameBytes = 200;
constexpr int kBuckets = 64;
constexpr std::string_view kHex = "0123456789abcdef";

std::string bucket_name(int number) { return {kHex[number >> 4], kHex[number & 15]}; }

constexpr size_t kCopyBytes = 1024 * 1024;
constexpr int64_t kMostUnsyncedBytes = 2 * 1024 * 1024;

void copy_file(FileSystem& files, const std::unique_ptr<File>& source, const std::string& to) {
  if (!source) throw core::Error("storage_failed", "a file went away while it was copied").with_internal(to);
  const std::unique_ptr<File> target = files.create(to);
  std::vector<std::byte> buffer(kCopyBytes);
  int64_t offset = 0, synced = 0;
  while (const size_t got = source->read_at(offset, buffer)) {
    // One sync of all of it would hold up the commits of a server that goes on.
    if (offset - synced >= kMostUnsyncedBytes) {
      target->sync();
      synced = offset;
    }
    target->write_at(offset, std::span(buffer).first(got));
    offset += static_cast<int64_t>(got);
  }
  target->sync();
}

[[noreturn]] void throw_damaged(const BlobRef& ref, const std::string& why) {
  throw core::Error("storage_failed", "stored data is damaged: it does not match its checksum")
      .with_internal("blob '" + ref.name + "': " + why);
}

}  // namespace

bool is_blob_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '.') return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

std::string BlobStoreState::bucket(std::string_view name) const {
  const std::string_view stem = name.substr(0, name.find('.'));
  return folder + "/" + bucket_name(static_cast<int>(XXH3_64bits(stem.data(), stem.size()) % kBuckets));
}

BlobPin::BlobPin(std::shared_ptr<BlobStoreState> state, std::string name)
    : state_(std::move(state)), name_(std::move(name)) {
  state_->pins.with([&](auto& pins) { ++pins[name_]; });
}

BlobPin::BlobPin(BlobPin&& other) noexcept : state_(std::move(other.state_)), name_(std::move(other.name_)) {}

BlobPin& BlobPin::operator=(BlobPin&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(name_, other.name_);
  return *this;
}

BlobPin::~BlobPin() {
  if (!state_) return;
  state_->pins.with([&](auto& pins) {
    const auto pin = pins.find(name_);
    if (--pin->second == 0) pins.erase(pin);
  });
}

BlobWriter::BlobWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BlobWriter::BlobWriter(BlobWriter&&) noexcept = default;
BlobWriter& BlobWriter::operator=(BlobWriter&&) noexcept = default;
BlobWriter::~BlobWriter() = default;

void BlobWriter::write(int64_t offset, std::span<const std::byte> bytes) { impl_->write(offset, bytes); }

void BlobWriter::read(int64_t offset, std::span<std::byte> out) { impl_->read(offset, out); }

int64_t BlobWriter::length() const { return impl_->length_; }

void BlobWriter::end_at(int64_t length) { impl_->end_at(length); }

CommittedBlob BlobWriter::commit() {
  std::vector<BlobWriter> one;
  one.push_back(std::move(*this));
  return std::move(commit_blobs(std::move(one)).front());
}

std::vector<CommittedBlob> commit_blobs(std::vector<BlobWriter> writers) {
  std::vector<CommittedBlob> committed;
  committed.reserve(writers.size());
  std::set<std::string> buckets;
  for (const BlobWriter& writer : writers) {
    BlobWriter::Impl& blob = *writer.impl_;
    committed.push_back({{blob.name_, blob.length_, blob.finish()}, {}});
  }
  for (const BlobWriter& writer : writers) {
    writer.impl_->publish();
    buckets.insert(writer.impl_->state_->bucket(writer.impl_->name_));
  }
  for (const std::string& bucket : buckets) {
    BlobStoreState& state = *writers.front().impl_->state_;
    try {
      state.files.sync_folder(bucket);
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode("overloaded"))
        state.fatal("sync of a blob's folder failed: " + error.internal());
      throw;
    }
  }
  for (size_t i = 0; i < writers.size(); ++i) committed[i].pin = std::move(writers[i].impl_->pin_);
  return committed;
}

/// One open file and its checked footer.
struct BlobReader::Impl {
  BlobRef ref;
  std::unique_ptr<File> file;
  std::vector<uint64_t> pages;

  void check(int64_t page, std::span<const std::byte> bytes) const {
    if (blob_checksum(bytes) != pages[static_cast<size_t>(page)]) throw_damaged(ref, fmt::format("page {}", page));
  }
  // Reads one full page into `out` and checks it.
  void read_page(int64_t page, std::span<std::byte> out) const {
    if (file->read_at(page * BlobStore::kPageBytes, out) != out.size()) throw_damaged(ref, "it is cut off");
    check(page, out);
  }
};

BlobReader::BlobReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BlobReader::BlobReader(BlobReader&&) noexcept = default;
BlobReader& BlobReader::operator=(BlobReader&&) noexcept = default;
BlobReader::~BlobReader() = default;

int64_t BlobReader::length() const { return impl_->ref.length; }

void BlobReader::read(int64_t offset, std::span<std::byte> out) const {
  const int64_t length = impl_->ref.length;
  const auto size = static_cast<int64_t>(out.size());
  if (offset < 0 || size > length || offset > length - size) {
    throw core::Error("internal", "a shard was read outside of its bounds");
  }
  std::vector<std::byte> scratch;
  while (!out.empty()) {
    const int64_t page = offset / BlobStore::kPageBytes;
    const int64_t page_start = page * BlobStore::kPageBytes;
    const int64_t page_length = blob_page_length(length, page);
    const int64_t skip = offset - page_start;
    const int64_t take = std::min<int64_t>(page_length - skip, static_cast<int64_t>(out.size()));
    if (take == page_length) {
      impl_->read_page(page, out.first(static_cast<size_t>(take)));
    } else {
      scratch.resize(static_cast<size_t>(page_length));
      impl_->read_page(page, scratch);
      std::copy_n(scratch.begin() + skip, take, out.begin());
    }
    out = out.subspan(static_cast<size_t>(take));
    offset += take;
  }
}

BlobStore::BlobStore(FileSystem& files, std::string folder, FatalHandler fatal)
    : state_(std::make_shared<BlobStoreState>(files, std::move(folder), std::move(fatal))) {
  files.make_folder(state_->folder);
  std::set<std::string> present;
  for (FolderEntry& entry : files.list(state_->folder)) present.insert(std::move(entry.name));
  const auto need = [&](const std::string& name) {
    if (!present.contains(name)) files.make_folder(state_->folder + "/" + name);
  };
  for (int number = 0; number < kBuckets; ++number) need(bucket_name(number));
  need("tmp");
  files.sync_folder(state_->folder);
}

BlobStore::~BlobStore() = default;

BlobWriter BlobStore::begin(std::string name, int64_t length, BlobSpace space) {
  if (!is_blob_name(name) || length < 0) throw core::Error("internal", "a blob has a name or length that cannot be");
  const bool taken = state_->pins.with([&](const auto& pins) { return pins.contains(name); }) ||
                     state_->files.open(state_->path(name)) != nullptr;
  if (taken) throw core::Error("storage_failed", "a shard would be written twice").with_internal("blob '" + name + "'");
  return BlobWriter(std::make_unique<BlobWriter::Impl>(state_, std::move(name), length, space));
}

void BlobStore::look_in(RankBlobs& ranks) { state_->ranks.push_back(&ranks); }

std::unique_ptr<File> BlobStore::open_file(const std::string& name) const {
  std::unique_ptr<File> file = state_->files.open(state_->path(name));
  for (RankBlobs* ranks : state_->ranks) {
    if (file == nullptr && blob_rank(name) != 0) file = ranks->open(name);
  }
  return file;
}

BlobReader BlobStore::open(const BlobRef& ref) const {
  if (!is_blob_name(ref.name) || ref.length < 0) throw_damaged(ref, "its row cannot be right");
  std::unique_ptr<File> file = open_file(ref.name);
  if (!file) throw_damaged(ref, "the file is missing");
  if (file->size() != file_bytes(ref.length)) throw_damaged(ref, "the file has another length");
  std::vector<std::byte> footer(static_cast<size_t>(blob_footer_bytes(ref.length)));
  if (file->read_at(ref.length, footer) != footer.size()) throw_damaged(ref, "it is cut off");
  if (blob_checksum(footer) != ref.checksum) throw_damaged(ref, "its footer");
  auto reader = std::make_unique<BlobReader::Impl>();
  reader->ref = ref;
  reader->file = std::move(file);
  reader->pages = decode_blob_footer(ref.length, footer);
  return BlobReader(std::move(reader));
}

void BlobStore::read(const BlobRef& ref, int64_t offset, std::span<std::byte> out) const {
  open(ref).read(offset, out);
}

void BlobStore::verify(const BlobRef& ref) const {
  const BlobReader reader = open(ref);
  std::vector<std::byte> page(static_cast<size_t>(std::min(ref.length, kPageBytes)));
  for (int64_t offset = 0; offset < ref.length; offset += kPageBytes) {
    reader.read(offset, std::span(page).first(static_cast<size_t>(std::min(kPageBytes, ref.length - offset))));
  }
}

int64_t BlobStore::file_bytes(int64_t length) { return length + blob_footer_bytes(length); }

std::vector<StoredBlob> BlobStore::list() const {
  std::vector<StoredBlob> blobs = list_own();
  for (RankBlobs* ranks : state_->ranks) {
    std::vector<StoredBlob> more = ranks->list();
    std::move(more.begin(), more.end(), std::back_inserter(blobs));
  }
  return blobs;
}

std::vector<StoredBlob> BlobStore::list_own() const {
  std::vector<StoredBlob> blobs;
  for (int number = 0; number < kBuckets; ++number) {
    for (FolderEntry& entry : state_->files.list(state_->folder + "/" + bucket_name(number))) {
      if (!entry.is_folder && is_blob_name(entry.name)) blobs.push_back({std::move(entry.name), entry.bytes});
    }
  }
  return blobs;
}

int64_t BlobStore::remove_temporary_files() {
  int64_t removed = 0;
  for (const FolderEntry& entry : state_->files.list(state_->temporary_folder())) {
    if (state_->files.unlink(state_->temporary_path(entry.name))) ++removed;
  }
  return removed;
}

int64_t BlobStore::remove_unnamed(std::span<const std::string> names,
                                  const std::function<bool(const std::string&)>& is_named) {
  int64_t removed = 0;
  std::vector<std::string> elsewhere;
  for (const std::string& name : names) {
    // First the pin, then the rows: a pin is released only after the row is durable.
    if (state_->pins.with([&](const auto& pins) { return pins.contains(name); })) continue;
    if (is_named(name)) continue;
    if (state_->files.unlink(state_->path(name))) {
      ++removed;
    } else if (blob_rank(name) != 0) {
      elsewhere.push_back(name);
    }
  }
  if (elsewhere.empty()) return removed;
  for (RankBlobs* ranks : state_->ranks) removed += ranks->remove(elsewhere);
  return removed;
}

void BlobStore::copy_from(const BlobStore& source, BlobCopy how,
                          const std::function<bool(const std::string&)>& is_named) {
  std::set<std::string> buckets, copied;
  for (const StoredBlob& blob : source.list_own()) {
    if (!is_named(blob.name)) continue;
    const std::string from = source.state_->path(blob.name);
    const std::string to = state_->path(blob.name);
    const bool is_linked = how == BlobCopy::kLinkOrBytes && state_->files.link(from, to);
    if (!is_linked) copy_file(state_->files, state_->files.open(from), to);
    buckets.insert(state_->bucket(blob.name));
    copied.insert(blob.name);
  }
  // A copy has the blobs of all ranks in one folder.
  for (RankBlobs* ranks : source.state_->ranks) {
    for (const StoredBlob& blob : ranks->list()) {
      if (!is_named(blob.name) || !copied.insert(blob.name).second) continue;
      copy_file(state_->files, ranks->open(blob.name), state_->path(blob.name));
      buckets.insert(state_->bucket(blob.name));
    }
  }
  for (const std::string& bucket : buckets) state_->files.sync_folder(bucket);
}

int64_t BlobStore::free_bytes() const { return state_->files.free_bytes(state_->folder); }

}  // namespace meshd::storage
