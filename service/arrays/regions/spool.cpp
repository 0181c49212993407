#include "service/arrays/regions/spool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/store.h"

namespace meshd::arrays {

Spool::Spool(storage::Store& store, std::string name, int64_t bytes, quotas::ArrayCharge charge)
    : store_(store), bytes_(bytes), charge_(std::move(charge)), blob_(store) {
  blob_.begin(std::move(name), bytes);
}

void Spool::write(std::span<const std::byte> bytes) {
  blob_.write(0, done_, bytes);
  done_ += static_cast<int64_t>(bytes.size());
}

std::shared_ptr<const storage::BlobReader> Spool::seal() {
  return std::make_shared<const storage::BlobReader>(store_.blobs().open(blob_.sync().front()));
}

ByteSource paged_source(std::shared_ptr<const storage::BlobReader> blob) {
  struct Page {
    int64_t number = -1;
    std::vector<std::byte> bytes;
  };
  return [blob = std::move(blob), page = std::make_shared<Page>()](int64_t offset, std::span<std::byte> out) {
    while (!out.empty()) {
      const int64_t number = offset / storage::BlobStore::kPageBytes;
      const int64_t start = number * storage::BlobStore::kPageBytes;
      if (page->number != number) {
        page->number = -1;
        page->bytes.resize(static_cast<size_t>(std::min(storage::BlobStore::kPageBytes, blob->length() - start)));
        blob->read(start, page->bytes);
        page->number = number;
      }
      const auto skip = static_cast<size_t>(offset - start);
      const size_t count = std::min(out.size(), page->bytes.size() - skip);
      std::memcpy(out.data(), page->bytes.data() + skip, count);
      out = out.subspan(count);
      offset += static_cast<int64_t>(count);
    }
  };
}

ByteSource memory_source(std::span<const std::byte> bytes) {
  return
      [bytes](int64_t offset, std::span<std::byte> out) { std::memcpy(out.data(), bytes.data() + offset, out.size()); };
}

}  // namespace meshd::arrays
